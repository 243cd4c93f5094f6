"""Of the answers that pass, at most alpha contain a false claim: by the definition."""

from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import evaluate_filter
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import NoFalseClaim, PathRisks, choose_share, share_table
from skdcf.ops.conformal import conformal_rank, passing_count

ALPHA = 0.2
HUNDREDTHS = st.integers(1, 100)


@given(st.integers(0, 200), HUNDREDTHS, st.sampled_from(["0.05", "0.1", "0.3"]))
def test_counts_are_those_of_fractions(n, hundredths, alpha):
    share = Fraction(hundredths, 100)
    guarantee = NoFalseClaim(show=float(share))
    rank = [floor(Fraction(alpha) * ceil(share * (m + 1))) for m in range(n + 1)]
    assert passing_count(n, float(share)) == ceil(share * (n + 1)) - 1
    needed = floor((ceil(1 / Fraction(alpha)) - 1) / share)
    assert guarantee.problems_needed(float(alpha)) == needed
    fewest = guarantee.fewest(n, float(alpha))
    assert fewest == (rank.index(rank[n]) if rank[n] else n)


@given(st.data())
def test_the_largest_good_share_is_chosen(data):
    """Of hundredths with a rank: the largest with a rate up to alpha, or with the smallest rate."""
    n, n_calibration = data.draw(st.integers(5, 60)), data.draw(st.integers(10, 90))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    risk = rng.integers(0, data.draw(st.integers(5, 200)), (n, 4)) / 100
    false = rng.random(risk.shape) < 0.3 * risk
    rates = {}
    for hundredths in range(10, 101):
        share = Fraction(hundredths, 100)
        k0 = ceil(share * (n + 1))
        cut = inf if k0 == n + 1 else sorted(risk.min(axis=1))[k0 - 1]
        passing = (risk.min(axis=1) < cut) | (cut == inf)
        wrong = (false & (risk < cut)).any(axis=1) & passing
        if floor(ceil(share * (n_calibration + 1)) / 5) and passing.any():
            rate = Fraction(1 + int(wrong.sum()), 1 + int(passing.sum()))
            rates[hundredths / 100] = rate
    bound = max(Fraction(1, 5), min(rates.values()))
    labels, offsets = 1 - false.ravel(), np.arange(n + 1) * 4
    table = share_table(NoFalseClaim(), PathRisks(risk.ravel(), offsets), labels)
    chosen = choose_share(table, ALPHA, None, [n_calibration])
    assert chosen == max(share for share, rate in rates.items() if rate <= bound)


@pytest.fixture(scope="module")
def data():
    """Answers whose risks, of a column with noise, are not tied."""
    graphs, y = make_reasoning_graphs(400, "felm", random_state=0, return_X_y=True)
    features = np.array(graphs.features)
    features[:, 0] += np.random.default_rng(0).normal(size=len(features)) / 10
    return graphs.replace_features(features, graphs.feature_names), list(y)


def make(show, scorer=0, alpha=ALPHA, **more):
    guarantee = NoFalseClaim(show=show, **more)
    return HardCF(scorer, alpha=alpha, guarantee=guarantee, random_state=0)


