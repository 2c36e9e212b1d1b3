"""The paper, transcribed: loops over learners and kernels, explicit inverses, no cleverness.

Learners are numbered from 0; ``neighbors[k]`` lists N_k. Every function returns what a run gives:
predictions (T, K), final theta (K, P, D), final weights (K, P), CV(t), and the squared
discrepancies of regret_d. Imports numpy, and scipy's scalar root finder for losses other than the
squared one; nothing of domkl.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit


def features(x, frequencies, linear=False):
    """(5): a list of P vectors, padded with zeros to the longest."""
    blocks = []
    for v in frequencies:
        M = len(v)
        z = [math.sin(v[i] @ x) for i in range(M)] + [math.cos(v[i] @ x) for i in range(M)]
        blocks.append(np.array(z) / math.sqrt(M))
    if linear:
        blocks.append(np.append(x, 1.0))
    longest = max(len(z) for z in blocks)
    return [np.pad(z, (0, longest - len(z))) for z in blocks]


# losses: (value, derivative, subdifferential as an interval)


def squared(f, y):
    return (f - y) ** 2, 2 * (f - y), (2 * (f - y), 2 * (f - y))


def huber(delta):
    def loss(f, y):
        r = f - y
        if abs(r) <= delta:
            return r * r / 2, r, (r, r)
        slope = delta * np.sign(r)
        return delta * (abs(r) - delta / 2), slope, (slope, slope)

    return loss


def pinball(below, above):
    def loss(f, y):
        if f > y:
            return above * (f - y), above, (above, above)
        if f < y:
            return below * (y - f), -below, (-below, -below)
        return 0.0, 0.0, (-below, above)

    return loss


absolute = pinball(1.0, 1.0)


def logistic(f, y):
    slope = -y * expit(-y * f)
    return np.logaddexp(0, -y * f), slope, (slope, slope)


def primal(theta, others, dual, z, y, rho, eta_l, loss):
    """(11). For the squared loss, Remark 1's inverse; else the optimality condition in s = θᵀz.

    Its gradient is zero at θ = (b − g z)/c, g in the subdifferential of the loss at s, so that
    s − zᵀb/c + g ‖z‖²/c = 0: increasing in s, hence one root.
    """
    D = len(z)
    gamma = np.zeros(D)
    for other in others:
        gamma = gamma + (theta + other) / 2
    c = eta_l + rho * len(others)
    if loss is squared:
        matrix = 2 * np.outer(z, z) + c * np.eye(D)
        return np.linalg.inv(matrix) @ (2 * y * z + eta_l * theta + rho * gamma - dual)
    b = eta_l * theta + rho * gamma - dual
    center, tau = z @ b / c, z @ z / c
    low, high = (s * tau for s in loss(y, y)[2])
    if y - center + low <= 0 <= y - center + high and low < high:
        s, slope = y, (center - y) / tau  # the minimum is at the kink
    else:
        reach = 1 + tau  # no slope here exceeds 1
        s = brentq(
            lambda s: s - center + tau * loss(s, y)[1],
            center - reach,
            center + reach,
            xtol=1e-15,
            rtol=1e-15,
            maxiter=500,
        )
        slope = loss(s, y)[1]
    return (b - slope * z) / c


def weights_of(losses, eta_g):
    """(15), (16) for one learner from the losses it counts."""
    w = [math.exp(-(loss - min(losses)) / eta_g) for loss in losses]
    return np.array(w) / sum(w)


class Recorder:
    def __init__(self, n_learners):
        self.K = n_learners
        self.predictions, self.cv_terms, self.discrepancy = [], [], []

    def measure(self, functions, zs, neighbors):
        """functions[k](z) for a learner's list of features z."""
        K = self.K
        self.predictions.append([functions[k](zs[k]) for k in range(K)])
        total = 0.0
        for k in range(K):
            for other in range(K):
                if other != k:
                    total += (functions[k](zs[k]) - functions[other](zs[k])) ** 2
        self.cv_terms.append(total / (K * (K - 1)) if K > 1 else 0.0)
        self.discrepancy.append(
            [
                sum(functions[k](zs[k]) - functions[other](zs[k]) for other in neighbors[k]) ** 2
                for k in range(K)
            ]
        )

    def result(self, theta, weights):
        rounds = np.arange(1, len(self.cv_terms) + 1)
        return {
            "predictions": np.array(self.predictions),
            "theta": np.array(theta),
            "weights": np.array(weights),
            "cv": np.cumsum(self.cv_terms) / rounds,
            "discrepancy": np.array(self.discrepancy),
        }


def _functions(theta, q):
    def make(k):
        return lambda z: sum(q[k][p] * (theta[k][p] @ z[p]) for p in range(len(z)))

    return [make(k) for k in range(len(theta))]


