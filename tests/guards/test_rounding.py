"""A problem scores the same alone and among others, or its threshold is lowered.

An exact copy of a false claim must not slip below its own score because it is computed
in another batch, in float32, behind a product, or next to columns of rounding errors.
"""

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.preprocessing import FunctionTransformer

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.jitter import noise_of
from skdcf.labels import pack_labels
from skdcf.ops.hard import nonconformity_scores, path_risk
from skdcf.ops.price import exact_log_price
from skdcf.scorers import FeatureScorer, Scorer

N = 59  # (N + 1) / 5 is whole, so all of them calibrate
GRAPHS, Y = make_reasoning_graphs(N, kind="felm", random_state=0, return_X_y=True)


class Rounded(Scorer):
    """The first feature times a scale, with errors that depend on the size of the batch."""

    def __init__(self, size=1e-7, scale=1.0):
        self.size = size
        self.scale = scale

    def confidence(self, batch):
        error = np.random.default_rng(len(batch)).uniform(-1, 1, batch.n_claims)
        return self.scale * (batch.features[:, 0] + self.size * error)


class Coarse(Rounded):
    resolution = 1e-3


def lowered_by(cf, exact):
    """The exact finite scores, and how much lower the scores of the filter are."""
    risk = path_risk(-exact.confidence(GRAPHS), GRAPHS)
    labels = pack_labels(Y, GRAPHS)
    scores = np.sort(nonconformity_scores(risk, labels, GRAPHS.offsets))
    scores = scores[np.isfinite(scores)]
    return scores, scores - cf.nonconformity_scores_[: len(scores)]


@pytest.mark.parametrize(
    ("scorer", "resolution", "error"),
    [
        (0, 1e-10, 0),
        ("linear", 1e-8, 0),  # A price has a coarser resolution.
        (Rounded(1e-9), 1e-10, 1e-9),
        (Rounded(1e-7), 1e-10, 1e-7),
        (Rounded(1e-8, 1000.0), 1e-10, 1e-5),
        (Coarse(1e-9), 1e-3, 1e-9),
    ],
)
def test_scores_are_lowered_by_more_than_computations_differ(scorer, resolution, error):
    cf = HardCF(scorer, alpha=0.2, random_state=0).fit(GRAPHS, Y).calibrate(GRAPHS, Y)
    exact = Rounded(0.0, getattr(scorer, "scale", 1))
    scores, lowered = lowered_by(cf, cf.scorer_ if scorer == "linear" else exact)
    least = resolution * (1 + np.abs(scores))
    assert (lowered > np.maximum(0.99 * least, 2 * error)).all()
    assert (lowered < 100 * least + 30 * error).all()


def test_published_ties_are_not_lowered():
    cf = HardCF(0, ties="include").fit(GRAPHS, Y)
    assert not lowered_by(cf, Rounded(0.0))[1].any()


# --- copies of a false claim are never kept


def float32_network(batch):
    """Products in single precision, which are rounded as the batch is blocked."""
    rng = np.random.default_rng(0)
    X = batch.features.astype(np.float32)
    for width in (64, 64, 1):
        weights = rng.normal(size=(X.shape[1], width)) / np.sqrt(X.shape[1])
        X = np.tanh(X @ weights.astype(np.float32))
    return X[:, 0]


def cancelling(batch):
    """A product of numbers near 1e7 whose sum is near 0, as the BLAS computes it."""
    X = batch.features
    weights = np.random.default_rng(1).normal(size=(X.shape[1], 8))
    return (1e7 + X) @ (weights - weights.mean(axis=0))


def copies(n, seed):
    row = np.random.default_rng(seed).normal(size=(1, 64))
    return GraphBatch.from_arrays(np.repeat(row, n, axis=0), np.arange(n + 1))


@pytest.mark.filterwarnings("ignore:.*too few")
@pytest.mark.parametrize("guarantee", [None, NoFalseClaim(delta=0.1), ExpectedFalse()])
@pytest.mark.parametrize("ties", ["exclude", "jitter"])
@pytest.mark.parametrize("scorer", [float32_network, Rounded(1e-7), Rounded(1e-9)])
def test_copies_of_a_false_claim_are_dropped_in_every_batch(scorer, ties, guarantee):
    """Of 60 problems that are all the same and all false, 57 in 200 were kept."""
    for n in (19, 60, 257):
        cf = HardCF(scorer, ties=ties, guarantee=guarantee, random_state=0)
        cf.fit(copies(n, 3), np.zeros(n))
        for size in (1, 7, 64, 500):
            assert not np.concatenate(list(cf.predict(copies(size, 3)))).any()


