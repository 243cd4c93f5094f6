"""Of the answers that pass, at most alpha contain a false claim: by definition and by laws."""

from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest

from skdcf.guarantees import (
    Calibration,
    ExpectedFalse,
    Jumps,
    NoFalseClaim,
    PathRisks,
    choose_share,
    leave_one_out,
    problems_needed,
    share_table,
)
from skdcf.ops.conformal import (
    conformal_rank,
    least_share,
    passing_count,
)

ALPHAS = ("0.05", "0.1", "0.2", "0.29", "0.5")
SHARES = ("0.07", "0.1", "0.25", "0.3", "0.6", "0.9", "1")


def draw_answers(rng, n, n_values=30, n_claims=4, height=0.8, power=2.0):
    """Risks and falsehood of the claims of n answers without edges, each (n, n_claims)."""
    risk = rng.integers(0, n_values, size=(n, n_claims)) / n_values
    return risk, rng.random(risk.shape) < height * risk**power


def as_risks(risk, **more):
    offsets = np.arange(len(risk) + 1) * risk.shape[1]
    return PathRisks(risk.ravel(), offsets, **more)


def test_a_share_is_the_decimal_number_that_was_written():
    assert passing_count(99, 0.07) == 6  # ceil(0.07 * 100) is 8 in floating point
    for n in range(200):
        for hundredths in range(1, 101):
            exact = ceil(Fraction(hundredths, 100) * (n + 1)) - 1
            assert passing_count(n, hundredths / 100) == exact


@pytest.mark.parametrize("delta", [None, 0.1])
def test_so_many_answers_are_needed_for_the_first_rank(delta):
    for share in map(float, SHARES):
        for alpha in (0.05, 0.1, 0.3):
            needed = problems_needed(alpha, delta, show=share)
            assert conformal_rank(passing_count(needed, share), alpha, delta) == 1
            assert conformal_rank(passing_count(needed - 1, share), alpha, delta) == 0
            if delta is None:
                exact = floor(
                    (ceil(1 / Fraction(str(alpha))) - 1) / Fraction(str(share))
                )
                assert needed == exact


@pytest.mark.parametrize("n", [1, 15, 50, 99, 100])
def test_the_least_share_is_the_smallest_at_which_so_many_pass(n):
    for n_passing in range(n + 1):
        shares = [h for h in range(1, 101) if passing_count(n, h / 100) >= n_passing]
        assert least_share(n_passing, n) == shares[0] / 100


def test_fewest_answers_keep_the_rank_among_those_that_pass():
    for share in (0.25, 0.6):
        guarantee = NoFalseClaim(show=share)
        for n in range(20, 150):
            fewest = guarantee.fewest(n, 0.1)
            ranks = [
                floor(Fraction(1, 10) * ceil(Fraction(str(share)) * (m + 1)))
                for m in (fewest - 1, fewest, n)
            ]
            assert ranks[1] == ranks[2]
            assert ranks[0] < ranks[2] or ranks[2] == 0


def test_leaving_one_out_counts_exactly_alpha_of_those_that_pass():
    """Without ties, whatever the filter, so it tells nothing about coverage."""
    rng = np.random.default_rng(2)
    risk = rng.random((60, 3))
    false = rng.random(risk.shape) < 0.4
    scores = np.where(false, risk, inf).min(axis=1)
    levels = leave_one_out(
        NoFalseClaim(show=0.5), Jumps.of_scores(scores), as_risks(risk)
    )
    levels = levels.reshape(risk.shape)
    n_passing = np.isfinite(levels).any(axis=1).sum()
    wrong = ((levels <= 0.2) & false).any(axis=1).sum()
    assert n_passing == 30 and wrong == floor(0.2 * 30)


GUARANTEES = {
    "none": lambda **more: NoFalseClaim(**more),
    "two": lambda **more: NoFalseClaim(max_false=1, **more),
    "share": lambda **more: ExpectedFalse(**more),
}


def jumps_of(guarantee, risk, false):
    labels = 1 - false.ravel().astype(int)
    return guarantee.jumps(risk.ravel(), labels, as_risks(risk).offsets)


