"""Trace a sample through `simulate`, with the compiler switched off: prints the walk as JSON.

    NUMBA_DISABLE_JIT=1 python simulate_walk.py

A function is on the walk if it is handed the sample: an argument, or an array or tuple in one,
holds the input or the label that was planted. What is said and merged afterwards holds neither; the
exchange and the merge are added where they are first called.
"""

import json
import sys
from itertools import groupby
from pathlib import Path

import numpy as np

import domkl

SOURCE = str(Path(domkl.__file__).parent) + "/"
X0, Y0 = 0.123456789, 0.987654321
EXCHANGE = {"deliver", "merge"}


def holds(value, depth=0):
    if isinstance(value, float):
        return value in (X0, Y0)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return bool(np.isin((X0, Y0), value).any())
    if isinstance(value, tuple) and depth < 3:
        return any(holds(each, depth + 1) for each in value)
    return False


class Walk:
    def __init__(self):
        self.first, self.returns = {}, []

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SOURCE) or "<" in code.co_name:
            return
        names = code.co_varnames[: code.co_argcount]
        given = [frame.f_locals.get(name) for name in names]
        if not (code.co_name in EXCHANGE or any(holds(each) for each in given)):
            return
        self.first.setdefault(code.co_filename.removeprefix(SOURCE), code.co_qualname)
        stack = [file for file, _ in groupby(files(frame))]
        if len(stack) > len(set(stack)):
            self.returns.append(stack[::-1])


def files(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith(SOURCE):
            yield frame.f_code.co_filename.removeprefix(SOURCE)
        frame = frame.f_back


def main():
    rng = np.random.default_rng(0)
    X, y = rng.random((2, 3, 1)), rng.random((2, 3))
    X[:], y[:] = X0, Y0
    features = domkl.RandomFeatures(np.ones((2, 2, 1)))
    walk = Walk()
    import threading

    threading.setprofile(walk)
    sys.setprofile(walk)
    domkl.simulate(domkl.DOMKL(), X, y, domkl.Graph.ring(3), features, threads=1)
    sys.setprofile(None)
    entries = [f"{file}:{function}" for file, function in walk.first.items()]
    print(json.dumps({"entries": entries, "returns": walk.returns[:3]}))


if __name__ == "__main__":
    main()
