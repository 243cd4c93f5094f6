"""Jobs at a time change nothing but the time, and bars show how far a fit is."""

import os
import re
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info

from skdcf import BoostedIndependentFactuality, CoherentConformalFilter, HardCF
from skdcf._jobs import run_jobs
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import compare_filters
from skdcf.exceptions import CalibrationWarning
from skdcf.scorers import Scorer

GRAPHS, Y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
NEW = make_reasoning_graphs(40, random_state=1, return_X_y=True)[0]


class Noisy(Scorer):
    """Another alpha, another fold and another random number make it another one."""

    uses_alpha = True

    def fit(self, batch, labels, task=None):
        self.weights_ = task.alpha * task.rng.normal(size=batch.n_features)
        self.weights_[0] += labels.mean()
        return self

    def confidence(self, batch):
        return batch.features @ self.weights_


def flat(filters):
    rows = []
    for f in filters:
        alphas = np.concatenate(list(f.predict_alpha(NEW)))
        rows.append((f.threshold_, f.nonconformity_scores_.tobytes(), alphas.tobytes()))
    return rows


@pytest.mark.long
@pytest.mark.parametrize(
    "filter", [CoherentConformalFilter(random_state=0), HardCF(Noisy(), random_state=0)]
)
def test_decisions_are_equal_to_the_bit(filter):
    def decide(n_jobs):
        # Levels that hold out the same number of questions share a fit.
        own = clone(filter).set_params(n_jobs=n_jobs, calibration_size=40)
        levels = [clone(own).set_params(alpha=alpha) for alpha in (0.2, 0.3)]
        return flat(level.fit(GRAPHS, Y) for level in levels)

    alone = decide(1)
    assert alone[0] != alone[1]
    assert decide(2) == alone


@pytest.mark.long
def test_a_comparison_is_equal_to_the_bit():
    def compare(n_jobs):
        run = {"cv": 2, "n_jobs": n_jobs, "random_state": 0}
        report = compare_filters({"it": HardCF(Noisy())}, GRAPHS, Y, [0.3], **run)
        return report.retention.tobytes(), report.coverage.tobytes()

    assert compare(1) == compare(2)


@pytest.mark.long
@pytest.mark.parametrize(
    "filter", [CoherentConformalFilter(), BoostedIndependentFactuality()]
)
def test_trained_filters_show_a_bar(filter, capsys):
    filter.set_params(alpha=0.3, random_state=0)
    filter.fit(GRAPHS, Y)
    assert capsys.readouterr() == ("", "")
    shown = clone(filter).set_params(verbose=1).fit(GRAPHS, Y)
    out, err = capsys.readouterr()
    assert re.search(r"\w+: +\d+%", err)
    assert out == ""
    assert flat([shown]) == flat([filter])


# --- the place that runs jobs


def process_and_threads():
    blas = [
        pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
    ]
    return os.getpid(), set(blas)


def warns_of(text):
    warnings.warn(text, CalibrationWarning, stacklevel=1)


def fails():
    raise ValueError("this job fails")


def test_jobs_run_in_other_processes_and_come_back_in_order():
    here = os.getpid()
    jobs = [partial(pow, 2, i) for i in range(20)]
    assert run_jobs(jobs, 2) == [2**i for i in range(20)]
    for n_jobs in (1, 2):
        seen = run_jobs([process_and_threads] * 4, n_jobs)
        assert all(threads <= {1} for _, threads in seen)
        assert all((pid == here) == (n_jobs == 1) for pid, _ in seen)
    [(alone, _)] = run_jobs([process_and_threads], 2)
    assert alone == here


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warnings_and_errors_of_jobs_reach_the_caller(n_jobs):
    jobs = [partial(warns_of, text) for text in ("first", "second")]
    with pytest.warns(CalibrationWarning) as caught:
        run_jobs(jobs, n_jobs)
    assert sorted(str(w.message) for w in caught) == ["first", "second"]
    assert {w.filename for w in caught} == {__file__}
    with pytest.raises(ValueError, match="this job fails"):
        run_jobs([partial(pow, 2, 2), fails], n_jobs)
