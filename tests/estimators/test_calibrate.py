"""Which answers calibrate a filter, and which are refused, left out or too few."""

import warnings
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.base import clone

from skdcf import HardCF, ReasoningGraph, problems_needed
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.ops.conformal import conformal_rank
from skdcf.scorers import ClassifierScorer
from skdcf.uses import seen

GRAPHS, Y = make_reasoning_graphs(300, random_state=1, return_X_y=True)
KNOWN = make_reasoning_graphs(120, random_state=2, return_X_y=True)


@pytest.mark.parametrize(
    "cf",
    [
        HardCF(ties="jitter", random_state=3),
        HardCF(ClassifierScorer(), ties="include", random_state=0),
    ],
    ids=str,
)
def test_parts_are_the_whole(cf):
    """To rounding: how closely a scorer repeats itself is measured in each part."""
    slices = [slice(start, start + 90) for start in range(0, 300, 90)]
    cf = clone(cf).fit(*KNOWN)
    cf.calibrate_parts([cf.calibration_part(GRAPHS[own], Y[own]) for own in slices])
    scores, unused = cf.nonconformity_scores_, cf.unused_indices_
    masks = [mask for own in slices for mask in cf.predict(GRAPHS[own])]
    cf.calibrate(GRAPHS, Y)
    np.testing.assert_allclose(scores, cf.nonconformity_scores_, rtol=1e-7, atol=1e-9)
    assert len(scores) == 299  # of rank 30, like 300
    np.testing.assert_array_equal(unused, cf.unused_indices_)
    assert all(map(np.array_equal, masks, cf.predict(GRAPHS)))
    with pytest.raises(ValueError, match=r"parts.*least one"):
        cf.calibrate_parts([])


def closed_over(n):
    """A function with a number in a long array, of which its text form shows the ends."""
    array = np.r_[np.zeros(2000), n, np.zeros(2000)].astype(int)

    def chain_or_size(answer, problem=None):
        if isinstance(answer, list):
            return [(v - 1, v) for v in range(1, min(len(answer), array[2000]))]
        return 1.0 + (answer.sizes > array[2000])

    return chain_or_size


