"""Classifiers as plain arrays: what scikit-learn and xgboost say, and no hostile table."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skdcf import GraphBatch
from skdcf.datasets import make_reasoning_graphs
from skdcf.scorers import ClassifierScorer, NeymanPearsonScorer
from skdcf.scorers._tree_tables import as_table


def table_of_floats(n, seed):
    """Rounded columns, which meet thresholds exactly, one of them of large values."""
    rng = np.random.RandomState(seed)
    X = np.round(rng.normal(size=(n, 5)), 1)
    X[:, 1] *= 1e7
    return X, (X[:, 0] * X[:, 2] + rng.normal(size=n) > 0).astype(int)


X, Y = table_of_floats(1200, 0)
CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=1000),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "scaled forest": make_pipeline(
        StandardScaler(with_mean=False), RandomForestClassifier(5, random_state=0)
    ),
    "forest": RandomForestClassifier(20, min_samples_leaf=3, random_state=0),
    "extra trees": ExtraTreesClassifier(10, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "from zero": GradientBoostingClassifier(
        n_estimators=5, init="zero", random_state=0
    ),
    "histogram": HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=9),
    "one tree": HistGradientBoostingClassifier(max_iter=1, max_depth=1),
    "no split": RandomForestClassifier(2, min_samples_leaf=600, random_state=0),
}


def alone(rows):
    return GraphBatch.from_arrays(rows, np.arange(len(rows) + 1))


def said_by(classifier, rows):
    if hasattr(classifier, "decision_function"):
        return classifier.decision_function(rows)
    return classifier.predict_proba(rows)[:, 1]


def on_the_edge(rows, thresholds):
    """Rows that stand at thresholds of a tree, a little above and a little below."""
    out = []
    for column, threshold in thresholds:
        near = [threshold, np.float32(threshold).item()]
        near += [np.nextafter(x, s) for x in near for s in (-np.inf, np.inf)]
        near += [
            np.nextafter(np.float32(threshold), np.float32(s)) for s in (-1e9, 1e9)
        ]
        near += [(np.float64(near[1]) + np.float64(x)) / 2 for x in near[-2:]]
        near += [np.nextafter(x, s) for x in near[-2:] for s in (-np.inf, np.inf)]
        for value in near:
            row = rows[len(out) % len(rows)].copy()
            row[column] = value
            out.append(row)
    return np.array(out)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_arrays_say_what_the_classifier_says(name):
    classifier = clone(CLASSIFIERS[name]).fit(X, Y)
    scorer = ClassifierScorer(clone(CLASSIFIERS[name])).fit(alone(X), Y)
    assert scorer.table_ is not None
    for rows in (X, table_of_floats(700, 1)[0], X[:1]):
        found = scorer.confidence(alone(rows))
        expected = said_by(classifier, rows)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert scorer.confidence(alone(X)[:0]).shape == (0,)


def test_a_forest_that_regresses_on_0_and_1_says_a_chance():
    forest = RandomForestRegressor(20, min_samples_leaf=3, random_state=0).fit(X, Y)
    table = as_table(forest, doubt=0.2)
    assert table is not None
    thresholds = [
        (column, threshold)
        for tree in (member.tree_ for member in forest.estimators_)
        for column, threshold in zip(tree.feature, tree.threshold, strict=True)
        if column >= 0
    ]
    for rows in (X, table_of_floats(700, 1)[0], on_the_edge(X, thresholds[:100])):
        log_odds, [chance] = table.read(rows)
        assert not log_odds.any()
        np.testing.assert_allclose(chance, forest.predict(rows), rtol=1e-12, atol=1e-14)
        doubted = 0.8 * chance + 0.2 * 0.3
        expected = np.log(doubted / (1 - doubted))
        np.testing.assert_allclose(
            table.log_odds(rows, chance=0.3), expected, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("name", ["forest", "extra trees", "boosted", "histogram"])
def test_at_the_edge_of_a_float(name):
    """Trees of scikit-learn compare in single precision, boosted histograms do not."""
    classifier = clone(CLASSIFIERS[name]).fit(X, Y)
    if name == "histogram":
        nodes = np.concatenate([t.nodes for [t] in classifier._predictors])
        nodes = nodes[nodes["is_leaf"] == 0]
        at = list(zip(nodes["feature_idx"], nodes["num_threshold"], strict=True))
    else:
        trees = [t.tree_ for t in np.ravel(classifier.estimators_)]
        at = [
            (j, x)
            for tree in trees
            for j, x in zip(tree.feature, tree.threshold, strict=True)
            if j >= 0
        ]
    rows = on_the_edge(X, at[:300])
    scorer = ClassifierScorer(FrozenEstimator(classifier)).fit(alone(X), Y)
    assert scorer.table_ is not None
    np.testing.assert_allclose(
        scorer.confidence(alone(rows)),
        said_by(classifier, rows),
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("parameters", [{}, {"max_depth": 1}, {"base_score": 0.2}])
def test_boosters_of_xgboost(parameters):
    xgboost = pytest.importorskip("xgboost")
    trees = xgboost.XGBClassifier(n_estimators=25, n_jobs=1, **parameters)
    scorer = ClassifierScorer(trees).fit(alone(X), Y)
    assert scorer.table_ is not None
    nodes = scorer.table_.threshold < np.inf
    at = zip(scorer.table_.feature[nodes], scorer.table_.threshold[nodes], strict=True)
    rows = np.concatenate([table_of_floats(700, 1)[0], on_the_edge(X, list(at)[:200])])
    rows = rows.astype(np.float32).astype(np.float64)  # as xgboost reads them
    margin = clone(trees).fit(X, Y).predict(rows, output_margin=True)
    found = scorer.confidence(alone(rows))
    np.testing.assert_allclose(
        np.log(found / (1 - found)), margin, rtol=1e-5, atol=1e-6
    )


def test_what_xgboost_takes_for_missing_is_left_to_it():
    xgboost = pytest.importorskip("xgboost")
    trees = xgboost.XGBClassifier(n_estimators=5, n_jobs=1, missing=0.0)
    scorer = ClassifierScorer(trees).fit(alone(X), Y)
    assert scorer.table_ is None


def test_a_classifier_that_names_its_classes_does_not_say_which_is_true():
    words = np.where(Y == 1, "right", "wrong")
    frozen = FrozenEstimator(LogisticRegression().fit(X, words))
    with pytest.raises(ValueError, match=r"1.*true claims.*right"):
        ClassifierScorer(frozen).fit(alone(X), Y)


def with_categories():
    return HistGradientBoostingClassifier(max_iter=3, categorical_features=[0])


@pytest.mark.parametrize(
    "classifier",
    [
        GaussianNB(),
        make_pipeline(PolynomialFeatures(), LogisticRegression(max_iter=5000)),
        GradientBoostingClassifier(n_estimators=2, init=GaussianNB(), random_state=0),
        with_categories(),
    ],
)
def test_what_cannot_be_turned_stays_what_it_is(classifier):
    rows = np.abs(np.round(X / X.std(axis=0)))
    scorer = ClassifierScorer(clone(classifier)).fit(alone(rows), Y)
    expected = said_by(clone(classifier).fit(rows, Y), rows)
    assert scorer.table_ is None
    np.testing.assert_allclose(scorer.confidence(alone(rows)), expected)


def damaged():
    """Changes of a table that would lead out of it, by name."""
    return {
        "a child that is not there": {"down": lambda x: x + len(x)},
        "a child before its parent": {"down": lambda x: x - 1},
        "a column that is not there": {"feature": lambda x: x + 100},
        "a negative column": {"feature": lambda x: x - 100},
        "a root that is not there": {"root": lambda x: x + 10**6},
        "a forest that is not there": {"forest": lambda x: x + 7},
        "fewer nodes": {"threshold": lambda x: x[:-1]},
        "leaves that go on": {"threshold": lambda x: np.zeros_like(x)},
        "endless levels": {"depth": lambda x: x + 2**30},
        "levels in disorder": {"depth": lambda x: np.arange(len(x), dtype=np.int32)},
        "floats for numbers": {"down": lambda x: x.astype(float)},
        "no array": {"down": lambda x: None},
        "a leaf without a value": {"value": lambda x: np.full_like(x, np.nan)},
    }


@pytest.fixture(scope="module")
def whole():
    """Problems, and a scorer with an undamaged table."""
    batch, labels = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    flat = np.concatenate(list(labels)).astype(int)
    return batch, NeymanPearsonScorer().fit(batch, flat)


@pytest.mark.parametrize("name", damaged())
def test_a_table_that_leads_out_of_itself_is_refused(name, whole):
    batch, scorer = deepcopy(whole)
    table = scorer.table_
    assert "4 classifiers" in repr(table)
    before = pickle.loads(pickle.dumps(scorer)).confidence(batch)
    np.testing.assert_array_equal(before, scorer.confidence(batch))
    for field, change in damaged()[name].items():
        table.__dict__[field] = change(getattr(table, field))
    with pytest.raises(ValueError, match=r"trees.*table"):
        pickle.loads(pickle.dumps(scorer))


@pytest.mark.parametrize("label", ["own", "coherent", "hazard"])
def test_what_a_classifier_is_taught(label):
    """By a walk over the ancestors of each claim, some labels being unknown."""
    batch, labels = make_reasoning_graphs(50, random_state=1, return_X_y=True)
    flat = np.concatenate(list(labels)).astype(int)
    flat[np.random.RandomState(0).uniform(size=len(flat)) < 0.2] = -1
    target, rows = [], []
    for i, graph in enumerate(batch):
        y = flat[batch.offsets[i] : batch.offsets[i + 1]]
        for v in range(graph.n_claims):
            above = [y[a] for a in graph.ancestors(v) if a != v]
            if label == "own":
                known, good = y[v] >= 0, y[v] == 1
            elif label == "hazard":
                known, good = y[v] >= 0 and all(a == 1 for a in above), y[v] == 1
            else:
                every = [y[v], *above]
                good = all(a == 1 for a in every)
                known = good or any(a == 0 for a in every)
            if known:
                rows.append(batch.offsets[i] + v)
                target.append(good)
    expected = GaussianNB().fit(batch.features[rows], target)
    scorer = ClassifierScorer(GaussianNB(), target=label).fit(batch, flat)
    np.testing.assert_allclose(scorer.estimator_.theta_, expected.theta_)
    np.testing.assert_array_equal(scorer.estimator_.class_count_, expected.class_count_)
