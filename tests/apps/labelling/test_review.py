"""A person's checks keep more, and break the promise of the filter nowhere."""

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF
from skdcf.apps.labelling import ReviewOrder
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import ExpectedFalse, NoFalseClaim


@pytest.fixture(scope="module")
def reviewed():
    graphs, y = make_reasoning_graphs(500, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:200], y[:200])
    return cf, graphs[200:], y[200:]


def word(label):
    return "true" if label == 1 else "false"


def holds_false(masks, labels):
    pairs = zip(masks, labels, strict=True)
    return np.array([bool((row[mask] != 1).any()) for mask, row in pairs])


def is_closed(masks, graphs):
    return all(
        not mask[child] or mask[parent]
        for mask, graph in zip(masks, graphs, strict=True)
        for parent, child in graph.edges.tolist()
    )


def test_an_answer_is_wrong_with_checks_exactly_where_it_is_without(reviewed):
    cf, graphs, y = reviewed
    before = cf.predict(graphs)
    review = ReviewOrder(cf, graphs)
    assert all((a == b).all() for a, b in zip(review.masks(), before, strict=True))
    for _per_answer in (1, 2, 3):
        for _ in range(len(graphs)):
            if (check := review.next()) is None:
                break
            review.told(check.problem, check.claim, word(y[check.problem][check.claim]))
        masks = review.masks()
        assert (holds_false(masks, y) == holds_false(before, y)).all()
        assert is_closed(masks, graphs)
        assert all((a >= b).all() for a, b in zip(masks, before, strict=True))
    kept = sum(int(mask.sum()) for mask in masks)
    assert kept > sum(int(mask.sum()) for mask in before) + 100


def test_neither_does_an_adversary_who_knows_the_labels(reviewed):
    cf, graphs, y = reviewed
    before = holds_false(cf.predict(graphs), y)
    review = ReviewOrder(cf, graphs)
    rng = np.random.default_rng(0)
    # He asks about what is false first, then anything, in answers that were right.
    for i in rng.permutation(len(graphs))[:150]:
        outside = np.flatnonzero(~review.masks()[i])
        for v in sorted(outside, key=lambda v: (y[i][v], rng.random()))[:3]:
            review.told(int(i), int(v), word(y[i][v]))
    assert (holds_false(review.masks(), y) == before).all()
    assert is_closed(review.masks(), graphs)


def test_asked_is_about_the_smallest_path_risk_that_can_be_added(reviewed):
    cf, graphs, y = reviewed
    review = ReviewOrder(cf, graphs)
    risks = cf.path_risk(graphs)
    for _ in range(40):
        check = review.next()
        masks = review.masks()
        candidates = []
        for i, graph in enumerate(graphs):
            for v in range(graph.n_claims):
                parents = [u for u, child in graph.edges.tolist() if child == v]
                unasked = (i, v) not in review.verdicts_
                if not masks[i][v] and unasked and all(masks[i][u] for u in parents):
                    candidates.append((risks[i][v], i, v))
        assert (check.path_risk, check.problem, check.claim) == min(candidates)
        review.told(check.problem, check.claim, word(y[check.problem][check.claim]))


def test_a_verdict_may_be_changed_and_an_error_that_is_noticed_goes_out():
    graphs, y = make_reasoning_graphs(300, random_state=1, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:100], y[:100])
    new = graphs[100:]
    review = ReviewOrder(cf, new)
    before = review.masks()
    check = review.next()
    review.told(check.problem, check.claim, "true")
    added = review.masks()
    assert added[check.problem][check.claim] and not before[check.problem][check.claim]
    for verdict in ("false", "unsure"):
        review.told(check.problem, check.claim, verdict)
        assert all((a == b).all() for a, b in zip(review.masks(), before, strict=True))
        assert review.verdicts_ == {(check.problem, check.claim): verdict}

    i = next(
        i for i, graph in enumerate(new) if before[i].sum() > 2 and len(graph.edges)
    )
    parent = next(u for u, child in new[i].edges.tolist() if before[i][child])
    review.told(i, parent, "false")
    gone = review.masks()[i]
    assert not gone[parent] and is_closed([gone], [new[i]])
    for v in np.flatnonzero(before[i]):
        assert gone[v] == (v != parent and parent not in new[i].ancestors(int(v)))
    review.told(i, parent, "unsure")  # not sure that it is false: it stays
    assert (review.masks()[i] == before[i]).all()


def test_mistakes_of_the_reviewer_cost_no_more_than_is_printed(reviewed):
    cf, graphs, y = reviewed
    before = holds_false(cf.predict(graphs), y)
    rng = np.random.default_rng(1)
    new_errors, bounds = [], []
    for _ in range(30):
        review = ReviewOrder(cf, graphs)
        n_false_asked = 0
        for _ in range(300):
            if (check := review.next()) is None:
                break
            truth = y[check.problem][check.claim] == 1
            n_false_asked += not truth
            passes = truth or rng.random() < 0.1
            review.told(check.problem, check.claim, word(int(passes)))
        new_errors.append(int((holds_false(review.masks(), y) & ~before).sum()))
        bounds.append(0.1 * n_false_asked)
        share = float(
            review.describe(error_rate=0.1).split("add about ")[1].split(" ")[0]
        )
        assert share * len(graphs) == pytest.approx(0.1 * n_false_asked, rel=0.35)
    error = np.std(new_errors, ddof=1) / np.sqrt(30)
    assert np.mean(new_errors) <= np.mean(bounds) + 3 * error
    assert np.mean(new_errors) > 0