@pytest.mark.parametrize("show", [0.3, 0.6])
def test_masks_are_those_of_a_filter_that_the_passing_answers_calibrate(data, show):
    graphs, y = data
    cf = make(show).fit(graphs[:99], y[:99])
    lowest = np.array([risk.min() for risk in cf.path_risk(graphs)])
    calibrating = np.setdiff1d(np.arange(99), cf.unused_indices_)
    cut = np.sort(lowest[calibrating])[passing_count(len(calibrating), show)]
    among = calibrating[lowest[calibrating] < cut]
    scores = cf.calibration_part(graphs[among], [y[i] for i in among]).scores
    threshold = np.sort(scores)[conformal_rank(len(among), ALPHA) - 1]
    new = graphs[99:]
    wrong = []
    rows = zip(cf.predict(new), cf.path_risk(new), cf.predict_alpha(new), strict=True)
    for i, (mask, risk, level) in enumerate(rows, 99):
        np.testing.assert_array_equal(mask, (lowest[i] < cut) & (risk < threshold))
        assert np.isinf(level).all() == (lowest[i] >= cut)
        wrong.append((mask & (y[i] == 0)).any())
    passing = lowest[99:] < cut
    questions = np.repeat(np.arange(101), 3)[:301]
    for groups in (None, questions):
        report = evaluate_filter(cf, new, y[99:], [ALPHA], groups=groups)
        weight = 1 if groups is None else 1 / np.bincount(groups)[groups]
        share = np.sum(weight * np.array(wrong)) / np.sum(weight * passing)
        assert report.coverage[0] == pytest.approx(1 - share)


def test_a_copy_with_a_slightly_lower_risk_does_not_pass():
    """With a cut that was not lowered, .211 of what passed was wrong for .1."""
    column = np.random.default_rng(0).random((99, 1))
    cf = make(0.6, alpha=0.1).fit(column, column[:, 0] > 0.5)
    lowest = -column[np.setdiff1d(np.arange(99), cf.unused_indices_), 0]
    cut = np.sort(lowest)[passing_count(cf.n_calibration_, 0.6)]
    assert np.isinf(cf.predict_alpha([[-cut + 1e-12]])).all()


def test_too_few_answers_keep_nothing_and_say_how_many_are_needed(data):
    graphs, y = data
    with pytest.warns(CalibrationWarning, match=r"37 calibration.*38"):
        cf = make(0.5, alpha=0.05).fit(graphs[:37], y[:37])
    with pytest.warns(CalibrationWarning, match=r"37 calibration.*38"):
        assert not np.concatenate(list(cf.predict(graphs[99:]))).any()


def test_one_share_is_chosen_for_all_groups(data):
    graphs, y = data
    kinds = graphs.replace(metadata=[{"kind": "ab"[i % 2]} for i in range(400)])
    cf = make("auto", by="kind").fit(kinds[:300], y[:300])
    assert cf.calibration_.guarantee.show == cf.share_
    assert len({steps.cut for steps in cf.calibration_.steps}) == 2


def test_a_share_that_is_set_after_fit_replaces_the_chosen_one(data):
    graphs, y = data
    cf = make("auto").fit(graphs[:200], y[:200])
    for share in (0.4, 1):
        cf.set_params(guarantee=NoFalseClaim(show=share)).calibrate(
            graphs[200:], y[200:]
        )
        assert cf.calibration_.guarantee.show == share
        assert cf.share_ is None
    other = make(0.4).fit(graphs[:200], y[:200])
    other.set_params(guarantee=NoFalseClaim(show="auto"))
    with pytest.raises(ValueError, match=r"auto.*fit"):
        other.calibrate(graphs[200:], y[200:])


def test_a_scorer_that_learns_nothing_chooses_on_a_fifth_of_the_questions(data):
    graphs, y = data
    cf = make("auto").fit(graphs[:200], y[:200])
    assert cf.n_calibration_ <= 160
    # Those that chose the share count as training problems.
    with pytest.raises(ValueError, match="40 of 200"):
        cf.calibrate(graphs[:200], y[:200])


def test_the_share_is_that_of_training_problems_and_of_no_calibration_label(data):
    graphs, y = data
    cf = make("auto", LogisticRegression()).fit(graphs[:250], y[:250])
    table = cf.share_table_.copy()
    for n in (150, 40, 5):  # chosen again, from the same counts
        for labels in (y[250 : 250 + n], [0 * row for row in y[250 : 250 + n]]):
            cf.calibrate(graphs[250 : 250 + n], labels)
            expected = choose_share(table, ALPHA, None, [n])
            assert cf.share_ == expected == cf.calibration_.guarantee.show
            np.testing.assert_array_equal(cf.share_table_, table)
