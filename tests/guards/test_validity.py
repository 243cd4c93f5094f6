"""The short version of benchmarks/guarantees/validity.py: a few of its rows, with fewer draws."""

import importlib.util

import numpy as np
import pytest


def script(checkout, name):
    path = checkout / "benchmarks" / "guarantees" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench(checkout):
    return script(checkout, "validity")


LAW = (
    "HardCF, frequency | no false claim | exclude | 50 | 0.1",
    "HardCF, frequency | no false claim | jitter | 5 | 0.5",
    "HardCF, frequency | no false claim | exclude | 200 | 0.005",
    "HardCF, frequency | delta .1 | exclude | 200 | 0.25",
    "SingleFeatureCF | no false claim | jitter | 200 | 0.25",
    "IndependentFactuality | delta .1 | exclude | 50 | 0.1",
    "HardCF, linear | no false claim | exclude | 19 | 0.05",
)
MEAN = (
    "tied | by group | jitter | 50 | 0.1",
    "tied | share by group | exclude | 200 | 0.05",
    "constant | at most 1 | exclude | 9 | 0.1",
    "float32 | share | exclude | 9 | 0.1",
)
FAILING = (
    "rank clamped to 1 | 19 | 0.01",
    "rank clamped to 1 | 5 | 0.1",
    "quantile by 'higher' of numpy | 137 | 0.5",
    "quantile by 'higher' of numpy | 9 | 0.1",
    "ties kept | 19 | 0.1",
)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.parametrize("name", LAW)
def test_covered_problems_follow_their_law(bench, name):
    found = bench.law_row(name.split(" | "), 200)
    assert not found["fails"], found
    assert found["law"] > 1e-3


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.parametrize("name", MEAN)
def test_no_more_is_lost_than_was_promised(bench, name):
    found = bench.mean_row(name.split(" | "), 200)
    assert not found["fails"], found


@pytest.mark.long
def test_every_group_is_covered(bench):
    found = bench.group_row(["500", "0.1"], 40)
    assert not found["fails"], found


@pytest.mark.long
@pytest.mark.parametrize("name", ["50 | 0.1 | 0.1"])
def test_few_calibration_sets_cover_less(bench, name):
    found = bench.delta_row(name.split(" | "), 100)
    assert not found["fails"], found


@pytest.mark.parametrize("name", FAILING)
def test_what_must_fail_is_seen_to_fail(bench, name):
    row = bench.ties_row if name.startswith("ties") else bench.rank_row
    assert row(name.split(" | "), 300)["fails"]


def test_the_law_is_told_from_its_neighbours(bench):
    """A rank that is off by one has another law, with nearly the same mean."""
    rng = np.random.default_rng(0)
    scores = rng.random((4000, 70))
    thresholds = np.sort(scores[:, :50], axis=1)
    for k, right in ((5, True), (4, False), (6, False)):
        losses = (scores[:, 50:] < thresholds[:, [k - 1]]).astype(float)
        assert (bench.law_of(losses, 50, 0.1) > 1e-4) == right


@pytest.mark.long
def test_a_shift_that_nobody_told_is_seen_to_fail(bench):
    found = bench.shift_row(["only new problems of high frequency", "200", "0.1"], 100)
    assert found["fails"], found
