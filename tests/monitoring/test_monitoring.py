"""Monitors against brute force, exact enumeration and simulation."""

import itertools
from math import log2, prod

import numpy as np
import pytest
from one_claim import one_claim_each
from scipy.stats import binom, kstest, norm
from sklearn.exceptions import NotFittedError

import skdcf
from skdcf import GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.monitoring import CoverageMonitor, ExchangeabilityTest
from skdcf.ops.conformal import conformal_rank
from skdcf.ops.mean_bound import largest_mean

GRAPHS, Y = make_reasoning_graphs(600, random_state=2, return_X_y=True)


# -- the coverage monitor ------------------------------------------------------------

RNG = np.random.default_rng(7)


def table(scores):
    """Problems of one false claim each, with these nonconformity scores."""
    return -np.asarray(scores, dtype=float)[:, None], np.zeros(len(scores), dtype=int)


def calibrated(scores, alpha=0.1):
    return HardCF(0, alpha=alpha).fit(*table(scores))


def scores_of(errors):
    """Scores in no order that lie below, or above, those of `calibrated`, and no copies."""
    return np.where(errors, -2.0, 2.0) + RNG.random(len(errors)) / 4


def watch(monitor, errors, block=None):
    """Take in errors; in blocks, else one by one, so that their order is kept."""
    X, y = table(scores_of(np.asarray(errors, dtype=bool)))
    for a in range(0, len(y), block or 1):
        monitor.update(X[a : a + (block or 1)], y[a : a + (block or 1)])
    return monitor


def reference_wealth(errors, chances):
    """What each bet makes from each start, summed up."""

    def waiting(t):
        return 1 / log2(2 + t / 100)

    out = []
    for t in range(1, len(errors) + 1):
        wealth = waiting(t)
        for start, c in itertools.product(range(t), (1.25, 1.5, 2, 3, 5)):
            stake = (waiting(start) - waiting(start + 1)) / 5
            factors = (
                (c if errors[i] else 1) / (1 - chances[i] + c * chances[i])
                for i in range(start, t)
            )
            wealth += stake * prod(factors)
        out.append(wealth)
    return out


def test_wealth_is_that_of_all_bets():
    errors = np.random.default_rng(0).random(40) < 0.3
    cf = calibrated(RNG.random(29), alpha=0.2)
    monitor = watch(CoverageMonitor().fit(cf), errors)
    n, k = cf.n_calibration_, conformal_rank(cf.n_calibration_, 0.2)
    before = np.append(0, np.cumsum(errors)[:-1])
    chances = [(k + e) / (n + t) for t, e in enumerate(before, start=1)]
    expected = reference_wealth(errors, chances)
    np.testing.assert_allclose(np.exp(monitor.log_wealth_), expected, rtol=1e-10)


def test_the_order_of_answers_in_an_update_has_no_effect():
    """Errors first gave false alarms in .99 of the streams."""
    cf = calibrated(RNG.random(99))
    X, y = table(np.sort(scores_of(RNG.random(200) < 0.1)))
    first, last = (
        CoverageMonitor().fit(cf).update(X[order], y)
        for order in (np.arange(200), np.arange(200)[::-1])
    )
    np.testing.assert_array_equal(first.log_wealth_, last.log_wealth_)
    again = first.update(X, y)
    assert (again.n_repeated_, len(again.log_wealth_)) == (200, 200)


def test_lost_coverage_is_found_and_the_alarm_stays():
    rng = np.random.default_rng(0)
    cf = calibrated(RNG.random(499))
    monitor = watch(CoverageMonitor().fit(cf), rng.random(500) < 0.1, block=100)
    assert not monitor.alarm and monitor.alarm_at is None
    watch(monitor, rng.random(800) < 0.2, block=100)
    assert 500 < monitor.alarm_at < 1300
    at = monitor.alarm_at
    watch(monitor, np.zeros(3000), block=1000)
    assert monitor.alarm and monitor.alarm_at == at and monitor.p_value <= 0.05
    cf.calibrate(*table(RNG.random(99)))  # which changes nothing
    watch(monitor, np.ones(50), block=50)
    assert monitor.games_[0]["n"] == 499 and monitor.alarm_at == at
    assert monitor.summary()["n_problems"] == 4350
    assert not monitor.fit(cf).alarm and monitor.summary()["n_problems"] == 0


