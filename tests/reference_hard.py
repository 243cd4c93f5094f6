"""Coherent factuality by enumerating nested subgraphs; shares no code with skdcf."""

import math
import random


def filtered_set(risk, edges, threshold, strict=True):
    """Claims below the threshold, minus, again and again, those that lack a parent."""
    kept = {
        v
        for v, r in enumerate(risk)
        if r < threshold or (r == threshold and not strict)
    }
    while True:
        orphans = {v for u, v in edges if v in kept and u not in kept}
        if not orphans:
            return kept
        kept -= orphans


def largest_safe_threshold(risk, edges, labels):
    """The largest t whose (strictly) filtered set has no false claim."""
    best = -math.inf
    for t in sorted({*risk, math.inf}):
        if all(labels[v] for v in filtered_set(risk, edges, t)):
            best = t
        else:
            break
    return best


def kth_smallest_by_counting(scores, numerator, denominator):
    """t_alpha for alpha = numerator / denominator, in whole numbers."""
    n = len(scores)
    k = (numerator * (n + 1)) // denominator
    return sorted(scores)[k - 1] if k else -math.inf


def random_problem(rng: random.Random, n_max=9, levels=None):
    """(risk, edges, labels) with claims in random order, possibly tied risks."""
    n = rng.randint(1, n_max)
    order = list(range(n))
    rng.shuffle(order)
    density = rng.choice([0.0, 0.2, 0.5, 0.9])
    edges = [
        (order[i], order[j])
        for j in range(n)
        for i in range(j)
        if rng.random() < density
    ]
    if levels:
        risk = [float(rng.randrange(levels)) for _ in range(n)]
    else:
        risk = [rng.gauss(0, 1) for _ in range(n)]
    truth = rng.choice([0.0, 0.5, 0.8, 1.0])
    labels = [int(rng.random() < truth) for _ in range(n)]
    return risk, edges, labels