class Unpicklable:
    """A callable object, which can only be compared as an object."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*arguments)

    def __reduce__(self):
        raise TypeError


@pytest.mark.parametrize("name", ["edges", "edges as an object", "by"])
def test_parts_of_other_functions_are_refused(name):
    texts = [
        g.replace(claims=[f"{i} {v}" for v in range(g.n_claims)])
        for i, g in enumerate(GRAPHS)
    ]

    def change(n):
        if name == "edges":
            return {"edges": closed_over(n)}
        if name == "edges as an object":
            return {"edges": Unpicklable(closed_over(n))}
        return {"guarantee": NoFalseClaim(by=closed_over(n))}

    one, other = (
        HardCF("frequency-score", **change(n)).fit(texts[:150], Y[:150]) for n in (4, 5)
    )
    part = one.calibration_part(texts[150:], Y[150:])
    one.calibrate_parts([part])
    setting = name.split()[0]
    with pytest.raises(ValueError, match=setting):
        other.calibrate_parts([part])
    one.set_params(**change(5))
    with pytest.raises(ValueError, match=rf"{setting}.*calibrate.*fit again"):
        one.predict(texts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": "none"}, "edges .*'given'.*'none'"),
        ({"ties": "jitter"}, "ties "),
        ({"online": True}, "online .*False"),
    ],
)
def test_parts_of_other_settings_are_refused(change, message):
    part = HardCF("frequency-score").fit(*KNOWN).calibration_part(GRAPHS, Y)
    other = HardCF("frequency-score", **change).fit(*KNOWN)
    with pytest.raises(ValueError, match=message):
        other.calibrate_parts([part])


def test_one_answer_to_each_question_calibrates_in_each_group():
    rng = np.random.default_rng(0)
    names = np.repeat(np.arange(40), 3)
    kinds = [{"kind": "ab"[i % 2]} for i in names]
    X = one_claim_each(rng.random(120), metadata=kinds)
    y = (rng.random((120, 1)) < 0.6).astype(int).tolist()
    by = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="kind"))
    by.fit(X, y, groups=names)
    # floor(.2 * 20) is 4, and so it is for all 20 questions
    assert [steps.n for steps in by.calibration_.steps] == [19, 19]
    assert len(by.unused_indices_) == 2


# ------------------------------------------------------------------ questions


def answers(n, start=0, text="question {}", key=None, seed=0):
    """One answer to each of n questions, with a text, a key, or both."""
    rng = np.random.default_rng(seed)
    graphs = [
        ReasoningGraph(
            rng.normal(size=(2, 3)),
            (),
            problem=text and text.format(i),
            metadata=None if key is None else {"group": key(i)},
        )
        for i in range(start, start + n)
    ]
    return graphs, [[1, int(rng.uniform() < 0.6)] for _ in range(n)]


NAMES = np.arange(60)
# How a question is identified in training, and where it is to calibrate.
IDENTIFIED = {
    "by key, then by text": ({"key": str}, None, {}, None),
    "by text, then by key": ({}, None, {"key": str}, None),
    "by text, then by groups=": ({}, None, {}, NAMES),
    "by groups=, then by text": ({}, NAMES, {}, None),
    "7, then '7'": ({"key": int, "text": None}, None, {"key": str, "text": None}, None),
    "'7', then 7.0": ({"key": str, "text": None}, None, {"text": None}, NAMES * 1.0),
    "by text, then each by itself": ({}, None, {}, False),
    "each by itself, then by text": ({}, False, {}, None),
    "one key, two texts": ({"key": str}, None, {"key": str, "text": "no {}"}, None),
}


@pytest.mark.parametrize("case", IDENTIFIED)
def test_a_training_question_is_refused_however_it_is_identified(case):
    before, groups_before, now, groups_now = IDENTIFIED[case]
    cf = HardCF(ClassifierScorer(), alpha=0.2, random_state=0)
    cf.fit(*answers(60, **before), groups=groups_before)
    X, y = answers(60, seed=1, **now)
    with pytest.raises(ValueError, match=r"train.*filter"):
        cf.calibrate(X, y, groups=groups_now)
    trained, calibrated = seen(cf, X, groups_now)
    assert (trained | calibrated).all() and trained.any() and calibrated.any()
    new, labels = answers(60, start=100, seed=2, **now)
    if isinstance(groups_now, np.ndarray):
        groups_now = groups_now + 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cf.calibrate(new, labels, groups=groups_now).n_calibration_ == 59


def test_parts_with_names_and_parts_with_texts_are_refused():
    cf = HardCF(0, alpha=0.2).fit(*answers(40, start=500, seed=3))
    named, by_text = answers(30, key=str), answers(30, seed=1)
    with pytest.raises(ValueError, match=r"group.*text"):
        cf.calibrate_parts([cf.calibration_part(*X) for X in (named, by_text)])


@pytest.mark.parametrize(("size", "n"), [(None, 28), (19, 59)])
def test_which_answers_calibrate_differs_between_samples_and_ignores_labels(size, n):
    """In many splits, no question of a pool is always in, and none is always out."""
    rng = np.random.default_rng(0)
    cf = HardCF(0, calibration_size=size, random_state=0)
    times = np.zeros(60)
    for _ in range(100):
        rows = rng.permutation(60)[:n]
        table = np.arange(60.0)[rows, None]
        calibrated = [
            seen(cf.fit(table, rng.integers(0, 2, n)), table)[1] for _ in range(2)
        ]
        np.testing.assert_array_equal(*calibrated)
        times[rows] += calibrated[0]
    chance = 19 / 60
    most = 5 * np.sqrt(chance * (1 - chance) / 100)
    assert np.abs(times / 100 - chance).max() < most


# ------------------------------------------------------------------ how many


@pytest.mark.parametrize("alpha", ["0.01", "0.05", "0.1", "0.15", "0.3"])
def test_no_calibration_problem_is_wasted(alpha):
    """One problem fewer would have a smaller rank, and the rank is as it was meant."""
    exact = Fraction(alpha)
    for n in range(2, 1500, 7):
        count = NoFalseClaim().calibration_count(n, float(alpha))
        k = max(2, round(0.4 * float(alpha) * n))
        wanted = ceil(k / exact) - 1
        if wanted > 0.6 * n:
            needed = problems_needed(float(alpha))
            assert count == max(needed if needed <= 0.6 * n else 1, round(0.3 * n))
            continue
        assert count == wanted
        assert conformal_rank(count, float(alpha)) == k
        assert conformal_rank(count - 1, float(alpha)) == k - 1


FEW, FEW_Y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 3 > 0


@pytest.mark.parametrize(
    ("guarantee", "alpha", "said"),
    [
        (None, 0.01, "40 calibration problems are too few for alpha = 0.01"),
        (NoFalseClaim(delta=0.05), 0.05, "At least 59"),
        (ExpectedFalse(), 0.01, "At least 99"),
        (NoFalseClaim(by=lambda batch: batch.features[:, 1] > 0.9), 0.1, "group True"),
        (NoFalseClaim(delta=0.1), 5e-324, f"At least {2**53}"),
        (NoFalseClaim(), 1e-17, f"At least {2**53}"),
    ],
)
def test_a_filter_that_keeps_nothing_says_so(guarantee, alpha, said):
    with pytest.warns(CalibrationWarning):
        cf = HardCF(0, alpha=alpha, guarantee=guarantee).fit(FEW, FEW_Y)
    assert said in cf.calibration_.describe(alpha)
    if alpha < 0.1:
        assert cf.threshold_ == -np.inf
    if alpha < 1e-9:
        assert problems_needed(alpha) == 2**53
