"""Problems that come in parts: the same threshold and masks, wherever they are scored."""

import itertools

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from skdcf import CoherentConformalFilter
from skdcf.datasets import (
    jsonl_partitions,
    make_reasoning_graphs,
    write_jsonl,
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
