"""Problems that calibrate a filter part by part."""

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.base import clone

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import NoFalseClaim

GRAPHS, Y = make_reasoning_graphs(300, random_state=1, return_X_y=True)
KNOWN = make_reasoning_graphs(120, random_state=2, return_X_y=True)
FILTERS = [
    HardCF("frequency-score"),
    HardCF("frequency-score", ties="include", edges="none"),
    HardCF(ties="jitter", random_state=3),
    CoherentConformalFilter(random_state=0),
]


def parts_of(cf, cuts):
    pairs = zip([0, *cuts], [*cuts, 300], strict=True)
    return [cf.calibration_part(GRAPHS[a:b], Y[a:b]) for a, b in pairs]


@pytest.mark.parametrize("cf", FILTERS, ids=str)
@pytest.mark.parametrize("cuts", [[], [100], [1, 2, 150, 299]])
def test_parts_are_the_whole(cf, cuts):
    """To rounding: how closely a scorer repeats itself is measured in each part."""
    whole = clone(cf).fit(*KNOWN).calibrate(GRAPHS, Y)
    parted = clone(cf).fit(*KNOWN)
    parted.calibrate_parts(parts_of(parted, cuts))
    one, other = parted.nonconformity_scores_, whole.nonconformity_scores_
    np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    assert parted.n_calibration_ == 299  # of rank 30, like 300
    np.testing.assert_array_equal(parted.unused_indices_, whole.unused_indices_)
    one, other = parted.predict(GRAPHS), whole.predict(GRAPHS)
    assert all(map(np.array_equal, one, other))


class Sized:
    """A callable whose print says nothing of what it does."""

    def __init__(self, n):
        self.n = n

    def __call__(self, batch):
        return 1.0 + (batch.sizes > self.n)

    def __repr__(self):
        return "Sized()"


def closed_over(n):
    """A function with a number in a long array, of which a print shows the ends."""
    array = np.r_[np.zeros(2000), n, np.zeros(2000)]
    return lambda batch: 1.0 + (batch.sizes > array[2000])


@pytest.mark.parametrize("make", [Sized, closed_over])
def test_parts_of_other_groups_do_not_calibrate(make):
    """They are compared by what the functions say of stored problems."""
    one, other = (
        HardCF("frequency-score", guarantee=NoFalseClaim(by=make(n))).fit(*KNOWN)
        for n in (4, 5)
    )
    part = one.calibration_part(GRAPHS, Y)
    one.calibrate_parts([part])
    with pytest.raises(ValueError, match=r"scorer|by "):
        other.calibrate_parts([part])


def first_links(n):
    """A rule with a number in a long array: the first claims are a chain."""
    array = np.r_[np.zeros(2000), n, np.zeros(2000)]

    def rule(claims, problem=None):
        return [(v - 1, v) for v in range(1, min(len(claims), int(array[2000])))]

    return rule


class Linked:
    """A rule that prints alike whatever it does."""

    def __init__(self, n):
        self.n = n

    def __call__(self, claims, problem=None):
        return first_links(self.n)(claims)

    def __repr__(self):
        return "Linked()"


@pytest.mark.parametrize("make", [first_links, Linked])
def test_parts_of_another_rule_of_edges_do_not_calibrate(make):
    """Rules were compared by their names alone."""
    texts = [
        g.replace(claims=[f"{i} {v}" for v in range(g.n_claims)])
        for i, g in enumerate(GRAPHS)
    ]
    one, other = (HardCF("frequency-score", edges=make(n)) for n in (2, 4))
    one.fit(texts[:150], Y[:150])
    other.fit(texts[:150], Y[:150])
    part = one.calibration_part(texts[150:], Y[150:])
    one.calibrate_parts([part])
    with pytest.raises(ValueError, match="edges"):
        other.calibrate_parts([part])
    one.set_params(edges=make(4))
    with pytest.raises(ValueError, match=r"calibrate.*fit again"):
        one.predict(texts)


def test_one_answer_of_each_question_calibrates_in_each_group():
    rng = np.random.default_rng(0)
    names = np.repeat(np.arange(40), 3)
    kinds = [{"kind": "ab"[i % 2]} for i in names]
    X = one_claim_each(rng.random(120), metadata=kinds)
    y = (rng.random((120, 1)) < 0.6).astype(int).tolist()
    cf = HardCF(0, alpha=0.2).fit(X, y, groups=names)
    assert cf.n_calibration_ + len(cf.unused_indices_) == 40
    by = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="kind"))
    by.fit(X, y, groups=names)
    chosen = [part.n for part in by.calibration_.steps]
    assert sum(chosen) + len(by.unused_indices_) == 40
    assert min(chosen) == max(chosen) == 19  # floor(.2 * 20) is 4, and so it is for 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"edges": "none"},
            "edges .*'given'.*'none'",
        ),
        ({"ties": "jitter"}, "ties "),
        ({"online": True}, "online .*False"),
    ],
)
def test_a_part_of_other_settings_is_refused(change, message):
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(60))
    y = (rng.random((60, 1)) < 0.6).astype(int).tolist()
    part = HardCF(0, alpha=0.2).fit(X, y).calibration_part(X, y)
    other = HardCF(0, alpha=0.2, **change).fit(X, y)
    with pytest.raises(ValueError, match=message):
        other.calibrate_parts([part])
