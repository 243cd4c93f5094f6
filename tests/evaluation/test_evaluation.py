"""Comparisons against plain loops; levels, searches and bad input."""

import itertools

import numpy as np
import pytest
from levels import fit_levels
from reference_hard import (
    filtered_set,
    kth_smallest_by_counting,
    largest_safe_threshold,
)
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from skdcf import HardCF, IndependentFactuality, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.exceptions import CalibrationWarning
from skdcf.scorers import Scorer

ALPHAS = [0.1, 0.15, 0.3]
TENTHS = {0.1: (1, 10), 0.15: (3, 20), 0.3: (3, 10)}
METRICS = ("coverage", "retention", "abstention")
MIXED = np.array([*range(119), "a"], dtype=object)


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(120, kind="felm", random_state=3, return_X_y=True)


@pytest.fixture
def filters():
    return {
        "frequency": HardCF("frequency-score"),
        "no graph": IndependentFactuality("frequency-score"),
        "index": SingleFeatureCF("claim_index", ties="jitter"),
    }


class Remembering(Scorer):
    """A scorer with something to learn, which writes down what it is trained on."""

    requires_fit = True
    seen = []

    def fit(self, batch, labels, task=None):
        self.seen.append(batch.features[:, -1].copy())
        self.weight_ = np.mean(batch.features[labels == 1, 0]) + 1
        return self

    def confidence(self, batch):
        return self.weight_ * batch.features[:, 0]


class ForEachAlpha(Remembering):
    """Fitted for one alpha, to which it makes no difference."""

    uses_alpha = True


@pytest.fixture
def seen():
    Remembering.seen.clear()
    return Remembering.seen


