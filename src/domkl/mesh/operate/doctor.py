"""Looks for what keeps a node from running, before it runs: one finding for each check.

Nothing is changed, and nothing but the ports of the mesh is asked. A *problem* keeps a node from
starting or will soon stop it; a *warning* should be looked at.
"""

import ctypes
import errno
import importlib.metadata
import os
import platform
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import domkl
from domkl.errors import DomklError
from domkl.mesh.config import certificates
from domkl.mesh.config.copies import pending
from domkl.mesh.config.file import Member, MeshConfig, read_config
from domkl.mesh.config.folder import MESH
from domkl.mesh.operate.status import ask
from domkl.mesh.process_log import WARNED, exposed

Verdict = Literal["ok", "warning", "problem"]
NEEDED = ("numpy", "numba", "cryptography", "starlette", "uvicorn", "prometheus-client")
OPTIONAL = ("eclipse-zenoh", "paho-mqtt")
FEW_BYTES, LITTLE_BYTES = 50 * 10**6, 500 * 10**6  # free on disk: a problem, a warning
FEW_FILES, LITTLE_FILES = 128, 512  # descriptors; a node serves 256 connections
TIMEX, UNSYNCHRONISED = 512, 5  # bytes that are enough for struct timex; its answer
MADE = 1_700_000_000  # seconds since 1970; no clock that is right is before this


class Finding(NamedTuple):
    """What one check has found."""

    check: str
    verdict: Verdict
    text: str


def examine(folder: Path | None) -> list[Finding]:
    """All findings about this machine, and about the folder of a mesh or of a node."""
    findings = [*_versions(), _clock(), _descriptors(), _cache(), _disk(folder or Path())]
    if folder is None:
        return findings
    try:
        config = read_config(folder / MESH)
        learners = _learners(folder, config)
    except DomklError as error:
        return [*findings, Finding("mesh file", "problem", str(error))]
    findings.append(_mesh_file(folder, config, learners))
    for name, path in learners.items():
        findings += [_certificate(name, path), _ports(config.member(name), path.parent)]
    return findings


def _learners(folder: Path, config: MeshConfig) -> dict[str, Path]:
    """The learners whose folders are here: of a mesh, or the one that this folder is of."""
    if (folder / certificates.NODE).exists():
        name = certificates.common_name(folder / certificates.NODE)
        config.member(name)
        return {name: folder}
    return {name: folder / name for name in config.names if (folder / name).is_dir()}


def _versions() -> Iterator[Finding]:
    text = f"domkl {domkl.__version__}, Python {platform.python_version()}, {platform.machine()}"
    yield Finding("versions", "ok", text)
    found = {name: _version(name) for name in (*NEEDED, *OPTIONAL)}
    missing = [name for name in NEEDED if found[name] is None]
    there = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    lacks = f"; not installed, needed for a mesh: {', '.join(missing)}" if missing else ""
    yield Finding("packages", "problem" if missing else "ok", there + lacks)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _clock(now: Callable[[], float] = time.time) -> Finding:
    text = f"{datetime.fromtimestamp(now(), UTC).isoformat(timespec='seconds')}"
    if now() < MADE:
        return Finding("clock", "problem", f"{text} is long ago; certificates are not valid yet")
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX))
    except (OSError, AttributeError):
        state = None  # no Linux
    if state == UNSYNCHRONISED:
        return Finding("clock", "warning", f"{text}, not synchronised; set up NTP")
    return Finding("clock", "ok", text if state is None else f"{text}, synchronised")


def _descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    verdict: Verdict = "problem" if soft < FEW_FILES else "warning" if soft < LITTLE_FILES else "ok"
    more = "" if verdict == "ok" else f"; a node needs {LITTLE_FILES}: ulimit -n, LimitNOFILE="
    return Finding("descriptors", verdict, f"{soft} open files, at most {hard}{more}")


