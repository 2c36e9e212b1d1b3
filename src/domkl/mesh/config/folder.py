"""The folder of a mesh: make it, add and remove learners, renew keys.

    DIR/mesh.toml                      the mesh file that all learners share
    DIR/mesh.toml.copied               digest of what was copied to the learners last
    DIR/authority/ca.pem, ca.key       whoever has this key can join; keep it off the devices
    DIR/<learner>/                     for its device: mesh.toml ca.pem node.pem node.key token
    DIR/<learner>/data/                what the node writes
    DIR/router/                        of the router, if the mesh has one: ca.pem node.pem ...
    DIR/removed/                       folders of learners that were removed

New folders are made under a hidden name first and then renamed; a failure leaves nothing behind.
"""

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from domkl import checks, storage
from domkl.errors import DataError, ParameterError
from domkl.mesh.config import DAYS, certificates
from domkl.mesh.config import MESH as MESH
from domkl.mesh.config.copies import copy_edited, note_copied
from domkl.mesh.config.file import Member, MeshConfig, read_config, write_config
from domkl.mesh.config.topology import Edges

AUTHORITY, REMOVED, ROUTER = "authority", "removed", "router"
TOKEN, UI_TOKEN = "token", "ui-token"  # of a learner, and of the page of `domkl mesh ui`
RESERVED = (AUTHORITY, REMOVED, ROUTER)


def init_mesh(folder: Path, config: MeshConfig, *, days: int = DAYS) -> None:
    """Make the folder of a new mesh; a folder that holds anything is refused."""
    checks.whole("days", days, 1)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise ParameterError(f"folder must be new or empty, got {folder}; choose another name")
    for name in config.names:
        _check_free(name)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _draft(folder.parent) as draft:
            root = draft / "mesh"
            root.mkdir(mode=0o700)
            certificates.create_authority(root / AUTHORITY, config.name)
            (root / AUTHORITY).chmod(0o700)
            for name in _hosts(config):
                _make_part(root, root / name, config, days)
            write_config(root / MESH, config)
            note_copied(root)
            root.replace(folder)
    except OSError as error:
        raise ParameterError(
            f"folder must be one that can be written, got {folder}: {error.strerror}"
        ) from None
    finally:
        for path in made:
            with contextlib.suppress(OSError):  # it is not empty
                path.rmdir()


def read_mesh(folder: Path) -> MeshConfig:
    """Read the mesh file of a mesh's folder."""
    if not folder.is_dir():
        raise DataError(f"folder must be one that domkl mesh init made, got {folder}")
    return read_config(folder / MESH)


def apply_mesh(folder: Path) -> tuple[MeshConfig, list[str]]:
    """Read the mesh file, and copy it to learners if it was edited; return where it was copied."""
    config = read_mesh(folder)
    return config, copy_edited(folder, config, list(_hosts(config)))


def add_learner(folder: Path, member: Member, edges: Edges, *, days: int = DAYS) -> MeshConfig:
    """Add a learner with its edges; every folder gets the new mesh file."""
    checks.whole("days", days, 1)
    config, _ = apply_mesh(folder)
    _check_free(member.name)
    if member.name in config.names:
        raise ParameterError(f"learner must be a new one, got {member.name!r}, which is there")
    if (folder / member.name).exists():
        raise ParameterError(
            f"{folder / member.name} must not exist; it is no learner of the mesh: move it away"
        )
    new = replace(config, members=(*config.members, member), edges=(*config.edges, *edges))
    with _draft(folder) as draft:
        made = draft / member.name
        _make_part(folder, made, new, days)
        made.replace(folder / member.name)
        try:
            _agree(folder, config, new)
        except BaseException:
            shutil.rmtree(folder / member.name)
            raise
    return new


def remove_learner(folder: Path, name: str, edges: Edges = ()) -> tuple[MeshConfig, Path | None]:
    """Remove a learner and its edges; ``edges`` are new ones between the others.

    Its folder is kept under DIR/removed, without the key.
    """
    config, _ = apply_mesh(folder)
    config.member(name)
    new = replace(
        config,
        members=tuple(each for each in config.members if each.name != name),
        edges=(*(edge for edge in config.edges if name not in edge), *edges),
    )
    _agree(folder, config, new)
    if not (folder / name).is_dir():
        return new, None
    (folder / REMOVED).mkdir(mode=0o700, exist_ok=True)
    kept, number = folder / REMOVED / name, 2
    while kept.exists():
        kept, number = folder / REMOVED / f"{name}-{number}", number + 1
    (folder / name).replace(kept)
    (kept / certificates.NODE_KEY).unlink(missing_ok=True)
    return new, kept