def assert_same(one, other):
    assert one.names == other.names
    for name in ("alpha", *METRICS, "true_claims", "sizes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


# --- against plain loops -------------------------------------------------------------


def plain(graphs, labels, column, coherent):
    """(risk, edges, labels) of each problem, as lists."""
    out = []
    for graph, y in zip(graphs, labels, strict=True):
        risk = [-row[column] for row in graph.features.tolist()]
        edges = [tuple(edge) for edge in graph.edges.tolist()] if coherent else []
        out.append((risk, edges, list(y)))
    return out


def plain_result(problem, scores, alpha):
    """(covered, true claims kept, nothing kept) of one problem."""
    risk, edges, y = problem
    threshold = kth_smallest_by_counting(scores, *TENTHS[alpha])
    kept = filtered_set(risk, edges, threshold)
    return all(y[v] for v in kept), sum(y[v] for v in kept), not kept


@pytest.mark.parametrize("coherent", [True, False])
@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_against_a_plain_loop(data, protocol, coherent):
    graphs, labels = data
    order = np.random.default_rng(0).permutation(120)
    filter = HardCF("frequency-score", edges="given" if coherent else "none")
    # As many as calibrate: one fewer would have a lower rank, 3 at .1, 5 at .15, 9 at .3.
    for n, alphas in ((29, [0.1, 0.3]), (33, [0.15])):
        folds = [
            (order[:50], order[50 : 50 + n], order[90:]),
            (order[70:], order[:n], order[40:70]),
        ]
        if protocol == "leave-one-out":
            folds = [(train, test) for train, _, test in folds]
        run = {"protocol": protocol, "cv": folds}
        report = compare_filters({"it": filter}, graphs, labels, alphas, **run)
        against_a_plain_loop(report, graphs, labels, folds, coherent)


def against_a_plain_loop(report, graphs, labels, folds, coherent):
    column = graphs.feature_names.index("frequency-score")
    problems = plain(graphs, labels, column, coherent)
    scores = [largest_safe_threshold(*problem) for problem in problems]
    for (s, parts), (j, alpha) in itertools.product(
        enumerate(folds), enumerate(report.alpha.tolist())
    ):
        test = parts[-1]
        rows = []
        for i in test:
            others = parts[1] if len(parts) == 3 else [k for k in test if k != i]
            rows.append(plain_result(problems[i], [scores[k] for k in others], alpha))
        for metric, expected in zip(METRICS, np.mean(rows, axis=0), strict=True):
            found = getattr(report, metric)[0, s, j]
            assert found == pytest.approx(expected), (metric, s, alpha)
        assert report.true_claims[s] == pytest.approx(
            np.mean([sum(labels[i]) for i in test])
        )
    assert report.retention.max() > 0


@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_trains_on_the_training_part_and_on_nothing_else(data, seen, protocol):
    graphs, labels = data
    number = np.arange(120.0)[graphs.problem_of]
    table = np.c_[graphs.features[:, 0], number]
    filter = HardCF(Remembering(), calibration_size=0.5)
    shares = (0.6, 0.8) if protocol == "folds" else (0.6,)
    order = np.random.default_rng(0).permutation(120)
    parts = np.split(order, [int(share * 120) for share in shares])
    compare_filters(
        {"it": filter},
        graphs.replace_features(table),
        labels,
        ALPHAS,
        protocol=protocol,
        cv=[parts],
    )
    assert len(seen) == 1  # whatever the number of alphas
    trained_on = set(seen[0])
    assert trained_on < set(parts[0])
    assert len(trained_on) == len(parts[0]) - 1


# --- levels --------------------------------------------------------------------------


def test_trained_for_each_alpha_where_the_scorer_says_so(data, seen):
    graphs, labels = data
    both = {"once": HardCF(Remembering()), "each": HardCF(ForEachAlpha())}
    report = compare_filters(both, graphs, labels, ALPHAS, cv=2, random_state=0)
    assert len(seen) == 2 * (1 + len(ALPHAS))
    np.testing.assert_array_equal(report.retention[0], report.retention[1])


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_levels_that_hold_out_other_numbers_equal_separate_fits(data, seen):
    graphs, labels = data
    filter = HardCF(Remembering(), random_state=0)
    levels = fit_levels(filter, graphs, labels, ALPHAS)
    assert len(seen) > 1  # the levels .1 and .3 hold out 29, and .15 holds out more
    for alpha, fitted in levels.items():
        alone = clone(filter).set_params(alpha=alpha).fit(graphs, labels)
        assert fitted.threshold_ == alone.threshold_


def test_one_filter_per_alpha(data):
    graphs, labels = data
    names = dict(
        zip(ALPHAS, ["frequency-score", "claim_index", "nx_depth"], strict=True)
    )
    names[0.3] = "nx_reachability"
    each = {alpha: HardCF(name) for alpha, name in names.items()}
    plain = {name: HardCF(name) for name in names.values()}
    both = {"each": each, **plain}
    report = compare_filters(both, graphs, labels, ALPHAS, cv=2, random_state=0)
    for j, alpha in enumerate(ALPHAS):
        same = report.names.index(names[alpha])
        np.testing.assert_array_equal(
            report.retention[0, :, j], report.retention[same, :, j]
        )


# --- searches ------------------------------------------------------------------------


def test_search_chooses_inside_the_training_part(data):
    graphs, labels = data
    noise = np.random.default_rng(0).normal(size=(graphs.n_claims, 2))
    table = np.c_[graphs.features[:, 0], noise]
    graphs = graphs.replace_features(table, ["good", "bad", "worse"])
    grid = {"feature": ["bad", "good", "worse"]}
    search = GridSearchCV(SingleFeatureCF(alpha=0.3), grid, cv=3)
    each = {name: SingleFeatureCF(name) for name in grid["feature"]}
    order = np.random.default_rng(1).permutation(120)
    rolled = [np.split(np.roll(order, 24 * k), [60]) for k in range(5)]
    splits = [tuple(map(np.sort, parts)) for parts in rolled]
    report = compare_filters(
        {"search": search, **each},
        graphs,
        labels,
        [0.3],
        protocol="leave-one-out",
        cv=splits,
        random_state=0,
    )
    chosen = [
        clone(search)
        .fit(graphs[train], [labels[i] for i in train])
        .best_params_["feature"]
        for train, _ in splits
    ]
    expected = [
        report.retention[report.names.index(name), s, 0]
        for s, name in enumerate(chosen)
    ]
    np.testing.assert_array_equal(report.retention[0, :, 0], expected)
    assert len(np.unique(report.retention[1:, :, 0])) > 5  # so that a choice shows
    assert not hasattr(search, "best_params_")


@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_search_sees_no_label_beyond_the_training_part(data):
    graphs, labels = data
    flipped = [1 - y if i >= 60 else y for i, y in enumerate(labels)]
    search = GridSearchCV(SingleFeatureCF(), {"beta_mix": [0.0, 0.5, 1.0]}, cv=3)
    train = graphs[:60]
    rows = np.arange(120)
    run = {"alphas": [0.3], "cv": [(rows[:60], rows[60:90], rows[90:])]}
    chosen = [
        compare_filters({"it": search}, graphs, y, **run).chosen["it"][0][0]
        for y in (labels, flipped)
    ]
    by_hand = search.set_params(estimator__alpha=0.3).fit(train, labels[:60])
    assert chosen == [by_hand.best_params_] * 2


def test_search_keeps_groups_together(data, seen):
    graphs, labels = data
    groups = np.repeat(np.arange(40), 3)
    table = np.c_[graphs.features[:, 0], groups[graphs.problem_of]]
    graphs = graphs.replace_features(table.astype(float))
    search = GridSearchCV(
        HardCF(Remembering(), calibration_size=1, random_state=0),
        {"online": [False]},
        cv=4,
        error_score="raise",
    )
    splits = [(np.arange(60), np.arange(60, 90), np.arange(90, 120))]
    compare_filters({"it": search}, graphs, labels, [0.5], cv=splits, groups=groups)
    assert len(seen) == 4 + 1
    for trained in seen[:-1]:  # in claims; of 15 questions one calibrates
        assert len(np.unique(trained)) == 14


# --- what is passed ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": []}, "alphas .*level"),
        ({"alphas": [0.1, 0.1]}, "alphas .*0.1, 0.1"),
        ({"alphas": [1.0]}, "alpha .*1.0"),
        ({"filters": {}}, r"filters .*\{\}"),
        ({"filters": HardCF()}, r"filters.*HardCF"),
        ({"filters": {"k": KFold()}}, r"filter 'k'.*KFold"),
        ({"filters": {"m": {0.1: HardCF()}}}, r"filters.*'m'.*\[0.15, 0.3\]"),
        ({"protocol": "loo"}, "protocol .*'loo'"),
        ({"groups": [1, 2]}, r"groups .*shape \(2,\)"),
        ({"groups": [None, *range(119)]}, "problem 0 .*group"),
        ({"groups": [*range(119), np.nan]}, "problem 119 .*group"),
        ({"groups": MIXED}, "groups .*compared"),
        ({"y": [[1]]}, "120 problems"),
        ({"X": []}, "empty"),
        (
            {"filters": {"t": HardCF(ties="include")}, "protocol": "leave-one-out"},
            "filter 't' must not have ties=\"include\"",
        ),
    ],
)
def test_bad_input_is_refused_before_any_work(data, filters, change, message):
    graphs, labels = data
    run = {"filters": filters, "X": graphs, "y": labels, "alphas": ALPHAS}
    with pytest.raises(ValueError, match=message):
        compare_filters(**run | change)