def loss_among_passing(guarantee, n, level, law, draws, rng, m=3):
    """The sum of the losses of new answers that pass, and their number, for each draw."""
    out = np.zeros((draws, 2))
    for row in out:
        risk, false = draw_answers(rng, n, **law)
        jumps = jumps_of(guarantee, risk, false)
        calibration = Calibration(guarantee, jumps, as_risks(risk).lowest)
        risk, false = draw_answers(rng, m, **law)
        new = as_risks(risk)
        thresholds = np.broadcast_to(calibration.thresholds(new, level), m)
        kept = (risk < thresholds[:, None]).ravel()
        loss = guarantee.loss(1 - false.ravel().astype(int), kept, new.offsets)
        passes = calibration.passes(new)
        row[:] = (loss * passes).sum(), passes.sum()
    return out


def random_law(rng):
    """Arguments of `draw_answers`."""
    return {
        "n_values": int(rng.integers(2, 40)),
        "n_claims": int(rng.integers(1, 5)),
        "height": rng.uniform(0.05, 1.0),
        "power": rng.uniform(0.2, 3.0),
    }


def excess(out, level):
    """How far the mean loss of an answer that passes is above the level, in errors."""
    difference = out[:, 0] - level * out[:, 1]
    error = difference.std(ddof=1) / np.sqrt(len(out))
    return difference.mean() / error if error else 0.0


@pytest.mark.long
@pytest.mark.parametrize("kind", GUARANTEES)
def test_no_random_law_misses_more_than_the_level_among_answers_that_pass(kind):
    """Ties, coarse scores and few answers; 50 laws for each guarantee."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        law = random_law(rng)
        guarantee = GUARANTEES[kind](show=float(rng.choice([0.2, 0.5, 0.8])))
        n, level = int(rng.integers(8, 80)), float(rng.choice([0.1, 0.2, 0.4]))
        out = loss_among_passing(guarantee, n, level, law, 150, rng)
        assert excess(out, level) < 4


@pytest.mark.long
def test_no_random_law_misses_more_than_the_level_in_either_of_two_groups():
    """As above, for 50 pairs of laws. A fifth of the answers are in the second group."""
    rng = np.random.default_rng(8)
    for _ in range(50):
        laws = [random_law(rng) | {"n_claims": 3} for _ in "ab"]
        guarantee = NoFalseClaim(show=float(rng.choice([0.2, 0.5, 0.8])), by=str)
        n, level = int(rng.integers(20, 120)), float(rng.choice([0.1, 0.2, 0.4]))
        outs = np.zeros((2, 150, 2))
        for draw in range(150):
            sizes = np.append(rng.multinomial(n, [0.8, 0.2]), [3, 3])
            parts = [draw_answers(rng, m, **laws[i % 2]) for i, m in enumerate(sizes)]
            names = np.repeat(["a", "b", "a", "b"], sizes)
            risk, false = map(np.concatenate, zip(*parts, strict=True))
            jumps = jumps_of(guarantee, risk[:n], false[:n])
            lowest = as_risks(risk[:n]).lowest
            old = names[:n].tolist()
            calibration = Calibration(guarantee, jumps, lowest, groups=old)
            known = np.isin(names[n:], names[:n])  # a group may have no answers
            risk, false, names = risk[n:][known], false[n:][known], names[n:][known]
            new = as_risks(risk, groups=names.tolist())
            kept = risk < calibration.thresholds(new, level)[:, None]
            passes = calibration.passes(new)
            for out, name in zip(outs, "ab", strict=True):
                mine = passes & (names == name)
                out[draw] = (kept & false).any(axis=1)[mine].sum(), mine.sum()
        assert all(excess(out, level) < 4 for out in outs)


@pytest.mark.long
def test_the_share_of_wrong_answers_among_those_that_pass_is_nearly_alpha():
    rng = np.random.default_rng(5)
    law = {"n_values": 10**6}
    out = loss_among_passing(NoFalseClaim(show=0.6), 199, 0.1, law, 4000, rng, m=40)
    wrong, passing = out.sum(axis=0)
    # |B| + 1 = 120, of which 12 are counted, so the level is reached.
    assert abs(wrong / passing - 0.1) < 0.003
    assert abs(passing / (4000 * 40) - 0.6) < 0.003


@pytest.mark.parametrize("show", [0, -0.1, 1.5, "some", True, None])
def test_a_share_outside_0_and_1_is_refused(show):
    with pytest.raises(ValueError, match="show"):
        NoFalseClaim(show=show).validate()


def test_the_largest_good_share_is_chosen():
    """By the definition, over hundredths: the best of those that are possible, if none is."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(40):
        n = int(rng.integers(20, 150))
        risk, false = draw_answers(rng, n, int(rng.integers(5, 200)), height=0.6)
        risks = as_risks(risk)
        labels = 1 - false.ravel().astype(int)
        n_calibration, level = int(rng.integers(10, 90)), 0.2
        rates = {}
        for hundredths in range(10, 101):
            share = Fraction(hundredths, 100)
            k0 = ceil(share * (n + 1))
            cut = inf if k0 == n + 1 else sorted(risk.min(axis=1))[k0 - 1]
            passing = [i for i in range(n) if cut == inf or risk[i].min() < cut]
            wrong = sum((false[i] & (risk[i] < cut)).any() for i in passing)
            reached = floor(Fraction(1, 5) * ceil(share * (n_calibration + 1)))
            if reached:
                rates[hundredths / 100] = Fraction(1 + wrong, 1 + len(passing))
        bound = max(Fraction(1, 5), min(rates.values()))
        table = share_table(
            NoFalseClaim(show="auto"),
            risk.ravel(),
            labels,
            risks.offsets,
            np.zeros(n, int),
        )
        found.append(choose_share(table, level, None, [n_calibration]))
        assert found[-1] == max(c for c, rate in rates.items() if rate <= bound)
    assert len(set(found)) > 5


