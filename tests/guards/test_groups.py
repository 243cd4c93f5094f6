"""Several answers to one question, in every way that a filter can be calibrated.

One answer to a new question is drawn; it may lose a false claim's worth of the promise
with probability at most alpha, however many answers the questions of calibration had.
"""

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.preprocessing import FunctionTransformer

from skdcf import GraphBatch, HardCF
from skdcf.guarantees import NoFalseClaim


def near_copies(n, m, rng):
    """All answers are false, and those to one question are almost equally risky."""
    x = np.repeat(rng.random(n), m) + 1e-3 * rng.random(n * m)
    return x[:, None], np.zeros(n * m, dtype=int), np.repeat(np.arange(n), m)


# --- how many answers there are, and how often the same one comes


def test_answers_to_be_compared_come_from_one_answer_of_each_question():
    rng = np.random.default_rng(0)
    X, y, groups = near_copies(60, 4, rng)
    names = [{"g": i % 4, "group": int(q)} for i, q in enumerate(groups)]
    batch = GraphBatch.from_arrays(X, np.arange(len(X) + 1), (), metadata=names)
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="g")).fit(batch, y)
    assert cf.n_calibration_ > 60 >= len(cf.max_path_risks_)
    plain = HardCF(0, alpha=0.2).fit(batch, y)
    np.testing.assert_array_equal(cf.max_path_risks_, plain.max_path_risks_)


def test_a_group_that_looks_at_the_others_is_refused_where_few_problems_show_it():
    """The first problems are of the same group alone as among all."""
    scores = np.append([0.1, 0.1], np.linspace(0, 1, 58))
    y = (np.arange(60) % 3 > 0).astype(int)[:, None].tolist()
    above = NoFalseClaim(by=lambda batch: batch.features[:, 0] > batch.features.mean())
    with pytest.raises(ValueError, match=r"depend.*problem"):
        HardCF(0, alpha=0.2, guarantee=above).fit(one_claim_each(scores), y)


def numbered(n):
    """Random columns and labels of n answers of one claim, with their numbers beside them."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(n), np.arange(n)])
    return one_claim_each(table), (rng.random((n, 1)) < 0.6).astype(int).tolist()


def test_groups_are_looked_up_in_columns_that_the_filter_makes_alone():
    X, y = numbered(60)
    rounded = X.features[:, 0].round()
    add = FunctionTransformer(
        lambda table: np.column_stack([table, table[:, 0].round()]),
        feature_names_out=lambda _, names: [*names, "rounded"],
    )
    cf = HardCF(0, features=add, alpha=0.2, guarantee=NoFalseClaim(by="rounded"))
    named = cf.fit(X, y).calibration_
    marked = X.replace(metadata=[{"kind": value} for value in rounded.tolist()])
    by_key = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="kind")).fit(marked, y)
    assert {*named.names} == {*by_key.calibration_.names} == {0.0, 1.0}
    for mask, other in zip(cf.predict(X), by_key.predict(marked), strict=True):
        np.testing.assert_array_equal(mask, other)
