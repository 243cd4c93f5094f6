"""Monitors against brute force, exact enumeration and simulation."""

import itertools
from fractions import Fraction
from math import log2, prod

import numpy as np
import pytest
from scipy.stats import false_discovery_control, kstest
from sklearn.base import clone

import skdcf
from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.metrics import coverage_score
from skdcf.monitoring import (
    AdaptiveAlpha,
    CoverageMonitor,
    ExchangeabilityTest,
    SlidingCalibration,
    answer_p_values,
    release,
)
from skdcf.monitoring._coverage import ODDS
from skdcf.ops.conformal import conformal_rank, conformal_threshold

GRAPHS, Y = make_reasoning_graphs(600, random_state=2, return_X_y=True)


def fed(monitor, errors):
    """The monitor after problems with one kept claim each, false where there is an error."""
    errors = np.asarray(errors, dtype=bool)
    return monitor.update((~errors).astype(int), np.ones(len(errors), dtype=bool))


# -- the coverage monitor ------------------------------------------------------------


def urn_chance(n, k, t, errors_before):
    """Chance of an error at problem t, from all orders of n + t distinct scores."""
    hits = total = 0
    for order in itertools.permutations(range(n + t)):
        threshold = sorted(order[:n])[k - 1]
        errors = [score < threshold for score in order[n:]]
        if sum(errors[:-1]) == errors_before:
            total += 1
            hits += errors[-1]
    return Fraction(hits, total)


@pytest.mark.parametrize(
    ("n", "k", "t", "before"), [(3, 1, 3, 1), (4, 2, 2, 0), (2, 2, 4, 3)]
)
def test_errors_are_draws_from_an_urn(n, k, t, before):
    assert urn_chance(n, k, t, before) == Fraction(k + before, n + t)


def reference_wealth(errors, chances):
    """What each bet makes from each start, summed up."""

    def waiting(t):
        return 1 / log2(2 + t / 100)

    out = []
    for t in range(1, len(errors) + 1):
        wealth = waiting(t)
        for start, c in itertools.product(range(t), ODDS):
            stake = (waiting(start) - waiting(start + 1)) / len(ODDS)
            factors = (
                (c if errors[i] else 1) / (1 - chances[i] + c * chances[i])
                for i in range(start, t)
            )
            wealth += stake * prod(factors)
        out.append(wealth)
    return out


@pytest.mark.parametrize("n", [None, 30])
def test_wealth_is_that_of_all_bets(n):
    errors = np.random.default_rng(0).random(40) < 0.3
    monitor = fed(CoverageMonitor(0.2, n_calibration=n), errors)
    before = np.append(0, np.cumsum(errors)[:-1])
    chances = [0.2] * 40
    if n:
        k = conformal_rank(n, 0.2)
        chances = [(k + e) / (n + t) for t, e in enumerate(before, start=1)]
    expected = reference_wealth(errors, chances)
    np.testing.assert_allclose(np.exp(monitor.log_wealth_), expected, rtol=1e-10)


def test_mean_wealth_is_one_whatever_happens():
    """Summed over all streams of the urn, to rounding."""
    n, alpha = 9, 0.3
    k, total = conformal_rank(n, alpha), 0.0
    for errors in itertools.product([0, 1], repeat=8):
        chance, e = 1.0, 0
        for t, error in enumerate(errors, start=1):
            p = (k + e) / (n + t)
            chance, e = chance * (p if error else 1 - p), e + error
        total += chance * fed(CoverageMonitor(alpha, n_calibration=n), errors).wealth
    assert total == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("decimals", [None, 1], ids=["continuous", "tied"])
def test_false_alarms(decimals):
    """Calibration and stream are exchangeable: at most delta of the streams alarm, ever."""
    rng, alarms, n = np.random.default_rng(1), 0, 60
    for _ in range(400):
        scores = rng.normal(size=n + 500)
        scores = scores if decimals is None else scores.round(decimals)
        threshold = conformal_threshold(np.sort(scores[:n]), 0.1)
        monitor = CoverageMonitor(0.1, n_calibration=n, delta=0.1)
        alarms += fed(monitor, scores[n:] < threshold).alarm
    assert alarms / 400 <= 0.1 + 2.5 * np.sqrt(0.1 * 0.9 / 400)


