"""DOMKRLS written literally: normal equations, explicit inverses, loops; imports numpy only.

What a learner's samples leave is the matrix A = ridge·I + Σ w z zᵀ, forgotten in time. A step of
its own fit is A⁻¹z·(error), with A after the sample: the same as any form of recursive least
squares. θ moves as the fit does, and is averaged with the neighbors'.
"""

import math

import numpy as np
from paper import Recorder, _functions, features


def _sigmoid(a):
    return 1 / (1 + math.exp(min(-a, 700.0)))


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
    own = [[np.zeros(D) for _ in range(P)] for _ in range(K)]
    ridges = [ridge * (10 if p % 2 == 1 else 1) for p in range(P)]
    if linear:
        ridges[-1] = ridge
    A = [[ridges[p] * np.eye(D) for p in range(P)] for _ in range(K)]
    account, own_account, score = np.zeros((K, P)), np.zeros((K, P)), np.zeros((K, 2))
    q, r = np.tile(prior, (K, 1)), np.tile(prior, (K, 1))
    trust, rounds = np.tile([0.999, 0.001], (K, 1)), 0.0
    recorder, deviation = Recorder(K), []
    for t in range(T):
        zs = [features(X[t, k], frequencies, linear) for k in range(K)]
        weights = trust[:, :1] * q + trust[:, 1:] * r
        mixed = [[_mix(theta[k][p], own[k][p], trust[k], q[k, p], r[k, p]) for p in range(P)]
                 for k in range(K)]  # fmt: skip
        recorder.measure(_functions(mixed, weights), zs, neighbors)
        deviation.append([_deviation(mixed[k], A[k], weights[k], zs[k],
                                     _variance(score[k], rounds), logistic)
                          if rounds or logistic else math.inf for k in range(K)])  # fmt: skip
        keep = forget * 2 * rounds / (2 * rounds + 1)
        for k in range(K):
            y = Y[t, k]
            both = [0.0, 0.0]
            s2, own_s2 = _variance(account[k], rounds), _variance(own_account[k], rounds)
            for p in range(P):
                z = zs[k][p]
                f, f_own = theta[k][p] @ z, own[k][p] @ z
                both[0] += q[k, p] * f
                both[1] += r[k, p] * f_own
                account[k, p] = keep * account[k, p] + _loss(f, y, s2, logistic)
                own_account[k, p] = keep * own_account[k, p] + _loss(f_own, y, own_s2, logistic)
                if logistic:
                    inverse = np.linalg.inv(forget * A[k][p])
                    reach = z @ inverse @ z
                    s = _logistic_minimiser(f_own, y, reach)
                    move = (s - f_own) / reach * inverse @ z
                    weight = _sigmoid(s) * (1 - _sigmoid(s))
                    A[k][p] = forget * A[k][p] + weight * np.outer(z, z)
                else:
                    A[k][p] = forget * A[k][p] + np.outer(z, z)
                    move = np.linalg.inv(A[k][p]) @ z * (y - f_own)
                if forget < 1:
                    A[k][p] = _capped(A[k][p], ridge)
                own[k][p] = own[k][p] + move
                theta[k][p] = 0.99 * (theta[k][p] + move) + 0.01 * own[k][p]
            s2 = _variance(score[k], rounds)
            score[k] = [keep * score[k, i] + _loss(both[i], y, s2, logistic) for i in range(2)]
        rounds = keep * rounds + 1
        theta = [[_mean([theta[i][p] for i in range(K)], k, neighbors) for p in range(P)]
                 for k in range(K)]  # fmt: skip
        account = np.array([_mean(account, k, neighbors) for k in range(K)])
        for k in range(K):
            q[k] = _weights(account[k], prior, rounds, forget, logistic)
            r[k] = _weights(own_account[k], prior, rounds, forget, logistic)
            trust[k] = _weights(score[k], np.array([0.999, 0.001]), rounds, forget, logistic)
    weights = trust[:, :1] * q + trust[:, 1:] * r
    return recorder.result(theta, weights) | {"deviation": np.array(deviation)}


def _mix(theta, own, trust, q, r):
    a, b = trust[0] * q, trust[1] * r
    return (a * theta + b * own) / (a + b)


def _variance(account, rounds):
    return min(account) / rounds if rounds else 0.0


def _loss(f, y, variance, logistic):
    if logistic:
        return math.log1p(math.exp(-y * f))
    square = (y - f) ** 2
    if variance == 0 or square <= 25 * variance:
        return square
    return 25 * variance * (1 + math.log(square / (25 * variance)))


def _weights(account, prior, rounds, forget, logistic):
    scale = 1.0 if logistic else 2 * min(account) / rounds
    w = [
        a * math.exp(-(loss - min(account)) / scale) for a, loss in zip(prior, account, strict=True)
    ]
    return forget * np.array(w) / sum(w) + (1 - forget) * prior


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
