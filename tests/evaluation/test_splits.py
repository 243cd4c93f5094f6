"""Splits of problems, the seed, and comparisons that are interrupted and go on."""

import itertools
import math

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


class Interrupted(HardCF):
    fits = 0
    stop_at = math.inf

    def validate(self):  # once per fit of all levels
        Interrupted.fits += 1
        if Interrupted.fits == Interrupted.stop_at:
            raise KeyboardInterrupt
        super().validate()


def test_resumed_equals_uninterrupted(data, filters, tmp_path, monkeypatch):
    graphs, labels = data
    path = tmp_path / "comparison.json"
    filters["last"] = Interrupted("frequency-score")
    run = {"alphas": ALPHAS, "cv": 5, "random_state": 0}
    whole = compare_filters(filters, graphs, labels, **run)
    monkeypatch.setattr(Interrupted, "fits", 0)
    monkeypatch.setattr(Interrupted, "stop_at", 4)
    with pytest.raises(KeyboardInterrupt):
        compare_filters(filters, graphs, labels, resume=path, **run)
    assert len(path.read_text().splitlines()) == 3
    monkeypatch.setattr(Interrupted, "stop_at", math.inf)
    monkeypatch.setattr(Interrupted, "fits", 0)
    resumed = compare_filters(filters, graphs, labels, resume=path, **run)
    assert Interrupted.fits == 2
    assert_same(whole, resumed)
    assert_same(whole, compare_filters(filters, graphs, labels, resume=path, **run))
    assert Interrupted.fits == 2
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_line_that_was_cut_off_is_run_again(data, filters, tmp_path):
    graphs, labels = data
    path = tmp_path / "comparison.json"
    run = {"alphas": ALPHAS, "cv": 3, "random_state": 0, "resume": path}
    whole = compare_filters(filters, graphs, labels, **run)
    lines = path.read_bytes().splitlines(keepends=True)
    for length in (3, 40, len(lines[2]) - 2):
        path.write_bytes(b"".join(lines[:2]) + lines[2][:length])
        assert_same(whole, compare_filters(filters, graphs, labels, **run))
        assert len(path.read_bytes().splitlines()) == 4  # the half line stays
        assert_same(whole, compare_filters(filters, graphs, labels, **run))
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change",
    [
        {"alphas": [0.1, 0.2]},
        {"random_state": 1},
        {"cv": 4},
        {"protocol": "leave-one-out"},
        {"y": 1},
        {"X": 1},
        {"filters": {"frequency": HardCF("claim_index")}},
        {"filters": {"other": HardCF("frequency-score")}},
    ],
)
def test_other_inputs_are_refused(data, tmp_path, change):
    graphs, labels = data
    path = tmp_path / "comparison.json"
    run = {
        "filters": {"frequency": HardCF("frequency-score")},
        "X": graphs,
        "y": labels,
        "alphas": ALPHAS,
        "cv": 3,
        "random_state": 0,
        "resume": path,
    }
    compare_filters(**run)
    before = path.read_bytes()
    if "y" in change:
        change = {"y": [1 - labels[0], *labels[1:]]}
    if "X" in change:
        change = {
            "X": graphs.replace_features(graphs.features + 1, graphs.feature_names)
        }
    with pytest.raises(ValueError, match=r"different inputs"):
        compare_filters(**run | change)
    assert path.read_bytes() == before


def test_files_that_cannot_be_used(data, filters, tmp_path):
    graphs, labels = data
    path = tmp_path / "something.json"
    for content in ('{"a": 1}', "not json", "[]", '{"split": 1e999}'):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"results.*file"):
            compare_filters(
                filters, graphs, labels, ALPHAS, resume=path, random_state=0
            )
        assert path.read_text() == content
    run = {"alphas": ALPHAS, "cv": 2, "random_state": 0, "resume": tmp_path / "some"}
    compare_filters(filters, graphs, labels, **run)
    edited = run["resume"].read_text().replace('"retention"', '"retained"')
    run["resume"].write_text(edited)
    with pytest.raises(ValueError, match=r"another version.*'retention'"):
        compare_filters(filters, graphs, labels, **run)
    with pytest.raises(ValueError, match=r"integer.*resume"):
        compare_filters(filters, graphs, labels, ALPHAS, resume=tmp_path / "new.json")
    with pytest.raises(FileNotFoundError):
        missing = tmp_path / "missing" / "new.json"
        compare_filters(filters, graphs, labels, ALPHAS, resume=missing, random_state=0)
    function = {"f": HardCF(lambda batch: batch.features[:, 0])}
    with pytest.raises(ValueError, match=r"function.*instead"):
        compare_filters(
            function, graphs, labels, ALPHAS, resume=tmp_path / "f.json", random_state=0
        )
