"""Samples per second of the River regressor beside River's own parts, in one run.

River's side is what a user would build from it: for each bandwidth an RBFSampler into a
LinearRegression, combined by EWARegressor. Both have the same number of kernels and of features per
kernel, predict each sample and then learn it. Turns are taken several times, and the best of each
is reported.

    python benchmarks/bench_river.py
"""

import time

from river import datasets, ensemble, feature_extraction, linear_model, preprocessing

import domkl
from domkl.estimators.river import OnlineKernelRegressor

N_FREQUENCIES = 50
TURNS = 3


def rivers_own(bandwidths):
    models = [
        feature_extraction.RBFSampler(gamma=1 / (2 * b), n_components=2 * N_FREQUENCIES, seed=1)
        | linear_model.LinearRegression()
        for b in bandwidths
    ]
    return preprocessing.StandardScaler() | ensemble.EWARegressor(models, learning_rate=0.005)


def seconds(model, samples):
    start = time.perf_counter()
    for x, y in samples:
        model.predict_one(x)
        model.learn_one(x, y)
    return (time.perf_counter() - start) / len(samples)


def main():
    samples = list(datasets.TrumpApproval())
    default = OnlineKernelRegressor(n_frequencies=N_FREQUENCIES)
    default.learn_one(*samples[0])
    n_kernels = default.learner.features.n_kernels
    bank = domkl.gaussian_bank(10.0 ** (p / 2 - 1) for p in range(n_kernels))
    cases = {
        "River: RBFSampler, EWARegressor": (lambda: rivers_own(k.bandwidth for k in bank), 40),
        "domkl: default": (lambda: OnlineKernelRegressor(n_frequencies=N_FREQUENCIES), 1000),
        "domkl: DOMKL": (lambda: OnlineKernelRegressor(domkl.DOMKL(), bank, N_FREQUENCIES), 1000),
    }
    best = dict.fromkeys(cases, float("inf"))
    for make, _ in cases.values():
        seconds(make(), samples[:2])  # compiles
    for _ in range(TURNS):
        for name, (make, n) in cases.items():
            best[name] = min(best[name], seconds(make(), samples[:n]))
    river = best["River: RBFSampler, EWARegressor"]
    print(f"{n_kernels} kernels, {2 * N_FREQUENCIES} features each; predict, then learn")
    for name, each in best.items():
        print(f"{name:34} {1 / each:10.0f} samples/s  {river / each:6.1f} times River's")


if __name__ == "__main__":
    main()
