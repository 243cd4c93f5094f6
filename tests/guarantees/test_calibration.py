"""Levels, thresholds and passing answers against the definitions, in whole numbers."""

from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, nan

import numpy as np
import pytest
from levels import part_of

from skdcf.guarantees import (
    Calibration,
    ExpectedFalse,
    Jumps,
    NoFalseClaim,
    PathRisks,
    leave_one_out,
)

ALPHAS = ("0.05", "0.1", "0.25", "0.29", "0.4", "0.5", "0.75", "0.9")


# The loss of an answer, given the numbers of kept and of kept false claims.
KINDS = {
    "no false claim": (NoFalseClaim, lambda kept, false: Fraction(false > 0)),
    "at most one": (
        lambda **more: NoFalseClaim(max_false=1, **more),
        lambda kept, false: Fraction(false > 1),
    ),
    "share": (ExpectedFalse, lambda kept, false: Fraction(false, max(kept, 1))),
}


class Answers:
    """Random answers with ties, unknown labels, and answers without claims."""

    def __init__(self, rng, n, groups):
        sizes = rng.integers(0, 5, n)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        n_values = rng.choice([3, 10, 10**6])
        self.risk = rng.integers(0, n_values, self.offsets[-1]) / n_values
        self.labels = rng.choice([1, 1, 0, -1], self.offsets[-1])
        names = rng.choice(groups, n).tolist() if groups else None
        self.risks = PathRisks(self.risk, self.offsets, names)
        self.group = names or [None] * n
        self.lowest = [
            self.risk[a:b].min(initial=inf) for a, b in pairwise(self.offsets)
        ]

    def take(self, rows):
        own = Answers.__new__(Answers)
        claims = [np.arange(*self.offsets[i : i + 2]) for i in rows]
        own.offsets = np.cumsum([0, *map(len, claims)])
        order = np.concatenate([*claims, []]).astype(int)
        own.risk, own.labels = self.risk[order], self.labels[order]
        names = self.risks.groups and [self.risks.groups[i] for i in rows]
        own.risks = PathRisks(own.risk, own.offsets, names)
        return own

    def calibrate(self, guarantee):
        jumps = guarantee.jumps(self.risk, self.labels, self.offsets)
        lowest = self.risks.lowest
        return Calibration(guarantee, part_of(jumps, lowest, self.risks.groups))

    def loss_of(self, i, loss, threshold, equal):
        """The largest loss of answer i at any threshold up to this one."""
        own = slice(*self.offsets[i : i + 2])
        risk, false = self.risk[own], self.labels[own] != 1
        largest = Fraction(0)
        for t in risk[(risk < threshold) | (equal & (risk == threshold))]:
            kept = risk <= t
            largest = max(largest, loss(int(kept.sum()), int((kept & false).sum())))
        return largest


def by_definition(answers, group, loss, show):
    """The cut of a group, and the level of a claim as a function of its path risk."""
    own = [i for i, name in enumerate(answers.group) if name == group]
    k0 = ceil(Fraction(show) * (len(own) + 1))
    cut = inf if k0 > len(own) else sorted(answers.lowest[i] for i in own)[k0 - 1]
    among = [i for i in own if cut == inf or answers.lowest[i] < cut]

    def level(risk, equal=True):
        total = sum(answers.loss_of(i, loss, risk, equal) for i in among)
        return (1 + total) / Fraction(len(among) + 1)

    return cut, level


