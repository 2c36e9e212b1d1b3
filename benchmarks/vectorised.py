"""DOMKL in vectorised NumPy, one trial at a time: what a careful script does without a compiler.

Sherman-Morrison instead of the paper's inverse, no Python loop over learners or kernels. Returns
MSE and CV as simulate defines them.
"""

import numpy as np


def domkl(X, y, graph, features, rho, eta_l, eta_g, dtype=np.float64):
    T, K, _ = X.shape
    P, M = features.n_kernels, features.n_frequencies
    frequencies = features.frequencies.reshape(P * M, -1).T.copy()
    adjacency = np.zeros((K, K), dtype=dtype)
    adjacency[graph.sources, graph.indices] = 1
    degree = adjacency.sum(axis=1)[:, None, None]
    stiffness = eta_l + rho * degree
    theta = np.zeros((K, P, 2 * M), dtype=dtype)
    dual, nbr = np.zeros_like(theta), np.zeros_like(theta)
    loss, weights = np.zeros((K, P)), np.full((K, P), 1 / P)
    error = disagreement = 0.0
    for t in range(T):
        angle = (X[t] @ frequencies).reshape(K, P, M)
        z = np.concatenate([np.sin(angle), np.cos(angle)], axis=2).astype(dtype) / np.sqrt(
            M, dtype=dtype
        )
        f = np.einsum("kpd,kpd->kp", theta, z)
        blend = (weights[:, :, None].astype(dtype) * theta).reshape(K, -1)
        values = z.reshape(K, -1) @ blend.T
        own = np.diag(values)
        error += np.sum((own - y[t]) ** 2)
        disagreement += np.sum((own[:, None] - values) ** 2)
        loss += (f - y[t][:, None]) ** 2
        rest = ((eta_l + rho * degree / 2) * theta + rho / 2 * nbr - dual) / stiffness
        gap = y[t][:, None].astype(dtype) - np.einsum("kpd,kpd->kp", rest, z)
        theta = rest + (2 * gap[:, :, None] / (stiffness + 2)) * z
        nbr = (adjacency @ theta.reshape(K, -1)).reshape(theta.shape)
        dual = dual + rho / 2 * (degree * theta - nbr)
        account = loss + adjacency @ loss
        weights = np.exp((account.min(axis=1, keepdims=True) - account) / eta_g)
        weights /= weights.sum(axis=1, keepdims=True)
    return error / (T * K), disagreement / (T * K * max(K - 1, 1))