def rotate_keys(
    folder: Path, names: Sequence[str] = (), *, days: int = DAYS, keep_tokens: bool = False
) -> MeshConfig:
    """Give learners, or all of them, router and page, new keys, certificates and tokens."""
    checks.whole("days", days, 1)
    config = read_mesh(folder)
    chosen = names or _hosts(config)
    for name in chosen:
        if name != ROUTER or config.router is None:
            config.member(name)
        _check_here(folder, name)
    for name in chosen:
        hosts = [_hosts(config)[name]]
        certificates.issue(folder / AUTHORITY, name, folder / name, days=days, hosts=hosts)
    tokens = [folder / name / TOKEN for name in chosen] + ([] if names else [folder / UI_TOKEN])
    for path in tokens:
        if path.exists() and not keep_tokens:
            write_token(path)
    return config


def begin_authority(folder: Path) -> MeshConfig:
    """Make a new authority beside the old one; learners trust both."""
    config = _here(folder)
    if _n_authorities(folder) > 1:
        raise ParameterError(
            "authority must be one before another is made, got two; end the last change first:"
            " rotate-keys, then rotate-keys --authority retire"
        )
    certificates.rotate_authority(folder / AUTHORITY)
    _trust(folder, config)
    return config


def retire_authority(folder: Path) -> MeshConfig:
    """Stop trusting the old authority; refused while a learner has a certificate of it."""
    config = _here(folder)
    if _n_authorities(folder) < 2:
        raise ParameterError(
            "there is no old authority to retire; rotate-keys --authority new makes a new one"
        )
    for name in _hosts(config):
        if not certificates.is_of_newest(folder / AUTHORITY, folder / name / certificates.NODE):
            raise ParameterError(
                f"certificate of {name} must be of the new authority; rotate-keys first"
            )
    certificates.retire_authority(folder / AUTHORITY)
    _trust(folder, config)
    return config


def _here(folder: Path) -> MeshConfig:
    config = read_mesh(folder)
    for name in _hosts(config):
        _check_here(folder, name)
    return config


def _hosts(config: MeshConfig) -> dict[str, str]:
    """The host of every learner, and of the router."""
    found = {member.name: member.address.host for member in config.members}
    return found if config.router is None else found | {ROUTER: config.router.host}


def _trust(folder: Path, config: MeshConfig) -> None:
    for name in _hosts(config):
        certificates.trust(folder / AUTHORITY, folder / name)


def _n_authorities(folder: Path) -> int:
    return (folder / AUTHORITY / certificates.CA).read_text().count("BEGIN CERTIFICATE")


def _make_part(root: Path, folder: Path, config: MeshConfig, days: int) -> None:
    """Make the folder of a learner or of the router, which it is called after."""
    folder.mkdir(mode=0o700)
    hosts = [_hosts(config)[folder.name]]
    certificates.issue(root / AUTHORITY, folder.name, folder, days=days, hosts=hosts)
    write_config(folder / MESH, config)
    if folder.name != ROUTER:
        write_token(folder / TOKEN)


def write_token(path: Path) -> None:
    """Write a new secret that only its owner can read."""
    storage.write(path, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600)


def _agree(folder: Path, old: MeshConfig, new: MeshConfig) -> None:
    """Write the new mesh file to every folder, the mesh's own last; on failure restore the old."""
    paths = [folder / name / MESH for name in _hosts(new) if (folder / name).is_dir()]
    done: list[Path] = []
    try:
        for path in (*paths, folder / MESH):
            write_config(path, new)
            done.append(path)
        note_copied(folder)
    except BaseException:
        for path in done:
            with contextlib.suppress(OSError):
                write_config(path, old)
        raise


def _check_free(name: str) -> None:
    if name in RESERVED:
        raise ParameterError(f"learner must not be called {', '.join(RESERVED)}, got {name!r}")


def _check_here(folder: Path, name: str) -> None:
    if not (folder / name).is_dir():
        raise DataError(f"{folder / name} must hold the files of {name}; it is missing")


@contextlib.contextmanager
def _draft(parent: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=".domkl-", dir=parent) as name:
        yield Path(name)
