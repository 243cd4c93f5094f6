"""Metrics of users of step data, against walking through the answers."""

import numpy as np
import pytest

from skdcf.metrics import clean_prefix_score, first_error_score, nonempty_score


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, size=300)
    y = [rng.choice([1, 1, 1, 0, -1], size=n) for n in sizes]
    return y, [rng.random(n) < 0.7 for n in sizes]


def first(flags):
    return next((i for i, flag in enumerate(flags) if flag), len(flags))


def test_by_walking(answers):
    y, kept = answers
    assert nonempty_score(kept) == np.mean([any(mask) for mask in kept])
    lengths = []
    for labels, mask in zip(y, kept, strict=True):
        n = 0
        while n < len(labels) and mask[n] and labels[n] == 1:
            n += 1
        lengths.append(n)
    assert clean_prefix_score(y, kept) == pytest.approx(np.mean(lengths))
    hits = {True: [], False: []}
    for labels, mask in zip(y, kept, strict=True):
        found = first(~mask) == first(labels != 1)
        hits[bool((labels != 1).any())].append(found)
    scores = first_error_score(y, kept)
    wrong, right = np.mean(hits[True]), np.mean(hits[False])
    assert scores["error_accuracy"] == wrong
    assert scores["correct_accuracy"] == right
    assert scores["f1"] == pytest.approx(2 * wrong * right / (wrong + right))


def test_only_one_kind_of_answer():
    scores = first_error_score([[1, 1]], [[True, True]])
    assert scores["correct_accuracy"] == 1
    assert np.isnan(scores["error_accuracy"]) and np.isnan(scores["f1"])
