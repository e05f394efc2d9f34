"""What few labels are compared with: Poisson learning, written out, and graphlearning's methods."""

from __future__ import annotations

import importlib.util

import numpy as np
from scipy import sparse
from scipy.special import log_softmax

_TEMPERATURES = np.logspace(-2, 3, 41)
_MOST_STEPS = 10_000  # of conjugate gradients


def peer_graph(nearest: np.ndarray, squares: np.ndarray) -> sparse.csr_matrix:
    """The usual graph of the papers: ten neighbours, exp(-4 d²/t), (A + Aᵀ)/2, no loops."""
    nearest, squares = nearest[:, :10], squares[:, :10]
    W = np.exp(-4.0 * squares / np.maximum(squares[:, -1:], 1e-30))
    rows = np.repeat(np.arange(len(W)), W.shape[1])
    A = sparse.csr_matrix((W.ravel(), (rows, nearest.ravel())), shape=(len(W), len(W)))
    return (A + A.T) / 2


def poisson(W: sparse.csr_matrix, known: np.ndarray) -> np.ndarray:
    """Scores of Poisson learning (Calder, Cook, Thorpe and Slepčev, ICML 2020), eq. (2.4).

    ``L u = Σ_j δ_j (y_j - ȳ)`` by conjugate gradients on the normalized Laplacian, from zero until
    the residual is 1e-3, as in graphlearning.
    """
    labelled = known >= 0
    R = np.zeros((len(known), known.max() + 1))
    R[labelled, known[labelled]] = 1.0
    R[labelled] -= R[labelled].mean(axis=0)
    root = 1.0 / np.sqrt(np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1e-30))[:, None]
    scale = sparse.diags(root[:, 0])
    S = (scale @ W @ scale).tocsr()
    R *= root
    U, P, square = np.zeros_like(R), R.copy(), np.sum(R**2, axis=0)
    for _ in range(_MOST_STEPS):
        Q = P - S @ P
        step = square / np.maximum(np.sum(P * Q, axis=0), 1e-30)
        U += step * P
        R -= step * Q
        before, square = square, np.sum(R**2, axis=0)
        if square.sum() ** 0.5 <= 1e-3:
            break
        P = R + square / np.maximum(before, 1e-30) * P
    return root * U


def of_graphlearning(W: sparse.csr_matrix, shares: np.ndarray) -> dict:
    """Methods of graphlearning by name; none where it is not installed."""
    if not importlib.util.find_spec("graphlearning"):
        return {}
    import graphlearning as gl

    def peer(make):
        def run(known):
            train, model = np.flatnonzero(known >= 0), make()
            return model.fit_predict(train, known[train]), model.prob

        return run

    return {
        "gl Laplace": peer(lambda: gl.ssl.laplace(W)),
        "gl Poisson": peer(lambda: gl.ssl.poisson(W)),
        "gl PoissonMBO, given sizes": peer(lambda: gl.ssl.poisson_mbo(W, class_priors=shares)),
        "gl volume MBO, given sizes": peer(lambda: gl.ssl.volume_mbo(W, class_priors=shares)),
        "gl p-Laplace": peer(lambda: gl.ssl.plaplace(W)),
    }


def best_loss(F: np.ndarray, y: np.ndarray) -> float:
    """The log-loss of scores at the temperature that is best for these very points."""
    Z = F / (F.std() or 1.0)
    logs = (log_softmax(t * Z, axis=1)[np.arange(len(y)), y] for t in _TEMPERATURES)
    return min(-float(np.mean(np.maximum(part, np.log(1e-3)))) for part in logs)