@pytest.mark.filterwarnings("ignore:nothing is kept in")
@pytest.mark.parametrize("show", ["0.3", "0.6", "1"])
@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_kept_by_the_definition(kind, show):
    make, loss = KINDS[kind]
    rng = np.random.default_rng(0)
    for case in range(16):
        groups = "ab" if case % 2 else ""
        answers = Answers(rng, int(rng.integers(1, 40)), list(groups))
        new = Answers(rng, 6, list(groups and "abc"))
        calibration = answers.calibrate(
            make(show=float(show), by="group" if groups else None)
        )
        levels = calibration.levels(new.risks)
        levels_if_equal = calibration.levels(new.risks, keep_equal=True)
        passes = calibration.passes(new.risks)
        thresholds = {a: calibration.thresholds(new.risks, float(a)) for a in ALPHAS}
        for i, name in enumerate(new.group):
            if name not in answers.group:
                assert not passes[i]
                cut = -inf
            else:
                cut, level_of = by_definition(answers, name, loss, show)
                assert passes[i] == (cut == inf or new.lowest[i] < cut)
            for v in range(*new.offsets[i : i + 2]):
                if not passes[i]:
                    assert levels[v] == levels_if_equal[v] == inf
                    assert all(t[i] == -inf for t in thresholds.values())
                    continue
                risk = new.risk[v]
                level = level_of(risk)
                assert levels[v] == pytest.approx(float(level), rel=1e-15)
                if_equal = float(level_of(risk, equal=False))
                assert levels_if_equal[v] == pytest.approx(if_equal, rel=1e-15)
                for alpha, t in thresholds.items():
                    kept = level <= Fraction(alpha)
                    assert (levels[v] <= float(alpha)) == kept == (risk < t[i])


@pytest.mark.parametrize("show", [0.3, 0.6, 1])
@pytest.mark.parametrize("kind", [*KINDS, "delta"])
def test_leaving_one_out_is_a_calibration_on_the_others(kind, show):
    guarantee = NoFalseClaim(show=show, delta=0.3)
    if kind in KINDS:
        guarantee = KINDS[kind][0](show=show)
    rng = np.random.default_rng(1)
    for groups in ("", "", "ab"):
        answers = Answers(rng, int(rng.integers(4, 30)), list(groups))
        jumps = guarantee.jumps(answers.risk, answers.labels, answers.offsets)
        levels = leave_one_out(guarantee, jumps, answers.risks)
        for i, (a, b) in enumerate(pairwise(answers.offsets)):
            others = np.delete(np.arange(len(answers.risks)), i)
            calibration = answers.take(others).calibrate(guarantee)
            expected = calibration.levels(answers.take([i]).risks)
            np.testing.assert_allclose(levels[a:b], expected, rtol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_jumps_add_up_to_the_largest_loss_up_to_a_threshold(kind):
    guarantee, loss = KINDS[kind][0](), KINDS[kind][1]
    answers = Answers(np.random.default_rng(2), 50, [])
    jumps = guarantee.jumps(answers.risk, answers.labels, answers.offsets)
    for t in (*np.unique(answers.risk)[::7], inf):
        largest = jumps.losses(np.arange(50), t)
        expected = [float(answers.loss_of(i, loss, t, False)) for i in range(50)]
        assert expected == list(largest)
        lost = guarantee.loss(answers.labels, answers.risk < t, answers.offsets)
        assert (lost <= largest).all() and (kind == "share" or (lost == largest).all())


@pytest.mark.parametrize("losses", [[-0.1, 0.5], [0.6, 1.2], [0.6, 0.5], [0, nan]])
def test_losses_that_fall_or_exceed_1_are_refused(losses):
    with pytest.raises(ValueError, match=r"losses.*at most 1"):
        Jumps(np.arange(4.0), np.tile(losses, 2), np.array([0, 2, 4]))
    with pytest.raises(ValueError, match="NaN"):
        Jumps.of_scores(np.array([nan]))
    for offsets in ([1, 2], [0, 3]):
        with pytest.raises(ValueError, match="offsets"):
            Jumps(np.arange(2.0), np.ones(2), np.array(offsets))


def test_delta_is_refused_unless_losses_are_0_or_1():
    class Certain(ExpectedFalse):
        delta = 0.1

    answers = Answers(np.random.default_rng(3), 20, [])
    with pytest.raises(ValueError, match=r"delta.*0 or 1"):
        answers.calibrate(Certain())


def test_a_share_that_was_1_in_all_calibration_answers_has_no_rank():
    """In a new answer of several claims it may be smaller."""
    for guarantee, law in ((ExpectedFalse(), None), (NoFalseClaim(), (8, 2))):
        labels, offsets = np.array([0, 1, 1, 0] * 2 + [1]), np.arange(10)
        jumps = guarantee.jumps(np.arange(9.0), labels, offsets)
        assert jumps.is_count
        calibration = Calibration(guarantee, part_of(jumps, np.arange(9.0)))
        assert calibration.coverage_law(0.2) == law
