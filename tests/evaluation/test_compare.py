"""Comparisons of filters against plain loops; splits, levels and bad input."""

import itertools

import numpy as np
import pytest
from reference_hard import (
    filtered_set,
    kth_smallest_by_counting,
    largest_safe_threshold,
)
from sklearn.model_selection import KFold

from skdcf import HardCF, IndependentFactuality, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.evaluation.compare import make_splits
from skdcf.scorers import Scorer

ALPHAS = [0.1, 0.15, 0.3]
TENTHS = {0.1: (1, 10), 0.15: (3, 20), 0.3: (3, 10)}
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


def values(report, name, key):
    """One column of one filter, of shape (n_splits, n_levels)."""
    rows = [row for row in report.splits.rows if row["filter"] == name]
    levels = sorted({row["alpha"] for row in rows})
    return np.array(
        [[row[key] for row in rows if row["alpha"] == level] for level in levels]
    ).T


def plain(graphs, labels, column, coherent):
    """(risk, edges, labels) of each problem, as lists."""
    out = []
    for graph, y in zip(graphs, labels, strict=True):
        risk = [-row[column] for row in graph.features.tolist()]
        edges = [tuple(edge) for edge in graph.edges.tolist()] if coherent else []
        out.append((risk, edges, list(y)))
    return out


def plain_result(problem, scores, alpha):
    """(covered, true claims kept, something kept) of one problem."""
    risk, edges, y = problem
    threshold = kth_smallest_by_counting(scores, *TENTHS[alpha])
    kept = filtered_set(risk, edges, threshold)
    return all(y[v] for v in kept), sum(y[v] for v in kept), bool(kept)


@pytest.mark.parametrize(
    ("protocol", "coherent"),
    [("folds", True), ("leave-one-out", True), ("folds", False)],
)
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
    for found in report.splits.rows:
        parts = folds[found["split"]]
        test = parts[-1]
        rows = []
        for i in test:
            others = parts[1] if len(parts) == 3 else [k for k in test if k != i]
            own = [scores[k] for k in others]
            rows.append(plain_result(problems[i], own, found["alpha"]))
        expected = [*np.mean(rows, axis=0), np.mean([sum(labels[i]) for i in test])]
        names = ("coverage", "retention", "shown", "true_claims")
        assert [found[name] for name in names] == pytest.approx(expected)
        assert found["sizes"] == list(map(len, parts))
    assert report.splits.retention.max() > 0


@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_trains_on_the_training_part_and_on_nothing_else(data, seen, protocol):
    graphs, labels = data
    number = np.arange(120.0)[graphs.problem_of]
    table = np.c_[graphs.features[:, 0], number]
    filter = HardCF(Remembering(), calibration_size=0.5)
    order = np.random.default_rng(0).permutation(120)
    parts = np.split(order, [72, 96] if protocol == "folds" else [72])
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


def test_trained_for_each_alpha_where_the_scorer_says_so(data, seen):
    graphs, labels = data
    both = {"once": HardCF(Remembering()), "each": HardCF(ForEachAlpha())}
    report = compare_filters(both, graphs, labels, ALPHAS, cv=2, random_state=0)
    assert len(seen) == 2 * (1 + len(ALPHAS))
    once, each = (values(report, name, "retention") for name in both)
    np.testing.assert_array_equal(once, each)


# --- errors and printed tables


