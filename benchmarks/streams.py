"""Streams to try learners on: dealt in turn and in blocks, drifting, unlike each other, real nodes.

`STREAMS` maps a name to a function that gives a `Stream`. Files come from DOMKL_DATA; a stream
whose file is not there is left out by `found`. None of them is scaled by hand for a learner.
"""

import csv
import gzip
import io
import os
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

import domkl
from domkl.data.streams import labels

K = 10
LONG = {"traffic": ("traffic_volume", 5500), "temperature": ("temp", 6500)}  # the authors' arrays
SETS = ("weather", "wave", "air-quality", "twitter", "traffic", "temperature", "conductivity")
AT_MOST = 20_000  # samples of a table
HOURS = 5000  # of stations and homes


def held(values):
    """Each value that is missing (NaN) as the last one before it, over the first axis."""
    rows = np.arange(len(values)).reshape(-1, *(1,) * (values.ndim - 1))
    newest = np.maximum.accumulate(np.where(np.isnan(values), 0, rows), axis=0)
    return np.take_along_axis(values, newest, axis=0)


class Stream(NamedTuple):
    X: np.ndarray  # (T, K, d)
    y: np.ndarray  # (T, K), NaN where there is no label
    lag: int | None = None  # input that is the newest value of the target
    places: np.ndarray | None = None  # of nodes that are joined with their three nearest
    times: np.ndarray | None = None  # of the newest values, in hours from the midnight of a Sunday

    def graph(self, seed):
        if self.places is not None:
            return domkl.Graph.nearest(self.places, 3)
        return domkl.Graph.random(self.y.shape[1], 0.25, seed=seed)


# tables and series of the paper


def rows_of(name):
    """Inputs and labels in the order of their table or series, scaled as the authors do."""
    if name not in LONG:
        made = domkl.load_set(name)
        return made.X, made.y
    column, n = LONG[name]
    packed = (files("domkl.data") / "files" / "metro.csv.gz").read_bytes()
    rows = csv.DictReader(io.StringIO(gzip.decompress(packed).decode()))
    values = np.array([float(row[column]) for row in rows][:n])
    return domkl.embed(domkl.scaled(values, "authors").values, 5)


def dealt(X, y, lag=None, how="interleaved"):
    return Stream(*domkl.deal(X[:AT_MOST], y[:AT_MOST], K, partition=how), lag)


def of_paper(name, how="interleaved"):
    return dealt(*rows_of(name), 0 if name in LONG else None, how)


def known(name, lag=None, **options):
    made = domkl.load_set(name, **options)
    return dealt(made.X, made.y, lag)


# made up


def friedman(x):
    """Friedman's first function of ten inputs, of which five matter, in about [0, 1]."""
    bend = 10 * np.sin(np.pi * x[..., 0] * x[..., 1]) + 20 * (x[..., 2] - 0.5) ** 2
    return (bend + 10 * x[..., 3] + 5 * x[..., 4]) / 30


def drawn(n_rounds=1500, d=10, seed=0, noise=1 / 30):
    generator = np.random.default_rng(seed)
    return generator.random((n_rounds, K, d)), noise * generator.normal(size=(n_rounds, K))


def exchanged(X):
    """Inputs with their meanings exchanged, for a function that is another one."""
    return X[..., [4, 3, 1, 0, 2, *range(5, X.shape[-1])]]


