"""Splits of problems, the seed, and comparisons that are interrupted and go on."""

import itertools

import numpy as np
import pytest
from sklearn.model_selection import GroupShuffleSplit, KFold

from skdcf import HardCF, IndependentFactuality, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.evaluation.compare import make_splits

ALPHAS = [0.1, 0.15, 0.3]
METRICS = ("coverage", "retention", "abstention")


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


def assert_same(one, other):
    assert one.names == other.names
    for name in ("alpha", *METRICS, "true_claims", "sizes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


# --- splits --------------------------------------------------------------------------


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


def test_calibration_problems_are_cut_from_the_training_part():
    groups = np.arange(100) // 2
    splitter = GroupShuffleSplit(3, test_size=0.15, random_state=0)
    rng = np.random.RandomState(0)
    for train, calibration, test in make_splits(splitter, groups, "folds", rng):
        assert 12 <= len(calibration) <= 18 and len(test) == 16
        assert sorted([*train, *calibration, *test]) == list(range(100))
        assert not set(groups[train]) & set(groups[calibration])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (KFold(4), "split 0.*in two parts"),
        ([([0, 1], [2, 3], [0, 5])], r"split 0.*problem"),
        ([([0, 1], [2, 3], [4, 12])], "the 12 problems: index 12"),
        ([([0, 1], [2, 3], [-13, 4])], "the 12 problems: index -13"),
        ([([0, 1], np.arange(0), [4, 5])], r"split 0.*2/0/2"),
        ([([0, 1], [2, 3], [4, 5], [6])], r"split.*3 parts.*4"),
        ([(["a"], [2, 3], [4, 5])], "the 12 problems"),
        ([], "at least one split"),
        (0, "at least one split, got cv=0"),
    ],
)
def test_bad_splits_are_refused(cv, message):
    groups = np.arange(12) % 6 if isinstance(cv, KFold) else np.arange(12)
    if isinstance(cv, KFold):
        cv = list(cv.split(np.zeros(12)))
    with pytest.raises(ValueError, match=message):
        make_splits(cv, groups, "folds", np.random.RandomState(0))


def test_too_few_groups():
    with pytest.raises(ValueError, match=r"split 0.*/0"):
        make_splits(1, np.zeros(12, int), "folds", np.random.RandomState(0))


# --- determinism and resuming --------------------------------------------------------


def test_the_seed_decides(data, filters):
    graphs, labels = data
    run = {"cv": 3, "alphas": ALPHAS}
    first = compare_filters(filters, graphs, labels, random_state=0, **run)
    again = compare_filters(filters, graphs, labels, random_state=0, n_jobs=2, **run)
    assert_same(first, again)
    other = compare_filters(filters, graphs, labels, random_state=1, **run)
    assert (first.retention != other.retention).any()


def test_random_state_reaches_filters_that_have_none(data):
    graphs, labels = data
    noise = np.random.default_rng(0).normal(size=graphs.n_claims)
    graphs = graphs.replace_features(np.c_[np.ones(graphs.n_claims), noise])
    both = {
        "unset": HardCF(0, ties="jitter"),
        "set": HardCF(0, ties="jitter", random_state=5),
    }
    run = {"cv": [(range(40), range(40, 80), range(80, 120))], "alphas": [0.1]}
    reports = [
        compare_filters(both, graphs, labels, random_state=seed, **run).retention
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(reports[0], reports[1])
    assert reports[0][0] != reports[2][0]  # every claim tied: the jitter decides
    assert reports[0][1] == reports[2][1]
