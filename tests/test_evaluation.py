"""Comparisons against plain loops, their splits, errors, resuming and tables."""

import itertools
import json
import math

import numpy as np
import pytest
from reference_hard import (
    filtered_set,
    kth_smallest_by_counting,
    largest_safe_threshold,
)
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, KFold

from skdcf import HardCF, IndependentFactuality, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import ComparisonReport, compare_filters, fit_levels
from skdcf.evaluation._differences import corrected_error, naive_error
from skdcf.evaluation._report import mean_band
from skdcf.evaluation._splits import make_splits
from skdcf.exceptions import CalibrationWarning

ALPHAS = [0.1, 0.15, 0.3]
TENTHS = {0.1: (1, 10), 0.15: (3, 20), 0.3: (3, 10)}
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


class Remembering(BaseEstimator):
    """A scorer with something to learn, which writes down what it is trained on."""

    needs_training = True
    seen = []  # noqa: RUF012 (shared on purpose)

    def fit(self, batch, labels):
        self.seen.append(batch.features[:, -1].copy())
        self.weight_ = np.mean(batch.features[labels, 0]) + 1
        return self

    def confidence(self, batch):
        return self.weight_ * batch.features[:, 0]


class TrainedOnce(HardCF):
    trains_for_alpha = False


class TrainedForAlpha(HardCF):
    trains_for_alpha = True


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
    folds = [
        (order[:60], order[60:90], order[90:]),
        (order[70:], order[:30], order[30:70]),
    ]
    if protocol == "leave-one-out":
        folds = [(train, test) for train, _, test in folds]
    filter = HardCF("frequency-score", coherent=coherent)
    report = compare_filters(
        {"it": filter}, graphs, labels, ALPHAS, protocol=protocol, cv=folds
    )
    column = graphs.feature_names.index("frequency-score")
    problems = plain(graphs, labels, column, coherent)
    scores = [largest_safe_threshold(*problem) for problem in problems]
    for (s, parts), (j, alpha) in itertools.product(
        enumerate(folds), enumerate(ALPHAS)
    ):
        test = parts[-1]
        rows = []
        for i in test:
            others = parts[1] if protocol == "folds" else [k for k in test if k != i]
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
    filter = TrainedOnce(Remembering(), calibration_size=0.5)
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


def test_trained_for_each_alpha_where_the_filter_says_so(data, seen):
    graphs, labels = data
    both = {
        "once": TrainedOnce(Remembering()),
        "each": TrainedForAlpha(Remembering()),
    }
    report = compare_filters(both, graphs, labels, ALPHAS, cv=2, random_state=0)
    assert len(seen) == 2 * (1 + len(ALPHAS))
    np.testing.assert_array_equal(report.retention[0], report.retention[1])


@pytest.mark.parametrize("cls", [TrainedOnce, TrainedForAlpha])
def test_fit_levels_equals_separate_fits(data, seen, cls):
    graphs, labels = data
    filter = cls(Remembering(), random_state=0)
    levels = fit_levels(filter, graphs, labels, ALPHAS)
    assert len(seen) == (1 if cls is TrainedOnce else 3)
    assert list(levels) == ALPHAS
    for alpha, fitted in levels.items():
        alone = cls(Remembering(), alpha=alpha, random_state=0).fit(graphs, labels)
        assert (fitted.alpha, fitted.threshold_) == (alpha, alone.threshold_)
        assert fitted.score(graphs, labels) == alone.score(graphs, labels)
    assert not hasattr(filter, "scorer_")


def test_a_filter_may_share_work_between_levels(data, filters):
    graphs, labels = data
    calls = []

    class Sharing(HardCF):
        trains_for_alpha = True

        def _fit_levels(self, X, y, alphas, groups):
            calls.append((list(alphas), self.calibration_size))
            return [
                self.__class__(self.scorer, alpha=a).fit(X, y, groups) for a in alphas
            ]

    both = {"sharing": Sharing("frequency-score"), "plain": HardCF("frequency-score")}
    report = compare_filters(both, graphs, labels, ALPHAS, cv=2, random_state=0)
    assert calls == [(ALPHAS, 1)] * 2
    np.testing.assert_array_equal(report.retention[0], report.retention[1])


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
    noise = np.random.default_rng(0).normal(size=graphs.n_claims)
    table = np.c_[graphs.features[:, 0], noise]
    graphs = graphs.replace_features(table, ["good", "bad"])
    search = GridSearchCV(
        SingleFeatureCF(ties="jitter"), {"feature": ["bad", "good"]}, cv=3
    )
    both = {"search": search, "good": SingleFeatureCF("good", ties="jitter")}
    report = compare_filters(
        both, graphs, labels, [0.3], protocol="leave-one-out", cv=5, random_state=0
    )
    np.testing.assert_array_equal(report.retention[0], report.retention[1])
    assert not hasattr(search, "best_params_")


