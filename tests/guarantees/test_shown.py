"""Of the texts that are shown, at most alpha hold a false claim: by brute force and by laws."""

from fractions import Fraction

import numpy as np
import pytest
from levels import thresholds

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.choosing import release
from skdcf.datasets import (
    make_reasoning_graphs,
)
from skdcf.exceptions import CalibrationWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.ops.conformal import conformal_rank, shown_rank
from skdcf.uses import calibration_scores, seen


def threshold_by_definition(scores, lowest, alpha):
    """T = sup {t : something is shown and F(t) <= alpha}, F as it is written down.

    F changes only above one of the numbers; between two of them it is constant, and the sup
    over such an interval is its upper end.
    """
    n, m = len(scores), len(lowest)
    ends = sorted({*scores.tolist(), *lowest.tolist(), np.inf})
    best = -np.inf
    for low, high in zip([-np.inf, *ends], ends, strict=False):
        below_scores = sum(s <= low for s in scores)
        shown = sum(risk <= low for risk in lowest)  # of t just above low, up to high
        if not shown:
            continue
        rate = Fraction(m * (1 + below_scores), (n + 1) * shown)
        if rate <= Fraction(str(alpha)):
            best = high
    return best


def test_the_rank_is_exact_where_all_of_up_to_500_are_shown():
    for m in range(1, 501):
        for n, alpha in [(99, 0.29), (199, 0.1), (m, 0.07), (1000, 0.05)]:
            lowest = np.full(m, -1.0)
            rank = shown_rank(np.arange(n, dtype=float), lowest, alpha)
            exact = Fraction(str(alpha)) * (
                n + 1
            )  # k = m, so that r / (n + 1) <= alpha
            assert rank == (int(exact) if exact >= 1 else 0)


def test_masks_are_those_of_the_definition_for_laws_with_ties():
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, m = rng.integers(1, 60, size=2)
        alpha = float(rng.choice([0.05, 0.1, 0.2, 0.29, 0.5]))
        spread = int(rng.integers(2, 50))
        lowest = rng.integers(0, spread, size=m).astype(float)
        lowest[rng.random(m) < 0.1] = np.inf
        scores = np.sort(rng.integers(0, spread + 3, size=n)).astype(float)
        scores[rng.random(n) < 0.2] = np.inf
        scores = np.sort(scores)
        rank = shown_rank(scores, lowest, alpha)
        threshold = scores[rank - 1] if rank else -np.inf
        expected = threshold_by_definition(scores, lowest, alpha)
        assert np.array_equal(lowest < threshold, lowest < expected)


