"""What filters promise, against brute force, whole numbers and the plain definitions."""

import re
import warnings
from fractions import Fraction
from math import comb, inf

import numpy as np
import pytest
from levels import fit_levels, thresholds
from one_claim import one_claim_each
from sklearn.base import clone

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import (
    evaluate_filter,
)
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.ops.conformal import conformal_rank
from skdcf.uses import flat_masks

ALPHAS = (0.02, 0.05, 0.1, 0.25, 0.5)


def long_answers(batch):
    return np.where(batch.sizes > 4, "long", "short")


GUARANTEES = {
    "today": NoFalseClaim(),
    "two": NoFalseClaim(max_false=2),
    "delta": NoFalseClaim(delta=0.1),
    "by": NoFalseClaim(by=long_answers),
    "by and delta": NoFalseClaim(max_false=1, delta=0.2, by=long_answers),
    "share": ExpectedFalse(),
    "share, by": ExpectedFalse(by=long_answers),
}


@pytest.fixture(scope="module")
def data():
    graphs, y = make_reasoning_graphs(400, "felm", random_state=0, return_X_y=True)
    rng = np.random.default_rng(0)
    features = np.array(graphs.features)
    features[:, 0] += rng.normal(size=len(features)) * (rng.random(len(features)) < 0.6)
    return graphs.replace_features(features, graphs.feature_names), y


def flat(rows):
    return np.concatenate(list(rows))


def quiet(filter, *args):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return filter(*args)


# --- the rank, with delta


def binomial_tail(n, k, alpha):
    """P(Binomial(n, alpha) < k), in whole numbers."""
    terms = (comb(n, j) * alpha**j * (1 - alpha) ** (n - j) for j in range(k))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("delta", ["0.5", "0.25", "0.1", "0.05", "0.01", "0.001"])
def test_rank_with_delta_is_that_of_whole_numbers(delta):
    exact = Fraction(delta)
    for n in (*range(1, 31), 59, 100):
        for alpha in ("0.005", "0.01", "0.05", "0.1", "0.25", "0.5", "0.75", "0.9"):
            k = 0
            while k < n and binomial_tail(n, k + 1, Fraction(alpha)) <= exact:
                k += 1
            assert conformal_rank(n, float(alpha), float(delta)) == k, (n, alpha)


# --- filters


@pytest.mark.parametrize("name", GUARANTEES)
@pytest.mark.parametrize("ties", ["exclude", "jitter"])
def test_one_statement_in_many_forms(data, name, ties):
    """predict, predict_alpha, masks, thresholds, decision_function agree; nested sets."""
    graphs, y = data
    cf = HardCF(0, guarantee=GUARANTEES[name], ties=ties, random_state=0)
    cf = quiet(cf.fit, graphs[:250], y[:250])
    new = graphs[250:]
    levels, risk = flat(cf.predict_alpha(new)), flat(cf.path_risk(new))
    masks = flat_masks(cf, new, ALPHAS)
    for i, alpha in enumerate(ALPHAS):
        kept = flat(quiet(cf.predict, new, alpha))
        np.testing.assert_array_equal(kept, levels <= alpha)
        np.testing.assert_array_equal(kept, masks[i])
        t = quiet(thresholds, cf, new, alpha)
        np.testing.assert_array_equal(kept, risk < t[new.problem_of])
    assert (masks[1:] >= masks[:-1]).all()
    np.testing.assert_array_equal(
        flat(cf.decision_function(new)) > 0, flat(cf.predict(new))
    )
    single = np.concatenate([cf.predict([new[i]])[0] for i in range(30)])
    np.testing.assert_array_equal(single, flat(cf.predict(new))[: len(single)])


