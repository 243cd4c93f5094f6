"""Of the texts that are shown, at most alpha contain a false claim: by brute force."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf import HardCF, ReasoningGraph
from skdcf.choosing import release
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.ops.conformal import conformal_rank, shown_rank

RISKS = st.lists(st.one_of(st.integers(0, 20), st.just(inf)), min_size=1, max_size=60)


def threshold_by_definition(scores, lowest, alpha):
    """The largest threshold at which something is shown and the estimated rate is at most alpha."""
    best = -inf
    for t in sorted({*scores, *lowest, inf}):
        shown = sum(risk < t for risk in lowest)
        count = len(lowest) * (1 + sum(score < t for score in scores))
        if shown and Fraction(count, (len(scores) + 1) * shown) <= Fraction(str(alpha)):
            best = t
    return best


@given(RISKS, RISKS, st.sampled_from([0.05, 0.1, 0.2, 0.29, 0.5]))
def test_shown_answers_are_those_of_the_definition(scores, lowest, alpha):
    scores = np.sort(np.array(scores, float))
    rank = shown_rank(scores, np.array(lowest, float), alpha)
    threshold = scores[rank - 1] if rank else -inf
    expected = threshold_by_definition(scores.tolist(), lowest, alpha)
    assert [low < threshold for low in lowest] == [low < expected for low in lowest]


def test_masks_of_tables_are_booleans():
    X = np.c_[:90.0]
    cf = HardCF(0).fit(X, np.where(X[:, 0] % 9, "yes", "no"))
    assert release(cf, X, 0.9).dtype == bool


@pytest.fixture(scope="module")
def problems():
    return make_reasoning_graphs(700, kind="felm", random_state=0, return_X_y=True)


def odd(batch):
    return batch.sizes % 2


@pytest.mark.parametrize("by", [None, odd])
def test_masks_are_those_of_predict_at_the_level_that_the_batch_allows(problems, by):
    graphs, y = problems
    cf = HardCF(0, alpha=0.02, guarantee=NoFalseClaim(by=by)).fit(graphs[:400], y[:400])
    new = graphs[400:]
    masks = release(cf, new, 0.2)
    for group in (0, 1) if by else (None,):
        # Each group is a batch of its own.
        rows = np.flatnonzero(odd(new) == group) if by else np.arange(len(new))
        shown = [bool(masks[i].any()) for i in rows]
        assert any(shown)
        level = float(Fraction("0.2") * sum(shown) / len(rows))
        for i, mask in zip(rows, cf.predict(new[rows], level), strict=True):
            np.testing.assert_array_equal(masks[i], mask)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ties": "include"}, "ties"),
        ({"guarantee": ExpectedFalse()}, "NoFalseClaim.*ExpectedFalse"),
        ({"guarantee": NoFalseClaim(delta=0.1)}, "delta"),
    ],
)
def test_what_has_no_proof_is_refused(problems, settings, message):
    graphs, y = problems
    cf = HardCF(0, alpha=0.1, **settings).fit(graphs[:400], y[:400])
    with pytest.raises(ValueError, match=message):
        release(cf, graphs[400:], 0.1)


@pytest.mark.parametrize(
    ("by", "message"),
    [(None, r"answers are.*49"), ("kind", r"answers of the group [01].*49")],
)
def test_too_few_answers_show_nothing_and_say_how_many_it_takes(problems, by, message):
    graphs, y = problems
    graphs = graphs.replace(metadata=[{"kind": i % 2} for i in range(len(graphs))])
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by=by)).fit(graphs[:12], y[:12])
    with pytest.warns(CalibrationWarning, match=message):
        masks = release(cf, graphs[400:], 0.1)
    assert not any(mask.any() for mask in masks)


def asked(questions):
    rng = np.random.default_rng(0)
    graphs = [
        ReasoningGraph(rng.normal(size=(3, 1)), (), problem=f"question {q}")
        for q in questions
    ]
    return graphs, list(rng.integers(0, 2, (len(graphs), 3)))


def test_second_answers_and_known_questions_are_refused():
    cf = HardCF("linear", alpha=0.3, random_state=0).fit(*asked(range(60)))
    with pytest.raises(ValueError, match=r"problem 2 .*answers.*question"):
        release(cf, asked([60, 61, 60])[0], 0.2)
    kinds = set()
    for question in range(60):
        with pytest.raises(ValueError, match="used for") as info:
            release(cf, asked([60, question])[0], 0.2)
        kinds.add("used for training" in str(info.value))
    assert kinds == {True, False}


@pytest.mark.parametrize("by", [None, odd])
def test_the_described_rate_is_that_of_the_ranks(problems, by):
    graphs, y = problems
    cf = HardCF(0, alpha=0.1, guarantee=NoFalseClaim(by=by)).fit(graphs, y)
    rows = np.setdiff1d(np.arange(len(graphs)), cf.unused_indices_)
    masks = cf.predict(graphs[rows], 0.2)
    shown = np.array([mask.any() for mask in masks])
    group = odd(graphs[rows]) if by else np.zeros(len(rows))
    wrong = 0
    for name in np.unique(group):
        own = rows[group == name]
        kept = zip(own, masks[group == name], strict=True)
        n_below = sum((mask & (y[i] == 0)).any() for i, mask in kept)
        rank = min(conformal_rank(len(own), 0.2), 1 + n_below)
        wrong += len(own) * rank / (len(own) + 1)
    rate = wrong / shown.sum()
    assert cf.calibration_.shown(0.2) == shown.mean()
    assert cf.calibration_.passing == 1
    assert cf.calibration_.false_among_shown(0.2) == pytest.approx(rate)
    assert f"{shown.mean():.0%} of new answers, and about {rate:.0%}" in cf.describe(
        0.2
    )


def test_a_rate_is_described_only_if_there_is_one(problems):
    same = HardCF(0, alpha=0.1).fit(np.zeros((99, 1)), np.arange(99) % 4 > 0)
    assert same.calibration_.false_among_shown(0.1) is None
    assert same.describe().endswith("nothing is shown for new answers")
    share = HardCF(0, alpha=0.2, guarantee=ExpectedFalse()).fit(*problems)
    assert share.describe().endswith("of new answers")