def test_unsure_counts_with_the_false_where_mistakes_are_estimated(reviewed):
    """A reviewer who calls half of the false claims unsure makes as many mistakes."""
    cf, graphs, y = reviewed
    stated = []
    for word_of_false in ("false", "unsure"):
        review = ReviewOrder(cf, graphs)
        for _ in range(200):
            check = review.next()
            truth = y[check.problem][check.claim] == 1
            review.told(check.problem, check.claim, "true" if truth else word_of_false)
        stated.append(review.describe(error_rate=0.1).split("add about ")[1])
    assert float(stated[0].split(" ")[0]) > 0
    assert stated[0] == stated[1]


def independent_claims(n, seed):
    """Answers of ten claims, nothing of which builds on anything."""
    rng = np.random.default_rng(seed)
    risk = rng.random(10 * n)
    y = (rng.random(10 * n) >= 0.6 * risk**2).astype(int)
    offsets = np.arange(0, 10 * n + 1, 10)
    batch = GraphBatch.from_arrays(-risk[:, None], offsets, np.empty((0, 2), int))
    return batch, np.split(y, n)


@pytest.mark.parametrize(
    ("guarantee", "holds"),
    [
        (ExpectedFalse(bound=0.12), False),
        (NoFalseClaim(max_false=2), True),
    ],
    ids=str,
)
def test_a_review_that_removes_claims_states_what_holds_then(guarantee, holds):
    batch, y = independent_claims(100, 0)
    cf = HardCF(0, alpha=0.3, guarantee=guarantee).fit(batch, y)
    graphs, _ = independent_claims(50, 1)
    level = guarantee.level(None, cf.alpha)
    stated = cf.calibration_.describe(level)
    review = ReviewOrder(cf, graphs)
    assert review.describe().startswith(stated)
    check = review.next()
    review.told(check.problem, check.claim, "true")
    assert review.describe().startswith(
        stated
    )  # true claims in addition change nothing
    i, mask = next((i, m) for i, m in enumerate(review.masks()) if m.any())
    claim = int(np.flatnonzero(mask)[0])
    review.told(i, claim, "false")
    assert review.describe().startswith(stated) == holds
    if not holds:
        assert "kept before the review" in review.describe()
        assert f"{level:g}" in review.describe()
    review.told(i, claim, "true")
    assert review.describe().startswith(stated)


@pytest.mark.long
def test_what_is_stated_after_removal_holds_for_a_review_that_removes_what_it_can():
    """The reviewer removes true claims, too: the share of the rest breaks the bound."""
    shares, of_kept_before = [], []
    for seed in range(60):
        cf = HardCF(0, guarantee=ExpectedFalse(bound=0.12))
        cf.fit(*independent_claims(100, [seed, 0]))
        graphs, truth = independent_claims(200, [seed, 1])
        for row, mask in zip(truth, cf.predict(graphs), strict=True):
            n_false = int((row[mask] == 0).sum())
            left = mask & ((row == 0) | (np.cumsum(mask) % 4 == 0))
            shares.append(n_false / max(left.sum(), 1))
            of_kept_before.append(n_false / max(mask.sum(), 1))
    assert np.mean(of_kept_before) <= 0.12 + 0.01
    assert np.mean(shares) > 0.2


def test_verdicts_of_a_review_never_calibrate(reviewed):
    cf, graphs, y = reviewed
    review = ReviewOrder(cf, graphs)
    check = review.next()
    review.told(check.problem, check.claim, "true")
    marked, labels = review.reviewed()
    assert labels[check.problem][check.claim] == 1
    assert sum((row >= 0).sum() for row in labels) == 1
    for method in (cf.calibrate, cf.calibration_part, HardCF("frequency-score").fit):
        with pytest.raises(ValueError, match=r"labelled.*review"):
            method(marked, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, "right"), "verdict"),
        ((300, 0, "true"), "problem.*300"),
        ((0, 99, "true"), "claim.*99"),
    ],
)
def test_what_cannot_be_told_is_refused(reviewed, arguments, message):
    cf, graphs, _ = reviewed
    review = ReviewOrder(cf, graphs)
    with pytest.raises(ValueError, match=message):
        review.told(*arguments)
    assert not review.verdicts_
    with pytest.raises(ValueError, match=r"error rate.*1"):
        review.describe(1)


# --- what was reviewed trains, and never calibrates


def test_a_verdict_is_taken_back(reviewed):
    cf, graphs, _ = reviewed
    review = ReviewOrder(cf, graphs)
    first = review.next()
    before = review.masks()
    review.told(first.problem, first.claim, "true")
    review.told(first.problem, first.claim, None)
    assert not review.verdicts_ and review.n_checks == 0
    assert all((a == b).all() for a, b in zip(review.masks(), before, strict=True))
    assert review.next() == first


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
def test_where_the_filter_keeps_nothing_only_what_was_checked_goes_out():
    graphs, y = make_reasoning_graphs(60, random_state=2, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.01).fit(graphs[:30], y[:30])
    new, truth = graphs[30:], y[30:]
    assert not any(mask.any() for mask in cf.predict(new))
    review = ReviewOrder(cf, new)
    for _ in range(60):
        check = review.next()
        review.told(check.problem, check.claim, word(truth[check.problem][check.claim]))
    masks = review.masks()
    assert not holds_false(masks, truth).any() and is_closed(masks, new)
    told = [key for key, verdict in review.verdicts_.items() if verdict == "true"]
    assert sum(int(mask.sum()) for mask in masks) == len(told) > 10
    assert review.checked() == [np.flatnonzero(mask).tolist() for mask in masks]
