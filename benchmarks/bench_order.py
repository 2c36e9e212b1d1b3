"""In which order to run a network: kernel by kernel or learner by learner, numbered how.

    python benchmarks/bench_order.py [--quick]

CPU microseconds per learner-step of one thread, the best of several runs: DOMKL, P = 17, M = 50,
d = 5, mean degree 4, float32, CV off. What sim/blocked.py has built in was chosen by this.
"""

import argparse
import sys
import time

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

import domkl
from domkl.sim import blocked as passes

P, M, D_IN, DEGREE = 17, 50, 5, 4


def measure(graph, n_rounds, repeats):
    rng = np.random.default_rng(0)
    X = rng.random((n_rounds, graph.n_learners, D_IN))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank(), D_IN, M, seed=0)
    call = domkl.DOMKL(), X, X[..., 0], graph, features
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        domkl.simulate(*call, cv="off", dtype="float32", threads=1, keep_predictions=False)
        seconds.append(time.process_time() - start)
    return 1e6 * min(seconds) / (n_rounds * graph.n_learners)


def in_chunks(n_kernels):
    """Let that many kernels run together through 20 000 learner-steps; 0: learner by learner."""
    passes.STRETCH = 20_000 if n_kernels else 1
    passes.LEAST_ROUNDS = 2
    passes._chunks = lambda total, threads: [
        (first, min(n_kernels, total - first)) for first in range(0, total, n_kernels)
    ]


def renumbered(graph):
    """Neighbors near each other, as far as they can be."""
    shape, ones = (graph.n_learners,) * 2, np.ones(len(graph.indices), dtype=np.int8)
    table = csr_array((ones, graph.indices.astype(np.int32), graph.indptr.astype(np.int32)), shape)
    order = reverse_cuthill_mckee(table, symmetric_mode=True)
    return domkl.Graph.from_edges(graph.n_learners, np.argsort(order)[graph.edges])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small networks, to see that it runs")
    quick = parser.parse_args().quick
    repeats = 2 if quick else 7
    print("kernels together   1     3     6     9    17   learner by learner")
    for size in (10, 100) if quick else (10, 100, 1000, 4000):
        graph = domkl.Graph.sparse(size, DEGREE, seed=0)
        found = []
        for chunk in (1, 3, 6, 9, 17, 0):
            in_chunks(chunk)
            found.append(measure(graph, max(10, min(400, 20_000 // size)), repeats))
        print(f"K = {size:6d}     " + " ".join(f"{us:5.2f}" for us in found), flush=True)
    in_chunks(0)
    size = 1000 if quick else 30_000
    sparse, side = domkl.Graph.sparse(size, DEGREE, seed=0), round(size**0.5)
    graphs = {
        "numbered at random": sparse,
        "reverse Cuthill-McKee": renumbered(sparse),
        "a grid": domkl.Graph.grid(side, side),
    }
    print(f"\nK = {size}, learner by learner, the start of the run included")
    for name, graph in graphs.items():
        print(f"  {name:24s}{measure(graph, 6, repeats):6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