@pytest.mark.parametrize(("n", "alpha"), [(9, 0.1), (50, 0.1), (200, 0.05)])
def test_alarms_grow_with_the_chance_of_errors(n, alpha):
    """Hence ties do no harm: they lower that chance. Summed over all streams, exactly."""
    streams = np.array(list(itertools.product([0, 1], repeat=10)))
    monitors = [CoverageMonitor(alpha, n_calibration=n, delta=0.5) for _ in streams]
    alarms = np.array(
        [fed(*both).alarm for both in zip(monitors, streams, strict=True)]
    )
    n_errors = streams.sum(axis=1)
    chances = np.linspace(0, 1, 41)[:, None]
    shares = (alarms * chances**n_errors * (1 - chances) ** (10 - n_errors)).sum(axis=1)
    assert (np.diff(shares) >= -1e-12).all()
    assert shares[0] == 0
    assert shares[-1] == pytest.approx(1)


def test_lost_coverage_is_found_and_the_alarm_stays():
    rng = np.random.default_rng(0)
    monitor = CoverageMonitor(0.1, n_calibration=500)
    fed(monitor, rng.random(500) < 0.1)
    assert not monitor.alarm
    assert monitor.alarm_at is None
    fed(monitor, rng.random(800) < 0.2)
    assert 500 < monitor.alarm_at < 1200
    at = monitor.alarm_at
    fed(monitor, np.zeros(3000))
    assert monitor.wealth < 20
    assert monitor.alarm
    assert monitor.alarm_at == at
    assert monitor.p_value <= 0.05


def test_summary():
    fresh = CoverageMonitor().summary()
    assert fresh["n_problems"] == 0
    assert np.isnan(fresh["coverage"])
    assert (fresh["wealth"], fresh["p_value"], fresh["alarm"]) == (1, 1, False)
    out = (
        CoverageMonitor()
        .update([[1, 0], [1, -1]], [[True, False], [True, True]])
        .summary()
    )
    assert (out["n_problems"], out["n_errors"], out["coverage"]) == (2, 1, 0.5)
    assert out["largest_wealth"] == pytest.approx(1 / out["p_value"])
    many = fed(CoverageMonitor(0.01), np.ones(2000)).summary()
    assert np.isfinite(many["wealth"])


@pytest.mark.parametrize("cuts", [[], [1], [0, 5, 5, 300]])
def test_however_the_stream_is_cut(cuts):
    errors = np.random.default_rng(3).random(400) < 0.15
    whole = fed(CoverageMonitor(n_calibration=99), errors)
    parted = CoverageMonitor(n_calibration=99)
    for a, b in itertools.pairwise([0, *cuts, 400]):
        fed(parted, errors[a:b])
    np.testing.assert_array_equal(parted.log_wealth_, whole.log_wealth_)
    risks = np.random.default_rng(4).normal(size=(1500, 2)).round(2)
    one = ExchangeabilityTest(random_state=0).fit(risks[:50]).update(risks[50:])
    other = ExchangeabilityTest(random_state=0).fit(risks[:50])
    for a, b in itertools.pairwise([50, *(c + 50 for c in cuts), 1500]):
        other.update(risks[a:b])
    np.testing.assert_array_equal(one.log_wealth_, other.log_wealth_)


def test_monitors_survive_a_restart(tmp_path):
    pytest.importorskip("skops")
    errors = np.random.default_rng(3).random(200) < 0.15
    risks = np.random.default_rng(4).normal(size=(200, 2))
    monitors = [
        (CoverageMonitor(n_calibration=99), lambda m, a, b: fed(m, errors[a:b])),
        (ExchangeabilityTest(random_state=0), lambda m, a, b: m.update(risks[a:b])),
        (AdaptiveAlpha(), lambda m, a, b: fed(m, errors[a:b])),
    ]
    for monitor, feed in monitors:
        other = clone(monitor)
        feed(monitor, 0, 200)
        feed(other, 0, 70)
        other = skdcf.load(skdcf.save(other, tmp_path / "m"))
        feed(other, 70, 200)
        for name, value in vars(monitor).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(other, name), value)