def test_means_and_errors_over_splits(data, filters):
    graphs, labels = data
    run = {"alphas": [0.3, 0.1], "cv": 4, "random_state": 0}
    report = compare_filters(filters, graphs, labels, **run)
    # Nadeau and Bengio: the splits share problems.
    correction = 1 / 4 + 18 / 84
    first = values(report, "frequency", "retention")
    for row in report.rows:
        j = [0.1, 0.3].index(row["alpha"])
        columns = {
            key: values(report, row["filter"], key)[:, j]
            for key in ("coverage", "retention", "shown", "false_shown")
        }
        mean = {key: column.mean() for key, column in columns.items()}
        base = first[:, j].mean()
        change = columns["retention"] - first[:, j]
        error = np.sqrt(change.var(ddof=1) * correction)
        expected = {
            "coverage": mean["coverage"],
            "retention": mean["retention"],
            "retention_error": np.sqrt(columns["retention"].var(ddof=1) * correction),
            "delta_pct": 100 * (mean["retention"] / base - 1),
            "delta_error": 100 * error / base,
            "false_among_shown": mean["false_shown"] / mean["shown"],
        }
        found = {name: row[name] for name in expected}
        assert found == pytest.approx(expected, nan_ok=True)
    heading, _, *lines = str(report).splitlines()
    assert heading.startswith("4 splits of 84/18/18 problems, folds")
    assert len(lines) == len(report.rows) == 6 and lines[0].startswith("frequency")
    assert len(str(report.splits).splitlines()) == 1 + 24
    one = compare_filters(filters, graphs, labels, [0.3], cv=1, random_state=0)
    assert np.isnan(one.retention_error).all() and "nan" not in str(one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": []}, "alphas .*level"),
        ({"alphas": [0.1, 0.1]}, "alphas .*0.1, 0.1"),
        ({"alphas": [1.0]}, "alpha .*1.0"),
        ({"filters": {}}, r"filters .*\{\}"),
        ({"filters": {"k": KFold()}}, r"filter 'k'.*KFold"),
        ({"filters": {"k": HardCF(guarantee="x")}}, "guarantee.*'x'"),
        ({"protocol": "loo"}, "protocol .*'loo'"),
        ({"groups": [1, 2]}, r"groups .*shape \(2,\)"),
        ({"groups": MIXED}, "groups .*type"),
    ],
)
def test_bad_input_is_refused_before_any_work(data, filters, change, message):
    graphs, labels = data
    run = {"filters": filters, "X": graphs, "y": labels, "alphas": ALPHAS}
    with pytest.raises(ValueError, match=message):
        compare_filters(**run | change)


def test_an_error_names_the_filter(data):
    graphs, labels = data

    def wrong(batch):
        return np.full(batch.n_claims, np.nan)

    with pytest.raises(ValueError, match="confidence") as caught:
        compare_filters({"odd": HardCF(wrong)}, graphs, labels, ALPHAS, cv=1)
    assert caught.value.__notes__ == ["(filter 'odd')"]


def same(one, other):
    return str(one.splits.rows) == str(other.splits.rows) and str(one) == str(other)


# --- splits and seeds


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_parts_are_a_partition_and_groups_stay_whole(protocol, grouped):
    rng = np.random.RandomState(0)
    groups = rng.randint(70, size=202) * 10 if grouped else None
    codes = np.arange(202) if groups is None else groups
    splits = make_splits(None, codes, protocol, rng)
    assert len(splits) == (20 if protocol == "folds" else 40)
    assert len({tuple(parts[-1]) for parts in splits}) == len(splits)
    for parts in splits:
        assert sorted(np.concatenate(parts)) == list(range(202))
        if not grouped:
            sizes = (141, 31, 30) if protocol == "folds" else (101, 101)
            assert tuple(map(len, parts)) == sizes
        else:
            assert abs(len(parts[0]) - sum(map(len, parts[1:]))) < 100
            for one, other in itertools.combinations(parts, 2):
                assert not set(groups[one]) & set(groups[other])
                assert len(one) > 15


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([([0, 1], [2, 3], [0, 5])], "split 0"),
        ([([0, 1], [2, 6], [8, 5])], "split 0 .*question"),
        ([([0, 1], np.arange(0), [4, 5])], r"split 0 .*\[2, 0, 2\]"),
        ([([0, 1], [2, 3], [4, 5], [6])], "split 0 .*3 parts"),
        (0, "at least one split.*cv=0"),
    ],
)
def test_bad_splits_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        make_splits(cv, np.arange(12) % 6, "folds", np.random.RandomState(0))


def test_the_seed_decides(data, filters):
    run = {"cv": 2, "alphas": [0.3]}
    first = compare_filters(filters, *data, random_state=0, **run)
    assert same(first, compare_filters(filters, *data, random_state=0, **run))
    assert not same(first, compare_filters(filters, *data, random_state=1, **run))


def test_random_state_reaches_filters_that_have_none(data):
    graphs, labels = data
    noise = np.random.default_rng(0).normal(size=graphs.n_claims)
    graphs = graphs.replace_features(np.c_[np.ones(graphs.n_claims), noise])
    both = {
        "unset": HardCF(0, ties="jitter"),
        "set": HardCF(0, ties="jitter", random_state=5),
    }
    run = {"cv": [(range(40), range(40, 80), range(80, 120))], "alphas": [0.1]}
    (unset, fixed), (again, _), (other, same_seed) = (
        compare_filters(both, graphs, labels, random_state=seed, **run).retention
        for seed in (0, 0, 1)
    )
    assert unset == again != other  # every claim tied: the jitter decides
    assert fixed == same_seed