def test_groups_are_calibrated_by_themselves(data):
    graphs, y = data
    by = NoFalseClaim(by=long_answers)
    cf = HardCF(0, guarantee=by).fit(graphs[:300], y[:300])
    group = long_answers(graphs)
    for name in ("long", "short"):
        rows = np.flatnonzero(group[:300] == name)
        alone = HardCF(0).fit(graphs[rows], [y[i] for i in rows])
        new = 300 + np.flatnonzero(group[300:] == name)
        assert set(thresholds(cf, graphs[new])) == {alone.threshold_}
    with pytest.raises(ValueError, match=r"guarantee=.*problem"):
        cf.threshold()
    assert np.isnan(cf.threshold_)


def test_groups_come_from_metadata_features_and_functions(data):
    graphs, y = data
    group = long_answers(graphs)
    named = graphs.replace(metadata=[{"length": g} for g in group])
    features = np.c_[graphs.features, (group == "long")[graphs.problem_of]]
    column = named.replace_features(features, [*graphs.feature_names, "is_long"])
    expected = HardCF(0, guarantee=NoFalseClaim(by=long_answers))
    expected = thresholds(expected.fit(graphs[:300], y[:300]), graphs[300:])
    for by, some in (("length", named), ("is_long", column), ("length", list(named))):
        cf = HardCF(0, guarantee=NoFalseClaim(by=by)).fit(some[:300], y[:300])
        np.testing.assert_array_equal(thresholds(cf, some[300:]), expected)
    wrong = {
        "colour": "by='colour'.*neither",
        graphs.feature_names[0]: "the same value of the feature",
    }
    for by, message in wrong.items():
        with pytest.raises(ValueError, match=message):
            HardCF(0, guarantee=NoFalseClaim(by=by)).fit(named, y)
    unknown = named.replace(metadata=[{"length": "long"}] * 399 + [{}])
    with pytest.raises(ValueError, match=r"problem 399.*group"):
        HardCF(0, guarantee=NoFalseClaim(by="length")).fit(unknown, y)


def test_small_and_unseen_groups(data):
    graphs, y = data
    names = np.array(["a"] * 300 + ["b"] * 5 + ["c"] * 95)
    named = graphs.replace(metadata=[{"g": g} for g in names])
    cf = HardCF(0, guarantee=NoFalseClaim(by="g"))
    with pytest.warns(
        CalibrationWarning, match=r"group 'b': 5 calibration.*At least 9"
    ):
        cf.fit(named[:305], y[:305])
    with pytest.warns(CalibrationWarning):
        kept = cf.predict(named[:305])
    assert not flat(kept[300:]).any() and flat(kept[:300]).any()
    for method in (cf.predict, cf.predict_alpha, cf.decision_function):
        with pytest.warns(CalibrationWarning) as record:
            method(named[np.r_[298:300, 305:400]])
        said = re.compile(r"in 95 problems, such as problem 2, whose group 'c'")
        assert any(said.search(str(one.message)) for one in record)
    mixed = quiet(cf.predict, GraphBatch.from_graphs([*named[305:], *named[:300]]))
    assert not flat(mixed[:95]).any()
    np.testing.assert_array_equal(flat(mixed[95:]), flat(kept[:300]))
    assert set(flat(quiet(cf.predict_alpha, named[305:]))) == {inf}
    report = quiet(evaluate_filter, cf, named[305:], y[305:], [0.1])
    assert report.coverage == 1 and report.shown == 0


def test_a_bound_says_how_many_calibrate_and_what_is_trained_for(data):
    """Sized for alpha = 0.1, 39 of 100 calibrated, and a bound of 0.02 needs 49."""
    graphs, y = data
    filters = [
        CoherentConformalFilter(alpha=alpha, guarantee=guarantee, random_state=0)
        for alpha, guarantee in (
            (0.1, ExpectedFalse(bound=0.02)),
            (0.02, ExpectedFalse()),
        )
    ]
    by_bound, by_alpha = (cf.fit(graphs[:100], y[:100]) for cf in filters)
    assert by_bound.n_calibration_ == by_alpha.n_calibration_ == 49
    assert by_bound.threshold_ == by_alpha.threshold_
    kept = by_bound.predict(graphs[100:])
    assert all(map(np.array_equal, kept, by_alpha.predict(graphs[100:])))
    assert sum(mask.sum() for mask in kept) > 0


