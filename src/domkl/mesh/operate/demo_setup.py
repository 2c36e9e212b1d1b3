"""What the demonstration of a mesh needs: samples, free ports, a folder, and cables to cut."""

import csv
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from domkl.data.catalog import DATASETS
from domkl.data.sets import load_set
from domkl.data.streams import deal
from domkl.errors import ParameterError
from domkl.mesh.config.file import MeshConfig, write_config
from domkl.mesh.config.folder import MESH, init_mesh
from domkl.mesh.config.settings import members_at
from domkl.mesh.config.topology import named_edges
from domkl.mesh.operate.relay import Cable
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.base import Address
from domkl.typing import Floats

HOST = "127.0.0.1"
PORTS = range(23000, 32000)
N_LAGS = 5


def dealt_traffic(n_learners: int, n_rounds: int) -> tuple[Floats, Floats, Range]:
    """The shipped series as (T, K, d) and (T, K), in vehicles an hour, and its declared range."""
    made = load_set("traffic", scale="none", n_lags=N_LAGS)
    x, y = deal(made.X, made.y, n_learners)
    if n_rounds > len(y):
        raise ParameterError(
            f"rate * seconds must be at most {len(y)} for {n_learners} learners, as the series is"
            f" no longer, got {n_rounds}"
        )
    low, high = DATASETS["traffic"].ranges["traffic_volume"]
    return x, y, Range("volume", float(low), float(high))


def demo_config(names: tuple[str, ...], target: Range, seed: int) -> MeshConfig:
    """A ring with chords on this machine, at ports that are free."""
    ports = _free_ports(2 * len(names))
    members = tuple(
        replace(each, address=Address(HOST, a), http=Address(HOST, b))
        for each, a, b in zip(members_at(names, [HOST]), ports[::2], ports[1::2], strict=True)
    )
    hours = tuple(Range(f"{k} h before", target.low, target.high) for k in range(1, N_LAGS + 1))
    edges = named_edges("ring-with-chords", names)
    return MeshConfig(members, edges, target, hours, seed=seed, name="demo", checkpoint_every=20)


def make_demo(folder: Path, config: MeshConfig, x: Floats, y: Floats, cut: str) -> list[Cable]:
    """Make the mesh and every learner's samples; return the cables of the learner to cut off."""
    mesh, cables = folder / "mesh", _cables(config, cut)
    init_mesh(mesh, config)
    for name, cable in cables.items():  # of two neighbors the one whose name sorts first dials
        if name < cut:
            _redirect(mesh / name / MESH, config, {cut: cable.listen})
    later = {name: cable.listen for name, cable in cables.items() if name > cut}
    _redirect(mesh / cut / MESH, config, later)
    for k, name in enumerate(config.names):
        rows = np.column_stack([x[:, k], y[:, k]])
        _write_samples(samples_of(folder, name), config, rows)
    return list(cables.values())


def samples_of(folder: Path, name: str) -> Path:
    """The file with a learner's samples."""
    return folder / f"{name}.csv"


def _write_samples(path: Path, config: MeshConfig, rows: Floats) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(each.name for each in config.inputs), config.target.name])
        writer.writerows(rows.tolist())


def _cables(config: MeshConfig, cut: str) -> dict[str, Cable]:
    """One cable for each edge of the learner, to the end that is dialed."""
    near = config.neighbors(cut)
    ports = _free_ports(len(near), after=max(m.http.port for m in config.members))
    found = {}
    for name, port in zip(near, ports, strict=True):
        dialed = max(name, cut)
        found[name] = Cable(Address(HOST, port), config.member(dialed).address)
    return found


def _redirect(path: Path, config: MeshConfig, addresses: Mapping[str, Address]) -> None:
    members = tuple(
        replace(each, address=addresses.get(each.name, each.address)) for each in config.members
    )
    write_config(path, replace(config, members=members))


def _free_ports(n: int, after: int | None = None) -> list[int]:
    """Free ports, below those that the system uses for outgoing connections.

    Demonstrations that start at the same time look in different places.
    """
    if after is None:
        after = PORTS.start + os.getpid() * 64 % (len(PORTS) // 2)
    found: list[int] = []
    for port in range(after + 1, PORTS.stop):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            found.append(port)
        if len(found) == n:
            return found
    raise ParameterError(f"{n} free ports from {after + 1} to {PORTS.stop - 1} are needed")
