"""Lies that are known to have cost something, and how an adversary makes new ones of them."""

import numpy as np

from domkl.mesh.testing.liars import LIES, Lie

TWO = Lie(base="none", push=0.9e6, every=10**9, length=2)
FIXED = {
    **{name: lie for name, lie in LIES.items() if name != "single"},
    **{f"{name}, from 50": LIES[name]._replace(since=50) for name in ("flip", "noise", "frozen")},
    "random": Lie(base="none", push=1.0, toward="random"),
    "two frames": TWO,
    "two frames at 100": TWO._replace(since=100),
    "two frames each 50": TWO._replace(every=50),
    "every other": Lie(scale=-1.0, every=2),
    "nought": Lie(scale=0.0),
    "nought, new epochs": Lie(scale=0.0, epochs=1, since=50),
    "flip, new epochs": Lie(scale=-1.0, epochs=1, since=50),
    "more, new epochs": Lie(scale=2.5, epochs=1),
    "best kernel": Lie(push=0.01, kernel="best", since=50),
    "best kernel, own": Lie(push=0.2, unit="own", kernel="best", since=50),
    "in turns": Lie(scale=-1.0, every=40, length=20, since=50),
    "flip, from 320": Lie(scale=-1.0, since=320),
    "rolled": Lie(base="rolled"),
    "beyond": Lie(base="peer", push=1.0, unit="gap", toward="beyond"),
    "mirrored": Lie(base="peer", push=1.0, unit="gap", toward="away"),
    "peer and more": Lie(base="peer", push=0.2, unit="own", since=50),
    "labels": Lie(labels="flipped"),
    "labels, from 50": Lie(labels="flipped", since=50),
    "labels, biased": Lie(labels="biased", since=50),
    "labels, twice": Lie(labels="flipped", scale=2.0),
    "a million": Lie(base="first", counts=1e6, since=50),
    "ratchet": Lie(base="first", ratchet=0.04, since=50),
    "best account": Lie(scale=-1.0, loss=1e-3, regret=1.0),
    "worst account": Lie(loss=1e3, regret=-1.0, variance=1e3, rounds=10.0),
    "old": Lie(base="old"),
    "drained": Lie(scale=100.0, counts=1e-3),
    "apart": Lie(push=0.1, unit="own", toward="apart", since=50),
    "flip, in haste": Lie(scale=-1.0, rate=5),
    "nought, in haste": Lie(scale=0.0, rate=5, since=50),
    "degree 0": Lie(scale=-1.0, degree=0),
    "degree a million": Lie(scale=-1.0, degree=10**6),
    "at the radius": Lie(base="peer", push=1.0, unit="radius"),
    "at the radius, away": Lie(base="peer", push=1.0, unit="radius", toward="away"),
    "at the radius, from 50": Lie(base="peer", push=1.0, unit="radius", since=50),
    "gone at 150": Lie(scale=-1.0, until=150),
    "huge": Lie(base="none", push=2e5, toward="noise"),
    "flip, a million": Lie(scale=-1.0, counts=1e6),
}

# at random

SPACE = {
    "base": ["own", "own", "peer", "none", "first", "old", "rolled"],
    "scale": [1.0, 1.0, -1.0, 0.0, 0.5, 2.0, -2.0, 10.0, -10.0, 100.0],
    "push": (1e-3, 1e2),
    "drift": (1e-5, 1e-1),
    "unit": ["one", "own", "own", "gap", "radius"],
    "toward": ["constant", "apart", "noise", "random", "away", "beyond"],
    "kernel": ["all", "all", "best", "worst"],
    "since": [0, 0, 0, 50, 100, 200, 320],
    "until": [50, 150, 300],
    "every": [2, 5, 20, 50, 100],
    "length": [1, 2, 5, 20],
    "only": ["3"],
    "epochs": [1, 2, 5, 20],
    "counts": [1e-3, 1.0, 10.0, 1e3, 1e6],
    "ratchet": [0.01, 0.04, 0.1],
    "loss": (1e-6, 1e6),
    "order": ["reversed"],
    "variance": (1e-6, 1e6),
    "rounds": (1e-3, 1e6),
    "regret": [-1.0, -0.3, 0.3, 1.0],
    "residual": [-1.0, 0.0, 5.0, -5.0],
    "radius": [0.0, 0.3, 1.0],
    "degree": [0, 1, 10, 10**6],
    "labels": ["flipped", "biased", "noise", "high"],
    "rate": [2, 5],
}
ACCOUNTS = {"counts", "ratchet", "variance", "rounds", "regret", "residual"}
#: fields of a lie about which most lies are true
SELDOM = set(SPACE) - {"base", "scale", "push", "unit", "toward", "kernel", "since"}


def drawn(field, generator):
    """A value of a field at random."""
    choices = SPACE[field]
    if isinstance(choices, list):
        return choices[generator.integers(len(choices))]
    return float(f"{np.exp(generator.uniform(*np.log(choices))):.3g}")


def random_lie(fields, generator):
    chosen = [f for f in fields if f not in SELDOM or generator.random() < 0.12]
    lie = Lie(**{field: drawn(field, generator) for field in chosen})
    return lie._replace(push=0.0) if generator.random() < 0.25 else lie


def changed(lie, other, fields, generator):
    """A lie that is like another one: some fields are of a third one or new, or sizes a little."""
    crossed = [f for f in fields if generator.random() < 0.15]
    lie = lie._replace(**{field: getattr(other, field) for field in crossed})
    idle = {"length"} if lie.every == 1 else set()
    idle |= set() if lie.push or lie.drift else {"unit", "toward"}
    usable = [field for field in fields if field not in idle]
    for field in generator.choice(usable, generator.integers(1, 4), replace=False):
        before, default = getattr(lie, field), Lie._field_defaults[field]
        if isinstance(SPACE[field], tuple) and before != default and generator.random() < 0.8:
            value = float(f"{before * np.exp(generator.normal(0, 0.7)):.3g}")
        elif field in SELDOM and before != default and generator.random() < 0.5:
            value = default
        else:
            value = drawn(field, generator)
        lie = lie._replace(**{field: value})
    return lie