def test_bound_is_the_level_where_it_is_given(data):
    graphs, y = data
    fixed = HardCF(0, guarantee=ExpectedFalse(bound=0.03)).fit(graphs[:300], y[:300])
    free = HardCF(0, guarantee=ExpectedFalse()).fit(graphs[:300], y[:300])
    new = graphs[300:]
    np.testing.assert_array_equal(
        flat(fixed.predict(new)), flat(free.predict(new, alpha=0.03))
    )
    np.testing.assert_array_equal(
        flat(fixed.predict(new, 0.2)), flat(free.predict(new, 0.2))
    )
    two = fit_levels(clone(fixed), graphs[:300], y[:300], [0.05, 0.1])
    assert two[0.05].threshold_ == free.threshold(0.05)
    assert two[0.1].threshold_ == free.threshold(0.1)


def test_enough_problems_are_held_out_for_delta(data):
    graphs, y = data
    for guarantee, n in ((None, 39), (NoFalseClaim(delta=0.01), 44)):
        cf = CoherentConformalFilter("linear", guarantee=guarantee, random_state=0)
        assert cf.fit(graphs[:100], y[:100]).n_calibration_ == n


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        (NoFalseClaim(max_false=-1), "max_false"),
        (NoFalseClaim(max_false=True), "max_false"),
        (NoFalseClaim(delta=1.5), "delta"),
        (NoFalseClaim(by=7), "by"),
        (NoFalseClaim(by=[]), "at least one entry"),
        (ExpectedFalse(bound=0), "bound"),
        (ExpectedFalse(bound=2.0), "bound"),
        (NoFalseClaim(by=lambda b: ["a"]), r"400 problems.*1"),
        (ExpectedFalse(by=lambda b: np.ones((len(b), 2), bool)), "one group"),
        ("none", "guarantee"),
        (NoFalseClaim, "guarantee"),
    ],
)
def test_wrong_settings_are_refused(data, guarantee, message):
    with pytest.raises(ValueError, match=message):
        HardCF(0, guarantee=guarantee).fit(*data)


def test_no_guarantee_with_ties_that_break_it(data):
    with pytest.raises(ValueError, match=r"ties=.*include.*guarantee="):
        HardCF(0, ties="include", guarantee=NoFalseClaim(max_false=1)).fit(*data)


@pytest.mark.parametrize(("n", "keeps"), [(8, False), (9, True)])
def test_a_mean_loss_keeps_nothing_before_a_new_answer_may_lose_all(n, keeps):
    """Of n answers none is wrong before the first step, and the new one counts as lost."""
    X = one_claim_each(np.linspace(0.1, 0.9, n))
    cf = HardCF(0, guarantee=ExpectedFalse(bound=0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing can be kept
        cf.fit(X, [[0]] * n)
        assert (cf.threshold_ > -np.inf) == keeps
        assert cf.predict(one_claim_each([0.99]))[0].all() == keeps


@pytest.mark.parametrize("n", [5, 20])
def test_the_level_that_a_message_names_is_the_smallest_that_keeps_anything(n):
    X = one_claim_each(np.linspace(0.1, 0.9, n))
    cf = HardCF(0, alpha=0.05, guarantee=NoFalseClaim(delta=0.1))
    with pytest.warns(CalibrationWarning, match="alpha >= ") as record:
        cf.fit(X, [[0]] * n)
    level = float(re.search(r"alpha >= ([\d.]+\d)", str(record[0].message))[1])
    assert cf.calibration_.shortage(level - 1e-4) is not None
    assert cf.calibration_.shortage(level + 1e-4) is None
