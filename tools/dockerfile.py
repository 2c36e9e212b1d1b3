"""Try the steps of deploy/Dockerfile without Docker: python tools/dockerfile.py WORK

Every FROM is a fresh Debian root that mmdebstrap makes in the folder WORK, and every RUN runs in it
by chroot, with the user, the folder and the variables that the Dockerfile has set by then. At the
end a learner's folder is mounted, the image's command is started, and its health check is run
until it says that the node is well. It needs root and mmdebstrap; use it in a virtual machine.

Not tried are what only Docker does: layers, networks, restarts.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
KNOWN = ("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN",
         "STOPSIGNAL", "USER", "VOLUME", "WORKDIR")  # fmt: skip
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/packages"}
PATIENCE = 180.0  # seconds until the node must be well


class Step(NamedTuple):
    """An instruction, with its continued lines as one."""

    word: str
    text: str


@dataclass
class Stage:
    """A root that is being built, and what the instructions so far have set."""

    root: Path
    arguments: dict[str, str]
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH, "HOME": "/root"})
    user: str = "root"
    folder: str = "/"
    volume: str = ""
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)


def parse(text: str) -> list[Step]:
    """The instructions of a Dockerfile; one that this program does not know is an error."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    steps = [Step(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]
    for step in steps:
        if step.word not in KNOWN:
            sys.exit(f"instruction must be one of {', '.join(KNOWN)}, got {step.word}")
    return steps


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put in the values of variables, as Docker does outside of RUN; unknown ones are empty."""
    return re.sub(
        r"\$(?:\{(\w+)\}|(\w+))", lambda found: variables.get(found[1] or found[2], ""), text
    )


def executable(text: str) -> list[str]:
    """The words of a command in the form of a JSON list."""
    words: list[str] = json.loads(text)
    return words


class Builder:
    """Builds the stages of a Dockerfile as folders.

    Parameters
    ----------
    work : Path
        Where the roots are made.
    arguments : mapping of str to str
        Values for ARG, as `docker build --build-arg` takes them.
    packages : Path, optional
        A folder of wheels that pip is to use instead of an index.
    """

    def __init__(
        self, work: Path, arguments: Mapping[str, str], packages: Path | None = None
    ) -> None:
        self._work, self._arguments, self._packages = work, dict(arguments), packages
        self._given = {} if packages is None else OFFLINE
        self._globals: dict[str, str] = {}
        self._stages: dict[str, Stage] = {}
        self._stage: Stage | None = None

    def build(self, steps: Iterable[Step]) -> Stage:
        """Carry out all instructions; the last stage is the image."""
        for step in steps:
            began = time.monotonic()
            getattr(self, f"_{step.word.lower()}")(step.text)
            print(f"{time.monotonic() - began:6.1f} s  {step.word} {step.text[:90]}", flush=True)
        return self._now

    @property
    def _now(self) -> Stage:
        if self._stage is None:
            sys.exit("the first instruction besides ARG must be FROM")
        return self._stage

    def _arg(self, text: str) -> None:
        name, _, value = text.partition("=")
        where = self._globals if self._stage is None else self._stage.arguments
        where[name] = self._arguments.get(name, value)

    def _from(self, text: str) -> None:
        image, *name = re.split(r"\s+AS\s+", expand(text, self._globals))
        release = re.fullmatch(r"debian:(\w+)-slim", image)
        if release is None:
            sys.exit(f"FROM must be debian:RELEASE-slim, got {image}")
        base = self._work / f"debian-{release[1]}"
        if not base.exists():
            make_base(base, release[1])
        root = self._work / f"stage-{len(self._stages)}"
        if root.exists():
            sys.exit(f"WORK must hold no stage of an earlier try, got {root}; delete it")
        subprocess.run(["cp", "-a", base, root], check=True)
        if self._packages is not None:
            shutil.copytree(self._packages, root / "packages")
        self._stage = Stage(root, {})
        self._stages[name[0] if name else str(len(self._stages))] = self._stage

    def _run(self, text: str) -> None:
        stage = self._now
        command = f"cd {shlex.quote(stage.folder)} && {text}"
        done = subprocess.run(inside(stage, ["/bin/sh", "-c", command], self._given))
        if done.returncode:
            sys.exit(f"RUN {text} ended with {done.returncode}")

    def _copy(self, text: str) -> None:
        *sources, target = text.split()
        origin = ROOT
        if sources[0].startswith("--from="):
            origin = self._stages[sources.pop(0).removeprefix("--from=")].root
        place = self._now.root / target.lstrip("/")
        for source in sources:
            found = origin / source.lstrip("/")
            to = place / found.name if target.endswith("/") else place
            to.parent.mkdir(parents=True, exist_ok=True)
            if found.is_dir():
                leave = shutil.ignore_patterns("__pycache__") if origin == ROOT else None
                shutil.copytree(found, to, symlinks=True, ignore=leave)
            else:
                shutil.copy(found, to)

    def _env(self, text: str) -> None:
        stage = self._now
        for word in shlex.split(text):
            name, _, value = word.partition("=")
            stage.environment[name] = expand(value, stage.arguments | stage.environment)

    def _user(self, text: str) -> None:
        self._now.user = text

    def _workdir(self, text: str) -> None:
        self._now.folder = text
        (self._now.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _volume(self, text: str) -> None:
        self._now.volume = text

    def _entrypoint(self, text: str) -> None:
        self._now.entry = executable(text)

    def _cmd(self, text: str) -> None:
        self._now.command = executable(text)

    def _healthcheck(self, text: str) -> None:
        self._now.check = executable(text.partition("CMD ")[2])

    def _expose(self, text: str) -> None:
        """Nothing: a root has the network of this machine."""

    def _stopsignal(self, text: str) -> None:
        """Nothing: `try_image` sends SIGTERM."""


def make_base(base: Path, release: str) -> None:
    """Make a plain root with apt, about what debian:RELEASE-slim holds."""
    subprocess.run(
        ["mmdebstrap", "--variant=minbase", "--format=directory", release, base], check=True
    )
    shutil.copy("/etc/resolv.conf", base / "etc/resolv.conf")


def inside(stage: Stage, command: Iterable[str], given: Mapping[str, str]) -> list[str]:
    """The words that run a command in a root, with the stage's user and nothing of our own."""
    values = stage.arguments | stage.environment | dict(given)
    if stage.user != "root":
        values["HOME"] = f"/var/lib/{stage.user}"
    settings = [f"{name}={value}" for name, value in values.items()]
    who = f"{stage.user}:{stage.user}"
    return ["chroot", f"--userspec={who}", str(stage.root), "/usr/bin/env", "-i", *settings,
            *command]  # fmt: skip


