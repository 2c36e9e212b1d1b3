"""Whether bands hold what they should, and what quantiles are worth, on every real stream.

    DOMKL_DATA=folder python benchmarks/bench_bands.py [--seeds N] [--against OTHER/src]

For each stream of streams.py, M = 30, the bands of 50, 80 and 95 %: by how many points more of the
labels lie in them than should, from a node's label 201 on and over its labels 31 to 200, over all
nodes; and the mean pinball loss of the seven quantiles over that of the normal band, which are the
quantiles of a normal distribution with prediction and deviation. The latter is that of these
sources, or of other ones: the band of version 0.4 is that of its sources. Means over seeds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import NormalDist

import numpy as np
import streams

import domkl

LEVELS = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
BANDS = {50: (2, 4), 80: (1, 5), 95: (0, 6)}
M, FIRST, OLD = 30, 30, 200
NAMES = (
    *streams.SETS,
    *(f"{name}, blocks" for name in streams.SETS),
    *(f"beijing-air, h = {h}" for h in (1, 6, 24)),
    *(f"homes, {what}{h}" for what in ("load", "sun") for h in ("", ", h = 24")),
    "parking",
    "parking, h = 6",
)


def run_of(made, seed, **options):
    features = domkl.RandomFeatures.draw(domkl.default_bank(), made.X.shape[2], M, seed=seed)
    learner = domkl.DOMKRLS(newest_lag=made.lag)
    given = (made.X, made.y, made.graph(seed), features)
    return domkl.simulate(learner, *given, cv="off", threads=1, **options)


def normal_band(run):
    z = [NormalDist().inv_cdf(level) for level in LEVELS]
    with np.errstate(invalid="ignore"):
        return run.predictions[..., None] + run.deviation[..., None] * z


def place(folder, name, seed):
    return Path(folder) / f"{name.replace(' ', '')}-{seed}.npy"


def write_bands(folder, n_seeds):
    """Write the normal bands of the sources on the path."""
    for name in NAMES:
        made = streams.found(name)
        for seed in range(n_seeds if made is not None else 0):
            np.save(place(folder, name, seed), normal_band(run_of(made, seed, deviation=True)))


def pinball(y, quantiles, is_scored):
    gap = y[..., None] - quantiles
    return np.maximum(LEVELS * gap, (LEVELS - 1) * gap)[is_scored].mean()


def measured(name, n_seeds, folder):
    """Rows of points above the bands' levels, old and young, and of the ratio of losses."""
    made, rows = streams.found(name), []
    for seed in range(n_seeds if made is not None else 0):
        run = run_of(made, seed, deviation=True, quantiles=LEVELS)
        y, q = run.targets, run.quantiles
        other = normal_band(run) if folder is None else np.load(place(folder, name, seed))
        n = np.cumsum(np.isfinite(y), axis=0)
        is_scored = np.isfinite(y) & np.isfinite(q).all(axis=-1) & np.isfinite(other).all(axis=-1)
        points = []
        for part in (n > OLD, (n > FIRST) & (n <= OLD)):
            for level, (low, high) in BANDS.items():
                is_inside = (q[..., low] <= y) & (y <= q[..., high])
                points.append(100 * is_inside[part & is_scored].mean() - level)
        rows.append([*points, pinball(y, q, is_scored) / pinball(y, other, is_scored)])
    return np.mean(rows, axis=0) if rows else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--write", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write_bands(args.write, args.seeds)
        return
    with tempfile.TemporaryDirectory() as folder:
        if args.against:
            env = {**os.environ, "PYTHONPATH": str(args.against.resolve())}
            command = [sys.executable, __file__, "--write", folder, "--seeds", str(args.seeds)]
            subprocess.run(command, env=env, check=True)
        print(f"{'':24}from label 201: 50, 80, 95 %   labels 31 to 200   pinball over normal")
        found = {}
        for name in NAMES:
            row = measured(name, args.seeds, folder if args.against else None)
            if row is not None:
                found[name] = row
                points = "".join(f"{value:+8.1f}" for value in row[:6])
                print(f"{name:24}{points}{row[6]:12.4f}", flush=True)
    table = np.array(list(found.values()))
    worst = "".join(f"{value:8.1f}" for value in np.abs(table[:, :6]).max(axis=0))
    mean = np.exp(np.log(table[:, 6]).mean())
    print(f"{'largest':24}{worst}{table[:, 6].max():12.4f}")
    print(f"{'geometric mean':24}{'':48}{mean:12.4f}")


if __name__ == "__main__":
    main()
