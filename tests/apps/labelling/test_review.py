"""A person's checks keep more claims, and never break the guarantee of the filter."""

import numpy as np
import pytest
from assertions import assert_coherent

from skdcf import GraphBatch, HardCF
from skdcf.apps.labelling import ReviewOrder
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import ExpectedFalse, NoFalseClaim


@pytest.fixture(scope="module")
def reviewed():
    graphs, y = make_reasoning_graphs(500, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:200], y[:200])
    return cf, graphs[200:], y[200:]


def holds_false(masks, labels):
    pairs = zip(masks, labels, strict=True)
    return np.array([bool((row[mask] != 1).any()) for mask, row in pairs])


def tell(review, place, y):
    problem, claim = place
    review.verdicts_[place] = "true" if y[problem][claim] == 1 else "false"


def test_no_choice_of_checks_adds_an_error(reviewed):
    """A person who knows the labels asks about false claims first."""
    cf, graphs, y = reviewed
    review = ReviewOrder(cf, graphs)
    rng = np.random.default_rng(0)
    for i in rng.permutation(len(graphs))[:150].tolist():
        outside = np.flatnonzero(~review.masks()[i]).tolist()
        for v in sorted(outside, key=lambda v: (y[i][v], rng.random()))[:3]:
            tell(review, (i, v), y)
    before = holds_false(cf.predict(graphs), y)
    assert (holds_false(review.masks(), y) == before).all()
    assert_coherent(review.masks(), graphs)


def test_the_next_claim_has_the_smallest_path_risk_that_can_be_added(reviewed):
    cf, graphs, y = reviewed
    review = ReviewOrder(cf, graphs)
    risks = cf.path_risk(graphs)
    for _ in range(20):
        masks = review.masks()
        candidates = []
        for i, graph in enumerate(graphs):
            for v in range(graph.n_claims):
                parents = [u for u, child in graph.edges.tolist() if child == v]
                is_open = not masks[i][v] and (i, v) not in review.verdicts_
                if is_open and all(masks[i][u] for u in parents):
                    candidates.append((risks[i][v], i, v))
        assert review.asked()[0] == min(candidates)[1:]
        tell(review, review.asked()[0], y)


def test_verdicts_can_be_changed_and_errors_removed(reviewed):
    cf, graphs, _ = reviewed
    review = ReviewOrder(cf, graphs)
    before = review.masks()
    problem, claim = review.asked()[0]
    review.verdicts_[problem, claim] = "true"
    assert review.masks()[problem][claim]
    for verdict in ("false", "unsure"):
        review.verdicts_[problem, claim] = verdict
        assert all((a == b).all() for a, b in zip(review.masks(), before, strict=True))
    del review.verdicts_[problem, claim]
    assert review.asked()[0] == (problem, claim) and review.n_checks == 0
    i = next(
        i for i, graph in enumerate(graphs) if before[i].sum() > 2 and len(graph.edges)
    )
    parent = next(u for u, child in graphs[i].edges.tolist() if before[i][child])
    review.verdicts_[i, parent] = "false"
    left = review.masks()[i]
    for v in np.flatnonzero(before[i]):
        assert left[v] == (v != parent and parent not in graphs[i].ancestors(int(v)))
    review.verdicts_[i, parent] = "unsure"  # It may be true, so it stays.
    assert (review.masks()[i] == before[i]).all()


def independent_claims(n, seed):
    """Answers of ten claims without edges."""
    rng = np.random.default_rng(seed)
    risk = rng.random(10 * n)
    y = (rng.random(10 * n) >= 0.6 * risk**2).astype(int)
    offsets = np.arange(0, 10 * n + 1, 10)
    batch = GraphBatch.from_arrays(-risk[:, None], offsets, ())
    return batch, np.split(y, n)


@pytest.mark.parametrize(
    ("guarantee", "holds"),
    [(ExpectedFalse(), False), (NoFalseClaim(max_false=2), True)],
)
def test_a_review_that_removes_claims_states_what_holds_then(guarantee, holds):
    alpha = 0.3 if holds else 0.12
    cf = HardCF(0, alpha=alpha, guarantee=guarantee).fit(*independent_claims(100, 0))
    level = guarantee.level(None, cf.alpha)
    stated = cf.calibration_.describe(level)
    review = ReviewOrder(cf, independent_claims(50, 1)[0])
    review.verdicts_[review.asked()[0]] = "true"
    assert review.describe().startswith(stated)
    i = next(i for i, mask in enumerate(review.masks()) if mask.any())
    claim = int(np.flatnonzero(review.masks()[i])[0])
    review.verdicts_[i, claim] = "false"
    assert review.describe().startswith(stated) == holds
    assert ("before the review" in review.describe()) != holds
    review.verdicts_[i, claim] = "true"
    assert review.describe().startswith(stated)


def test_verdicts_of_a_review_never_calibrate(reviewed):
    cf, graphs, y = reviewed
    review = ReviewOrder(cf, graphs)
    problem, claim = review.asked()[0]
    review.verdicts_[problem, claim] = "unsure"
    marked, labels = review.reviewed()
    assert labels[problem][claim] == 0 and sum((row >= 0).sum() for row in labels) == 1
    for method in (cf.calibrate, cf.calibration_part, HardCF("frequency-score").fit):
        with pytest.raises(ValueError, match=r"labelled.*review"):
            method(marked, y)
