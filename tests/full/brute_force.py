"""Full conformal levels from the theorem, claim by claim, with scipy.

Nothing of the package is used. An answer is a tuple (columns, parents, labels), where parents[v] is
a list of earlier claims. Labels are 1 for true claims, and 0 or -1 for others.
"""

import math

import numpy as np
from scipy.optimize import minimize

C = 0.03


def ancestors(parents):
    """The set of each claim and its ancestors."""
    found = []
    for v, own in enumerate(parents):
        found.append({v}.union(*(found[u] for u in own)))
    return found


def first_error(labels):
    """Position of the first claim that is not true, or the number of claims."""
    return next((v for v, y in enumerate(labels) if y != 1), len(labels))


def fit(additions, tables):
    """Weights and intercept of the log odds of an error, for additions (columns, first error)."""
    every = np.vstack([X for X in tables if len(X)])
    scale = every.std(axis=0)
    scale[scale <= 1e-12 * max(1, np.abs(every).max())] = np.inf
    rows, is_false = [], []
    for X, error in additions:
        n_used = min(error + 1, len(X))
        rows += [x / scale for x in X[:n_used]]
        is_false += [v == error for v in range(n_used)]
    n_false = sum(is_false)
    if n_false in (0, len(is_false)):
        odds = math.log((n_false + 0.5) / (len(is_false) - n_false + 0.5))
        return np.zeros(len(scale)), odds
    A = np.column_stack([np.array(rows), np.ones(len(rows))])
    A[:, :-1] -= every.mean(axis=0) / scale
    sign = np.where(is_false, 1.0, -1.0)
    penalty = np.append(np.full(len(scale), 1 / C), 0.0)

    def value(w):
        z = sign * (A @ w)
        p = 1 / (1 + np.exp(z))
        loss = np.logaddexp(0, -z).sum() + w @ (penalty * w) / 2
        return loss, -A.T @ (sign * p) + penalty * w

    def hessian(w):
        p = 1 / (1 + np.exp(-A @ w))
        return A.T @ (A * (p * (1 - p))[:, None]) + np.diag(penalty)

    w = minimize(
        value, np.zeros(len(penalty)), jac=True, hess=hessian, method="trust-exact"
    ).x
    for _ in range(3):  # scipy stops at a relative change of the objective
        w = w - np.linalg.solve(hessian(w), value(w)[1])
    raw = w[:-1] / scale
    return raw, w[-1] - raw @ np.where(np.isfinite(scale), every.mean(axis=0), 0)


def path_risks(fitted, X, parents, gain=0.5):
    """Log price of each claim: the slope of the convex minorant of risk over worth."""
    weights, intercept = fitted
    hazard = np.clip(np.round(X @ weights + intercept, 9), -30, 30)
    lone = np.logaddexp(0, hazard)
    above = ancestors(parents)
    m = [round(sum(round(lone[u], 9) for u in own), 9) for own in above]
    blocks = sorted(set(m))
    risk, worth, kept = [0.0], [0.0], 0
    for value in blocks:
        own = [v for v in range(len(m)) if m[v] == value]
        total = sum(lone[v] for v in range(len(m)) if m[v] <= value)
        before = sum(lone[v] for v in range(len(m)) if m[v] < value)
        risk.append(risk[-1] + math.exp(-before) * -math.expm1(before - total))
        added = (kept + len(own)) ** gain - kept**gain
        worth.append(worth[-1] + math.exp(-value) * added)
        kept += len(own)
    slopes = {}
    for k, value in enumerate(blocks):
        slopes[value] = max(
            min(
                (risk[b] - risk[a]) / (worth[b] - worth[a])
                for b in range(k + 1, len(risk))
            )
            for a in range(k + 1)
        )
    prices = [math.log(slopes[value]) for value in m]
    return [max(prices[u] for u in own) for own in above]


def score(risks, labels, max_false=0):
    """The (max_false + 1)-th smallest path risk of the claims that are not true."""
    false = sorted(r for r, y in zip(risks, labels, strict=True) if y != 1)
    return false[max_false] if len(false) > max_false else math.inf


def levels(calibrating, training, new, max_false=0, ranked=None):
    """Smallest alpha of each claim of a new answer, whose labels are not read.

    ``ranked`` is a list of the positions of the calibration answers that are compared with the new
    one, by default all.
    """
    X, parents = new[:2]
    labelled = [*calibrating, *training]
    ranked = range(len(calibrating)) if ranked is None else ranked
    tables = [answer[0] for answer in labelled] + [X]
    known = [(answer[0], first_error(answer[2])) for answer in labelled]
    a = np.zeros((len(X), len(X)))
    for j in range(len(X)):
        fitted = fit([*known, (X, j)], tables)
        risks = path_risks(fitted, X, parents)
        scores = [
            score(path_risks(fitted, *calibrating[i][:2]), calibrating[i][2], max_false)
            for i in ranked
        ]
        for v in range(j, len(X)):
            reached = risks[v] + 1e-8 * (1 + abs(risks[v]))
            a[j, v] = (1 + sum(s <= reached for s in scores)) / (len(scores) + 1)
    level = []
    for v, own in enumerate(ancestors(parents)):
        hypotheses = [
            a[j, v] if max_false else min(a[j, j], a[j, v]) for j in range(v + 1)
        ]
        level.append(max([max(hypotheses), *(level[u] for u in own if u < v)]))
    return np.array(level)
