"""What wrong samples do to DOMKRLS, and what its network is worth to each node.

    DOMKL_DATA=folder python benchmarks/bench_worth.py --wrong [--seeds N]
    DOMKL_DATA=folder python benchmarks/bench_worth.py --worth [--seeds N] [--streams NAME ...]
    DOMKL_DATA=folder python benchmarks/bench_worth.py --newcomers [--seeds N] [--streams NAME ...]

--wrong spoils labels or inputs of ten learners on Friedman 1 and on Traffic, 600 rounds, and prints
RMSE over that of the clean stream, on the clean labels: of the other learners and of the one whose
sample was wrong over the next 140 rounds; of the network and alone where 1 % is wrong; and after a
jump of the level in all labels. The median and the largest of the seeds are shown.

--worth runs the streams of streams.py in the network and alone and prints RMSE in the network over
alone: over all rounds, in the first 100, and in the second half; of the single nodes in the second
half the mean, the share of those that lose no more than 1 %, and the worst. Below the table all
nodes of all streams are counted together.

--newcomers has the networks in which every fourth node joins after 1000 rounds (it has no labels
before) and prints RMSE in the network over alone for its first labels: geometric mean and largest
of the nodes.

Both compare with another law that ran with --save FILE, the package on its PYTHONPATH, before:
--against FILE adds RMSE over that law's.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import streams

import domkl

K, M, N_ROUNDS, HIT, WRONG = 10, 30, 600, 60, 3
JOIN = 1000
NEXT = slice(HIT + 1, HIT + 141)
OTHERS = [k for k in range(K) if k != WRONG]


def predictions(algorithm, X, y, graph, seed, **options):
    features = domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], M, seed=seed)
    return domkl.simulate(algorithm, X, y, graph, features, cv="off", **options).predictions


def rms(errors):
    return float(np.sqrt(np.nanmean(errors**2)))


def wrong(made, seed):
    """Ratios of RMSE by what is wrong."""
    X, y = made.X[:N_ROUNDS], np.asarray(made.y)[:N_ROUNDS]
    rng, graph = np.random.default_rng(seed), domkl.Graph.random(K, 0.25, seed=seed)
    learner = domkl.DOMKRLS(newest_lag=made.lag)
    both = {"network": learner, "alone": domkl.Alone(learner)}

    def run(labels=y, inputs=X, name="network"):
        return predictions(both[name], inputs, labels, graph, seed) - y

    clean = {name: run(name=name) for name in both}
    found = {}
    for size in (1e3, 1e6):
        labels = y.copy()
        labels[HIT, WRONG] = size
        errors, before = run(labels)[NEXT], clean["network"][NEXT]
        found[f"one label {size:g}: others"] = rms(errors[:, OTHERS]) / rms(before[:, OTHERS])
        found[f"one label {size:g}: itself"] = rms(errors[:, WRONG]) / rms(before[:, WRONG])
    labels = y.copy()
    labels[0, WRONG] = 1e6
    errors = run(labels)
    found["first label 1e6: others"] = rms(errors[1:, OTHERS]) / rms(clean["network"][1:, OTHERS])
    last = rms(np.diff(y[50:, WRONG]))
    found["first label 1e6: itself after 50, over the last value"] = rms(errors[51:, WRONG]) / last
    is_hit = rng.random(y.shape) < 0.01
    for name in both:
        errors = run(np.where(is_hit, 1000 * y, y), name=name)
        found[f"1 % of labels × 1000: {name}"] = rms(errors[~is_hit]) / rms(clean[name][~is_hit])
    wild = run(inputs=np.where(is_hit[..., None], 1000 * X, X))
    before = clean["network"]
    found["1 % of input rows × 1000: other rows"] = rms(wild[~is_hit]) / rms(before[~is_hit])
    found["1 % of input rows × 1000: all rows"] = rms(wild) / rms(before)
    labels = y.copy()
    labels[300:] += 100
    errors = predictions(learner, X, labels, graph, seed) - labels
    found["level + 100: RMSE of labels 6 to 10 after it"] = rms(errors[305:310])
    return found


def show_wrong(n_seeds):
    for name in ("Friedman 1", "traffic"):
        made = streams.found(name)
        rows = [wrong(made, seed) for seed in range(n_seeds)]
        print(f"\n| {name} | median | largest |\n|---|---|---|")
        for what in rows[0]:
            values = [row[what] for row in rows]
            print(f"| {what} | {np.median(values):.4f} | {max(values):.4f} |", flush=True)


def both_errors(made, y, seed):
    """Of the network and of the learners alone, (T, K) each."""
    learner, graph = domkl.DOMKRLS(newest_lag=made.lag), made.graph(seed)
    return [
        predictions(each, made.X, y, graph, seed) - np.asarray(made.y)
        for each in (learner, domkl.Alone(learner))
    ]


def over(errors, part=slice(None)):
    """RMSE of the first over that of the second."""
    return rms(errors[0][part]) / rms(errors[1][part])


def by_node(errors, part):
    """The same of each node; NaN for one without labels there."""
    means = [np.nanmean(each[part] ** 2, axis=0) for each in errors]
    return np.sqrt(means[0] / means[1])


def geometric(values):
    return float(np.exp(np.nanmean(np.log(values))))


def show_worth(names, n_seeds, save, against):
    print(
        "| stream | all rounds | first 100 | second half | mean of nodes | ≤ 1.01 | worst |", end=""
    )
    print(" over the other law |" if against else "")
    print("|---" * (8 if against else 7) + "|")
    nodes, halves, whole, others = [], {}, {}, {}
    for name in names:
        made = streams.found(name)
        if made is None:
            continue
        late, rows = slice(len(made.y) // 2, None), []
        for seed in range(n_seeds):
            errors = both_errors(made, made.y, seed)
            found = by_node(errors, late)
            rows.append((over(errors), over(errors, slice(100)), over(errors, late)))
            rows[-1] += (np.nanmean(found), np.mean(found <= 1.01), np.nanmax(found))
            nodes += [(ratio, name, seed, k) for k, ratio in enumerate(found) if ratio > 0]
            whole.setdefault(name, []).append(rms(errors[0]))
        row = [*np.mean(rows, axis=0)]
        halves[name] = max(row[2:4])
        if name in against:
            others[name] = np.mean(np.array(whole[name]) / against[name][:n_seeds])
            row.append(others[name])
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in row) + " |", flush=True)
    ratios = np.array([node[0] for node in nodes])
    print(f"\nworst second half {max(halves.values()):.4f}; of {len(ratios)} nodes", end=" ")
    print(", ".join(f"{np.mean(ratios <= most):.2%} ≤ {most}" for most in (1.01, 1.03)))
    print(
        "above 1.03:", "; ".join(f"{n[1]} {n[2]}.{n[3]} {n[0]:.3f}" for n in nodes if n[0] > 1.03)
    )
    if others:
        print(f"over the other law: geometric mean {geometric([*others.values()]):.4f}", end=", ")
        print("above 1.007:", {name: round(v, 4) for name, v in others.items() if v > 1.007})
    if save:
        Path(save).write_text(json.dumps(whole))


def show_newcomers(names, n_seeds, save, against):
    """Every fourth node has no labels before round 1000."""
    parts = {"24": slice(0, 24), "100": slice(0, 100), "400": slice(100, 400)}
    print("| stream | first 24 | worst | first 100 | worst | 100 to 400 |", end="")
    print(" first 24 over the other law | first 100 |" if against else "")
    print("|---" * (8 if against else 6) + "|")
    saved, others = {}, []
    for name in names:
        made = streams.found(name)
        if made is None or len(made.y) < JOIN + 500:
            continue
        rows = {part: [] for part in parts}
        for seed in range(n_seeds):
            y = made.y.copy()
            y[:JOIN, seed % 4 :: 4] = np.nan
            errors = [each[JOIN:, seed % 4 :: 4] for each in both_errors(made, y, seed)]
            for part, which in parts.items():
                mine = [first_labels(each, which) for each in errors]
                rows[part].append(by_node(mine, slice(None)))
                saved.setdefault(f"{name} {part}", []).append(rms(mine[0]))
        row = []
        for part in ("24", "100"):
            row += [geometric(np.concatenate(rows[part])), np.nanmax(np.concatenate(rows[part]))]
        row.append(geometric(np.concatenate(rows["400"])))
        if f"{name} 24" in against:
            both = [f"{name} {part}" for part in ("24", "100")]
            row += [geometric(np.array(saved[b]) / against[b][:n_seeds]) for b in both]
            others.append(row[-2:])
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in row) + " |", flush=True)
    if others:
        print("over the other law, first 24 and 100: geometric means", end=" ")
        print(*(f"{geometric(each):.4f}" for each in np.array(others).T))
    if save:
        Path(save).write_text(json.dumps(saved))


def first_labels(errors, which):
    """Errors (T, K) at the labels of each node's own that `which` says, else NaN."""
    n = np.cumsum(~np.isnan(errors), axis=0) - 1
    return np.where((n >= which.start) & (n < which.stop), errors, np.nan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--worth", action="store_true")
    parser.add_argument("--newcomers", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--streams", nargs="*")
    parser.add_argument("--save", metavar="FILE", help="write RMSE in the network, for --against")
    parser.add_argument("--against", metavar="FILE", help="compare with what another law saved")
    args = parser.parse_args()
    against = json.loads(Path(args.against).read_text()) if args.against else {}
    if args.wrong:
        show_wrong(args.seeds)
    if args.worth:
        show_worth(args.streams or streams.STREAMS, args.seeds, args.save, against)
    if args.newcomers:
        nodes = [n for n in streams.STREAMS if n.startswith(("beijing", "homes", "park", "stops"))]
        show_newcomers(args.streams or nodes, args.seeds, args.save, against)


if __name__ == "__main__":
    main()
