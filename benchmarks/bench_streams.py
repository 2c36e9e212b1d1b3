"""The River estimators with their defaults, in the order of time and without lag inputs.

Every label is scored before it is learned. Three tables:

- real streams: RMSE and MAE over those of the last value, as data are and scaled before by River's
  StandardScaler;
- streams that drift: error over that of the best of River's models and of ours with `forget` set;
- River's small sets beside version 0.1, which is run from a checkout of it if one is named.

    DOMKL_DATA=... python benchmarks/bench_streams.py [--samples 3000] [--old PATH/src]
"""

import argparse
import csv
import gzip
import itertools
import math
import numbers
import os
import subprocess
import sys
from pathlib import Path

from river import compose, datasets, forest, linear_model, metrics, neighbors, preprocessing, tree
from river.datasets import synth

from domkl.estimators.river import (
    OnlineKernelClassifier,
    OnlineKernelMultiTargetRegressor,
    OnlineKernelRegressor,
)

DATA = Path(os.environ.get("DOMKL_DATA", "data"))
SMALL = ("ChickWeights", "AirlinePassengers", "Phishing", "ImageSegments")


def table(path, delimiter=","):
    with gzip.open(DATA / path, "rt", encoding="utf-8-sig") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def number(text):
    """A number as these files write it; None where it is missing."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return None if value == -200 else value


def traffic():
    for row in table("Metro_Interstate_Traffic_Volume.csv.gz"):
        x = {name: float(row[name]) for name in ("temp", "rain_1h", "snow_1h", "clouds_all")}
        x |= {"weather": row["weather_main"], "hour": float(row["date_time"][11:13])}
        yield x, float(row["traffic_volume"])


def temperature():
    for row in table("Metro_Interstate_Traffic_Volume.csv.gz"):
        x = {name: float(row[name]) for name in ("rain_1h", "snow_1h", "clouds_all")}
        x |= {"weather": row["weather_main"], "hour": float(row["date_time"][11:13])}
        if float(row["temp"]) > 200:  # ten rows say 0 K
            yield x, float(row["temp"])


def air(target):
    """The air of an Italian city: one column by the others, missing values as None."""
    leave_out = {"Date", "Time", "NMHC(GT)", "", None, target}
    leave_out |= {"RH", "AH"} if target == "T" else set()
    for row in table("AirQualityUCI.csv.gz", ";"):
        if not row["Date"] or number(row[target]) is None:
            continue
        x = {name: number(value) for name, value in row.items() if name not in leave_out}
        yield x | {"hour": float(row["Time"][:2])}, number(row[target])


def fine_dust():
    for row in table("nodes/beijing-air/PRSA_Data_Dongsi_20130301-20170228.csv.gz"):
        if number(row["PM2.5"]) is not None:
            x = {name: number(row[name]) for name in ("TEMP", "PRES", "DEWP", "RAIN", "WSPM")}
            yield x | {"wd": row["wd"], "hour": float(row["hour"])}, number(row["PM2.5"])


def load():
    weather = table("nodes/citylearn-homes/weather.csv.gz")
    for row, sky in zip(table("nodes/citylearn-homes/Building_1.csv.gz"), weather, strict=True):
        hour = next(value for name, value in row.items() if "hour" in name.lower())
        target = next(v for n, v in row.items() if "shiftable" in n.lower() or "Equip" in n)
        x = {name: float(sky[name]) for name in list(sky)[:4]}
        yield x | {"hour": float(hour)}, float(target)


def water_flow():
    for x, y in datasets.WaterFlow():
        yield {"hour": float(x["Time"].hour), "weekday": float(x["Time"].weekday())}, y


STREAMS = {
    "TrumpApproval": lambda: iter(datasets.TrumpApproval()),
    "traffic volume": traffic,
    "temperature": temperature,
    "air: CO": lambda: air("CO(GT)"),
    "air: NO2": lambda: air("NO2(GT)"),
    "air: temperature": lambda: air("T"),
    "Beijing: PM2.5": fine_dust,
    "home: load": load,
    "WaterFlow": water_flow,
}


def over_last_value(model, samples):
    """RMSE and MAE over those of the last value, without the first sample."""
    last, sums = None, [0.0] * 4
    for x, y in samples:
        y_hat = model.predict_one(x)
        if last is not None:
            errors = (y_hat - y, last - y)
            parts = [each**2 for each in errors] + [abs(each) for each in errors]
            sums = [a + b for a, b in zip(sums, parts, strict=True)]
        model.learn_one(x, y)
        last = y
    return math.sqrt(sums[0] / sums[1]), sums[2] / sums[3]


def scaled_before():
    """`StandardScaler() | OnlineKernelRegressor()`, with strings passed by."""
    numeric = compose.SelectType(numbers.Number) | preprocessing.StandardScaler()
    return (numeric + compose.SelectType(str)) | OnlineKernelRegressor()


def real_streams(n):
    print("| stream | samples | inputs | RMSE | MAE | RMSE, scaled before | over RMSE |")
    print("|---|---|---|---|---|---|---|")
    for name, make in STREAMS.items():
        samples = list(itertools.islice(make(), n))
        rmse, mae = over_last_value(OnlineKernelRegressor(), samples)
        again, _ = over_last_value(scaled_before(), samples)
        sizes = f"{len(samples)} | {len(samples[-1][0])}"
        row = f"| {name} | {sizes} | {rmse:.3f} | {mae:.3f} | {again:.3f} | {again / rmse:.3f} |"
        print(row, flush=True)


def drifting(n):
    """Streams of River that change, and whether they are for classifiers."""
    places = (n // 3, 2 * n // 3)
    friedman = {"seed": 42}
    yield (
        "Friedman, gradual",
        False,
        synth.FriedmanDrift("gra", places, transition_window=n // 10, **friedman),
    )
    three = (n // 4, n // 2, 3 * n // 4)
    yield "Friedman, local", False, synth.FriedmanDrift("lea", three, **friedman)
    plane = synth.Hyperplane(42, n_features=10, n_drift_features=5, mag_change=0.001)
    yield "Hyperplane", True, plane
    before, after = (synth.SEA(variant, noise=0.1, seed=42 + variant) for variant in (0, 2))
    sea = synth.ConceptDriftStream(before, after, seed=1, position=n // 2, width=n // 20)
    yield "SEA", True, sea


def rivers_models(is_classifier):
    scaler = preprocessing.StandardScaler
    if is_classifier:
        return {
            "adaptive forest": forest.ARFClassifier(seed=1),
            "adaptive tree": tree.HoeffdingAdaptiveTreeClassifier(seed=1),
            "neighbors": scaler() | neighbors.KNNClassifier(),
            "linear": scaler() | linear_model.LogisticRegression(),
        }
    return {
        "adaptive forest": forest.ARFRegressor(seed=1),
        "adaptive tree": scaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=1),
        "neighbors": scaler() | neighbors.KNNRegressor(),
        "linear": scaler() | linear_model.LinearRegression(),
    }


def progressive(model, samples, *found):
    """Metrics of a model that predicts each sample before it learns it."""
    for x, y in samples:
        for metric in found:
            predict = model.predict_one
            if getattr(metric, "requires_labels", True) is False:
                predict = model.predict_proba_one
            y_hat = predict(x)
            if y_hat is not None and y_hat != {}:
                metric.update(y, y_hat)
        model.learn_one(x, y)
    return [metric.get() for metric in found]


def drifts(n):
    names = ("default", "forget=0.999", "forget=0.99", *rivers_models(False))
    print(f"| stream | score | {' | '.join(names)} | default over the best |")
    print(f"|---|---|{'---|' * len(names)}---|")
    for name, is_classifier, stream in drifting(n):
        cls = OnlineKernelClassifier if is_classifier else OnlineKernelRegressor
        ours = {"": cls(), "0.999": cls(forget=0.999), "0.99": cls(forget=0.99)}
        samples = [(x, bool(y) if is_classifier else y) for x, y in stream.take(n)]
        metric = metrics.Accuracy if is_classifier else metrics.RMSE
        models = {**ours, **rivers_models(is_classifier)}.values()
        errors = [progressive(model, samples, metric())[0] for model in models]
        errors = [1 - each if is_classifier else each for each in errors]
        what, ratio = ("errors" if is_classifier else "RMSE"), errors[0] / min(errors)
        row = " | ".join(f"{each:.4f}" for each in errors)
        print(f"| {name} | {what} | {row} | {ratio:.3f} |", flush=True)


def small(name):
    """The score of a small set of River's: of ImageSegments with River's OneVsRest around 0.1."""
    if name == "ChickWeights":
        samples = ((dict(x), y) for x, y in datasets.ChickWeights())
        return progressive(OnlineKernelRegressor(), samples, metrics.RMSE())[0]
    if name == "AirlinePassengers":
        made = ((x["month"], y) for x, y in datasets.AirlinePassengers())
        samples = (({"month": float(t.month), "year": float(t.year)}, y) for t, y in made)
        return progressive(OnlineKernelRegressor(), samples, metrics.RMSE())[0]
    if name == "Phishing":
        return progressive(OnlineKernelClassifier(), datasets.Phishing(), metrics.LogLoss())[0]
    model = OnlineKernelClassifier()
    return 1 - progressive(model, datasets.ImageSegments(), metrics.Accuracy())[0]


#: the same by version 0.1, which knows no more than two classes
OLD = """
from river import compose, datasets, metrics, multiclass
from domkl.estimators.river import OnlineKernelClassifier, OnlineKernelRegressor

