"""Options that no other test sets: each of them makes the difference that it names."""

import numpy as np
import pytest

import skdcf
from skdcf import HardCF
from skdcf.choosing import release
from skdcf.datasets import make_reasoning_graphs, make_word_problems

X, Y = make_reasoning_graphs(240, random_state=0, return_X_y=True)
WORDS, WORD_LABELS = make_word_problems(120, random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def filter():
    return HardCF("frequency-score", alpha=0.1).fit(X[:120], Y[:120])


@pytest.fixture(scope="module")
def word_filter():
    batch = WORDS.replace_features(WORDS.sizes[WORDS.problem_of][:, None] * 1.0, ["n"])
    batch = batch.replace_features(
        np.random.default_rng(0).uniform(size=(batch.n_claims, 1)),
        ["score"],
    )
    return HardCF(0, alpha=0.3).fit(batch, WORD_LABELS), batch


# --- filters -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*answers to:skdcf.exceptions.GuaranteeWarning")
def test_filtered_answers_come_as_texts(word_filter):
    cf, batch = word_filter
    texts = cf.filter(batch, output="text")
    graphs = cf.filter(batch)
    assert texts == ["\n".join(graph.claims or ()) for graph in graphs]
    assert any(texts)


def test_margins_at_another_level(filter):
    at_level = np.concatenate([*filter.decision_function(X[120:], alpha=0.3)])
    kept = np.concatenate([*filter.predict(X[120:], 0.3)])
    np.testing.assert_array_equal(at_level > 0, kept)
    assert kept.sum() > np.concatenate([*filter.predict(X[120:])]).sum()


@pytest.mark.parametrize(
    "option", [{"max_depth": 1}, {"learning_rate": 0.9}, {"target": "own"}]
)
def test_settings_of_boosted_trees(option):
    pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    labels = [rng.integers(2, size=size) for size in X.sizes]
    usual, other = (
        skdcf.XGBoostCF(n_estimators=5, random_state=0, **options).fit(X, labels)
        for options in ({}, option)
    )
    assert not np.allclose(usual.confidence(X), other.confidence(X))


# --- groups and batches --------------------------------------------------------------


def test_questions_of_a_batch_that_is_shown(filter):
    with pytest.raises(ValueError, match=r"answers.*question"):
        release(filter, X[120:140], 0.3, groups=np.arange(20) // 2)


def test_several_levels_give_a_row_of_masks_each():
    graphs, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score").fit(graphs[:100], y[:100])
    alphas = [0.05, 0.2]
    rows = cf.predict(graphs[100:], alpha=alphas)
    assert rows.shape == (2, 20)
    for row, alpha in zip(rows, alphas, strict=True):
        alone = cf.predict(graphs[100:], alpha=alpha)
        assert all(map(np.array_equal, row, alone))
    X = np.random.default_rng(0).random((60, 1))
    table = HardCF(0).fit(X, np.arange(60) % 3 > 0)
    for alpha in ([], "0.1", [[0.1]], np.array("0.1")):
        with pytest.raises(ValueError, match="alpha"):
            cf.predict(graphs[100:], alpha=alpha)
    found = table.predict(X, alpha=np.array(alphas))
    np.testing.assert_array_equal(found, [table.predict(X, alpha=a) for a in alphas])