def try_image(stage: Stage, learner: Path) -> Iterator[str]:
    """Start the image's command with a learner's folder, wait until it is well, and stop it."""
    volume = stage.root / stage.volume.lstrip("/")
    owner = volume.stat()
    shutil.copytree(learner, volume, dirs_exist_ok=True)
    for path in (volume, *volume.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    began = time.monotonic()
    node = subprocess.Popen(inside(stage, [*stage.entry, *stage.command], {}))
    try:
        while subprocess.run(inside(stage, stage.check, {}), stderr=subprocess.DEVNULL).returncode:
            if node.poll() is not None or time.monotonic() - began > PATIENCE:
                sys.exit("the node of the image is not well")
            time.sleep(0.2)
        yield f"well {time.monotonic() - began:.1f} s after its start"
    finally:
        node.terminate()
        code = node.wait(30)
    yield f"stopped by SIGTERM with exit code {code}"


def main() -> None:
    """Build and try the image in the folder that is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="folder for the roots; 2 GB")
    parser.add_argument("--learner", type=Path, help="folder of a learner, to start a node with")
    parser.add_argument("--packages", type=Path, help="wheels for pip, instead of an index")
    parser.add_argument("--build-arg", metavar="K=V", action="append", default=[], help="for ARG")
    args = parser.parse_args()
    arguments = dict(each.split("=", 1) for each in args.build_arg)
    args.work.mkdir(parents=True, exist_ok=True)
    builder = Builder(args.work, arguments, args.packages)
    image = builder.build(parse(DOCKERFILE.read_text()))
    if args.learner is not None:
        for line in try_image(image, args.learner):
            print(line, flush=True)


if __name__ == "__main__":
    main()
