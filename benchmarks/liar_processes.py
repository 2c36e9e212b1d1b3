"""What one liar among six real nodes costs the honest ones.

    DOMKL_DATA=folder python benchmarks/liar_processes.py [--rounds N] [--sets NAME ...]
                                                          [--algorithms NAME ...] [--lies NAME ...]

The network, the streams, the lies and what is printed are those of ``bench_liar.py``, but each
learner is a process of its own, with TLS, log and guard, and reads its samples from a CSV file.
The liar is a node whose offers are changed before they are sent. Samples are learned as fast as
they can be, so that results repeat; but a learner that nobody heeds runs ahead of the others' time,
and is then not heeded again where the data change with time ("single" on Air quality). With
``--rate 50`` all learn 50 samples a second, on a machine that can do that.
"""

import argparse
import csv
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from attack import HOST, Process, free_ports
from bench_liar import EDGES, LIARS, K, M, show, streams
from tqdm import tqdm

from domkl.algorithms.registry import find
from domkl.cli.main import main as domkl
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.config.settings import Member, MeshConfig
from domkl.mesh.node.node import Node
from domkl.mesh.protocol import events
from domkl.mesh.protocol.model import Range
from domkl.mesh.testing.liars import LIES, Liar
from domkl.mesh.transports.base import Address

LIAR = LIARS[0]
HONEST = [k for k in range(K) if str(k) != LIAR]
NAMES = [f"n{k}" for k in range(K)]


class LiarProcess(Process):
    """A node that lies; this file is its program."""

    def __init__(self, folder, lie, since, *options):
        self._lie = [__file__, "--as", lie, str(since)]
        super().__init__(folder, *options)

    def command(self):
        return [sys.executable, *self._lie]


def lie_as_node(kind, since, given):
    """Run the command line; this process's nodes change their offers."""
    liar, honest = Liar(kind, since), Node._carry_out

    def carry_out(self, effects, channel=0):
        protocol = self.protocols[channel]
        told = [
            each._replace(data=liar.change(each.data, protocol.learned, protocol.edges.layout))
            if isinstance(each, events.Send)
            else each
            for each in effects
        ]
        honest(self, told, channel)

    Node._carry_out = carry_out
    return domkl(given)


def mesh_of(folder, algorithm, n_inputs, is_guarded):
    ports = iter(free_ports(2 * K))
    config = MeshConfig(
        members=tuple(
            Member(name, Address(HOST, next(ports)), Address(HOST, next(ports))) for name in NAMES
        ),
        edges=tuple((NAMES[a], NAMES[b]) for a, b in EDGES),
        target=Range("y", 0.0, 1.0),
        inputs=tuple(Range(f"x{i}", 0.0, 1.0) for i in range(n_inputs)),
        algorithm=find(algorithm).make(),
        n_frequencies=M,
        guard=is_guarded,
    )
    init_mesh(folder, config)


def write_stream(path, x, y):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*(f"x{i}" for i in range(x.shape[1])), "y"])
        rows.writerows(
            [*map(float, inputs), float(label)] for inputs, label in zip(x, y, strict=True)
        )


def run(algorithm, name, n_rounds, lie=None, *, is_guarded=True, rate=0.0):
    """Return the errors (T, K), those of the learners without neighbors, and who was distrusted.

    Of the latter how often the liar was, and how often honest learners.
    """
    x, y = streams(name, n_rounds)
    with tempfile.TemporaryDirectory() as root, ExitStack() as stack:
        folder = Path(root) / "mesh"
        mesh_of(folder, algorithm, x.shape[2], is_guarded)
        nodes = []
        for k, each in enumerate(NAMES):
            source = Path(root) / f"{each}.csv"
            write_stream(source, x[:, k], y[:, k])
            given = ("--csv", str(source), "--rate", str(rate))
            is_liar = lie is not None and str(k) == LIAR
            process = (
                LiarProcess(folder / each, lie, n_rounds // 10, *given)
                if is_liar
                else Process(folder / each, *given)
            )
            nodes.append(stack.enter_context(process))
        assert all(node.wait_ready() for node in nodes)
        for node in nodes:
            while node.ask("/state")[1]["n_learned"] < n_rounds:
                assert node.is_alive, node.log.read_text()[-2000:]
                time.sleep(0.2)
        errors, alone = np.full((2, *y.shape), np.nan)
        for k, node in enumerate(nodes):
            for number, _, label, told, _, told_alone, _ in node.ask("/recent")[1]:
                errors[number - 1, k], alone[number - 1, k] = told - label, told_alone - label
        counts = [0, 0]
        for k in HONEST:
            for peer, edge in nodes[k].ask("/state")[1]["neighbors"].items():
                counts[peer != NAMES[int(LIAR)]] += edge["n_distrusted"]
    return errors, alone, counts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=600, help="1000 at most")
    parser.add_argument("--sets", nargs="+", default=["traffic", "air-quality"])
    parser.add_argument("--algorithms", nargs="+", default=["domkl", "domkrls"])
    parser.add_argument("--lies", nargs="+", default=list(LIES))
    parser.add_argument("--rate", type=float, default=0.0, help="samples a second (0: all at once)")
    args = parser.parse_args()
    last = args.rounds - args.rounds // 5
    for name in args.sets:
        for algorithm in args.algorithms:
            given = algorithm, name, args.rounds
            base, alone, _ = run(*given, is_guarded=False, rate=args.rate)
            print(
                f"{name}, {algorithm}: rounds from {last} on, and all, over honest; both over"
                " alone; distrusted: liar, honest",
                flush=True,
            )
            show("alone", last, HONEST, alone, base, alone)
            for lie in tqdm([None, *args.lies], leave=False):
                errors, _, counts = run(*given, lie, rate=args.rate)
                show(lie or "nobody", last, HONEST, errors, base, alone, counts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        sys.exit(lie_as_node(sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
    main()
