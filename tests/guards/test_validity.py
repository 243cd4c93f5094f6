"""A few rows of benchmarks/guarantees/validity.py, with fewer draws."""

import importlib.util

import pytest

HELD = {
    "law": "HardCF, frequency | no false claim | jitter | 50 | 0.1",
    "mean": "float32 | share | exclude | 9 | 0.1",
    "group": "500 | 0.1",
}
FAILING = {
    "rank": "rank clamped to 1 | 19 | 0.01",
    "ties": "ties kept | 19 | 0.1",
}


@pytest.fixture(scope="module")
def bench(checkout):
    path = checkout / "benchmarks" / "guarantees" / "validity.py"
    spec = importlib.util.spec_from_file_location("validity", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.parametrize("kind", HELD)
def test_guarantees_hold(bench, kind):
    row = getattr(bench, f"{kind}_row")(HELD[kind].split(" | "), 100)
    assert not row["fails"], row


@pytest.mark.parametrize("kind", FAILING)
def test_published_faults_are_seen_to_fail(bench, kind):
    assert getattr(bench, f"{kind}_row")(FAILING[kind].split(" | "), 300)["fails"]