def progressive(model, samples, metric):
    for x, y in samples:
        y_hat = getattr(model, "predict_one" if metric.requires_labels else "predict_proba_one")(x)
        if y_hat is not None and y_hat != {}:
            metric.update(y, y_hat)
        model.learn_one(x, y)
    return metric.get()

metrics.RMSE.requires_labels = True
print(progressive(OnlineKernelRegressor(), datasets.ChickWeights(), metrics.RMSE()))
made = ((x["month"], y) for x, y in datasets.AirlinePassengers())
samples = (({"month": float(t.month), "year": float(t.year)}, y) for t, y in made)
print(progressive(OnlineKernelRegressor(), samples, metrics.RMSE()))
print(progressive(OnlineKernelClassifier(), datasets.Phishing(), metrics.LogLoss()))
model = multiclass.OneVsRestClassifier(OnlineKernelClassifier())
print(1 - progressive(model, datasets.ImageSegments(), metrics.Accuracy()))
"""


def small_sets(old):
    before = ["-"] * len(SMALL)
    if old:
        done = subprocess.run(
            [sys.executable, "-c", OLD],
            env={**os.environ, "PYTHONPATH": old},
            capture_output=True,
            text=True,
            check=True,
        )
        before = [f"{float(line):.4f}" for line in done.stdout.split()]
    scores = ("RMSE", "RMSE", "logarithmic loss", "errors")
    print("| set | score | now | version 0.1 |")
    print("|---|---|---|---|")
    for name, score, then in zip(SMALL, scores, before, strict=True):
        print(f"| {name} | {score} | {small(name):.4f} | {then} |", flush=True)


def several_targets():
    model, errors, spread = OnlineKernelMultiTargetRegressor(), {}, {}
    for x, y in datasets.SolarFlare():
        for name, y_hat in model.predict_one(x).items():
            errors[name] = errors.get(name, 0.0) + (y_hat - y[name]) ** 2
            spread[name] = spread.get(name, 0.0) + y[name] ** 2
        model.learn_one(x, y)
    shares = ", ".join(f"{name} {errors[name] / spread[name]:.3f}" for name in errors)
    print(f"SolarFlare, squared errors over those of 0: {shares}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=3000, help="of each stream, at most")
    parser.add_argument("--old", help="folder src of version 0.1")
    parser.add_argument(
        "--parts", nargs="*", default=["real", "drift", "small", "targets"], help="what to run"
    )
    args = parser.parse_args()
    parts = {
        "real": lambda: real_streams(args.samples),
        "drift": lambda: drifts(args.samples),
        "small": lambda: small_sets(args.old),
        "targets": several_targets,
    }
    for name in args.parts:
        parts[name]()
        print()


if __name__ == "__main__":
    main()
