"""A search over what is promised warns, and a score that ranks backwards does."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import ParameterWarning, SearchWarning
from skdcf.guarantees import NoFalseClaim

GRAPHS, LABELS = make_reasoning_graphs(120, random_state=0, return_X_y=True)
GRIDS = {
    "alpha": [0.1, 0.3],
    "ties": ["exclude", "jitter"],
    "edges": ["given", "none"],
    "guarantee": [None, NoFalseClaim(max_false=1)],
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_search_over_what_is_promised_warns(name):
    search = GridSearchCV(
        HardCF("frequency-score", random_state=0), {name: GRIDS[name]}, cv=2
    )
    with pytest.warns(SearchWarning, match=f"{name} of this clone was set"):
        search.fit(GRAPHS, LABELS)


def test_a_search_over_parts_of_a_guarantee_warns():
    cf = HardCF("frequency-score", guarantee=NoFalseClaim(), random_state=0)
    search = GridSearchCV(cf, {"guarantee__max_false": [0, 1]}, cv=2)
    with pytest.warns(SearchWarning, match="guarantee of this clone"):
        search.fit(GRAPHS, LABELS)


def test_other_searches_and_settings_of_the_users_own_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf = HardCF("frequency-score", random_state=0)
        grid = {"scorer": ["frequency-score", 0], "alpha": [0.1]}
        GridSearchCV(cf, grid, cv=2).fit(GRAPHS, LABELS)
        cf.set_params(alpha=0.2, ties="jitter")
        cf.fit(GRAPHS, LABELS).score(GRAPHS, LABELS)
        cross_val_score(cf, GRAPHS, LABELS, cv=2)
        clone(cf).fit(GRAPHS, LABELS).with_alpha(0.3).score(GRAPHS, LABELS)
        clone(cf).set_params(alpha=0.2).fit(GRAPHS, LABELS).score(GRAPHS, LABELS)


PROGRAM = """
from sklearn.model_selection import GridSearchCV
from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(120, random_state=0, return_X_y=True)
cf = HardCF("frequency-score", random_state=0)
GridSearchCV(cf, {"alpha": [0.1, 0.3]}, cv=2, n_jobs=2).fit(graphs, labels)
"""


@pytest.mark.long
def test_the_warning_comes_out_of_other_processes():
    env = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert "SearchWarning: alpha of this clone was set" in done.stderr


def test_a_score_that_ranks_backwards_warns():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.7
    trust = (y + rng.normal(size=200))[:, None]
    with pytest.warns(ParameterWarning, match="ranks backwards: .* Is it a risk?"):
        HardCF(0).fit(-trust, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HardCF(0).fit(trust, y)


def test_a_score_that_knows_nothing_does_not_warn():
    """In 200 draws of a column that is noise: 4 errors and .35 are far from chance."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ParameterWarning)
        for _ in range(200):
            X = rng.normal(size=(60, 1))
            y = rng.random(60) < 0.5
            HardCF(0, alpha=0.2).fit(X, y)