def domkl(
    X,
    Y,
    neighbors,
    frequencies,
    rho,
    eta_l,
    eta_g,
    loss=squared,
    linear=False,
    message_passing=False,
):
    """Algorithm 2; with P = 1 Algorithm 1. Message passing by (19) and (20)."""
    T, K, _ = X.shape
    zs = [features(X[0, 0], frequencies, linear)] * K
    P, D = len(zs[0]), len(zs[0][0])
    theta = [[np.zeros(D) for _ in range(P)] for _ in range(K)]
    dual = [[np.zeros(D) for _ in range(P)] for _ in range(K)]
    account = np.zeros((K, P))
    q = np.full((K, P), 1 / P)
    said = {(i, k): np.zeros(P) for k in range(K) for i in neighbors[k]}  # −η_g log m_{i→k}
    recorder = Recorder(K)
    for t in range(T):
        zs = [features(X[t, k], frequencies, linear) for k in range(K)]
        recorder.measure(_functions(theta, q), zs, neighbors)
        new = [
            [
                primal(
                    theta[k][p],
                    [theta[i][p] for i in neighbors[k]],
                    dual[k][p],
                    zs[k][p],
                    Y[t, k],
                    rho,
                    eta_l,
                    loss,
                )
                for p in range(P)
            ]
            for k in range(K)
        ]
        for k in range(K):
            for p in range(P):
                account[k, p] += loss(theta[k][p] @ zs[k][p], Y[t, k])[0]
        if message_passing:
            for k in range(K):
                q[k] = weights_of(account[k] + sum(said[i, k] for i in neighbors[k]), eta_g)
            said = {
                (k, i): account[k] + sum(said[j, k] for j in neighbors[k] if j != i)
                for k in range(K)
                for i in neighbors[k]
            }
        else:
            for k in range(K):
                q[k] = weights_of(account[k] + sum(account[i] for i in neighbors[k]), eta_g)
        for k in range(K):
            for p in range(P):
                for i in neighbors[k]:
                    dual[k][p] = dual[k][p] + rho / 2 * (new[k][p] - new[i][p])
        theta = new
    return recorder.result(theta, q) | {"dual": np.array(dual)}


def comkl(X, Y, frequencies, step, eta_g, loss=squared, linear=False):
    """(41) at a server, and a Hedge over the sum of each slot's K losses."""
    T, K, _ = X.shape
    zs = [features(X[0, 0], frequencies, linear)] * K
    P, D = len(zs[0]), len(zs[0][0])
    theta = [np.zeros(D) for _ in range(P)]
    account, q = np.zeros(P), np.full(P, 1 / P)
    recorder = Recorder(K)
    for t in range(T):
        zs = [features(X[t, k], frequencies, linear) for k in range(K)]
        recorder.measure(_functions([theta] * K, [q] * K), zs, [[] for _ in range(K)])
        for p in range(P):
            gradient = np.zeros(D)
            for k in range(K):
                value, slope, _ = loss(theta[p] @ zs[k][p], Y[t, k])
                account[p] += value
                gradient = gradient + slope * zs[k][p]
            theta[p] = theta[p] - step / K * gradient
        q = weights_of(account, eta_g)
    return recorder.result([theta] * K, [q] * K)


def rff_domkl(X, Y, neighbors, frequencies, step, eta_g, loss=squared, linear=False):
    """Diffusion for each kernel, combine then adapt, and the weights (16); P = 1: RFF-DOKL."""
    T, K, _ = X.shape
    zs = [features(X[0, 0], frequencies, linear)] * K
    P, D = len(zs[0]), len(zs[0][0])
    theta = [[np.zeros(D) for _ in range(P)] for _ in range(K)]
    account, q = np.zeros((K, P)), np.full((K, P), 1 / P)
    recorder = Recorder(K)
    for t in range(T):
        zs = [features(X[t, k], frequencies, linear) for k in range(K)]
        psi = [[None] * P for _ in range(K)]
        for k in range(K):
            for p in range(P):
                left, mixed = 1.0, np.zeros(D)
                for i in neighbors[k]:
                    a = 1 / (1 + max(len(neighbors[k]), len(neighbors[i])))
                    left -= a
                    mixed = mixed + a * theta[i][p]
                psi[k][p] = mixed + left * theta[k][p]
        recorder.measure(_functions(psi, q), zs, neighbors)
        for k in range(K):
            for p in range(P):
                value, slope, _ = loss(psi[k][p] @ zs[k][p], Y[t, k])
                account[k, p] += value
                theta[k][p] = psi[k][p] - step * slope * zs[k][p]
        for k in range(K):
            q[k] = weights_of(account[k] + sum(account[i] for i in neighbors[k]), eta_g)
    return recorder.result(theta, q)