def test_search_sees_no_label_beyond_the_training_part(data):
    graphs, labels = data
    flipped = [1 - y if i >= 60 else y for i, y in enumerate(labels)]
    search = GridSearchCV(SingleFeatureCF(), {"beta_mix": [0.0, 0.5, 1.0]}, cv=3)
    train = graphs[:60]
    chosen = [
        fit_levels(search, train, y[:60], ALPHAS)[0.3].beta_mix
        for y in (labels, flipped)
    ]
    by_hand = search.set_params(estimator__alpha=0.3).fit(train, labels[:60])
    assert chosen == [by_hand.best_params_["beta_mix"]] * 2


def test_search_keeps_groups_together(data, seen):
    graphs, labels = data
    groups = np.repeat(np.arange(40), 3)
    table = np.c_[graphs.features[:, 0], groups[graphs.problem_of]]
    graphs = graphs.replace_features(table.astype(float))
    search = GridSearchCV(
        HardCF(Remembering(), calibration_size=1, random_state=0),
        {"coherent": [True, False]},
        cv=4,
        error_score="raise",
    )
    fit_levels(search, graphs, labels, [0.6], groups)
    assert len(seen) == 2 * 4 + 1
    for trained in seen[:-1]:
        counts = np.unique(trained, return_counts=True)[1]
        assert len(counts) == 30 and counts.min() >= 2  # one calibrates


# --- splits --------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_parts_are_a_partition_and_groups_stay_whole(protocol, grouped):
    rng = np.random.RandomState(0)
    groups = rng.randint(70, size=202) * 10 if grouped else None
    splits = make_splits(None, 202, groups, protocol, rng)
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
    for train, calibration, test in make_splits(splitter, 100, groups, "folds", rng):
        assert 12 <= len(calibration) <= 18 and len(test) == 16
        assert sorted([*train, *calibration, *test]) == list(range(100))
        assert not set(groups[train]) & set(groups[calibration])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (KFold(4), "split 0: problems of one group are in two parts"),
        ([([0, 1], [2, 3], [0, 5])], "split 0: a problem is in two parts"),
        ([([0, 1], [2, 3], [4, 12])], "problem 12, but there are 12"),
        ([([0, 1], [2, 3], [-1, 4])], "problem -1, but there are 12"),
        ([([0, 1], [], [4, 5])], "split 0 has parts of 2/0/2 problems"),
        ([([0, 1], [2, 3], [4, 5], [6])], "a split has 4 parts, but 3 are needed"),
        ([(["a"], [2, 3], [4, 5])], "1-D array of problem numbers"),
        ([], "cv gives no splits"),
        (0, "cv is 0"),
    ],
)
def test_bad_splits_are_refused(cv, message):
    groups = np.arange(12) % 6 if isinstance(cv, KFold) else None
    if isinstance(cv, KFold):
        cv = list(cv.split(np.zeros(12)))
    with pytest.raises(ValueError, match=message):
        make_splits(cv, 12, groups, "folds", np.random.RandomState(0))


def test_too_few_groups():
    with pytest.raises(ValueError, match=r"parts of .*0.* problems"):
        make_splits(1, 12, np.zeros(12), "folds", np.random.RandomState(0))


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

    def fit(self, X, y, groups=None):
        Interrupted.fits += 1
        if Interrupted.fits == Interrupted.stop_at:
            raise KeyboardInterrupt
        return super().fit(X, y, groups)