def abrupt():
    X, noise = drawn()
    y = np.where(np.arange(len(X))[:, None] < len(X) // 2, friedman(X), friedman(exchanged(X)))
    return Stream(X, y + noise)


def gradual():
    """Between the thirds of the stream, more and more labels are those of the other function."""
    X, noise = drawn(seed=1)
    share = np.clip(np.linspace(-1, 2, len(X)), 0, 1)[:, None]
    is_new = np.random.default_rng(2).random(noise.shape) < share
    return Stream(X, np.where(is_new, friedman(exchanged(X)), friedman(X)) + noise)


def turning():
    """One function turns into the other from the first round to the last."""
    X, noise = drawn(seed=3)
    share = np.linspace(0, 1, len(X))[:, None]
    return Stream(X, (1 - share) * friedman(X) + share * friedman(exchanged(X)) + noise)


def local():
    """In half of the stream, labels change in one corner of the inputs."""
    X, noise = drawn(seed=4)
    is_there = (X[..., 0] > 0.5) & (X[..., 1] > 0.5)
    is_late = np.arange(len(X))[:, None] >= len(X) // 2
    return Stream(X, np.where(is_there & is_late, 1 - friedman(X), friedman(X)) + noise)


def hyperplane():
    """A plane whose slope walks at random, and labels with little noise."""
    X, noise = drawn(d=6, seed=5, noise=0.02)
    steps = np.random.default_rng(6).normal(size=(len(X), 6)) * 0.02
    slope = 0.15 + np.cumsum(steps, axis=0)
    return Stream(X, np.einsum("tkd,td->tk", X, slope) + noise)


def strangers():
    """Every learner has a function of its own: there is nothing to share."""
    X, noise = drawn(d=5, seed=7)
    generator = np.random.default_rng(8)
    slope, phase = generator.normal(size=(K, 5)) * 3, generator.random(K) * 6
    return Stream(X, 0.5 + 0.3 * np.sin((X * slope).sum(axis=-1) + phase) + noise)


def levels():
    """The same function at every learner, but for a level and a factor."""
    X, noise = drawn(d=10, seed=9)
    generator = np.random.default_rng(10)
    level, factor = generator.normal(size=K) * 0.3, 0.5 + generator.random(K)
    return Stream(X, level + factor * friedman(X) + noise)


def two_camps():
    X, noise = drawn(seed=11)
    return Stream(X, np.where(np.arange(K) % 2 == 0, friedman(X), friedman(exchanged(X))) + noise)


def walk():
    """Labels that the inputs say nothing about, and the last label nearly everything."""
    generator = np.random.default_rng(0)
    values = np.cumsum(generator.normal(size=8000))
    return dealt(generator.random((8000, 4)), domkl.scaled(values, "minmax").values)


def walks():
    """The same, with a walk of its own at each learner."""
    generator = np.random.default_rng(12)
    values = np.cumsum(generator.normal(size=(1500, K)), axis=0)
    return Stream(generator.random((1500, K, 4)), domkl.scaled(values, "minmax").values)


def waves():
    """A season and its noise at each learner, from the last five values."""
    generator, t = np.random.default_rng(13), np.arange(1505)[:, None]
    season = 0.5 + 0.3 * np.sin(2 * np.pi * (t / 24 + generator.random(K)))
    values = season + 0.05 * generator.normal(size=(1505, K))
    X = np.stack([values[4 - lag : len(values) - 1 - lag] for lag in range(5)], axis=-1)
    return Stream(X, values[5:], 0)


def outliers():
    X, noise = drawn(seed=14)
    heavy = np.random.default_rng(15).standard_t(2, size=noise.shape) / 30
    return Stream(X, friedman(X) + heavy)


def louder(n_rounds=1500):
    """The noise becomes five times as large in the middle third."""
    X, noise = drawn(n_rounds, seed=16)
    is_loud = np.abs(np.linspace(-1.5, 1.5, len(X)))[:, None] < 0.5
    return Stream(X, friedman(X) + np.where(is_loud, 5, 1) * noise)


def seldom():
    """Half of the learners have a label in every tenth round."""
    X, noise = drawn(seed=17)
    y = friedman(X) + noise
    rare = np.random.default_rng(18).random(y.shape) > 0.1
    y[:, ::2][rare[:, ::2]] = np.nan
    return Stream(X, y)


def of_sklearn(name, **options):
    from sklearn import datasets

    X, y = getattr(datasets, name)(6000, random_state=0, **options)
    return dealt(domkl.scaled(X, "minmax").values, domkl.scaled(y, "minmax").values)


def of_river(name):
    """A set of River's with its own order of time, all learners at the same place of ten parts."""
    from river import datasets

    rows = list(getattr(datasets, name)())
    names = [key for key, value in rows[0][0].items() if isinstance(value, (int, float))]
    X = np.array([[float(x[key]) for key in names] for x, _ in rows])
    y = np.array([float(label) for _, label in rows])
    return dealt(domkl.scaled(X, "minmax").values, domkl.scaled(y, "minmax").values)


# nodes


def stations(horizon, start=0):
    made = domkl.load_set("beijing-air", horizon=horizon)
    part = slice(start, start + HOURS)
    times = np.arange(len(made.y)) + made.facts["first_tick"] + 24.0 * 5  # a Friday's first hour
    return Stream(made.X[part], made.y[part], 0, made.places, times[part])


def lagged(values, clock, horizon, lags=(0, 1, 2, 23)):
    """Inputs of values (N, K) and of a clock (N, c), and the values some steps ahead."""
    now = np.arange(max(lags), len(values) - horizon)
    past = np.stack([values[now - lag] for lag in lags], axis=-1)
    clocks = np.broadcast_to(clock[now, None], (*past.shape[:2], clock.shape[1]))
    return np.concatenate([past, clocks], axis=-1), labels(values[now + horizon], horizon)


def circle(hours):
    turn = 2 * np.pi * np.asarray(hours) / 24
    return (np.column_stack([np.sin(turn), np.cos(turn)]) + 1) / 2


def table(path):
    with gzip.open(path, "rt") as text:
        return list(csv.DictReader(text))


def homes(column, horizon=1):
    """A year of 17 homes in California, hour by hour, scaled by what the largest can have."""
    folder = Path(os.environ["DOMKL_DATA"]) / "nodes" / "citylearn-homes"
    rows = [table(folder / f"Building_{n}.csv.gz") for n in range(1, 18)]
    values = np.array([[float(row[column]) for row in home] for home in rows]).T
    clock = circle([float(row["hour"]) for row in rows[0]])
    X, y = lagged(
        values / {"non_shiftable_load": 10, "solar_generation": 1000}[column], clock, horizon
    )
    times = 24.0 + 23 + np.arange(HOURS)  # rows begin with a Monday, and 23 of them are lags
    return Stream(X[:HOURS], y[:HOURS], 0, times=times)


def parking(horizon=1):
    """Car parks of Birmingham, the share of places taken, each half hour of the opening times."""
    rows = table(os.environ["DOMKL_PARKING"])
    times = sorted({row["LastUpdated"][:15] + "0" for row in rows})  # to ten minutes
    names = sorted({row["SystemCodeNumber"] for row in rows})
    of_time, of_name = ({each: i for i, each in enumerate(found)} for found in (times, names))
    values = np.full((len(times), len(names)), np.nan)
    for row in rows:
        place = of_time[row["LastUpdated"][:15] + "0"], of_name[row["SystemCodeNumber"]]
        values[place] = float(row["Occupancy"]) / float(row["Capacity"])
    filled = np.nan_to_num(held(values))
    hours = [int(each[11:13]) + int(each[14:16]) / 60 for each in times]
    X, _ = lagged(filled, circle(hours), horizon, lags=(0, 1, 2, 17))
    y = lagged(values, circle(hours), horizon, lags=(0, 1, 2, 17))[1]
    since = (np.array(times, "M8[m]") - np.datetime64("2016-10-02T00:00")) / np.timedelta64(1, "h")
    return Stream(X, y, 0, times=since[17 : 17 + len(y)])


def stops(horizon, seed=0, missing=0.0):
    """Thirty unlike stops with counts of people an hour: two peaks a day, fewer at weekends.

    Each has its own size, peaks and weekend; a day may be good for all. Counts are divided by one
    number for all stops, as a network has to that does not know them.
    """
    rng, n_stops, hours = np.random.default_rng([20, seed]), 30, np.arange(3200)
    size, weekend = np.exp(rng.normal(3, 1, n_stops)), rng.uniform(0.2, 1.3, n_stops)
    peaks, widths = rng.normal([8, 17], 1.2, (n_stops, 2)), rng.uniform(1, 4, (n_stops, 2))
    heights = rng.dirichlet([2, 2, 1], n_stops)
    gaps = np.abs(hours[:, None, None] % 24 - peaks)
    bumps = np.exp(-0.5 * (np.minimum(gaps, 24 - gaps) / widths) ** 2)
    shape = (bumps * heights[:, :2]).sum(axis=-1) * 3 + 0.3 * heights[:, 2]
    days = np.exp(0.15 * rng.normal(size=(len(hours) // 24 + 1, 1)))
    own = np.exp(0.2 * rng.normal(size=(len(days), n_stops)))
    rate = size * shape * (days * own)[hours // 24]
    rate *= np.where((hours // 24 % 7 >= 5)[:, None], weekend, 1.0)
    values = rng.poisson(rate * rng.gamma(10, 0.1, rate.shape)) / 100
    is_weekend = (hours // 24 % 7 >= 5).astype(float)
    X, y = lagged(values, np.column_stack([circle(hours), is_weekend]), horizon)
    y[rng.random(y.shape) < missing] = np.nan
    return Stream(X, y, 0, rng.random((n_stops, 2)))


STREAMS = {
    **{name: lambda name=name: of_paper(name) for name in SETS},
    **{f"{name}, blocks": lambda name=name: of_paper(name, "blocks") for name in SETS},
    "weather, next minimum": lambda: known("weather", target="Next_Tmin"),
    "weather, clean": lambda: known("weather", rule="clean", scale="minmax"),
    "air quality, clean": lambda: known("air-quality", rule="clean", scale="minmax"),
    "traffic, clean": lambda: known("traffic", 0, rule="clean"),
    "temperature, clean": lambda: known("temperature", 0, rule="clean"),
    "Friedman 1": lambda: of_sklearn("make_friedman1", noise=1.0),
    "Friedman 2": lambda: of_sklearn("make_friedman2", noise=50.0),
    "Friedman 3": lambda: of_sklearn("make_friedman3", noise=0.1),
    "drift, abrupt": abrupt,
    "drift, gradual": gradual,
    "drift, all along": turning,
    "drift, local": local,
    "drift, hyperplane": hyperplane,
    "each its own function": strangers,
    "each its own level": levels,
    "two camps": two_camps,
    "random walk": walk,
    "random walks": walks,
    "seasons": waves,
    "heavy tails": outliers,
    "noise that changes": louder,
    "few labels": seldom,
    "trump approval": lambda: of_river("TrumpApproval"),
    **{f"beijing-air, h = {h}": lambda h=h: stations(h) for h in (1, 6, 24)},
    **{f"beijing-air, h = {h}, later": lambda h=h: stations(h, 20_000) for h in (1, 6, 24)},
    "homes, load": lambda: homes("non_shiftable_load"),
    "homes, load, h = 6": lambda: homes("non_shiftable_load", 6),
    "homes, load, h = 24": lambda: homes("non_shiftable_load", 24),
    "homes, sun": lambda: homes("solar_generation"),
    "homes, sun, h = 6": lambda: homes("solar_generation", 6),
    "homes, sun, h = 24": lambda: homes("solar_generation", 24),
    "parking": parking,
    "parking, h = 6": lambda: parking(6),
    **{f"stops, h = {h}": lambda h=h: stops(h) for h in (1, 6, 24)},
    **{f"stops with gaps, h = {h}": lambda h=h: stops(h, 1, 0.4) for h in (1, 6, 24)},
}


def found(name):
    """The stream, or None where its file or the package that makes it is not there."""
    try:
        return STREAMS[name]()
    except (KeyError, OSError, ImportError, domkl.DomklError) as why:
        print(f"{name} left out: {why}", flush=True)
        return None
