"""What wrong samples do to DOMKRLS, and what its network is worth to each node.

    DOMKL_DATA=folder python benchmarks/bench_worth.py --wrong [--seeds N]
    DOMKL_DATA=folder python benchmarks/bench_worth.py --worth [--seeds N] [--streams NAME ...]

--wrong spoils labels or inputs of ten learners on Friedman 1 and on Traffic, 600 rounds, and prints
RMSE over that of the clean stream, on the clean labels: of the other learners and of the one whose
sample was wrong over the next 140 rounds; of the network and alone where 1 % is wrong; and after a
jump of the level in all labels. The median and the largest of the seeds are shown.

--worth runs the streams of streams.py in the network and alone and prints RMSE in the network over
alone: over all rounds, in the first 100, and in the second half; the share of nodes that lose no
more than 1 % in the second half, and the worst node.
"""

import argparse

import numpy as np
import streams

import domkl

K, M, N_ROUNDS, HIT, WRONG = 10, 30, 600, 60, 3
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


def show_worth(names, n_seeds):
    print("| stream | all rounds | first 100 | second half | nodes ≤ 1.01 | worst node |")
    print("|---" * 6 + "|")
    halves, shares = [], []
    for name in names:
        made = streams.found(name)
        if made is None:
            continue
        y, learner, rows = np.asarray(made.y), domkl.DOMKRLS(newest_lag=made.lag), []
        late = slice(len(y) // 2, None)
        for seed in range(n_seeds):
            errors = [
                predictions(each, made.X, made.y, made.graph(seed), seed) - y
                for each in (learner, domkl.Alone(learner))
            ]
            whole, young, half = (
                rms(errors[0][part]) / rms(errors[1][part])
                for part in (slice(None), slice(100), late)
            )
            nodes = [np.sqrt(np.nanmean(each[late] ** 2, axis=0)) for each in errors]
            by_node = nodes[0] / nodes[1]
            rows.append((whole, young, half, np.mean(by_node <= 1.01), np.nanmax(by_node)))
        row = np.mean(rows, axis=0)
        halves.append(row[2])
        shares.append(row[3])
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in row) + " |", flush=True)
    print(f"\nsecond half: geometric mean {np.exp(np.mean(np.log(halves))):.4f}, worst", end=" ")
    print(f"{max(halves):.4f}; nodes that lose no more than 1 %: {100 * np.mean(shares):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--worth", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--streams", nargs="*", default=list(streams.STREAMS))
    args = parser.parse_args()
    if args.wrong:
        show_wrong(args.seeds)
    if args.worth:
        show_worth(args.streams, args.seeds)


if __name__ == "__main__":
    main()