def test_resumed_equals_uninterrupted(data, filters, tmp_path, monkeypatch):
    graphs, labels = data
    path = tmp_path / "comparison.json"
    filters["last"] = Interrupted("frequency-score")
    monkeypatch.setattr(Interrupted, "trains_for_alpha", False, raising=False)
    run = {"alphas": ALPHAS, "cv": 5, "random_state": 0}
    whole = compare_filters(filters, graphs, labels, **run)
    monkeypatch.setattr(Interrupted, "fits", 0)
    monkeypatch.setattr(Interrupted, "stop_at", 4)
    with pytest.raises(KeyboardInterrupt):
        compare_filters(filters, graphs, labels, resume=path, **run)
    assert len(json.loads(path.read_text())["splits"]) == 3
    monkeypatch.setattr(Interrupted, "stop_at", math.inf)
    monkeypatch.setattr(Interrupted, "fits", 0)
    resumed = compare_filters(filters, graphs, labels, resume=path, **run)
    assert Interrupted.fits == 2
    assert_same(whole, resumed)
    assert_same(whole, compare_filters(filters, graphs, labels, resume=path, **run))
    assert Interrupted.fits == 2
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_an_interrupted_write_leaves_the_file_of_before(
    data, filters, tmp_path, monkeypatch
):
    graphs, labels = data
    path = tmp_path / "comparison.json"
    run = {"alphas": ALPHAS, "cv": 3, "random_state": 0, "resume": path}
    written = []
    dump = json.dump

    def failing(content, file):
        written.append(1)
        if len(written) == 3:
            file.write('{"format": "skdcf')
            raise KeyboardInterrupt
        dump(content, file)

    monkeypatch.setattr("skdcf.evaluation._resume.json.dump", failing)
    with pytest.raises(KeyboardInterrupt):
        compare_filters(filters, graphs, labels, **run)
    assert len(json.loads(path.read_text())["splits"]) == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    resumed = compare_filters(filters, graphs, labels, **run)
    run["resume"] = None
    assert_same(resumed, compare_filters(filters, graphs, labels, **run))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"alphas": [0.1, 0.2]}, "alphas"),
        ({"random_state": 1}, "cv or random_state"),
        ({"cv": 4}, "cv or random_state"),
        ({"protocol": "leave-one-out"}, "protocol"),
        ({"y": 1}, "y"),
        ({"X": 1}, "X"),
        ({"filters": {"frequency": HardCF("claim_index")}}, "filter 'frequency'"),
        ({"filters": {"other": HardCF("frequency-score")}}, "filter 'other'"),
    ],
)
def test_other_inputs_are_refused(data, tmp_path, change, named):
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
    with pytest.raises(ValueError, match=f"other inputs: .*{named}"):
        compare_filters(**run | change)
    assert path.read_bytes() == before


def test_files_that_cannot_be_used(data, filters, tmp_path):
    graphs, labels = data
    path = tmp_path / "something.json"
    for content in ('{"a": 1}', "not json", "[]"):
        path.write_text(content)
        with pytest.raises(ValueError, match="no file of a comparison"):
            compare_filters(
                filters, graphs, labels, ALPHAS, resume=path, random_state=0
            )
        assert path.read_text() == content
    with pytest.raises(ValueError, match="resume needs an integer"):
        compare_filters(filters, graphs, labels, ALPHAS, resume=tmp_path / "new.json")
    with pytest.raises(FileNotFoundError):
        missing = tmp_path / "missing" / "new.json"
        compare_filters(filters, graphs, labels, ALPHAS, resume=missing, random_state=0)
    function = {"f": HardCF(lambda batch: batch.features[:, 0])}
    with pytest.raises(ValueError, match="filter 'f' cannot"):
        compare_filters(
            function, graphs, labels, ALPHAS, resume=tmp_path / "f.json", random_state=0
        )


# --- errors and bands ----------------------------------------------------------------


def test_errors_by_hand():
    values = np.array([[[1.0], [2.0], [3.0], [4.0]]])  # variance 5/3 over 4 splits
    sizes = np.array([[70, 15, 15]] * 4)
    assert naive_error(values)[0, 0] == pytest.approx(math.sqrt(5 / 12))
    # (1/4 + 15/70) 5/3 = 65/84
    assert corrected_error(values, sizes)[0, 0] == pytest.approx(math.sqrt(65 / 84))
    halves = np.array([[50, 50]] * 4)
    assert corrected_error(values, halves)[0, 0] == pytest.approx(math.sqrt(25 / 12))
    assert np.isnan(corrected_error(values[:, :1], sizes[:1])).all()


def report_of(coverage, retention, alpha=(0.1,), sizes=(70, 15, 15), **changes):
    coverage, retention = np.array(coverage), np.array(retention)
    n_splits = retention.shape[1]
    fields = {
        "names": tuple("abc"[: len(retention)]),
        "alpha": np.array(alpha),
        "coverage": coverage,
        "retention": retention,
        "abstention": np.zeros_like(retention),
        "true_claims": np.full(n_splits, 8.0),
        "sizes": np.array([sizes] * n_splits),
        "seconds": np.zeros(retention.shape[:2]),
        "protocol": "folds" if len(sizes) == 3 else "leave-one-out",
    }
    return ComparisonReport(**fields | changes)


