"""A rule that chooses one of several answers belongs to the filter, or is refused."""

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF

RULE = "best of 5 by mean score"


def draw(rng, n, rule=None):
    """Answers of three claims; a rule takes of five the one with the best mean score."""
    scores, labels = [], []
    for _ in range(n):
        true = rng.random((5, 3)) < 0.8
        score = rng.normal(size=(5, 3)) + true
        chosen = int(score.mean(axis=1).argmax()) if rule else 0
        scores.append(score[chosen])
        labels.append(true[chosen].astype(int))
    offsets = np.arange(0, 3 * n + 1, 3)
    column = np.concatenate(scores).reshape(-1, 1)
    batch = GraphBatch.from_arrays(column, offsets, ())
    if rule:
        marked = [graph.replace(provenance={"chosen_by": rule}) for graph in batch]
        batch = GraphBatch.from_graphs(marked)
    return batch, labels


def missed(cf, graphs, labels):
    pairs = zip(cf.predict(graphs), labels, strict=True)
    return np.mean([bool((row[mask] == 0).any()) for mask, row in pairs])


@pytest.mark.long
def test_chosen_answers_keep_the_promise_if_chosen_ones_calibrate():
    rng = np.random.default_rng(0)
    as_sampled, as_chosen = [], []
    for _ in range(80):
        new, labels = draw(rng, 150, RULE)
        unmarked = GraphBatch.from_graphs([g.replace(provenance=None) for g in new])
        cf = HardCF(0, alpha=0.1).fit(*draw(rng, 99))
        as_sampled.append(missed(cf, unmarked, labels))  # what nobody can notice
        as_chosen.append(
            missed(HardCF(0, alpha=0.1).fit(*draw(rng, 99, RULE)), new, labels)
        )
    error = np.std(as_chosen, ddof=1) / np.sqrt(80)
    assert np.mean(as_chosen) <= 0.1 + 3 * error
    assert np.mean(as_sampled) > 0.115  # .134 for .1, with this rule


def test_another_rule_than_at_calibration_is_refused_at_every_door():
    rng = np.random.default_rng(1)
    sampled, y = draw(rng, 60)
    chosen, y_chosen = draw(rng, 60, RULE)
    other, _ = draw(rng, 20, "longest")
    by_sampled = HardCF(0, alpha=0.1).fit(sampled, y)
    by_chosen = HardCF(0, alpha=0.1).fit(chosen, y_chosen)
    for cf, new in ((by_sampled, chosen), (by_chosen, sampled), (by_chosen, other)):
        for method in (cf.predict, cf.path_risk, cf.filter):
            with pytest.raises(ValueError, match="chosen_by"):
                method(new)
    by_chosen.predict(draw(rng, 5, RULE)[0])
