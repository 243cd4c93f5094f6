"""What holds for every problem, filter and alpha (hypothesis)."""

import numpy as np
import pytest
from assertions import (
    assert_coherent,
    assert_permutation_equivariant,
    reorder_claims,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import calibration_scores

from skdcf import HardCF, ReasoningGraph
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.scorers import ClassifierScorer

# Problems of arbitrary size may be too few for an arbitrary alpha, and say so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore:every edge points from a later claim"),
    pytest.mark.filterwarnings("ignore:alpha = .* allows a false claim"),
    pytest.mark.filterwarnings("ignore:.*answers to:skdcf.exceptions.GuaranteeWarning"),
]


@st.composite
def graphs(draw, with_texts):
    n = draw(st.integers(0, 7))
    order = draw(st.permutations(range(n)))
    pairs = [(order[i], order[j]) for j in range(n) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    values = st.one_of(st.integers(-2, 2).map(float), st.floats(-5, 5))
    features = [[draw(values), draw(values)] for _ in range(n)]
    texts = st.lists(st.text(max_size=5), min_size=n, max_size=n)
    return ReasoningGraph(
        np.reshape(features, (n, 2)),
        edges,
        claims=draw(texts) if with_texts else None,
        problem=draw(st.one_of(st.none(), st.text(max_size=5))),
        id=draw(st.one_of(st.none(), st.integers(0, 9).map(str))),
    )


@st.composite
def data(draw, min_size=1):
    graph = graphs(with_texts=draw(st.booleans()))
    problems = draw(st.lists(graph, min_size=min_size, max_size=12))
    labels = [
        np.array(
            draw(st.lists(st.integers(0, 1), min_size=g.n_claims, max_size=g.n_claims)),
            int,
        )
        for g in problems
    ]
    return problems, labels


filters = st.builds(
    HardCF,
    st.just(0),
    alpha=st.floats(0.01, 0.99),
    edges=st.sampled_from(["given", "none"]),
    ties=st.sampled_from(["exclude", "include", "jitter"]),
    random_state=st.just(0),
)


@settings(max_examples=20)
@given(data(), filters, st.integers(0, 12), st.floats(0.01, 0.99))
def test_predict_is_predict_alpha_thresholded(data, filter, k, alpha):
    problems, labels = data
    filter.fit(problems, labels, False)
    if filter.edges == "given":
        assert_coherent(filter.predict(problems), problems)
    levels = np.concatenate(list(filter.predict_alpha(problems)))
    on_grid = min(max(k, 1), len(problems)) / (len(problems) + 1)
    for a in (alpha, on_grid):
        kept = np.concatenate(list(filter.predict(problems, alpha=a)))
        np.testing.assert_array_equal(kept, levels <= a)
    margin = np.concatenate(list(filter.decision_function(problems)))
    kept = np.concatenate(list(filter.predict(problems)))
    np.testing.assert_array_equal(margin > 0, kept)


guarantees = st.sampled_from(
    [
        NoFalseClaim(),
        NoFalseClaim(max_false=1),
        NoFalseClaim(show=0.5),
        NoFalseClaim(by="kind"),
        ExpectedFalse(by="kind"),
    ]
)


@pytest.mark.filterwarnings("ignore")  # there may be nothing to learn
@settings(max_examples=50)
@given(
    data(min_size=2),
    st.sampled_from([0, ClassifierScorer(), "linear"]),
    guarantees,
    st.sampled_from([None, 0.5]),
    st.sampled_from([False, None, 2]),
    st.randoms(),
)
def test_order_of_problems_does_not_matter(
    data, scorer, guarantee, size, groups, random
):
    problems, labels = data
    n = len(problems)
    # Many answers are equal except for their columns, labels and kinds.
    problems = [
        g.replace(
            id=None, claims=g.claims and ["a"] * g.n_claims, metadata={"kind": i % 2}
        )
        for i, g in enumerate(problems)
    ]
    names = groups and [i % groups for i in range(n)]

    def fit(order):
        filter = HardCF(scorer, alpha=0.3, guarantee=guarantee, random_state=0)
        filter.set_params(calibration_size=size)
        own = groups if not names else [names[i] for i in order]
        try:
            filter.fit([problems[i] for i in order], [labels[i] for i in order], own)
            # The problems that were held out may have another precision than the others.
            levels = np.concatenate(list(filter.predict_alpha(problems)))
        except ValueError as error:
            return str(error)
        assert_permutation_equivariant(filter, problems, np.random.default_rng(0))
        return levels.tolist(), filter.max_path_risks_.tolist()

    assert fit(range(n)) == fit(random.sample(range(n), n))


@settings(max_examples=20)
@given(data(), filters, st.randoms())
def test_order_of_claims_does_not_matter(data, filter, random):
    problems, labels = data
    if filter.ties == "jitter":
        filter.set_params(ties="exclude")
    plain = filter.fit(problems, labels, False)
    risks, scores = (
        plain.path_risk(problems),
        calibration_scores(plain, problems, labels),
    )
    orders = [random.sample(range(g.n_claims), g.n_claims) for g in problems]
    orders = [np.array(order, dtype=int) for order in orders]
    mixed = [reorder_claims(g, o) for g, o in zip(problems, orders, strict=True)]
    mixed_labels = [y[o] for y, o in zip(labels, orders, strict=True)]
    # Which problems are left over is decided by a hash of their content, in its order.
    np.testing.assert_array_equal(
        calibration_scores(plain, mixed, mixed_labels), scores
    )
    found = plain.path_risk(mixed)
    for risk, order, expected in zip(found, orders, risks, strict=True):
        np.testing.assert_array_equal(risk, expected[order])


@settings(max_examples=20)
@given(data())
def test_no_false_claim_is_kept_from_a_calibration_problem_below_its_score(data):
    """The deterministic core of the guarantee: at most k - 1 problems err in sample."""
    problems, labels = data
    filter = HardCF(0).fit(problems, labels, False)
    n, left_over = filter.n_calibration_, set(filter.unused_indices_.tolist())
    for k in range(1, n + 1):
        kept = filter.predict(problems, alpha=k / (n + 1))
        pairs = enumerate(zip(kept, labels, strict=True))
        wrong = [(m & (y == 0)).any() for i, (m, y) in pairs if i not in left_over]
        assert len(wrong) == n and sum(wrong) <= k - 1