@pytest.mark.parametrize(
    ("monitor", "message"),
    [
        (CoverageMonitor(1.5), "alpha is 1.5"),
        (CoverageMonitor(delta=0), "delta"),
        (CoverageMonitor(n_calibration=0), "n_calibration"),
        (AdaptiveAlpha(gamma=0), "gamma"),
        (AdaptiveAlpha(alpha=0), "alpha is 0"),
    ],
)
def test_bad_settings(monitor, message):
    with pytest.raises(ValueError, match=message):
        monitor.update([[1]], [[True]])


def test_bad_feedback_changes_nothing():
    monitor = CoverageMonitor().update([[1]], [[True]])
    for y, kept in (([[1]], [[True], [True]]), ([[2]], [[True]]), ([[1, 1]], [[True]])):
        with pytest.raises(ValueError, match=r"problem|holds values"):
            monitor.update(y, kept)
    assert monitor.summary()["n_problems"] == 1


# -- exchangeability -----------------------------------------------------------------


def test_p_values_are_ranks():
    rng = np.random.default_rng(0)
    values = rng.integers(6, size=700).astype(float)  # many ties, more than one block
    test = ExchangeabilityTest(random_state=0).fit(values[:20, None])
    uniform = clone_rng(test).random_sample(680)
    found = np.concatenate(
        [
            test._p_values(values[a:b], uniform[a - 20 : b - 20])
            for a, b in ((20, 520), (520, 700))
        ]
    )
    expected = [
        (np.sum(values[:i] < values[i]) + u * (1 + np.sum(values[:i] == values[i])))
        / (i + 1)
        for i, u in enumerate(uniform, start=20)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert kstest(found, "uniform").pvalue > 1e-3


def clone_rng(test):
    rng = np.random.RandomState()
    rng.set_state(test.rng_.get_state())
    return rng


def test_exchangeable_problems_seldom_alarm():
    rng = np.random.default_rng(5)
    alarms = sum(
        ExchangeabilityTest(delta=0.1, random_state=i)
        .fit(rng.normal(size=(40, 2)).round(1))
        .update(rng.normal(size=(400, 2)).round(1))
        .alarm
        for i in range(300)
    )
    assert alarms / 300 <= 0.1 + 2.5 * np.sqrt(0.1 * 0.9 / 300)


@pytest.mark.parametrize("statistic", ["mean", "max", "min"])
@pytest.mark.parametrize("shift", [-0.6, 0.6])
def test_other_problems_are_noticed(statistic, shift):
    rng = np.random.default_rng(6)
    test = ExchangeabilityTest(statistic=statistic, random_state=0)
    test.fit(rng.normal(size=(300, 4))).update(rng.normal(size=(200, 4)))
    assert not test.alarm
    test.update(rng.normal(shift, size=(300, 4)))
    assert test.alarm_at > 200


def test_of_a_filter_and_without_claims():
    cf = HardCF("frequency-score").fit(GRAPHS[:200], Y[:200])
    test = ExchangeabilityTest(random_state=0).fit(cf.path_risk(GRAPHS[:200]))
    assert not test.update(cf.path_risk(GRAPHS[200:])).alarm
    n = len(test.seen_)
    assert test.update([[], [0.5]]).seen_[0] == -np.inf
    assert len(test.seen_) == n + 2
    with pytest.raises(ValueError, match="problem 1: a path risk is NaN"):
        test.update([[0.5], [np.nan]])
    assert len(test.fit([[1.0]]).seen_) == 1
    assert test.summary()["n_problems"] == 0


# -- what follows changes ------------------------------------------------------------


class AlwaysWrong:
    """A filter whose one claim is false, kept from alpha = 0.05 on."""

    def predict_alpha(self, X):
        return np.full(len(X), 0.05)


@pytest.mark.parametrize("gamma", [0.001, 0.05, 1.0])
@pytest.mark.parametrize("truth", ["all false", "random", "late"])
def test_adaptive_level_keeps_its_long_run_promise(gamma, truth):
    """Against problems that are as bad as can be."""
    rng, alpha, n = np.random.default_rng(0), 0.1, 400
    y = {
        "all false": np.zeros(n),
        "random": rng.integers(2, size=n),
        "late": np.arange(n) < n // 2,
    }[truth].astype(int)
    level = AdaptiveAlpha(alpha, gamma=gamma)
    for t in range(1, n + 1):
        kept = level.predict(AlwaysWrong(), np.zeros((1, 1)))
        level.update(y[t - 1 : t], kept)
        assert level.n_errors_ / t <= alpha + (alpha + gamma) / (gamma * t) + 1e-12
        assert -gamma < level.level_ <= 1
    assert len(level.history_) == n


@pytest.mark.parametrize("b", [25, 200])
def test_adaptive_level_where_several_are_filtered_at_a_time(b):
    """As bad as can be: all that is filtered at a level above 0 errs."""
    alpha, gamma, exceeded = 0.1, 0.05, False
    level = AdaptiveAlpha(alpha, gamma=gamma)
    for t in range(b, 1001, b):
        kept = level.predict(AlwaysWrong(), np.zeros((b, 1)))
        level.update(np.zeros(b, dtype=int), kept)
        share = level.n_errors_ / t
        assert share <= alpha + (alpha + b * gamma) / (gamma * t) + 1e-12
        exceeded |= share > alpha + (alpha + gamma) / (gamma * t)
    assert exceeded  # one at a time would have been safer


def test_adaptive_level_is_the_published_one_where_nothing_is_held():
    errors = np.random.default_rng(1).random(100) < 0.1
    level = fed(AdaptiveAlpha(0.1, gamma=0.01), errors)
    expected = 0.1 + np.append(0, np.cumsum(0.01 * (0.1 - errors)))
    np.testing.assert_allclose(level.history_, expected[:-1])
    assert level.level_ == pytest.approx(expected[-1])


def test_adaptive_predictions():
    cf = HardCF("frequency-score").fit(GRAPHS[:200], Y[:200])
    level = AdaptiveAlpha(0.2)
    kept = level.predict(cf, GRAPHS[200:])
    assert all(map(np.array_equal, kept, cf.predict(GRAPHS[200:], 0.2)))
    fed(level, np.ones(40))
    assert level.level_ < 0
    assert not np.concatenate(list(level.predict(cf, GRAPHS[200:]))).any()
    fed(level, np.zeros(5000))
    assert level.level_ == 1
    assert np.concatenate(list(level.predict(cf, GRAPHS[200:]))).all()


def test_sliding_window_is_a_calibration_on_the_latest():
    cf = HardCF("frequency-score").fit(GRAPHS[:100], Y[:100])
    sliding = SlidingCalibration(cf, window=150, smallest=60)
    sliding.update(GRAPHS[100:140], Y[100:140])
    assert sliding.filter_.threshold_ == cf.threshold_  # too few so far
    sliding.update(GRAPHS[140:290], Y[140:290]).update(GRAPHS[290:600], Y[290:600])
    latest = HardCF("frequency-score").fit(GRAPHS[450:600], Y[450:600])
    np.testing.assert_allclose(
        sliding.filter_.nonconformity_scores_, latest.nonconformity_scores_, atol=1e-9
    )
    assert cf.n_calibration_ == 100
    assert sliding.n_seen_ == 500


def test_sliding_window_follows_a_shift():
    """Half of the true claims turn false: the old threshold loses coverage, the new not."""
    rng = np.random.default_rng(0)
    worse = [np.where(rng.random(len(row)) < 0.3, 0, row) for row in Y]
    cf = HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])
    sliding = SlidingCalibration(cf, window=200).update(GRAPHS[200:400], worse[200:400])
    old = coverage_score(worse[400:], cf.predict(GRAPHS[400:]))
    new = coverage_score(worse[400:], sliding.filter_.predict(GRAPHS[400:]))
    assert old < 0.7
    assert new > 0.72


