"""The folder of one node: which learner it is, what the mesh agreed on, one process at a time."""

import fcntl
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from domkl.errors import DataError, MeshError
from domkl.mesh.config import MESH as MESH
from domkl.mesh.config import certificates
from domkl.mesh.config.file import Member, MeshConfig, read_config
from domkl.mesh.transports.base import Address, Endpoint

DATA, TOKEN = "data", "token"


@dataclass(frozen=True)
class NodeFolder:
    """What a node reads in its folder."""

    path: Path
    mesh_file: Path
    name: str
    config: MeshConfig

    @property
    def data(self) -> Path:
        """Where the node writes."""
        return self.path / DATA

    @property
    def member(self) -> Member:
        """The learner's entry in the mesh file."""
        return self.config.member(self.name)

    @cached_property
    def neighbors(self) -> dict[str, Address]:
        """Where each neighbor listens, in the order of sums."""
        names = self.config.neighbors(self.name)
        return {name: self.config.member(name).address for name in names}

    @property
    def certificate(self) -> Path | None:
        """The node's certificate, or None."""
        path = self.path / certificates.NODE
        return path if path.exists() else None

    @property
    def endpoint(self) -> Endpoint:
        """What a transport of this node is made from."""
        config = self.config
        return Endpoint(
            self.name, self.neighbors, self.member.address, self.path, config.router, config.mode
        )

    def read_again(self) -> "NodeFolder":
        """The same node, by the mesh file as it is now."""
        return open_folder(self.path, self.mesh_file)


def open_folder(path: Path, mesh_file: Path | None = None) -> NodeFolder:
    """Read a node's folder; the mesh file is the given one, or in it, or in the folder above."""
    if not path.is_dir():
        raise DataError(
            f"folder must be a learner's, as domkl mesh init makes them, got {path}: no folder"
        )
    if mesh_file is None:
        here, above = path / MESH, path.absolute().parent / MESH
        mesh_file = above if above.exists() and not here.exists() else here
    config = read_config(mesh_file)
    certificate = path / certificates.NODE
    name = path.absolute().name
    if certificate.exists():
        named = certificates.common_name(certificate)
        if name in config.names and name != named:
            raise DataError(f"{certificate} must be of {name}, as its folder is, got {named}'s")
        name = named
    elif (path / config.names[0]).is_dir():
        raise DataError(
            f"folder must be that of one learner, such as {path / config.names[0]}, got {path},"
            " which is that of the mesh"
        )
    elif config.neighbors(name):
        raise DataError(f"{certificate} is missing; {name} cannot speak with its neighbors")
    config.member(name)
    return NodeFolder(path, mesh_file, name, config)


class Lock:
    """Held by the one process that may write in a folder; released when the process ends.

    The folder itself is locked: there is no file that could be deleted, or for which a full disk
    has no room.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise MeshError(
                f"{folder} must have one node at a time, and one runs; stop it first"
            ) from None

    def release(self) -> None:
        """Let another process have the folder."""
        os.close(self._handle)