@pytest.mark.parametrize("columns", [float32_network, cancelling])
@pytest.mark.parametrize("ties", ["exclude", "jitter"])
def test_copies_with_columns_of_rounding_errors_are_dropped(columns, ties):
    """Computed before the filter, 96 of 200 were kept: the errors are seen nowhere."""
    for seed in range(20):
        tables = []
        for n in (59, 1, 7):
            batch = copies(n, seed)
            table = columns(batch).reshape(n, -1).astype(float)
            tables.append(np.c_[table, batch.features[:, 0]])
        cf = HardCF(0, alpha=0.3, ties=ties, random_state=0).fit(
            tables[0], np.zeros(59)
        )
        assert not any(cf.predict(table).any() for table in tables[1:])


def test_columns_that_the_filter_computes_are_measured():
    add = FunctionTransformer(lambda table: cancelling(one_claim_each(table)))
    results = []
    for seed in range(20):
        cf = HardCF(0, features=add, alpha=0.3)
        try:
            cf.fit(copies(59, seed).features, np.zeros(59))
        except ValueError as error:
            assert "scored alone" in str(error)
        else:
            results.append(cf.predict(copies(1, seed).features).any())
    assert results and not any(results)


@pytest.mark.parametrize("ties", ["exclude", "jitter"])
def test_numbers_that_come_in_float32_in_use(ties):
    """0.6 is a little more in float32, and so beyond its own score: .176 missed for .1."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, (399, 1)) / 5
        cf = HardCF(0, ties=ties, random_state=0).fit(X[:99], rng.random(99) < 0.6)
        kept = cf.predict(X[99:].astype(np.float32))
        assert not (kept & ~cf.predict(X[99:])).any() or ties == "jitter"
        for value in np.unique(X[99:][kept]):
            assert (cf.nonconformity_scores_ < -value + 1e-6).sum() < 10


@pytest.mark.parametrize(
    ("column", "resolution"),
    [
        (np.float32([0.1, 0.2, 3.7]), 1.1e-5),  # computed in float32, shared by copies
        ([0.1, 0.2, 3.7], 1e-10),
        ([1.0, 0.25, 5.0], 1e-10),  # round numbers, whatever computed them
        ([0.0, 1.0, 1e300], 1e-10),
    ],
)
def test_float32_columns_are_less_precise(column, resolution):
    table = np.tile(np.asarray(column, dtype=np.float64)[:, None], (10, 1))
    cf = HardCF(0, alpha=0.2).fit(table, np.tile([True, False, True], 10))
    lowered = -table[1, 0] - cf.nonconformity_scores_[0]
    assert lowered == pytest.approx(resolution * (1 + table[1, 0]), rel=1e-3)


def test_one_column_of_float32_is_enough_to_raise_a_risk():
    single = np.float32(np.linspace(0.1003, 0.4903, 40)).astype(float)
    X = np.column_stack([single, np.ones(40)])
    cf = HardCF(0, alpha=0.2).fit(X, np.zeros(40))
    raised = cf.path_risk(np.append(X, [[np.pi, 1]], axis=0))[:-1]
    np.testing.assert_allclose(raised + single, 1e-5 * (1 + single), rtol=1e-6)


@pytest.mark.parametrize("cuts", [[], [1, 30]])
def test_scores_that_copies_share_are_lowered_in_parts_too(cuts):
    table = np.append(np.repeat([1 / 3, 0.25, np.pi], [20, 20, 2]), 0.0314159)[:, None]
    cf = HardCF(0, alpha=0.5).fit(table, np.zeros(43))
    rows = np.split(np.random.default_rng(0).permutation(43), cuts)
    cf.calibrate_parts([cf.calibration_part(table[r], np.zeros(len(r))) for r in rows])
    exact = np.sort(-table[:, 0])
    lowered = (exact - cf.nonconformity_scores_) / (1 - exact)
    is_shared = np.isin(exact, [-1 / 3, -np.pi])
    assert (lowered[is_shared] > 9e-7).all() and (lowered[~is_shared] < 1e-9).all()


# --- what exceeds rounding is refused, in fit and in calibrate


def rank(batch):
    return np.argsort(np.argsort(batch.features[:, 0])).astype(float)


def centre(batch):
    return batch.features[:, 0] - batch.features[:, 0].mean()


def after_the_first(batch):
    return batch.features[:, 0] + (batch.problem_of == 0)


class Ranked(FeatureScorer):
    """The parent says that its own confidences are equal in every batch."""

    def confidence(self, batch):
        return rank(batch)


@pytest.mark.parametrize("n", [2, 3, 59])
@pytest.mark.parametrize(
    "scorer", [rank, centre, after_the_first, Rounded(1e-3), Ranked(0)]
)
def test_scorers_that_look_at_the_batch_are_refused(scorer, n):
    rng = np.random.default_rng(0)
    batch = GRAPHS.replace_features(rng.normal(size=(GRAPHS.n_claims, 1)))[:n]
    with pytest.raises(ValueError, match=r"^problem .*confidences.*alone.*batch"):
        HardCF(scorer, alpha=0.5).fit(batch, Y[:n])


def test_calibration_measures_too():
    def growing(batch):
        return batch.features[:, 0] - batch.features[:, 0].mean() * (len(batch) > 40)

    cf = HardCF(growing).fit(GRAPHS[:39], Y[:39])
    before = cf.nonconformity_scores_
    with pytest.raises(ValueError, match=r"depend.*problem"):
        cf.calibrate(GRAPHS, Y)
    assert cf.nonconformity_scores_ is before and cf.n_calibration_ == 39


def test_groups_that_depend_on_the_batch_are_refused():
    """The first problems are in the same group alone as among all."""
    X = one_claim_each(np.append([0.1, 0.1], np.linspace(0, 1, 58)))
    above = NoFalseClaim(by=lambda batch: batch.features[:, 0] > batch.features.mean())
    with pytest.raises(ValueError, match=r"group.*depend.*problem"):
        HardCF(0, alpha=0.2, guarantee=above).fit(X, np.arange(60) % 3 > 0)


# --- jitter


def test_jitter_is_uniform_noise_of_the_problem_alone_that_survives_rounding():
    noise = noise_of(GRAPHS, 5)
    assert (noise >= 0).all() and (noise < 1).all()
    assert abs(noise.mean() - 0.5) < 4 * np.sqrt(1 / 12 / len(noise))
    assert len(np.unique(noise)) > 0.9 * len(noise)
    assert (noise_of(GRAPHS, 6) != noise).mean() > 0.99
    rng = np.random.default_rng(0)
    errors = 1 + 1e-13 * rng.uniform(-1, 1, GRAPHS.features.shape)
    rounded = GRAPHS.replace_features(GRAPHS.features * errors)
    np.testing.assert_array_equal(noise_of(rounded, 5), noise)
    single = GRAPHS.replace_features(np.float32(GRAPHS.features).astype(float))
    assert np.mean(noise_of(single, 5) == noise) > 0.99
    order = rng.permutation(N)
    mixed = GRAPHS[order]
    for i, own in zip(order, mixed.split(noise_of(mixed, 5)), strict=True):
        np.testing.assert_array_equal(own, GRAPHS.split(noise)[i])


def test_jitter_reads_texts_and_leaves_copies_tied():
    told = [ReasoningGraph(None, [], claims=["a", f"b{i}"]) for i in range(20)]
    assert len(np.unique(noise_of(GraphBatch.from_graphs(told), 0))) == 40
    zeros = GraphBatch.from_arrays(np.zeros((4, 2)), [0, 2, 4])
    a, b = zeros.split(noise_of(zeros, 0))
    np.testing.assert_array_equal(a, b)
    assert a[0] != a[1]


class PricedSum(Scorer):
    gain = 0.5

    def confidence(self, batch):
        return -exact_log_price(batch.features.sum(axis=1), batch, gain=self.gain)


def test_prices_that_depend_on_the_resolution_of_float32_are_refused():
    """The hazards of both claims are equal only up to rounding, so they may share a price."""
    pairs = np.random.default_rng(0).normal([0, 1], size=(40, 2))
    labels = [[1, 0]] * 40
    fine = [ReasoningGraph([pair, pair[::-1]], ()) for pair in pairs]
    HardCF(PricedSum()).fit(fine, labels)
    single = [graph.replace(features=np.float32(graph.features)) for graph in fine]
    with pytest.raises(ValueError, match=r"float32.*gain=None"):
        HardCF(PricedSum()).fit(single, labels)


class OfFloat32(Scorer):
    """Knows no score for other numbers."""

    gain = 0.5

    def confidence(self, batch):
        column = batch.features[:, 0]
        return np.where(column == np.float32(column), column, np.nan)


def test_prices_that_are_unknown_within_the_resolution_are_refused():
    table = np.float32(np.random.default_rng(0).normal(size=(40, 1)))
    with pytest.raises(ValueError, match=r"float32.*changes by nan"):
        HardCF(OfFloat32()).fit(table, [1, 0] * 20)