def test_sliding_window_refused():
    with pytest.raises(ValueError, match="smallest is 200, but the window holds 10"):
        SlidingCalibration(HardCF(), window=10).update([], [])
    with pytest.raises(ValueError, match="must be a fitted filter"):
        SlidingCalibration(None).update([], [])


# -- release -------------------------------------------------------------------------


def scored(risks, wrong):
    """Problems of one claim each, whose risk is given."""
    cf = HardCF(lambda batch: -batch.features[:, 0], alpha=0.5)
    labels = (~np.asarray(wrong)).astype(int)
    return cf.fit(np.asarray(risks, float)[:, None], labels)


def test_answer_p_values_by_hand():
    cf = HardCF("frequency-score").fit(GRAPHS[:200], Y[:200])
    risks = [row.max() for row in cf.path_risk(GRAPHS)]
    wrong = [(np.asarray(row) != 1).any() for row in Y]
    expected = [
        (1 + sum(wrong[i] and risks[i] <= risk for i in range(200))) / 201
        for risk in risks[200:]
    ]
    found = answer_p_values(cf, GRAPHS[200:])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_released_are_those_of_the_step_up_procedure():
    rng = np.random.default_rng(0)
    cf = scored(rng.random(199), rng.random(199) < 0.4)
    X = rng.random((80, 1)) * 0.8
    for alpha in (0.05, 0.2, 0.5):
        expected = false_discovery_control(answer_p_values(cf, X)) <= alpha * (
            1 + 1e-12
        )
        np.testing.assert_array_equal(release(cf, X, alpha), expected)
    assert release(cf, X, 0.5).any()


