"""How neighbors' estimates enter least squares: the forms that were tried for DOMKRLS.

    DOMKL_DATA=folder python benchmarks/consensus_forms.py [--sets NAME ...] [--admm RHO ...]

alone      φ, the fit of the learner's own samples
diffusion  θ ← Σ a (θ + Cz (y − θᵀz)/(1 + zᵀCz)): the step taken from θ, then averaged
tracking   θ ← Σ a (θ + φ⁺ − φ), with a leak to φ of 0.01: what DOMKRLS does
admm ρ     (A⁺ + ρ|N| I)(θ⁺ − θ) = z (y − θᵀz) + ρ/2 Σ (θ_ℓ − θ) − λ, A the curvature of the
           learner's samples in the place of η_l, and the dual of DOMKL: a D×D solve each

All weigh kernels in the same way, as DOMKRLS does without its own fit. Printed: MSE over that of
the second-order trial; after 100 rounds, over the better of last value and linear least squares
alone; CV over DOMKL's. Partition: interleaved, or blocks, where learners' streams differ.
"""

import argparse

import numba
import numpy as np
from bench_domkrls import GOALS, LONG, K, M, errors, run, stream

import domkl
from domkl.core.lanes import dot
from domkl.core.rls import shrink

RIDGE, LEAK = 1e-3, 0.01