def test_differences_are_paired():
    retention = [[[1.0], [4.0], [2.0], [5.0]], [[2.0], [6.0], [5.0], [9.0]]]
    report = report_of(np.ones((2, 4, 1)), retention)
    table = report.differences("a")
    assert (table.reference, table.names) == ("a", ("b",))
    assert table.difference[0, 0] == 2.5  # of 1, 2, 3, 4
    assert table.percent[0, 0] == pytest.approx(100 * (5.5 / 3 - 1))
    assert table.naive_error[0, 0] == pytest.approx(math.sqrt(5 / 12))
    assert table.corrected_error[0, 0] == pytest.approx(math.sqrt(65 / 84))
    t = 2.5 / math.sqrt(65 / 84) / math.sqrt(3)  # Student's t with 3 degrees of freedom
    above = 0.5 - (t / (1 + t * t) + math.atan(t)) / math.pi
    assert table.p_value[0, 0] == pytest.approx(2 * above)
    back = report.differences("b")
    assert back.difference[0, 0] == -2.5 and back.p_value == table.p_value
    with pytest.raises(ValueError, match="reference is 'x'"):
        report.differences("x")


def test_differences_of_equal_filters_and_of_one_split():
    equal = report_of(np.ones((2, 3, 1)), np.zeros((2, 3, 1))).differences()
    assert equal.difference[0, 0] == 0 and equal.p_value[0, 0] == 1
    assert np.isnan(equal.percent[0, 0])
    single = report_of(np.ones((2, 1, 1)), [[[1.0]], [[2.0]]]).differences()
    assert single.percent[0, 0] == 100 and np.isnan(single.p_value[0, 0])


def test_band_of_the_mean_by_simulation():
    rng = np.random.default_rng(0)
    n, m, J, repeats = 31, 30, 20, 4000
    cut = np.sort(rng.random((repeats * J, n)))[:, 2]  # k = floor(0.1 * 32) = 3
    covered = (rng.random((repeats * J, m)) >= cut[:, None]).mean(axis=1)
    mean = covered.reshape(repeats, J).mean(axis=1)
    low, high = mean_band(n, 0.1, m, J)
    assert np.mean(mean < low) == pytest.approx(0.025, abs=0.01)
    assert np.mean(mean > high) == pytest.approx(0.025, abs=0.01)
    assert mean_band(8, 0.1, 30, 20) == (1.0, 1.0)


