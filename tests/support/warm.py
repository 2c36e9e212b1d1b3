"""Compile what most tests call before the first one, shared out over the workers of pytest-xdist.

On a fresh clone nothing is compiled. Left alone, every worker would compile the same functions at
the same time. Here each worker claims the next family of algorithms that nobody has, because what
the hosts of one family have in common is compiled once in a process, and all store their binaries
in the one cache on disk. Where the sources are those of the last run there is nothing to do.
"""

import hashlib
import importlib.util
import os
from pathlib import Path

import numpy as np

import domkl
from domkl.algorithms import base
from domkl.algorithms.registry import ALGORITHMS
from domkl.core.exchange import DELIVERIES

HOSTS = ({"cv": "exact"}, {"cv": "off"}, {"cv": "exact", "interpreted": True})
#: families by the modules of their laws, the largest first; the types of numbers have no binaries
#: in common
FAMILIES = list(dict.fromkeys(entry.home.partition(":")[0] for entry in ALGORITHMS.values()))
CASES = [(family, dtype) for family in FAMILIES for dtype in ("float64", "float32")]
#: algorithms that the table has with other laws
MORE = {"domkl.algorithms.admm": [domkl.DOMKL(weights="message-passing")]}
HAS_RANKS = importlib.util.find_spec("mpi4py") is not None
STAMP = "domkl/compiled"


def sources():
    """A digest of the package's source."""
    digest = hashlib.sha256()
    for path in sorted(Path(domkl.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_case(family, dtype):
    """Run all algorithms of a family in all hosts."""
    entries = [each for each in ALGORITHMS.values() if each.home.startswith(f"{family}:")]
    patience, base.PATIENCE = base.PATIENCE, 0.0
    for algorithm in [each.make() for each in entries] + MORE.get(family, []):
        given = problem(algorithm)
        for host in HOSTS:
            domkl.simulate(*given, dtype=dtype, **host)
        if HAS_RANKS and algorithm.is_meshable and is_summed(algorithm):
            domkl.simulate_sharded(*given, dtype=dtype)
    base.PATIENCE = patience


def is_summed(algorithm):
    """Whether ranks can run it."""
    return all(DELIVERIES[how].is_summed for how in algorithm.exchange.values())


def problem(algorithm):
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.1, 1.0])
    features = domkl.RandomFeatures.draw(bank, 2, 3, seed=0)
    rng = np.random.default_rng(0)
    X, y = rng.random((2, 3, 2)), rng.random((2, 3))
    return algorithm, X, y, domkl.Graph.path(3), features


def warm_up(cache, folder):
    """Run the cases that no other worker of this run has claimed in this folder."""
    stamp = sources()
    if cache.get(STAMP, None) == stamp:
        return
    for number, case in enumerate(CASES):
        try:
            os.close(os.open(folder / f"compiling-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        run_case(*case)
    cache.set(STAMP, stamp)