def test_too_few_calibration_problems_are_told_once(data, filters):
    graphs, labels = data
    with pytest.warns(
        CalibrationWarning, match=r"18 .* 0.02, 0.05.* 49 are needed"
    ) as w:
        report = compare_filters(
            filters, graphs, labels, [0.05, 0.02, 0.2], cv=2, random_state=0
        )
    assert len(w) == 1
    assert (report.abstention[:, :, :2] == 1).all()
    assert (report.coverage[:, :, :2] == 1).all()


def test_an_error_says_where_it_was(data):
    graphs, labels = data

    def wrong(batch):
        return np.full(batch.n_claims, np.nan)

    with pytest.raises(ValueError, match="confidence") as caught:
        compare_filters({"odd": HardCF(wrong)}, graphs, labels, ALPHAS, cv=1)
    assert caught.value.__notes__ == ["(filter 'odd', split 0)"]


def test_tables_and_lists(data, filters):
    graphs, labels = data
    run = {"alphas": ALPHAS, "cv": 2, "random_state": 0}
    packed = compare_filters(filters, graphs, labels, **run)
    assert_same(packed, compare_filters(filters, list(graphs), labels, **run))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.where(X[:, 0] + rng.normal(size=100) > 0, 2, -1)
    report = compare_filters({"column": HardCF(0)}, X, y, **run)
    numbers = compare_filters({"column": HardCF(0)}, X, (y == 2) * 1, **run)
    assert_same(report, numbers)
    assert report.retention.max() > 0


def test_verbose_shows_progress(data, filters, capsys):
    graphs, labels = data
    run = {"alphas": ALPHAS, "cv": 2, "random_state": 0}
    compare_filters(filters, graphs, labels, verbose=1, **run)
    said = capsys.readouterr().err
    assert "2/2" in said and "split" in said
    compare_filters(filters, graphs, labels, **run)
    assert capsys.readouterr().err == ""