def test_coverage_is_in_its_band():
    """All problems have an error and no two scores are tied: theory is exact."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.zeros(400)
    run = {"alphas": [0.05, 0.1, 0.3], "random_state": 0}
    folds = compare_filters({"it": HardCF(0)}, X, y, cv=30, **run)
    low, high = folds.coverage_band.T
    mean = folds.coverage.mean(axis=(0, 1))
    assert ((low <= mean) & (mean <= high)).all() and (low < 1 - folds.alpha).all()
    halves = compare_filters(
        {"it": HardCF(0)}, X, y, protocol="leave-one-out", cv=3, **run
    )
    np.testing.assert_allclose(halves.coverage.mean(axis=(0, 1)), [0.95, 0.9, 0.7])
    np.testing.assert_allclose(halves.coverage_band, halves.coverage_band[:, [0, 0]])
    np.testing.assert_allclose(halves.coverage_band[:, 0], [0.95, 0.9, 0.7])


# --- the report ----------------------------------------------------------------------


def test_rows_by_hand():
    coverage = [[[0.9], [0.92]], [[0.88], [0.9]], [[0.6], [0.6]]]
    retention = [[[1.0], [3.0]], [[2.0], [4.0]], [[0.0], [0.0]]]
    report = report_of(coverage, retention, sizes=(140, 30, 30))
    a, b, c = report.rows()
    assert [row["filter"] for row in (a, b, c)] == ["a", "b", "c"]
    assert (a["coverage"], b["retention"]) == pytest.approx((0.91, 3.0))
    assert [row["meets_target"] for row in (a, b, c)] == [True, False, False]
    assert [row["in_band"] for row in (a, b, c)] == [True, True, False]
    assert [row["delta_pct"] for row in (a, b, c)] == pytest.approx([0, 50, -100])
    assert b["retention_share"] == pytest.approx(3 / 8)
    against_b = report.rows(reference="b")
    assert against_b[0]["delta_pct"] == pytest.approx(-100 / 3)
    json.dumps(report.rows() + report.differences().rows())  # plain numbers throughout


def test_printed_tables(data, filters):
    graphs, labels = data
    report = compare_filters(filters, graphs, labels, ALPHAS, cv=2, random_state=0)
    lines = str(report).splitlines()
    assert lines[0].startswith("2 splits of 84/18/18 problems, folds")
    assert len(lines) == 2 + 3 * 3
    row = lines[2].split()
    assert row[:2] == ["0.100", "frequency"]
    assert float(row[2]) == pytest.approx(
        100 * report.coverage[0, :, 0].mean(), abs=0.06
    )
    assert row[4] in ("yes", "no", "in")
    table = str(report.differences()).splitlines()
    assert len(table) == 2 + 2 * 3 and "'frequency'" in table[0]


def test_frames(data, filters):
    pytest.importorskip("pandas")
    graphs, labels = data
    report = compare_filters(filters, graphs, labels, ALPHAS, cv=2, random_state=0)
    frame = report.to_frame()
    assert len(frame) == 9 and frame["meets_target"].dtype == bool
    means = frame.pivot(index="filter", columns="alpha", values="retention")
    np.testing.assert_allclose(
        means.loc["no graph"], report.retention[1].mean(axis=0), rtol=1e-12
    )
    assert set(report.differences().to_frame()["filter"]) == {"no graph", "index"}


def test_plot_shows_means_and_target(data, filters):
    plt = pytest.importorskip("matplotlib.pyplot")
    graphs, labels = data
    order = [0.3, 0.1, 0.15]
    report = compare_filters(filters, graphs, labels, order, cv=2, random_state=0)
    display = report.plot()
    left = {line.get_label(): line for line in display.axes_[0].lines}
    x, y = left["promised: 1 - alpha"].get_data()
    np.testing.assert_allclose(y, 1 - np.array(x))
    x, y = left["no graph"].get_data()
    np.testing.assert_allclose(x, ALPHAS)
    np.testing.assert_allclose(y, report.coverage[1].mean(axis=0)[[1, 2, 0]])
    assert len(display.axes_[1].containers) == len(filters)
    plt.close(display.figure_)


# --- what is passed ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [0.1, 0.1]}, "repeated values"),
        ({"alphas": [1.0]}, "alpha is 1.0"),
        ({"filters": {}}, "filters is {}"),
        ({"filters": HardCF()}, "a dict of one or more"),
        ({"filters": {"k": KFold()}}, "filter 'k' is a KFold without fit"),
        ({"filters": {"m": {0.1: HardCF()}}}, r"filter 'm' .* none for \[0.15, 0.3\]"),
        ({"protocol": "loo"}, "protocol is 'loo'"),
        ({"groups": [1, 2]}, r"groups has shape \(2,\)"),
        ({"y": [[1]]}, "120 problems"),
        ({"X": []}, "no problems"),
        (
            {"filters": {"t": HardCF(ties="include")}, "protocol": "leave-one-out"},
            "filter 't' has ties=\"include\"",
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
    with pytest.warns(CalibrationWarning, match=r"18 .* 0.02, 0.05: .* needs 49") as w:
        report = compare_filters(
            filters, graphs, labels, [0.05, 0.02, 0.2], cv=2, random_state=0
        )
    assert len(w) == 1
    assert (report.abstention[:, :, :2] == 1).all()
    assert (report.coverage[:, :, :2] == 1).all()
    assert (report.coverage_band[:2] == 1).all()


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
    y = np.where(X[:, 0] + rng.normal(size=100) > 0, "true", "false")
    report = compare_filters({"column": HardCF(0)}, X, y, **run)
    numbers = compare_filters({"column": HardCF(0)}, X, (y == "true") * 1, **run)
    assert_same(report, numbers)
    assert report.retention.max() > 0


def test_verbose_shows_progress(data, filters, capsys):
    graphs, labels = data
    run = {"alphas": ALPHAS, "cv": 2, "random_state": 0}
    compare_filters(filters, graphs, labels, verbose=1, **run)
    assert "2/2" in capsys.readouterr().err
    compare_filters(filters, graphs, labels, **run)
    assert capsys.readouterr().err == ""
