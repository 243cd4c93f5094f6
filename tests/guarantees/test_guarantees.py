"""Filters with every guarantee: all methods agree, and groups are calibrated by themselves."""

import re

import numpy as np
import pytest
from levels import thresholds
from sklearn.base import clone

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning, ParameterWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim

ALPHAS = (0.02, 0.05, 0.1, 0.25, 0.5)


def long_answers(batch):
    return np.where(batch.sizes > 4, "long", "short")


GUARANTEES = [
    NoFalseClaim(by=long_answers, max_false=1, delta=0.2),
    ExpectedFalse(),
    ExpectedFalse(by=long_answers),
]


@pytest.fixture(scope="module")
def data():
    graphs, y = make_reasoning_graphs(400, "felm", random_state=0, return_X_y=True)
    rng = np.random.default_rng(0)
    features = np.array(graphs.features)
    features[:, 0] += rng.normal(size=len(features)) * (rng.random(len(features)) < 0.6)
    return graphs.replace_features(features, graphs.feature_names), y


def flat(rows):
    return np.concatenate(list(rows))


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=["delta", "share", "groups"])
@pytest.mark.parametrize("ties", ["exclude", "jitter"])
def test_all_methods_agree_and_sets_are_nested(data, guarantee, ties):
    graphs, y = data
    cf = HardCF(0, guarantee=guarantee, ties=ties, random_state=0)
    cf.fit(graphs[:250], y[:250])
    new = graphs[250:]
    levels, risk = flat(cf.predict_alpha(new)), flat(cf.path_risk(new))
    masks = np.array([flat(rows) for rows in cf.predict(new, ALPHAS)])
    for i, alpha in enumerate(ALPHAS):
        kept = flat(cf.predict(new, alpha))
        t = thresholds(cf, new, alpha)[new.problem_of]
        margin = flat(cf.decision_function(new, alpha))
        for other in (levels <= alpha, masks[i], risk < t, margin > 0):
            np.testing.assert_array_equal(kept, other)
    assert (masks[1:] >= masks[:-1]).all()
    single = np.concatenate([cf.predict([new[i]])[0] for i in range(30)])
    np.testing.assert_array_equal(single, flat(cf.predict(new))[: len(single)])


def test_groups_of_every_kind_are_calibrated_by_themselves(data):
    graphs, y = data
    group = long_answers(graphs)
    expected = np.empty(100)
    for name in ("long", "short"):
        rows = np.flatnonzero(group[:300] == name)
        alone = HardCF(0).fit(graphs[rows], [y[i] for i in rows])
        expected[group[300:] == name] = alone.threshold_
    named = graphs.replace(metadata=[{"length": g} for g in group])
    for by in (long_answers, "length"):
        cf = HardCF(0, guarantee=NoFalseClaim(by=by)).fit(named[:300], y[:300])
        np.testing.assert_array_equal(thresholds(cf, named[300:]), expected)
        assert np.isnan(cf.threshold_)
    with pytest.raises(ValueError, match=r"guarantee=.*problem"):
        cf.threshold()


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_small_and_unseen_groups_keep_nothing(data):
    graphs, y = data
    names = ["a"] * 300 + ["b"] * 5 + ["c"] * 95
    named = graphs.replace(metadata=[{"g": g} for g in names])
    cf = HardCF(0, guarantee=NoFalseClaim(by="g"))
    with pytest.warns(CalibrationWarning, match=r"'b': 5 calibration.*At least 9"):
        cf.fit(named[:305], y[:305])
    mixed = GraphBatch.from_graphs([*named[305:], *named[:305]])
    with pytest.warns(CalibrationWarning) as caught:
        masks = cf.predict(mixed)
    assert any("95 problems, such as problem 0" in str(w.message) for w in caught)
    kept = [flat(masks[i:j]) for i, j in ((0, 95), (95, 395), (395, 400))]
    assert [mask.any() for mask in kept] == [False, True, False]


