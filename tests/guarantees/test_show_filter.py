"""Filters with a share of answers that may pass, at every entry point."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdcf import HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import (
    evaluate_filter,
)
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_rank, passing_count

ALPHA = 0.2


@pytest.fixture(scope="module")
def data():
    """Answers whose risks, of a column with noise, are not tied."""
    graphs, y = make_reasoning_graphs(400, "felm", random_state=0, return_X_y=True)
    features = np.array(graphs.features)
    features[:, 0] += np.random.default_rng(0).normal(size=len(features)) / 10
    return graphs.replace_features(features, graphs.feature_names), list(y)


def fitted(data, show, **more):
    graphs, y = data
    guarantee = NoFalseClaim(show=show)
    return HardCF(0, alpha=ALPHA, guarantee=guarantee, **more).fit(graphs[:99], y[:99])


def lowest_of(filter, graphs):
    return np.array([risk.min() for risk in filter.path_risk(graphs)])


@pytest.mark.parametrize("show", [0.3, 0.6])
def test_masks_are_those_of_a_filter_that_the_passing_answers_calibrate(data, show):
    graphs, y = data
    cf = fitted(data, show)
    lowest = lowest_of(cf, graphs)
    k = passing_count(cf.n_calibration_, show)
    calibrating = np.setdiff1d(np.arange(99), cf.unused_indices_)
    cut = np.sort(lowest[calibrating])[k]
    among = calibrating[lowest[calibrating] < cut]
    scores = cf.calibration_part(graphs[among], [y[i] for i in among]).scores
    threshold = np.sort(scores)[conformal_rank(len(among), ALPHA) - 1]
    new = np.arange(99, 400)
    risks = cf.path_risk(graphs[new])
    for i, risk, mask in zip(new, risks, cf.predict(graphs[new]), strict=True):
        np.testing.assert_array_equal(mask, (lowest[i] < cut) & (risk < threshold))
    levels = cf.predict_alpha(graphs[new])
    margins = cf.decision_function(graphs[new])
    for i, level, margin in zip(new, levels, margins, strict=True):
        assert np.isinf(level).all() == (lowest[i] >= cut)
        assert np.isneginf(margin).all() or lowest[i] < cut
    # Decided one by one the answers get the same masks.
    alone = [cf.predict(graphs[[i]])[0] for i in new[:40]]
    for one, mask in zip(alone, cf.predict(graphs[new[:40]]), strict=True):
        np.testing.assert_array_equal(one, mask)


def test_a_copy_that_comes_out_lower_does_not_pass():
    """It passed, and .211 of what passed was wrong for .1, with a cut that was not lowered."""
    rng = np.random.default_rng(0)
    column = rng.random(99)
    X = [ReasoningGraph([[x]], ()) for x in column]
    y = [np.array([0 if x < 0.5 else 1]) for x in column]
    cf = HardCF(0, alpha=0.1, guarantee=NoFalseClaim(show=0.6)).fit(X, y)
    lowest = -column[np.setdiff1d(np.arange(99), cf.unused_indices_)]
    cut = np.sort(lowest)[passing_count(cf.n_calibration_, 0.6)]
    copy = ReasoningGraph([[-cut + 1e-12]], ())
    assert -(-cut + 1e-12) < cut
    assert np.isinf(cf.predict_alpha([copy])[0]).all()


def test_evaluation_counts_answers_that_pass(data):
    graphs, y = data
    cf = fitted(data, 0.5)
    new, labels = graphs[99:], y[99:]
    lowest = lowest_of(cf, new)
    passing = lowest < cf.calibration_.steps[0].cut
    masks = cf.predict(new)
    wrong = [
        bool((mask & (row != 1)).any()) for mask, row in zip(masks, labels, strict=True)
    ]
    report = evaluate_filter(cf, new, labels, [ALPHA])
    assert report.passing[0] == pytest.approx(passing.mean())
    assert report.coverage[0] == pytest.approx(1 - np.sum(wrong) / passing.sum())
    low, high = report.coverage_band_low[0], report.coverage_band_high[0]
    assert low < report.coverage[0] <= high
    assert "pass" in str(report)


def test_several_answers_to_a_question_weigh_one_before_the_cut(data):
    graphs, y = data
    cf = fitted(data, 0.5)
    new, labels = graphs[99:], y[99:]
    questions = np.repeat(np.arange(101), 3)[: len(new)]
    weights = 1 / np.bincount(questions)[questions]
    passing = lowest_of(cf, new) < cf.calibration_.steps[0].cut
    wrong = np.array(
        [
            (mask & (row != 1)).any()
            for mask, row in zip(cf.predict(new), labels, strict=True)
        ]
    )
    report = evaluate_filter(cf, new, labels, [ALPHA], groups=questions)
    expected = 1 - (weights * wrong).sum() / (weights * passing).sum()
    assert report.coverage[0] == pytest.approx(expected)
    low, high = report.coverage_interval_low[0], report.coverage_interval_high[0]
    assert 0 <= low < expected < high <= 1


def test_too_few_answers_keep_nothing_and_say_how_many_are_needed(data):
    graphs, y = data
    cf = HardCF(0, alpha=0.05, guarantee=NoFalseClaim(show=0.5))
    with pytest.warns(CalibrationWarning, match=r"37 calibration.*38"):
        cf.fit(graphs[:37], y[:37])
    with pytest.warns(CalibrationWarning, match=r"37 calibration.*38"):
        assert not np.concatenate(list(cf.predict(graphs[99:]))).any()


# --- show="auto"


def test_one_share_is_chosen_for_all_groups(data):
    graphs, y = data
    kinds = graphs.replace(metadata=[{"kind": "ab"[i % 2]} for i in range(len(graphs))])
    guarantee = NoFalseClaim(show="auto", by="kind")
    cf = HardCF(0, alpha=ALPHA, guarantee=guarantee, random_state=0)
    cf.fit(kinds[:300], y[:300])
    assert cf.calibration_.guarantee.show == cf.share_
    assert len({steps.cut for steps in cf.calibration_.steps}) == 2


def auto(scorer=0, alpha=ALPHA, **more):
    guarantee = NoFalseClaim(show="auto")
    return HardCF(scorer, alpha=alpha, guarantee=guarantee, random_state=0, **more)


def test_a_scorer_that_learns_nothing_chooses_on_a_fifth_of_the_questions(data):
    graphs, y = data
    cf = auto().fit(graphs[:200], y[:200])
    assert cf.n_calibration_ <= 160
    assert 0.1 <= cf.share_ <= 1
    # Those that chose the share count as training problems.
    with pytest.raises(ValueError, match="40 of 200"):
        cf.calibrate(graphs[:200], y[:200])


def test_the_share_is_that_of_out_of_fold_risks_of_training_problems(data):
    graphs, y = data
    cf = auto(LogisticRegression()).fit(graphs[:250], y[:250])
    shares, passing, wrong = cf.share_table_.T
    rate = (1 + wrong) / (1 + passing)

    def expected(n):
        ranks = [conformal_rank(passing_count(n, c), ALPHA) for c in shares]
        possible = np.array(ranks) > 0
        bound = max(ALPHA, rate[possible].min())
        return shares[possible & (rate <= bound)].max()

    assert cf.share_ == expected(cf.n_calibration_)
    table = cf.share_table_.copy()
    for n in (150, 40, 5):  # chosen again, from the same counts
        cf.calibrate(graphs[250 : 250 + n], y[250 : 250 + n])
        assert cf.share_ == expected(n) == cf.calibration_.guarantee.show
        np.testing.assert_array_equal(cf.share_table_, table)


def test_labels_of_calibration_answers_do_not_choose_the_share(data):
    graphs, y = data
    cf = auto(LogisticRegression()).fit(graphs[:250], y[:250])
    shares = {
        cf.calibrate(graphs[250:], labels).share_
        for labels in (y[250:], [0 * row for row in y[250:]])
    }
    assert len(shares) == 1
