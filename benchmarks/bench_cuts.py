"""What a network costs when it is cut into parts: edges between parts, rows sent each round.

    python benchmarks/bench_cuts.py [--learners K] [--quick] [--json FILE]

Parts are made by METIS (the extra `mpi` brings it), by blocks of consecutive learners, and at
random. A part sends a learner's row once to each other part that has a neighbor of it, however many
neighbors those are.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import domkl
from domkl.graphs.metis import metis_parts
from domkl.graphs.partition import blocks, cut_of

ROW = 17 * (100 * 4 + 8)  # bytes: theta in float32 and the losses in float64, P = 17, M = 50


def graphs(n_learners):
    side = round(n_learners**0.5)
    yield "sparse, mean degree 4", domkl.Graph.sparse(n_learners, 4, seed=0)
    yield "random regular, degree 4", domkl.Graph.random_regular(n_learners, 4, seed=0)
    yield "small world, 10 % rewired", domkl.Graph.small_world(n_learners, 4, 0.1, seed=0)
    yield "scale free, 2 links", domkl.Graph.scale_free(n_learners, 2, seed=0)
    yield "grid", domkl.Graph.grid(side, side)
    yield "ring", domkl.Graph.ring(n_learners)


def partitions(graph, n_parts):
    start = time.process_time()
    part = metis_parts(graph, n_parts)
    yield "METIS", part, time.process_time() - start
    yield "blocks", blocks(graph.n_learners, n_parts), 0.0
    yield "random", np.random.default_rng(0).integers(0, n_parts, graph.n_learners), 0.0


def cost(graph, part, n_parts):
    """Share of edges cut; rows sent per learner and round; largest part over the mean."""
    cut = cut_of(graph, part)
    mean = graph.n_learners / n_parts
    return cut.edges / graph.n_edges, cut.rows / graph.n_learners, cut.largest / mean


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="a small graph, to see that it runs")
    parser.add_argument("--json", type=Path, help="write what is measured")
    options = parser.parse_args()
    n_learners = 2000 if options.quick else options.learners
    print(f"{n_learners} learners; a row is {ROW} bytes")
    print("graph                       parts  by       cut  rows/learner  B/learner  largest    s")
    found = []
    for name, graph in graphs(n_learners):
        for n_parts in (2, 16, 128):
            for how, part, seconds in partitions(graph, n_parts):
                cut, rows, largest = cost(graph, part, n_parts)
                found.append({"graph": name, "parts": n_parts, "by": how, "cut": cut, "rows": rows})
                print(
                    f"{name:26s} {n_parts:6d}  {how:7s} {cut:5.3f} {rows:13.3f} {rows * ROW:10.0f}"
                    f" {largest:8.2f} {seconds:4.1f}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