@pytest.mark.parametrize(
    ("alpha", "guarantee", "n"),
    [
        (0.1, None, 39),
        (0.1, ExpectedFalse(bound=0.02), 49),
        (0.1, NoFalseClaim(delta=0.01), 44),
    ],
)
def test_enough_problems_are_held_out(data, alpha, guarantee, n):
    graphs, y = data
    cf = CoherentConformalFilter(alpha=alpha, guarantee=guarantee, random_state=0)
    assert cf.fit(graphs[:100], y[:100]).n_calibration_ == n


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        (NoFalseClaim(max_false=-1), "max_false"),
        (NoFalseClaim(delta=1.5), "delta"),
        (NoFalseClaim(by=7), "by"),
        (NoFalseClaim(by=[]), r"400 problems, got 0"),
        (NoFalseClaim(by="colour"), "problem 0.*'colour'"),
        (NoFalseClaim(by="kind"), "problem 399.*group"),
        (NoFalseClaim(by=lambda b: ["a"]), r"400 problems.*1"),
        (NoFalseClaim(by=lambda b: b.sizes > np.median(b.sizes)), "the group"),
        (ExpectedFalse(by=lambda b: np.ones((len(b), 2), bool)), "one group"),
        ("none", "guarantee"),
    ],
)
def test_wrong_settings_are_refused(data, guarantee, message):
    graphs, y = data
    named = graphs.replace(metadata=[{"kind": "a"}] * 399 + [{}])
    with pytest.raises(ValueError, match=message):
        clone(HardCF(0, guarantee=guarantee)).fit(named, y)


def test_a_level_that_may_be_meant_as_a_coverage_is_doubted(data):
    with pytest.warns(ParameterWarning, match=r"0\.9 .*0\.1\?"):
        HardCF(0, alpha=0.9).fit(*data)
    HardCF(0, alpha=0.9, guarantee=ExpectedFalse()).fit(*data)


def test_no_guarantee_with_ties_that_break_it(data):
    with pytest.raises(ValueError, match=r"ties=.*include.*guarantee="):
        HardCF(0, ties="include", guarantee=NoFalseClaim(max_false=1)).fit(*data)


@pytest.mark.filterwarnings("ignore:.*too few")
@pytest.mark.parametrize(("n", "keeps"), [(8, False), (9, True)])
def test_a_mean_loss_keeps_nothing_before_a_new_answer_may_lose_all(n, keeps):
    X = np.linspace(0.1, 0.9, n)[:, None]
    cf = HardCF(0, guarantee=ExpectedFalse()).fit(X, np.zeros(n))
    assert cf.predict([[0.99]]).all() == keeps


def test_the_level_that_a_message_names_is_the_smallest_that_keeps_anything():
    X = np.linspace(0.1, 0.9, 20)[:, None]
    cf = HardCF(0, alpha=0.05, guarantee=NoFalseClaim(delta=0.1))
    with pytest.warns(CalibrationWarning, match="alpha >= ") as record:
        cf.fit(X, np.zeros(20))
    level = float(re.search(r"alpha >= ([\d.]+\d)", str(record[0].message))[1])
    assert cf.calibration_.shortage(level - 1e-4) is not None
    assert cf.calibration_.shortage(level + 1e-4) is None


@pytest.mark.parametrize(
    ("guarantee", "numbers", "population"),
    [
        (NoFalseClaim(max_false=2, by="kind", delta=0.2), ["0.9", "2", "80"], "kind"),
        (NoFalseClaim(show=0.5, max_false=2, delta=0.1), ["10", "2", "90"], "claims"),
        (ExpectedFalse(), ["0.1"], "new answers"),
    ],
)
def test_a_guarantee_states_its_numbers_and_population(guarantee, numbers, population):
    stated = guarantee.describe(0.1)
    assert re.findall(r"[\d.]*\d", stated) == numbers
    assert population in stated


@pytest.mark.parametrize(("more", "said"), [(-1, "too few"), (0, "only 0 of ")])
def test_too_few_answers_or_too_many_ties_are_named(more, said):
    guarantee = NoFalseClaim(show=0.5)
    n = guarantee.problems_needed(0.2) + more
    with pytest.warns(CalibrationWarning, match=said):
        HardCF(0, alpha=0.2, guarantee=guarantee).fit(np.zeros((n, 1)), np.zeros(n))