def test_release_meets_decimal_levels_exactly():
    """One answer, p = 29/100, alpha = 0.29: 0.29 * 100 is 28.999..."""
    cf = scored(np.arange(99), np.ones(99, dtype=bool))
    assert answer_p_values(cf, [[27.5]])[0] == 0.29
    assert release(cf, [[27.5]], 0.29).all()
    assert not release(cf, [[28.5]], 0.29).any()


def test_release_of_unknown_empty_and_bad():
    cf = HardCF("frequency-score").fit(GRAPHS[:200], Y[:200])
    with pytest.raises(ValueError, match="no problems"):
        release(cf, GRAPHS[:0], 0.1)
    unknown = [np.where(row == 0, -1, row) for row in Y[:200]]
    other = HardCF("frequency-score").fit(GRAPHS[:200], unknown)
    np.testing.assert_array_equal(
        answer_p_values(cf, GRAPHS[200:]), answer_p_values(other, GRAPHS[200:])
    )
    empty = GRAPHS[0].subgraph(np.zeros(GRAPHS[0].n_claims, dtype=bool))
    assert answer_p_values(cf, [GRAPHS[0], empty])[1] == 1 / 201
    with pytest.raises(ValueError, match="alpha is 1"):
        release(cf, GRAPHS, 1)


@pytest.mark.parametrize("decimals", [6, 1], ids=["continuous", "tied"])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_false_discovery_rate(decimals, share):
    """Over 300 draws of calibration and new answers."""
    rng, alpha, found = np.random.default_rng(0), 0.2, []
    powers = []
    for _ in range(300):
        wrong = rng.random(160) < share
        risks = (rng.normal(size=160) + 2 * wrong).round(decimals)
        cf = scored(risks[:100], wrong[:100])
        out = release(cf, risks[100:, None], alpha)
        found.append((out & wrong[100:]).sum() / max(out.sum(), 1))
        powers.append(out[~wrong[100:]].mean())
    error = np.std(found) / np.sqrt(300)
    assert np.mean(found) <= alpha + 2.5 * error
    assert np.mean(powers) > 0.2