@pytest.fixture(scope="module")
def problems():
    return make_reasoning_graphs(700, kind="felm", random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def fitted(problems):
    graphs, y = problems
    return HardCF(0, alpha=0.02, random_state=0).fit(graphs[:400], y[:400])


def test_masks_are_those_of_predict_at_the_level_that_the_batch_allows(
    problems, fitted
):
    new = problems[0][400:]
    for alpha in (0.05, 0.1, 0.2, 0.4):
        masks = release(fitted, new, alpha)
        n_shown = sum(bool(mask.any()) for mask in masks)
        assert n_shown
        level = float(Fraction(repr(alpha)) * n_shown / len(new))
        expected = fitted.predict(new, alpha=level)
        assert all((a == b).all() for a, b in zip(masks, expected, strict=True))


def test_each_group_is_a_batch_of_its_own(problems):
    graphs, y = problems

    def of_kind(batch):
        return batch.sizes % 2

    cf = HardCF(0, alpha=0.05, guarantee=NoFalseClaim(by=of_kind)).fit(
        graphs[:400], y[:400]
    )
    new = graphs[400:]
    groups = of_kind(new)
    masks = release(cf, new, 0.2)
    for group in (0, 1):
        rows = np.flatnonzero(groups == group)
        alone = release(cf, new[rows], 0.2)
        pairs = zip(masks[rows], alone, strict=True)
        assert all((a == b).all() for a, b in pairs)


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


def answers_of(n_questions, n_answers, seed):
    """Answers with question texts, by a score that tells something."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for q in range(n_questions):
        for _ in range(n_answers):
            labels.append((rng.random(3) < 0.8).astype(int))
            score = labels[-1] + rng.normal(size=3)
            question = f"question {seed} {q}"
            graphs.append(ReasoningGraph(score.reshape(-1, 1), (), problem=question))
    return graphs, labels


def test_answers_to_one_question_are_refused_or_one_is_taken():
    cf = HardCF(0, alpha=0.05).fit(*answers_of(200, 1, seed=0))
    new, _ = answers_of(40, 3, seed=1)
    with pytest.raises(ValueError, match=r"answers.*question"):
        release(cf, new, 0.2)
    masks = release(cf, new, 0.2, one_per_question=True)
    shown = np.array([mask.any() for mask in masks]).reshape(40, 3)
    assert shown.sum(axis=1).max() == 1 and shown.any()
    order = np.random.default_rng(0).permutation(120)
    shuffled = release(cf, [new[i] for i in order], 0.2, one_per_question=True)
    assert all((shuffled[j] == masks[i]).all() for j, i in enumerate(order))


def test_questions_that_the_filter_knows_are_refused():
    graphs, labels = answers_of(200, 1, seed=0)
    cf = HardCF(0, alpha=0.05, random_state=0).fit(graphs, labels)
    new, _ = answers_of(10, 1, seed=1)
    with pytest.raises(ValueError, match="used for calibration"):
        release(cf, [*new, graphs[0]], 0.2)
    other, other_labels = answers_of(300, 1, seed=2)
    learnt = HardCF(alpha=0.05, random_state=0).fit(other, other_labels)
    trained = np.flatnonzero(seen(learnt, other)[0])
    with pytest.raises(ValueError, match=r"train.*filter"):
        release(learnt, [*new, other[trained[0]]], 0.2)


def test_too_few_answers_show_nothing_and_say_how_many_it_takes(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.2).fit(graphs[:6], y[:6])
    with pytest.warns(CalibrationWarning, match="49"):
        masks = release(cf, graphs[400:], 0.1)
    assert not any(mask.any() for mask in masks)


# -- what describe() says of it -------------------------------------------------------


def test_the_share_is_that_of_the_answers_that_calibrate(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.1).fit(graphs[:99], y[:99])
    for alpha in (0.05, 0.1, 0.3):
        calibration = cf.calibration_
        shown = np.mean([mask.any() for mask in cf.predict(graphs[:99], alpha)])
        assert calibration.shown(alpha) == pytest.approx(shown)
        rate, low, high = calibration.false_among_shown(alpha)
        n_below = (cf.nonconformity_scores_ < cf.threshold(alpha)).sum()
        rank = min(conformal_rank(99, alpha), 1 + n_below)
        assert rate == pytest.approx(rank / (100 * shown))
        assert low < rate < high
        assert f"in about {shown:.0%} of new answers" in cf.describe(alpha)
        assert (
            f"about {rate:.0%} of the shown texts contain a false claim ({low:.0%} to"
            in cf.describe(alpha)
        )


def test_where_nothing_is_shown_it_says_so_and_gives_no_number():
    y = (np.arange(99) % 4 > 0).astype(int)
    cf = HardCF(0, alpha=0.1).fit(np.zeros((99, 1)), y)  # all are trusted alike
    assert cf.calibration_.shown(0.1) == 0
    assert cf.calibration_.false_among_shown(0.1) is None
    assert cf.describe().endswith(". At this level, nothing is shown for new answers")


def by_size(batch):
    return batch.sizes > 3


def test_of_groups_the_rate_is_the_mean_over_their_ranks(problems):
    graphs, y = problems
    batch = GraphBatch.from_graphs(graphs)
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by=by_size)).fit(batch, y)
    rows = np.setdiff1d(np.arange(len(batch)), cf.unused_indices_)
    group = by_size(batch[rows])
    wrong = 0.0
    for name in (False, True):
        n = int((group == name).sum())
        threshold = thresholds(cf, batch[rows[group == name][:1]], 0.2)[0]
        scores = calibration_scores(cf, batch, y)[rows[group == name]]
        rank = min(conformal_rank(n, 0.2), 1 + (scores < threshold).sum())
        wrong += n * rank / (n + 1) / len(rows)
    rate, low, high = cf.calibration_.false_among_shown(0.2)
    assert rate == pytest.approx(wrong / cf.calibration_.shown(0.2))
    assert np.isnan(low)
    assert np.isnan(high)
    assert cf.describe().endswith(
        f"about {rate:.0%} of the shown texts contain a false claim"
    )


def test_of_a_mean_the_share_alone_is_told(problems):
    graphs, y = problems
    cf = HardCF(0, alpha=0.2, guarantee=ExpectedFalse()).fit(graphs, y)
    assert cf.calibration_.false_among_shown(0.2) is None
    assert cf.describe().endswith("of new answers")
    one = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(max_false=1)).fit(graphs, y)
    assert "contain more than 1 false claim" in one.describe()