@numba.njit(nogil=True)
def play(z, y, mean, lengths):
    """f_ℓ(x_k) by kernel, (3, T, K, K, P), for alone, diffusion and tracking."""
    n_rounds, n_learners, n_kernels, n = z.shape
    theta, psi = np.zeros((3, n_learners, n_kernels, n)), np.zeros((3, n_learners, n_kernels, n))
    factor = np.zeros((n_learners, n_kernels, n * (n - 1) // 2))
    diagonal = np.zeros((n_learners, n_kernels, n))
    for p in range(n_kernels):
        diagonal[:, p, : lengths[p]] = 1 / RIDGE
    f = np.zeros((3, n_rounds, n_learners, n_learners, n_kernels))
    gain = np.zeros(n)
    for t in range(n_rounds):
        for k in range(n_learners):
            for p in range(n_kernels):
                row = z[t, k, p]
                for form in range(3):
                    for other in range(n_learners):
                        f[form, t, k, other, p] = dot(theta[form, other, p], row)
                spread = shrink(factor[k, p], diagonal[k, p], row, gain, 1.0, 1.0, RIDGE)
                own = (y[t, k] - f[0, t, k, k, p]) / spread
                from_theta = (y[t, k] - f[1, t, k, k, p]) / spread
                psi[0, k, p] = theta[0, k, p] + own * gain
                psi[1, k, p] = theta[1, k, p] + from_theta * gain
                psi[2, k, p] = theta[2, k, p] + own * gain
                psi[2, k, p] += LEAK * (psi[0, k, p] - psi[2, k, p])
        theta[0] = psi[0]
        for k in range(n_learners):
            theta[1:, k] = 0
            for other in range(n_learners):
                theta[1:, k] += mean[k, other] * psi[1:, other]
    return f


def play_admm(z, y, graph, rho):
    n_rounds, n_learners, n_kernels, n = z.shape
    adjacent = np.zeros((n_learners, n_learners))
    adjacent[graph.edges[:, 0], graph.edges[:, 1]] = 1
    adjacent += adjacent.T
    degree = adjacent.sum(axis=1)[:, None, None]
    theta, dual = np.zeros((n_learners, n_kernels, n)), np.zeros((n_learners, n_kernels, n))
    A = np.tile(RIDGE * np.eye(n), (n_learners, n_kernels, 1, 1))
    f = np.zeros((n_rounds, n_learners, n_learners, n_kernels))
    for t in range(n_rounds):
        f[t] = np.einsum("lpd,kpd->klp", theta, z[t], optimize=True)
        error = y[t][:, None] - np.einsum("kkp->kp", f[t])
        A += z[t][..., :, None] * z[t][..., None, :]
        gap = np.einsum("kl,lpd->kpd", adjacent, theta) - degree * theta
        right = error[..., None] * z[t] + rho / 2 * gap - dual
        theta = (
            theta
            + np.linalg.solve(A + rho * degree[..., None] * np.eye(n), right[..., None])[..., 0]
        )
        dual -= rho / 2 * (np.einsum("kl,lpd->kpd", adjacent, theta) - degree * theta)
    return f


def weighed(f, y, mean, prior):
    """Predictions, and CV x 1e-2."""
    n_rounds, n_learners, _, n_kernels = f.shape
    loss, n, q = np.zeros((n_learners, n_kernels)), 0.0, np.tile(prior, (n_learners, 1))
    y_hat, cv = np.zeros(y.shape), 0.0
    for t in range(n_rounds):
        functions = (f[t] * q).sum(axis=2)
        y_hat[t] = np.diag(functions)
        cv += 100 * ((functions - y_hat[t][:, None]) ** 2).sum() / (n_learners * (n_learners - 1))
        s2 = loss.min(axis=1, keepdims=True) / n if n else np.zeros((n_learners, 1))
        square = (y[t][:, None] - np.einsum("kkp->kp", f[t])) ** 2
        limit = 25 * np.maximum(s2, 1e-300)
        robust = np.where(
            (square > limit) & (s2 > 0), limit * (1 + np.log(np.maximum(square / limit, 1))), square
        )
        keep = 2 * n / (2 * n + 1)
        loss, n = mean @ (keep * loss + robust), keep * n + 1
        best = loss.min(axis=1, keepdims=True)
        q = prior * np.exp((best - loss) * n / (2 * np.maximum(best, 1e-300)))
        q /= q.sum(axis=1, keepdims=True)
    return y_hat, cv / n_rounds


def metropolis(graph):
    mean, degree = np.zeros((K, K)), graph.degree
    for a, b in graph.edges:
        mean[a, b] = mean[b, a] = 1 / (1 + max(degree[a], degree[b]))
    return mean + np.diag(1 - mean.sum(axis=1))


def compare(name, partition, n_trials, admm):
    X, y = stream(name)
    if partition == "blocks":
        X, y = (a.reshape(-1, *a.shape[2:]).reshape(K, len(y), *a.shape[2:]) for a in (X, y))
        X, y = np.swapaxes(X, 0, 1).copy(), y.T.copy()
    lag = 0 if name in LONG else None
    simple = (run(a, X, y, 1, cv="off") for a in (domkl.LinearRLS(), domkl.LastValue(lag)))
    better = min(errors(made)[1].mean() for made in simple)
    first = 100 * run(domkl.DOMKL(), X, y, n_trials).cv[:, -1].mean()
    found = {}
    for b in range(n_trials):
        graph = domkl.Graph.random(K, 0.25, seed=b)
        features = domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], M, seed=b)
        z, n_kernels = features(X), features.n_kernels
        lengths = np.array([2 * M] * (n_kernels - 1) + [X.shape[2] + 1])
        prior = np.append(np.full(n_kernels - 1, 0.5 / (n_kernels - 1)), 0.5)
        mean = metropolis(graph)
        forms = dict(
            zip(("alone", "diffusion", "tracking"), play(z, y, mean, lengths), strict=True)
        )
        forms |= {f"admm {rho:g}": play_admm(z, y, graph, rho) for rho in admm}
        for form, f in forms.items():
            y_hat, cv = weighed(f, y, np.eye(K) if form == "alone" else mean, prior)
            squares = 100 * (y_hat - y) ** 2
            row = squares.mean() / GOALS[name][0], squares[100:].mean() / better, cv / first
            found.setdefault(form, []).append(row)
    for form, rows in found.items():
        mse, late, cv = np.mean(rows, axis=0)
        print(f"| {name} | {partition} | {form} | {mse:.3f} | {late:.3f} | {cv:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--partition", choices=("interleaved", "blocks"), default="interleaved")
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--admm", type=float, nargs="*", default=[], metavar="RHO")
    args = parser.parse_args()
    print("| set | partition | form | MSE | after 100 | CV |\n|---|---|---|---|---|---|")
    for name in args.sets:
        compare(name, args.partition, args.trials, args.admm)


if __name__ == "__main__":
    main()