def test_one_answer_of_a_question_counts():
    X, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.2).fit(GRAPHS[:200], Y[:200])
    monitor = CoverageMonitor().fit(cf).update(X, y, groups=np.arange(60) // 3)
    assert monitor.summary()["n_problems"] == 20 and monitor.n_repeated_ == 40
    monitor.update(X[:3], y[:3], groups=np.zeros(3))
    assert monitor.summary()["n_problems"] == 20
    monitor.update(GRAPHS[:200], Y[:200])  # they calibrated
    assert monitor.summary()["n_problems"] <= 21
    many = np.random.default_rng(0).integers(3, size=(500, 1)).astype(float)
    usual = CoverageMonitor().fit(
        HardCF(0).fit(many[:200], many[:200, 0] > 0)
    )  # copies
    usual.update(many[200:], many[200:, 0] > 0)
    assert usual.summary()["n_problems"] == 300


def test_a_filter_that_cannot_be_watched_is_refused():
    X, y = table(RNG.random(99))
    with pytest.raises(ValueError, match="include"):
        CoverageMonitor().fit(HardCF(0, ties="include").fit(X, y))
    with pytest.warns(CalibrationWarning):
        few = HardCF(0, alpha=0.01).fit(X[:20], y[:20])
    with pytest.raises(ValueError, match=r"keeps.*alpha"):
        CoverageMonitor().fit(few)
    for monitor in (CoverageMonitor(), ExchangeabilityTest()):
        with pytest.raises(NotFittedError, match="HardCF"):
            monitor.fit(HardCF())
        with pytest.raises(ValueError, match="delta"):
            monitor.set_params(delta=0).fit(calibrated(RNG.random(99)))
    with pytest.raises(ValueError, match=r"losses.*-1"):
        CoverageMonitor().fit(calibrated(RNG.random(99))).update_losses([-1])


# -- means and groups: every guarantee is watched by its own quantity -----------------


def answers(n, rng, false=0.3):
    """Answers of four claims; the second column names the group."""
    risk = rng.random(4 * n)
    X = np.column_stack([-risk, np.repeat(rng.integers(2, size=n), 4)])
    y = (rng.random(4 * n) >= false * risk).astype(int)
    offsets = np.arange(0, 4 * n + 1, 4)
    return GraphBatch.from_arrays(X, offsets, ()), y


def of_group(batch):
    return batch.features[batch.offsets[:-1], 1] > 0


WATCHED = [
    NoFalseClaim(),
    NoFalseClaim(max_false=1),
    NoFalseClaim(delta=0.05),
    NoFalseClaim(by=of_group),
    ExpectedFalse(),
    ExpectedFalse(by=of_group),
    NoFalseClaim(show=0.6),
    ExpectedFalse(show=0.6),
]


@pytest.mark.parametrize("guarantee", WATCHED, ids=[*map(str, range(len(WATCHED)))])
def test_every_guarantee_is_watched_by_its_own_quantity(guarantee):
    """60 answers that were wholly false counted as none, without an alarm."""
    rng = np.random.default_rng(5)
    cf = HardCF(0, alpha=0.2, guarantee=guarantee).fit(*answers(300, rng))
    monitor = CoverageMonitor().fit(cf)
    X, y = answers(300, rng)
    assert not monitor.update(X, y).alarm
    masks = cf.predict(X)
    losses = guarantee.loss(y, np.concatenate(masks), X.offsets).astype(float)
    passes = np.ones(300, bool)
    if guarantee.show != 1:
        lowest = -X.features[:, 0].reshape(-1, 4).max(axis=1)
        passes = lowest < cf.calibration_.steps[0].cut
    assert passes.mean() > 0.5
    summary = monitor.summary()
    assert summary["n_problems"] == passes.sum()
    assert summary["mean_loss"] == pytest.approx(losses[passes].mean(), abs=1e-12)

    # The same stream, told as outcomes, one group after the other as `update` has it.
    told = CoverageMonitor().fit(cf)
    one_by_one = CoverageMonitor().fit(cf)
    group = of_group(X) if guarantee.by else np.full(300, None)
    for i in np.flatnonzero(passes)[:60]:
        told.update_losses(losses[i : i + 1], group[i])
        one_by_one.update(X[i : i + 1], y[X.offsets[i] : X.offsets[i + 1]])
    np.testing.assert_allclose(told.log_wealth_, one_by_one.log_wealth_)
    told, one_by_one = told.summary(), one_by_one.summary()
    assert told == pytest.approx(one_by_one)

    X, _ = answers(60, rng)
    wrong = monitor.update(X, np.zeros(240, int))
    assert wrong.alarm and wrong.alarm_at > passes.sum()


@pytest.mark.parametrize("luck", [0.2, 0.02])
@pytest.mark.parametrize("n", [5, 40])
def test_the_mean_of_losses_is_seldom_above_its_bound(n, luck):
    """Exact for losses 0 and 1, and by simulation for shares."""
    for total in range(n + 1):
        mean = largest_mean(total, n, luck)
        assert mean >= total / n
        if mean < 1:
            assert binom.cdf(total, n, mean) <= luck + 1e-9
    for total in np.linspace(n - 1, n, 300):
        assert total / n <= largest_mean(total, n, luck) <= 1
    rng = np.random.default_rng(0)
    for a, b in ((0.2, 1.8), (2, 2), (5, 1)):
        totals = rng.beta(a, b, size=(4000, n)).sum(axis=1)
        bounds = np.array([largest_mean(t, n, luck) for t in totals[:500]])
        assert (bounds < a / (a + b)).mean() <= luck


def test_a_saved_monitor_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    cf = HardCF(0, alpha=0.2).fit(repeated(rng, 60, 1, "old"), [[0]] * 60)
    new = repeated(rng, 50, 2, "new")
    whole = CoverageMonitor().fit(cf).update(new[:50], [[0]] * 50)
    saved = skdcf.load(skdcf.save(whole, tmp_path / "monitor.skops"))
    for monitor in (whole, saved):
        monitor.update(new[30:80], [[0]] * 50)
    np.testing.assert_array_equal(saved.log_wealth_, whole.log_wealth_)
    assert len(whole.log_wealth_) == 40


# -- exchangeability -----------------------------------------------------------------


@pytest.mark.parametrize("cuts", [[], [1], [0, 5, 5, 300]])
def test_p_values_are_ranks_however_the_stream_is_cut(cuts):
    rng = np.random.default_rng(4)
    values = rng.integers(6, size=700).astype(float)  # many ties
    cf = HardCF(0).fit(-values[:19, None], np.ones(19, int))
    values[:19] = cf.max_path_risks_
    test = ExchangeabilityTest(random_state=0).fit(cf)
    state = np.random.RandomState()
    state.set_state(test.rng_.get_state())
    ranks = [
        (np.sum(values[:i] < values[i]) + u * (1 + np.sum(values[:i] == values[i])))
        / (i + 1)
        for i, u in enumerate(state.random_sample(681), start=19)
    ]
    found = []
    for a, b in itertools.pairwise([19, *(c + 19 for c in cuts), 700]):
        found.extend(test._p_values(values[a:b]))
    np.testing.assert_allclose(found, ranks, rtol=1e-12)
    assert kstest(found, "uniform").pvalue > 1e-3
    one = ExchangeabilityTest(random_state=0).fit(cf).update(-values[19:, None])
    other = ExchangeabilityTest(random_state=0).fit(cf)
    for a, b in itertools.pairwise([19, *(c + 19 for c in cuts), 700]):
        other.update(-values[a:b, None]) if b > a else None
    np.testing.assert_array_equal(one.log_wealth_, other.log_wealth_)


def repeated(rng, n_questions, n_answers, name, single=False):
    """Near copies of an answer to each question, one after the other."""
    question = np.repeat(np.arange(n_questions), n_answers)
    risk = rng.normal(size=n_questions)[question] + 1e-3 * rng.random(len(question))
    if single:
        risk = (np.round(norm.cdf(risk) * 5) / 5).astype(np.float32).astype(float)
    return one_claim_each(-risk, problems=[f"{name} {i}?" for i in question])


def test_questions_that_calibrated_or_came_before_are_left_out():
    rng = np.random.default_rng(0)
    old = repeated(rng, 60, 1, "old")
    cf = HardCF(0, alpha=0.2).fit(old, [[0]] * 60)
    test = ExchangeabilityTest(random_state=0).fit(cf)
    new = repeated(rng, 50, 2, "new")
    test.update(new[:30]).update(new[20:]).update(old)
    n_left_over = 60 - cf.n_calibration_
    assert len(test.log_wealth_) == 50 + n_left_over
    whole = ExchangeabilityTest(random_state=0).fit(cf).update(new)
    np.testing.assert_array_equal(whole.log_wealth_, test.log_wealth_[:50])
    named = ExchangeabilityTest(random_state=0).fit(cf)
    named.update(new, groups=["one question"] * 100)
    assert len(named.log_wealth_) == 1


def test_a_question_that_calibrated_under_a_name_is_known_by_its_text():
    rng = np.random.default_rng(0)
    old = repeated(rng, 60, 1, "old")
    names = [f"name {i}" for i in range(60)]
    cf = HardCF(0, alpha=0.2).fit(old, [[0]] * 60, groups=names)
    other = repeated(rng, 60, 1, "old")  # other answers to the same questions
    test = ExchangeabilityTest(random_state=0).fit(cf).update(other)
    assert test.n_repeated_ == cf.n_calibration_
    monitor = CoverageMonitor().fit(cf).update(other, [[0]] * 60)
    assert monitor.n_repeated_ == cf.n_calibration_


def test_risks_of_float32_columns_are_compared_as_they_calibrated():
    """In use they are raised by 1e-5, and each seemed larger than its equals of before."""
    rng = np.random.default_rng(0)
    old = repeated(rng, 100, 1, "old", single=True)
    cf = HardCF(0, alpha=0.2).fit(old, [[0]] * 100)
    before = cf.max_path_risks_
    raised = np.concatenate(list(cf.path_risk(old)))
    assert np.isin(raised, before).mean() < 0.3  # 0 and 1 are round, and are not raised
    test = ExchangeabilityTest(random_state=0).fit(cf)
    test.update(repeated(rng, 50, 1, "new", single=True))
    assert np.isin(test.seen_, before).all()
