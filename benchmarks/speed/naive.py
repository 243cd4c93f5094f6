"""Coherent factuality one problem at a time, by enumerating nested subgraphs.

This simple implementation is the reference for the timings of the package.
"""

import math
from graphlib import TopologicalSorter
from itertools import pairwise


def problems(features, offsets, edges, labels):
    """Checked (risk, parents, labels) of every problem, from flat arrays."""
    starts = offsets.tolist()
    home = [i for i, (a, b) in enumerate(pairwise(starts)) for _ in range(b - a)]
    parents = [[set() for _ in range(b - a)] for a, b in pairwise(starts)]
    for u, v in edges.tolist():
        i = home[v]
        if home[u] != i or u == v:
            raise ValueError(f"bad edge ({u}, {v})")
        parents[i][v - starts[i]].add(u - starts[i])
    risk, truth, out = (-features[:, 0]).tolist(), labels.tolist(), []
    for i, (a, b) in enumerate(pairwise(starts)):
        if not all(map(math.isfinite, risk[a:b])):
            raise ValueError(f"problem {i}: a feature is not finite")
        TopologicalSorter(dict(enumerate(parents[i]))).prepare()  # raises on a cycle
        out.append((risk[a:b], parents[i], truth[a:b]))
    return out


def subgraphs(risk, parents):
    """(threshold, claims) for each distinct risk, in increasing order."""
    out = [(-math.inf, frozenset())]
    for t in sorted(set(risk)):
        kept = {v for v, r in enumerate(risk) if r <= t}
        changed = True
        while changed:
            orphans = {v for v in kept if not parents[v] <= kept}
            kept -= orphans
            changed = bool(orphans)
        out.append((t, frozenset(kept)))
    return out


def score(risk, parents, labels):
    """Threshold of the first subgraph with a false claim."""
    for t, kept in subgraphs(risk, parents):
        if not all(labels[v] for v in kept):
            return t
    return math.inf


def calibrate(problems, alpha):
    """The conformal threshold."""
    scores = sorted(score(*problem) for problem in problems)
    k = math.floor(alpha * (len(scores) + 1) + 1e-9)
    return scores[k - 1] if k else -math.inf


def predict(risk, parents, threshold):
    """Claims kept below the threshold."""
    kept = frozenset()
    for t, claims in subgraphs(risk, parents):
        if t < threshold:
            kept = claims
    return kept
