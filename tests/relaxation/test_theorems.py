"""Both theorems of the paper along their schedules, on 200 random graphs at once.

Theorem 1: the soft nonconformity score goes to the last safe value of the grid.
Theorem 2: claims softly kept by a half or more are the filtered set.
"""

import numpy as np
import pytest
from random_graphs import Problems, chain, random_edges, spaced_risks
from theorem_limits import relaxation_at

TEMPERATURES = (1e-1, 1e-2, 1e-3, 1e-5, 1e-8)


def last_safe_threshold(risk, ancestors, labels, margin):
    """The largest t of the grid at and below which no false claim is kept."""
    best = None
    for t in sorted([min(risk) - margin, *risk, max(risk) + margin]):
        kept = filtered(risk, ancestors, t)
        if any(not labels[v] for v in kept):
            break
        best = t
    return best


def filtered(risk, ancestors, t):
    """Claims that have, like all their ancestors, a risk of at most t."""
    return [
        v
        for v, above in enumerate(ancestors)
        if risk[v] <= t and all(risk[u] <= t for u in above)
    ]


def filtered_below(risk, ancestors, bound, margin):
    """The filtered set at the largest threshold of the grid below ``bound``."""
    grid = [min(risk) - margin, *risk, max(risk) + margin]
    below = [t for t in grid if t < bound]
    return filtered(risk, ancestors, max(below)) if below else []


@pytest.fixture(scope="module")
def problems():
    """200 graphs of 1 to 12 claims, four of them chains of 51: 50 ancestors at the end."""
    rng = np.random.RandomState(0)
    sizes = rng.randint(1, 13, 200)
    sizes[::50] = 51
    edges = [
        chain(n) if n == 51 else random_edges(rng, n, rng.uniform(0.1, 0.6))
        for n in sizes
    ]
    return Problems(rng, edges, sizes, share_false=0.2)


@pytest.fixture(scope="module")
def risk(problems):
    risk = spaced_risks(np.random.RandomState(1), problems.offsets, 0.05)
    start = problems.offsets[0]
    risk[start : start + 51] = risk[start : start + 51][::-1]
    return risk


@pytest.fixture(scope="module")
def exact_scores(problems, risk):
    rows = zip(
        problems.lists(risk),
        problems.ancestors,
        problems.lists(problems.labels),
        strict=True,
    )
    return np.array([last_safe_threshold(*row, margin=1.0) for row in rows])


def test_soft_scores_become_the_last_safe_threshold(problems, risk, exact_scores):
    assert max(map(len, problems.ancestors[0])) == 50
    errors = []
    for T in TEMPERATURES:
        relaxation = relaxation_at(T)
        relaxation.validate()
        plan = relaxation.plan(problems.batch, problems.labels)
        errors.append(np.abs(relaxation.soft_scores(risk, plan) - exact_scores))
    means = [e.mean() for e in errors]
    assert means == sorted(means, reverse=True) and means[2] > means[3] == means[4]
    assert errors[-1].max() < 1e-6


def test_softly_kept_claims_become_the_filtered_set(problems, risk, exact_scores):
    """The bound is a score: a threshold of the grid of at least one problem."""
    bound = np.sort(exact_scores)[60]
    expected = np.zeros(len(risk), dtype=bool)
    for i, (r, above) in enumerate(
        zip(problems.lists(risk), problems.ancestors, strict=True)
    ):
        kept = filtered_below(r, above, bound, margin=1.0)
        expected[problems.offsets[i] + np.array(kept, dtype=int)] = True
    assert expected.any() and not expected.all()
    wrong, distance = [], []
    for T in TEMPERATURES:
        relaxation = relaxation_at(T)
        plan = relaxation.plan(problems.batch, problems.labels)
        q = relaxation.kept(relaxation.state(risk, plan), bound, plan)
        wrong.append(((q >= 0.5) != expected).sum())
        distance.append(np.abs(q - expected).mean())
    assert wrong == sorted(wrong, reverse=True) and wrong[-1] == 0 < wrong[0]
    assert distance == sorted(distance, reverse=True) and distance[-1] < 1e-6