def _cache() -> Finding:
    from domkl.core import numba_internals, vectors

    place = numba_internals.cache_folder(vectors.copied)
    if place is None:
        text = "compiled code cannot be stored; each start compiles for a minute"
        return Finding("compile cache", "warning", f"{text}: set NUMBA_CACHE_DIR")
    path = Path(place)
    n = sum(1 for _ in path.glob("*.nbi"))
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return Finding("compile cache", "warning", f"{path} cannot be written: {n} functions in it")
    text = f"{path}: {n} functions" if n else f"{path}: empty, the first start compiles"
    return Finding("compile cache", "ok", text)


def _disk(folder: Path) -> Finding:
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return Finding("disk", "problem", f"{folder}: {error.strerror}")
    free = found.f_bavail * found.f_frsize
    verdict: Verdict = "ok" if free >= LITTLE_BYTES else "warning"
    text = f"{folder}: {free / 1e9:.1f} GB free"
    if free < FEW_BYTES or (found.f_files and not found.f_favail):
        verdict, text = "problem", f"{text}, {found.f_favail} files; make room"
    elif not os.access(folder, os.W_OK):
        verdict, text = "problem", f"{folder} cannot be written by this user"
    return Finding("disk", verdict, text)


def _mesh_file(folder: Path, config: MeshConfig, learners: dict[str, Path]) -> Finding:
    text = f"{folder / MESH}: {len(config.members)} learners, {len(learners)} of them here"
    if folder in learners.values():
        return Finding("mesh file", "ok", text)
    if pending(folder, list(learners)):
        text = f"{folder / MESH} was edited and is not copied to the learners; domkl mesh apply"
        return Finding("mesh file", "warning", f"{text} {folder}")
    return Finding("mesh file", "ok", text)


def _certificate(name: str, folder: Path) -> Finding:
    check, path = f"certificate of {name}", folder / certificates.NODE
    if not path.exists():
        return Finding(check, "warning", f"{path} is missing; {name} can have no neighbors")
    try:
        begins, ends = certificates.validity(path)
    except DomklError as error:
        return Finding(check, "problem", str(error))
    now = datetime.now(UTC)
    text = f"{(ends - now).days} days left, until {ends.date()}"
    if now < begins:
        return Finding(check, "problem", f"not valid before {begins.isoformat()}; set the clock")
    if now > ends:
        renew = "domkl mesh rotate-keys"
        return Finding(check, "problem", f"expired on {ends.date()}; renew it: {renew}")
    shown = exposed(folder)
    if shown:
        return Finding(check, "warning", f"{text}; others can read {shown[0]}: chmod go=")
    return Finding(check, "warning" if ends - now < WARNED else "ok", text)


def _ports(member: Member, folder: Path) -> Finding:
    """Whether a node could listen, or its own node does."""
    check = f"ports of {member.name}"
    problems = {str(each): _bind(*each) for each in (member.address, member.http)}
    taken = [where for where, problem in problems.items() if problem]
    if errno.EADDRNOTAVAIL in problems.values():
        text = f"{member.address} is no address of this machine; it runs elsewhere"
        return Finding(check, "ok", text)
    if not taken:
        return Finding(check, "ok", f"{member.address.port} and {member.http.port} are free")
    state = ask(member, folder)
    if state is not None and state.get("learner") == member.name:
        return Finding(check, "ok", f"its node runs, process {state.get('pid')}")
    text = f"{' and '.join(taken)}: {os.strerror(problems[taken[0]])}"
    return Finding(check, "problem", f"{text}; no node of {member.name} answers there")


def _bind(host: str, port: int) -> int:
    """The error number of listening there; 0 if it is possible."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family):
            return 0
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    except OSError as error:
        return error.errno or errno.EIO


def as_text(findings: Sequence[Finding]) -> str:
    """One line for each finding."""
    width = max(len(each.check) for each in findings)
    return "\n".join(f"{f.verdict:8} {f.check:{width}}  {f.text}" for f in findings)


def code_of(findings: Sequence[Finding]) -> int:
    """The exit code: 4 if there is a problem, else 0."""
    return 4 if any(each.verdict == "problem" for each in findings) else 0