def choice_of(n_true, n_false, n_calibration=100):
    """The choice at alpha = 0.1 if each answer has one claim, and true claims are safer."""
    n = n_true + n_false
    table = share_table(
        NoFalseClaim(show="auto"),
        np.arange(n, dtype=float),
        np.repeat([1, 0], [n_true, n_false]),
        np.arange(n + 1),
        np.zeros(n, int),
    )
    return choose_share(table, 0.1, None, [n_calibration])


def test_the_share_is_the_best_if_no_share_is_good():
    """Without errors, (1 + 0) / (1 + n) <= 0.1 needs 9 passing answers."""
    for n in (9, 8, 6):
        assert choice_of(n_true=n, n_false=n) == pytest.approx(0.5, abs=0.06)
    assert choice_of(n_true=0, n_false=12) == 1  # each share is as bad


def test_few_calibration_answers_leave_only_large_shares():
    share = choice_of(n_true=30, n_false=30)
    needed = NoFalseClaim(show=share).problems_needed(0.1)
    assert choice_of(n_true=30, n_false=30, n_calibration=needed) == share
    fewer = choice_of(n_true=30, n_false=30, n_calibration=needed - 1)
    assert fewer > share
    assert NoFalseClaim(show=fewer).problems_needed(0.1) <= needed - 1
    assert choice_of(n_true=30, n_false=30, n_calibration=8) == 1


def test_groups_that_are_too_small_for_any_share_do_not_count():
    table = np.array([[0.2, 10, 0], [0.5, 25, 0], [1.0, 50, 10]])
    assert choose_share(table, 0.1, None, [100, 5]) == 0.5
    assert choose_share(table, 0.1, None, [100, 12]) == 1


def test_a_share_at_which_nothing_passes_is_not_chosen():
    """With ties, and losses above 1, the rate (1 + 0) / (1 + 0) may be the smallest."""
    table = np.array([[0.2, 0, 0], [0.5, 20, 30], [1.0, 50, 90]])
    assert choose_share(table, 0.1, None, [100]) == 0.5
