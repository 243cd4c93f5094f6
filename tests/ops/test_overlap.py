"""Groups that overlap: the linear programs against their definition and a simulation."""

import numpy as np
import pytest
from levels import thresholds
from scipy.optimize import linprog

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.estimators import flat_masks
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_threshold
from skdcf.ops.overlap import overlap_threshold, squash, unsquash


def loss_of_regression(values, phi, alpha, below=None):
    """Least pinball loss of all scores; with ``below``, the last fitted at least that."""
    n, d = phi.shape
    costs = np.concatenate([np.zeros(d), np.full(n, alpha), np.full(n, 1 - alpha)])
    equal = np.hstack([phi, np.eye(n), -np.eye(n)])
    bounds = [(None, None)] * d + [(0, None)] * (2 * n)
    more = {}
    if below is not None:
        more = {"A_ub": [np.append(-phi[-1], np.zeros(2 * n))], "b_ub": [-below]}
    result = linprog(costs, A_eq=equal, b_eq=values, bounds=bounds, **more)
    return result.fun


def is_rejected(score, scores, indicators, x, alpha):
    """Whether some best regression on n + 1 scores fits more than the new score."""
    values = np.append(squash(scores), score)
    phi = np.c_[np.ones(len(values)), np.vstack([indicators, x])]
    best = loss_of_regression(values, phi, alpha)
    above = loss_of_regression(values, phi, alpha, below=score + 1e-5)
    return above <= best + 1e-8


@pytest.mark.parametrize("seed", range(12))
def test_threshold_is_where_rejection_ends(seed):
    rng = np.random.default_rng(seed)
    n, alpha = 40, (0.1, 0.2, 0.25, 0.37)[seed % 4]
    indicators = rng.random((n, 3)) < 0.6
    scores = rng.normal(size=n) + indicators @ [0.5, -0.5, 1.0]
    scores[rng.random(n) < 0.2] = np.inf
    if seed % 3 == 0:
        scores = np.round(scores)  # tied
    for x in indicators[:3]:
        t = squash(overlap_threshold(scores, indicators, x, alpha))
        if t > -1:
            assert is_rejected(t - 1e-3, scores, indicators, x, alpha)
        if t < 1:
            assert not is_rejected(t + 1e-4, scores, indicators, x, alpha)


def test_groups_that_do_not_overlap_are_the_usual_ones():
    rng = np.random.default_rng(0)
    for n, alpha in (
        (40, 0.1),
        (39, 0.1),
        (59, 0.05),
        (30, 0.25),
        (20, 0.5),
        (12, 0.1),
    ):
        scores = rng.normal(size=2 * n)
        scores[rng.random(2 * n) < 0.3] = np.inf
        group = np.repeat([0, 1], n)
        for name in (0, 1):
            found = overlap_threshold(
                scores, np.c_[group == 0, group == 1], np.arange(2) == name, alpha
            )
            own = conformal_threshold(np.sort(scores[group == name]), alpha)
            if np.isinf(own):
                assert found == own or found > 1e8
            else:
                assert own - 1e-7 < found < own


def test_squash_is_a_monotone_map_and_back():
    values = np.array([-np.inf, -3.0, -0.5, 0.0, 0.25, 9.0, np.inf])
    assert (np.diff(squash(values)) > 0).all() and abs(squash(values)).max() == 1
    np.testing.assert_allclose(unsquash(squash(values)), values, rtol=1e-14)


@pytest.mark.long
def test_every_group_is_covered_in_the_mean():
    """Exactly: over draws, a share of at most alpha is rejected within each group."""
    rng = np.random.default_rng(0)
    alpha, n, missed = 0.2, 60, []
    for _ in range(300):
        member = rng.random((n + 1, 2)) < [0.5, 0.4]
        shift = member @ [1.5, -1.0]
        scores = rng.normal(size=n + 1) * (1 + member[:, 0]) + shift
        t = overlap_threshold(scores[:n], member[:n], member[n], alpha)
        missed.append((scores[n] < t, *member[n]))
    missed = np.array(missed)
    for inside in (np.ones(300, bool), missed[:, 1] > 0, missed[:, 2] > 0):
        share = missed[inside, 0].mean()
        error = np.sqrt(alpha * (1 - alpha) / inside.sum())
        assert share <= alpha + 3 * error
    assert missed[:, 0].mean() > alpha - 4 * np.sqrt(0.16 / 300) - 0.05


@pytest.fixture(scope="module")
def named():
    graphs, y = make_reasoning_graphs(400, "felm", random_state=0, return_X_y=True)
    metadata = [
        {"model": "ab"[i % 2], "topics": ["x", "y"][: 1 + i % 3 % 2]}
        for i in range(400)
    ]
    return graphs.replace_metadata(metadata), y


def test_filters_take_groups_that_overlap(named):
    graphs, y = named
    for by in (
        "topics",
        ["model", "topics"],
        lambda b: np.c_[b.sizes > 3, b.sizes < 6],
    ):
        cf = HardCF("frequency-score", alpha=0.2, guarantee=NoFalseClaim(by=by))
        cf.fit(graphs[:300], y[:300])
        new = graphs[300:]
        t = thresholds(cf, new)
        kept = np.concatenate(list(cf.predict(new)))
        risk = np.concatenate(list(cf.path_risk(new)))
        np.testing.assert_array_equal(kept, risk < t[new.problem_of])
        np.testing.assert_array_equal(kept, flat_masks(cf, new, [0.2])[0])
        with pytest.raises(ValueError, match=r"alpha.*predict\(X"):
            cf.predict_alpha(new)
    with pytest.raises(ValueError, match=r"delta.*weight"):
        HardCF(guarantee=NoFalseClaim(delta=0.1, by="topics")).fit(graphs, y)


def test_small_and_unseen_groups(named):
    graphs, y = named
    topics = [["x", "rare"] if i < 5 else ["x"] for i in range(300)] + [["new"]] * 100
    graphs = graphs.replace_metadata([{"topics": t} for t in topics])
    cf = HardCF("frequency-score", alpha=0.1, guarantee=NoFalseClaim(by="topics"))
    with pytest.warns(CalibrationWarning, match=r"'rare' \(5\).*at least 9"):
        cf.fit(graphs[:300], y[:300])
    with pytest.warns(CalibrationWarning):
        t = thresholds(cf, graphs[:300])
    assert (t[:5] == -np.inf).all() and (t[5:] > -np.inf).all()
    with pytest.raises(ValueError, match=r"group.*'new'"), pytest.warns():
        thresholds(cf, graphs[300:])
    for unseen, expected in (("empty", True), ("pool", False)):
        cf.set_params(guarantee__unseen=unseen)
        with pytest.warns(CalibrationWarning):
            cf.fit(graphs[:300], y[:300])
            assert (thresholds(cf, graphs[300:]) == -np.inf).all() == expected
