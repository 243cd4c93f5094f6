"""The path relaxation, problem by problem and claim by claim, with plain autograd.

Imports nothing of skdcf. A problem is (risk, ancestors, labels) with ``ancestors[v]`` a
list without v.
"""

import autograd.numpy as np
from autograd.tracer import getval
from scipy.optimize import bisect


def path_risk(risk, ancestors):
    """R of each claim of one problem, as a list."""
    return [np.max(risk[np.array([v, *above])]) for v, above in enumerate(ancestors)]


def first_false(ancestors, labels):
    return [
        v
        for v, above in enumerate(ancestors)
        if not labels[v] and all(labels[u] for u in above)
    ]


def score(R, ancestors, labels):
    """Nonconformity score of one problem; None without false claims."""
    false = first_false(ancestors, labels)
    return np.min(np.array([R[v] for v in false])) if false else None


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def threshold(scores, n, alpha, temperature):
    """Root by bisection, then one Newton step, whose gradient is the implicit one."""
    if not scores:
        return np.inf
    s = np.array(scores)
    target = min(max(alpha * (n + 1) - 0.5, 0.4), len(scores) - 0.4)
    fixed = np.array([getval(x) for x in scores])

    def excess(t):
        return np.sum(sigmoid((t - fixed) / temperature)) - target

    low, high = np.min(fixed) - 50 * temperature, np.max(fixed) + 50 * temperature
    root = bisect(excess, low, high, xtol=1e-14)
    p = sigmoid((root - fixed) / temperature)
    slope = np.sum(p * (1 - p)) / temperature
    return root - (np.sum(sigmoid((root - s) / temperature)) - target) / slope


def loss(risks, ancestors, labels, alpha, setting, calibration=None, prediction=None):
    """Minus the soft number of true claims kept per problem."""
    everything = range(len(risks))
    R = [path_risk(risks[i], ancestors[i]) for i in everything]
    calibration = everything if calibration is None else calibration
    scores = [score(R[i], ancestors[i], labels[i]) for i in calibration]
    known = [s for s in scores if s is not None]
    t = threshold(known, len(scores), alpha, setting["T_s"])
    prediction = everything if prediction is None else prediction
    total = 0.0
    for i in prediction:
        for Rv, label in zip(R[i], labels[i], strict=True):
            total = total + label * sigmoid((t - Rv) / setting["T_q"])
    return -total / len(prediction)
