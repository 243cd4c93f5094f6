"""The paper's algorithms 1 and 2, problem by problem, as they are printed.

Written from arXiv:2604.20098 (appendix B) with autograd and nothing of skdcf: the
yardstick for values, gradients and speed. Departures from the print: logs without the
epsilon, the margins of the theorems, V = 0 without false claims.
A problem is (risk, ancestors, labels) with ``ancestors[v]`` a list without v.
"""

import autograd.numpy as np


def log_sigmoid(x):
    return -np.logaddexp(0.0, -x)


def grid_of(risk, margin):
    if not len(risk):
        return np.array([-margin, margin])
    return np.concatenate(
        [np.array([np.min(risk) - margin]), risk, np.array([np.max(risk) + margin])]
    )


def membership(risk, ancestors, T, setting):
    """log q, one row per claim and one column per threshold."""
    x = (T[None, :] - risk[:, None] + setting.get("keep_shift", 0.0)) / setting["T_p"]
    log_p = log_sigmoid(x)
    gamma, rows = setting["gamma"], []
    for v, above in enumerate(ancestors):
        total = log_p[v]
        for u in above:
            total = total + gamma * log_p[u]
        rows.append(total / (1 + gamma * len(above)))
    return rows


def min_max(x):
    low, high = np.min(x), np.max(x)
    return (x - low) / (high - low) if high > low else 0 * x


def violation(log_q, labels, n_thresholds, setting):
    false = [v for v, label in enumerate(labels) if not label]
    if not false:
        return np.zeros(n_thresholds)
    log_valid = 0.0
    for v in false:
        log_valid = log_valid + np.log(-np.expm1(log_q[v])) / len(false)
    return 1 - np.exp(log_valid / setting["tau_s"])


def score(risk, ancestors, labels, setting):
    """Soft nonconformity score of one problem."""
    T = grid_of(risk, setting["m"])
    log_q = membership(risk, ancestors, T, setting)
    V = violation(log_q, labels, len(T), setting)
    s = setting["beta"] * (min_max(T) - setting["lambda"] * min_max(V))
    w = np.exp(s - np.max(s))
    return np.sum(w * T) / np.sum(w)


def neural_sort(scores, i, strength):
    """i-th largest, from the full matrix of distances."""
    n = len(scores)
    distance = np.sum(np.abs(scores[:, None] - scores[None, :]), axis=1)
    logits = strength * ((n + 1 - 2 * i) * scores - distance)
    w = np.exp(logits - np.max(logits))
    return np.sum(w * scores) / np.sum(w)


def threshold(scores, rank, strength):
    """Soft quantile; ``rank`` is counted from the smallest."""
    return neural_sort(np.array(scores), len(scores) + 1 - rank, strength)


def retained(risk, ancestors, bound, setting):
    """q of each claim of one problem."""
    T = grid_of(risk, setting["m"])
    log_q = membership(risk, ancestors, T, setting)
    gate = (bound - T - setting.get("gate_shift", 0.0)) / setting["tau_z"]
    log_w = setting["beta"] * T + log_sigmoid(gate)
    w = np.exp(log_w - np.max(log_w))
    w = w / np.sum(w)
    return [np.sum(w * np.exp(row)) for row in log_q]


def loss(risks, ancestors, labels, rank, setting, calibration=None, prediction=None):
    """Minus the soft number of true claims kept per problem.

    All three first arguments are lists with one entry per problem.
    """
    everything = range(len(risks))
    scores = [
        score(risks[i], ancestors[i], labels[i], setting)
        for i in (everything if calibration is None else calibration)
    ]
    bound = threshold(scores, rank, setting["rho"])
    chosen = everything if prediction is None else prediction
    total = 0.0
    for i in chosen:
        kept = retained(risks[i], ancestors[i], bound, setting)
        for q, label in zip(kept, labels[i], strict=True):
            total = total + label * q
    return -total / len(chosen)
