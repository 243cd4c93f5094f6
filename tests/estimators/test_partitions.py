"""Problems that come in parts: the same threshold and masks, wherever they are scored."""

import itertools

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdcf import CoherentConformalFilter, HardCF, SingleFeatureCF
from skdcf.datasets import (
    jsonl_partitions,
    make_reasoning_graphs,
    make_word_problems,
    read_jsonl,
    write_jsonl,
)
from skdcf.evaluation import compare_filters
from skdcf.features import (
    AgreementFeatures,
    GraphFeatures,
    TextFeatures,
    reasoning_features,
)

GRAPHS, Y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
KNOWN = make_reasoning_graphs(150, random_state=1, return_X_y=True)
FITTED = CoherentConformalFilter(random_state=0).fit(*KNOWN)


@pytest.fixture
def path(tmp_path):
    return write_jsonl(tmp_path / "all.jsonl", GRAPHS, Y)


def scored(cf, part):
    """What a part contributes to the calibration; the recipe of the guide."""
    data = part.read()
    return cf.calibration_part(data.graphs, data.labels)


def filtered(cf, part, alpha=None):
    return cf.predict(part.read().graphs, alpha)


def calibrate(cf, parts, n_jobs=None):
    work = Parallel(n_jobs=n_jobs)
    return cf.calibrate_parts(work(delayed(scored)(cf, part) for part in parts))


def masks_of(cf, parts, alpha=None, n_jobs=None):
    work = Parallel(n_jobs=n_jobs, return_as="generator")
    return work(delayed(filtered)(cf, part, alpha) for part in parts)


def same(one, other):
    return all(itertools.starmap(np.array_equal, zip(one, other, strict=True)))


@pytest.mark.parametrize("size", [1, 7, 400, 1000])
def test_partitions_are_the_lines_of_the_file(path, size):
    parts = jsonl_partitions(path, size)
    assert [part.first_line for part in parts] == list(range(1, 401, size))
    read = [part.read() for part in parts]
    assert [len(data.graphs) for data in read[:-1]] == [size] * (len(parts) - 1)
    graphs = [graph for data in read for graph in data.graphs]
    assert graphs == list(read_jsonl(path).graphs)
    assert same([row for data in read for row in data.labels], Y)


def test_blank_lines_marks_and_broken_lines(tmp_path):
    good = b'{"claims": ["a"], "labels": [1]}'
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n" + good + b"\n\n  \r\n" + good + b"\n{]\n" + good)
    parts = jsonl_partitions(path, 2)
    assert [(part.first_line, part.stop) for part in parts][1][1] == path.stat().st_size
    assert len(parts[0].read().graphs) == 2
    with pytest.raises(ValueError, match=r"a\.jsonl, line 6: "):
        parts[1].read()
    path.write_bytes(b"\n \n")
    with pytest.raises(ValueError, match=r"problem.*empty"):
        jsonl_partitions(path)
    with pytest.raises(ValueError, match=r"n_problems.*0"):
        jsonl_partitions(path, 0)


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.long)])
def test_parts_are_the_whole(path, n_jobs):
    whole = clone(FITTED).fit(*KNOWN).calibrate(GRAPHS, Y)
    parted = clone(FITTED).fit(*KNOWN)
    parts = jsonl_partitions(path, 90)
    assert calibrate(parted, parts, n_jobs=n_jobs) is parted
    assert parted.n_calibration_ == 399  # of rank 40, like 400
    assert abs(parted.threshold_ - whole.threshold_) < 1e-7
    for alpha in (None, 0.3):
        masks = masks_of(parted, parts, alpha, n_jobs=n_jobs)
        assert same(
            [row for part in masks for row in part], whole.predict(GRAPHS, alpha)
        )


@pytest.mark.long
def test_same_bits_wherever_the_parts_are_scored(path):
    parts, results = jsonl_partitions(path, 64), []
    for backend in ("sequential", "loky", "threading"):
        cf = clone(FITTED).fit(*KNOWN)
        with joblib.parallel_config(backend=backend, n_jobs=2):
            calibrate(cf, parts)
            masks = list(itertools.chain.from_iterable(masks_of(cf, parts)))
        results.append((cf.nonconformity_scores_, masks))
    for scores, masks in results[1:]:
        assert np.array_equal(scores, results[0][0])
        assert same(masks, results[0][1])


def test_columns_and_streams(tmp_path):
    cf = HardCF("nx_out_degree", features=GraphFeatures())
    cf.fit(GRAPHS[:150], Y[:150])
    path = write_jsonl(tmp_path / "a.jsonl", GRAPHS, Y)
    assert calibrate(cf, jsonl_partitions(path, 100)) is cf
    assert cf.n_calibration_ == 399
    masks = itertools.chain.from_iterable(masks_of(cf, jsonl_partitions(path, 150)))
    rows = iter(read_jsonl(path).graphs)
    kept = read_jsonl(write_jsonl(tmp_path / "kept.jsonl", rows, masks=masks))
    assert same(kept.masks, cf.predict(GRAPHS))
    with pytest.raises(ValueError, match=r"parts.*got none"):
        calibrate(cf, [])


@pytest.mark.parametrize(
    "features",
    [GraphFeatures(), TextFeatures(), AgreementFeatures(), reasoning_features()],
    ids=lambda f: type(f).__name__,
)
def test_features_are_the_same_in_parts(features):
    graphs = make_word_problems(230, random_state=0).graphs
    whole = clone(features).fit(graphs).transform(graphs)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            parted = clone(features).fit(graphs).transform(graphs)
        assert np.array_equal(whole.features, parted.features)
        assert whole.feature_names == parted.feature_names


@pytest.mark.long
def test_same_bits_over_jobs_and_kinds_of_input():
    hard = SingleFeatureCF(ties="jitter", random_state=0)
    packed, reports = GRAPHS[:200], []
    for X, n_jobs in ((packed, 1), (list(packed), 1), (packed, 2), (list(packed), 2)):
        reports.append(
            compare_filters(
                {"a": hard}, X, Y[:200], [0.2], cv=3, random_state=0, n_jobs=n_jobs
            )
        )
    assert all(np.array_equal(r.retention, reports[0].retention) for r in reports)
    assert all(np.array_equal(r.coverage, reports[0].coverage) for r in reports)
    searches = [
        GridSearchCV(hard, {"beta_mix": [0.0, 0.5]}, cv=2, n_jobs=n).fit(
            packed, Y[:200]
        )
        for n in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert np.array_equal(*scores)
    fits = [
        CoherentConformalFilter(random_state=0).fit(X, Y[:200])
        for X in (packed, list(packed))
    ]
    assert np.array_equal(fits[0].nonconformity_scores_, fits[1].nonconformity_scores_)
    assert same(fits[0].predict_alpha(packed), fits[1].predict_alpha(list(packed)))
