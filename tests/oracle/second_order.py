"""DOMKRLS written literally: normal equations, explicit inverses, loops; imports numpy only.

A learner's θ is not the solution of its own normal equations once neighbors have mixed theirs in;
what its samples leave is the matrix A = forget-weighted ridge·I + Σ w z zᵀ. A step is
θ + A⁻¹z·(error), with A after the sample: the same as any form of recursive least squares.
"""

import math

import numpy as np
from paper import Recorder, _functions, features


def _sigmoid(a):
    return 1 / (1 + math.exp(-a))


def _logistic_minimiser(f, y, reach):
    """Argmin over s of log(1 + exp(−ys)) + (s − f)²/2·reach, by bisection."""
    low, high = f - reach - 1, f + reach + 1
    for _ in range(200):
        s = (low + high) / 2
        if (s - f) / reach - y * _sigmoid(-y * s) > 0:
            high = s
        else:
            low = s
    return (low + high) / 2


def domkrls(X, Y, neighbors, frequencies, forget, ridge, linear=False, logistic=False):
    T, K, _ = X.shape
    zs = [features(X[0, 0], frequencies, linear)] * K
    P, D = len(zs[0]), len(zs[0][0])
    prior = np.full(P, 1 / P)
    if linear:
        prior = np.array([0.5 / (P - 1)] * (P - 1) + [0.5])
    theta = [[np.zeros(D) for _ in range(P)] for _ in range(K)]
    A = [[ridge * np.eye(D) for _ in range(P)] for _ in range(K)]
    account, q, rounds = np.zeros((K, P)), np.tile(prior, (K, 1)), 0.0
    recorder, deviation = Recorder(K), []
    for t in range(T):
        zs = [features(X[t, k], frequencies, linear) for k in range(K)]
        recorder.measure(_functions(theta, q), zs, neighbors)
        variance = [min(account[k]) / rounds if rounds else 0.0 for k in range(K)]
        deviation.append([_deviation(theta[k], A[k], q[k], zs[k], variance[k], logistic)
                          for k in range(K)])  # fmt: skip
        for k in range(K):
            for p in range(P):
                z, y, f = zs[k][p], Y[t, k], theta[k][p] @ zs[k][p]
                if logistic:
                    loss = math.log1p(math.exp(-y * f))
                    reach = z @ np.linalg.inv(forget * A[k][p]) @ z
                    s = _logistic_minimiser(f, y, reach)
                    move = (s - f) / reach * np.linalg.inv(forget * A[k][p]) @ z
                    weight = _sigmoid(s) * (1 - _sigmoid(s))
                    A[k][p] = forget * A[k][p] + weight * np.outer(z, z)
                else:
                    loss = (y - f) ** 2
                    if variance[k] > 0 and loss > 25 * variance[k]:
                        loss = 25 * variance[k] * (1 + math.log(loss / (25 * variance[k])))
                    A[k][p] = forget * A[k][p] + np.outer(z, z)
                    move = np.linalg.inv(A[k][p]) @ z * (y - f)
                if forget < 1:
                    A[k][p] = _capped(A[k][p], ridge)
                account[k, p] = forget * account[k, p] + loss
                theta[k][p] = theta[k][p] + move
        rounds = forget * rounds + 1
        theta = [[_mean([theta[i][p] for i in range(K)], k, neighbors) for p in range(P)]
                 for k in range(K)]  # fmt: skip
        account = np.array([_mean(account, k, neighbors) for k in range(K)])
        for k in range(K):
            scale = 1.0 if logistic else 2 * min(account[k]) / rounds
            w = [prior[p] * math.exp(-(account[k, p] - min(account[k])) / scale) for p in range(P)]
            q[k] = (1 - (1 - forget)) * np.array(w) / sum(w) + (1 - forget) * prior
    return recorder.result(theta, q) | {"deviation": np.array(deviation)}


def _capped(A, ridge):
    """C = A⁻¹ as U D Uᵀ, U unit upper triangular, and no element of D above 1/ridge."""
    root = np.linalg.cholesky(np.linalg.inv(A)[::-1, ::-1])[::-1, ::-1]  # C = root rootᵀ, upper
    D = np.diag(root) ** 2
    U = root / np.diag(root)
    return np.linalg.inv(U @ np.diag(np.minimum(D, 1 / ridge)) @ U.T)


def _mean(values, k, neighbors):
    """Metropolis weights."""
    left, mixed = 1.0, 0.0
    for i in neighbors[k]:
        a = 1 / (1 + max(len(neighbors[k]), len(neighbors[i])))
        left -= a
        mixed = mixed + a * values[i]
    return mixed + left * values[k]


def _deviation(theta, A, q, z, variance, logistic):
    P = len(q)
    f = [theta[p] @ z[p] for p in range(P)]
    mean = sum(q[p] * f[p] for p in range(P))
    total = 0.0
    for p in range(P):
        reach = z[p] @ np.linalg.inv(A[p]) @ z[p]
        own = reach if logistic else variance * (1 + reach)
        total += q[p] * (own + (f[p] - mean) ** 2)
    return math.sqrt(total)
