"""The mixture: its parts, its weights, what it shares, what it leaves alone."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skdcf import GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.ops.hard import below_true_claims
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FeatureScorer,
    FitTask,
    LinearModel,
    MixtureScorer,
    NeymanPearsonScorer,
    Scorer,
)
from skdcf.training import SoftTraining
from skdcf.training.loop import train


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch) == 1


def fit(batch, labels, alphas, seed=0, scorer=None, groups=None):
    """One mixture per level; each task has the random numbers that a filter gives it."""
    tasks = [FitTask(a, groups, np.random.RandomState(seed)) for a in alphas]
    return (scorer or MixtureScorer()).fit_levels(batch, labels, tasks)


def kept_by_hand(confidence, batch, labels, *alphas):
    """True claims per problem with every problem calibrated on all others, slowly.

    The mean over the levels.
    """
    n = len(batch)
    risks = []
    for graph, own in zip(batch, batch.split(-confidence), strict=True):
        above = [own[[*graph.ancestors(v), v]].max() for v in range(graph.n_claims)]
        risks.append(np.array(above))
    truth = batch.split(labels)
    scores = [min(r[~t], default=np.inf) for r, t in zip(risks, truth, strict=True)]
    total = 0
    for i in range(n):
        others = sorted(scores[:i] + scores[i + 1 :])
        for alpha in alphas:
            k = int(np.floor(alpha * n + 1e-9))
            threshold = others[k - 1] if k else -np.inf
            total += (truth[i] & (risks[i] < threshold)).sum()
    return total / n / len(alphas)


def kept_around(confidence, batch, labels, alpha):
    """The mean over nine levels around alpha."""
    n = len(batch)
    levels = np.geomspace(max(0.6 * alpha, 1.5 / n), max(1.6 * alpha, 6.5 / n), 9)
    return kept_by_hand(confidence, batch, labels, *levels)


def retention(confidence, batch, labels, alpha):
    """What a mixture says that its only member keeps, which learns nothing."""
    column = batch.replace_features(confidence[:, None])
    mixture = MixtureScorer({"it": FeatureScorer(0)}, gain=1)
    [scorer] = fit(column, labels, [alpha], scorer=mixture)
    return scorer.selection_.retention[0]


def test_a_member_alone_is_what_its_own_training_gives():
    batch, labels = problems(120)
    scorer = fit(batch, labels, [0.1])[0]
    fresh, _ = problems(50, 1)
    setting = LinearModel(), PathRelaxation(), SoftTraining()
    rng = np.random.RandomState(0)
    [result] = train(*setting, batch, labels, [0.1], rng=rng)
    np.testing.assert_allclose(
        scorer.members_["linear"].confidence(fresh),
        result.confidence(LinearModel(), fresh.features),
        rtol=1e-3,
        atol=1e-3,
    )
    # The second one is the mean of its folds, and close to what it is alone.
    member = scorer.members_["neyman-pearson"]
    alone = NeymanPearsonScorer().fit(batch, labels)
    assert [s.table_.n_hazards for s in (member, alone)] == [12, 4]
    assert member.true_after_error_ == alone.true_after_error_
    found = member.confidence(fresh), alone.confidence(fresh)
    assert np.corrcoef(found)[0, 1] > 0.95


PLAIN = {"first": FeatureScorer(0), "second": FeatureScorer(1)}


def test_confidence_is_the_weighted_sum_of_standardised_members():
    """Members that learn nothing: what the folds say of them is known."""
    batch, labels = problems(120)
    fresh, _ = problems(40, 1)
    mean, scale = batch.features.mean(axis=0), batch.features.std(axis=0)
    mixture = MixtureScorer(PLAIN, gain=1)
    for scorer in fit(batch, labels, [0.05, 0.2], scorer=mixture):
        weights = scorer.selection_.weights
        parts = [(fresh.features[:, j] - mean[j]) / scale[j] for j in (0, 1)]
        expected = weights[0] * parts[0] + weights[1] * parts[1]
        np.testing.assert_allclose(scorer.confidence(fresh), expected, atol=1e-12)
        kept = [
            kept_around(batch.features[:, j], batch, labels, scorer.selection_.alpha)
            for j in (0, 1)
        ]
        np.testing.assert_allclose(scorer.selection_.retention, kept)


@pytest.mark.parametrize(
    ("n", "temperature"), [(60, 1 / 6), (120, 1 / 12), (130, 0.05)]
)
def test_weights_are_a_softmax_of_what_members_keep(n, temperature):
    """Up to 120 problems they stay the closer together the fewer there are."""
    batch, labels = problems(n)
    for members, before in ((PLAIN, [0, 0]), (None, [0, 2, 1])):
        mixture = MixtureScorer(members, n_folds=2)
        [scorer] = fit(batch, labels, [0.1], scorer=mixture)
        chosen = scorer.selection_
        of_best = chosen.retention / chosen.retention.max()
        expected = softmax(before + of_best / temperature)
        np.testing.assert_allclose(chosen.weights, expected)
        assert chosen.n_folds == 2 and len(chosen.members) == len(before)


def test_the_default_spelt_out():
    """The same members by name; only the lean towards the second one is the default's."""
    batch, labels = problems(100)
    members = {
        "linear": ConfTrScorer(LinearModel(spread=0.0)),
        "neyman-pearson": NeymanPearsonScorer(),
        "regression": ClassifierScorer(target="hazard"),
    }
    spelt = MixtureScorer(members, n_folds=3)
    one, other = (fit(batch, labels, [0.1], scorer=s)[0] for s in (None, spelt))
    np.testing.assert_array_equal(one.selection_.retention, other.selection_.retention)
    for name in members:
        found = [s.members_[name].confidence(batch) for s in (one, other)]
        np.testing.assert_array_equal(*found)
    assert all(not hasattr(member, "params_") for member in members.values())


class Recording(Scorer):
    """A member that writes down what it is trained on, and scores with a constant."""

    requires_fit = True
    seen = []

    def fit(self, batch, labels, task=None):
        self.seen.append((batch.features[:, 0].copy(), labels.copy(), task.groups))
        return self

    def confidence(self, batch):
        return np.zeros(batch.n_claims)


def test_each_fold_is_scored_by_members_that_have_not_seen_it(monkeypatch):
    monkeypatch.setattr(Recording, "seen", [])
    batch, labels = problems(31)
    number = batch.replace_features(batch.problem_of[:, None].astype(float))
    groups = np.arange(31) // 2
    [scorer] = fit(
        number,
        labels,
        [0.1],
        scorer=MixtureScorer({"a": Recording()}, n_folds=4),
        groups=groups,
    )
    *parts, whole = Recording.seen
    assert set(whole[0]) == set(range(31)) and len(parts) == 4
    truth = batch.split(labels)
    left_out = []
    for seen, known, of_groups in parts:
        rows = np.unique(seen).astype(int)
        np.testing.assert_array_equal(known, np.concatenate([truth[i] for i in rows]))
        np.testing.assert_array_equal(of_groups, groups[rows])
        rest = set(range(31)) - set(rows.tolist())
        assert {groups[i] for i in rest}.isdisjoint(groups[rows])
        left_out += rest
    assert sorted(left_out) == list(range(31))
    assert scorer.selection_.n_folds == 4


class Shifted(Scorer):
    """Knows alpha, and writes down for which it was fitted."""

    requires_fit = uses_alpha = True
    fitted_for = []

    def fit(self, batch, labels, task=None):
        self.alpha_ = task.alpha
        self.fitted_for.append(task.alpha)
        return self

    def confidence(self, batch):
        return batch.features[:, 0] + self.alpha_ * batch.features[:, 1]


def test_members_that_know_alpha_are_fitted_for_each(monkeypatch):
    monkeypatch.setattr(Shifted, "fitted_for", [])
    batch, labels = problems(60)
    members = {"shifted": Shifted(), "plain": ClassifierScorer()}
    several = fit(batch, labels, [0.1, 0.3], scorer=MixtureScorer(members, n_folds=2))
    assert Shifted.fitted_for == [0.1, 0.3] * 3
    assert [s.members_["shifted"].alpha_ for s in several] == [0.1, 0.3]
    assert several[0].members_["plain"] is several[1].members_["plain"]


def test_a_mixture_trains_through_a_relaxation_where_a_member_does():
    assert MixtureScorer().uses_relaxation
    assert MixtureScorer({"a": ConfTrScorer(), **PLAIN}).uses_relaxation
    assert not MixtureScorer(PLAIN).uses_relaxation
    # A mixture is a scorer, and may be a member.
    assert MixtureScorer({"inner": MixtureScorer()}).uses_relaxation


def test_a_mixture_of_mixtures():
    batch, labels = problems(60)
    inner = MixtureScorer(PLAIN, n_folds=2)
    [scorer] = fit(batch, labels, [0.2], scorer=MixtureScorer({"one": inner}))
    found = scorer.members_["one"].confidence(batch)
    assert np.corrcoef(scorer.confidence(batch), found)[0, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        (MixtureScorer({}), "there are 0 members"),
        (
            MixtureScorer({"a": "linear"}),
            "member 'a' is 'linear', but must be a Scorer",
        ),
        (MixtureScorer([ClassifierScorer()]), "'members' parameter of MixtureScorer"),
        (MixtureScorer(n_folds=1), r"'n_folds' .* \[2, inf\)"),
        (MixtureScorer(n_folds=2.5), r"'n_folds' .* Got 2.5"),
        (MixtureScorer({"a": ClassifierScorer(target="x")}), "'target' parameter"),
    ],
)
def test_settings_that_make_no_sense(mixture, message):
    batch, labels = problems(10)
    with pytest.raises(ValueError, match=message):
        HardCF(mixture).fit(batch, batch.split(labels))


def test_what_is_passed_stays_unfitted():
    batch, labels = problems(60)
    members = {"plain": ClassifierScorer(), "linear": ConfTrScorer()}
    mixture = MixtureScorer(members, n_folds=2)
    before = clone(mixture)
    cf = HardCF(mixture, random_state=0).fit(batch, batch.split(labels))
    assert vars(mixture).keys() == vars(before).keys()
    assert not any(name.endswith("_") for m in members.values() for name in vars(m))
    assert cf.scorer_.members_["plain"] is not members["plain"]


def test_weights_are_a_softmax_of_what_was_kept():
    for scorer in fit(*problems(150), [0.03, 0.1, 0.3]):
        chosen = scorer.selection_
        best = chosen.retention.max()
        np.testing.assert_allclose(
            chosen.weights, softmax([0, 2, 1] + chosen.retention / (0.05 * best))
        )
        assert chosen.n_folds == 3


def test_few_problems_keep_the_weights_together():
    batch, labels = problems(40, 2)
    chosen = fit(batch, labels, [0.1])[0].selection_
    best = chosen.retention.max()
    expected = softmax([0, 2, 1] + chosen.retention / (best / (0.1 * 40)))
    np.testing.assert_allclose(chosen.weights, expected)


def test_retention_is_that_of_leave_one_out_on_unseen_problems():
    batch, labels = problems(60, 3)
    confidence = np.random.RandomState(0).normal(size=batch.n_claims)
    found = retention(confidence, batch, labels, 0.1)
    assert found == pytest.approx(kept_around(confidence, batch, labels, 0.1))


def test_out_of_fold_confidences_do_not_know_the_problem():
    """A leak would show as retention where labels have nothing to do with features."""
    batch, _ = problems(150, 4)
    rng = np.random.RandomState(0)
    labels = rng.uniform(size=batch.n_claims) > 0.3
    noise = batch.replace_features(rng.normal(size=(batch.n_claims, 30)))
    scorer = fit(noise, labels, [0.1])[0]
    flat = noise.replace_features(np.zeros((noise.n_claims, 1)))
    constant = NeymanPearsonScorer().fit(flat, labels).confidence(flat)
    by_chance = retention(constant, noise, labels, 0.1)
    seen = [
        retention(member.confidence(noise), noise, labels, 0.1)
        for member in scorer.members_.values()
    ]
    assert max(scorer.selection_.retention) < by_chance + 0.15
    assert (seen > scorer.selection_.retention).all()


def test_levels_share_what_knows_no_alpha():
    batch, labels = problems(100)
    several = fit(batch, labels, [0.05, 0.2])
    assert len({id(s.members_["neyman-pearson"]) for s in several}) == 1
    assert [s.selection_.alpha for s in several] == [0.05, 0.2]
    for alpha, scorer in zip([0.05, 0.2], several, strict=True):
        alone = fit(batch, labels, [alpha])[0]
        assert np.array_equal(alone.confidence(batch), scorer.confidence(batch))


class Folds(NeymanPearsonScorer):
    """Writes down which problem the mixture has put into which fold."""

    folds = []

    def fit_folds(self, folded, labels, tasks):
        self.folds.append(folded.fold_of)
        return super().fit_folds(folded, labels, tasks)


def folds_of(n, groups):
    batch, labels = problems(n)
    mixture = MixtureScorer({"a": Folds()}, n_folds=5)
    fit(batch, labels, [0.1], scorer=mixture, groups=groups)
    return Folds.folds.pop()


def test_groups_share_a_fold():
    groups = np.repeat(np.arange(23), [1, 2, 3, 4, 5] * 4 + [6, 7, 8])
    fold = folds_of(len(groups), groups)
    assert sorted(set(fold)) == [0, 1, 2, 3, 4]
    for i in range(23):
        assert len(set(fold[groups == i])) == 1
    single = folds_of(40, None)
    assert np.bincount(single).tolist() == [8] * 5


def test_groups_of_copies_are_not_mistaken_for_evidence():
    """With copies in other folds, a memory of problems looks like skill."""
    batch, _ = problems(40, 6)
    rng = np.random.RandomState(1)
    labels = rng.uniform(size=batch.n_claims) > 0.3
    batch = batch.replace_features(rng.normal(size=(batch.n_claims, 60)))
    twice = batch[np.tile(np.arange(40), 3)]
    labels = np.tile(labels, 3)
    groups = np.tile(np.arange(40), 3)
    apart = fit(twice, labels, [0.1], groups=groups)[0].selection_.retention
    mixed = fit(twice, labels, [0.1])[0].selection_.retention
    assert (apart < 0.7 * mixed).all()


def test_not_worse_than_its_members_by_much_and_better_than_the_linear_one():
    train_set, labels = problems(350, 10)
    fresh, truth = problems(1000, 11)
    scorer = fit(train_set, labels, [0.1])[0]
    kept = {
        name: retention(member.confidence(fresh), fresh, truth, 0.1)
        for name, member in (scorer.members_ | {"auto": scorer}).items()
    }
    assert kept["auto"] > 1.02 * kept["linear"]
    assert kept["auto"] > 0.97 * max(kept.values())


def test_without_edges():
    batch, labels = problems(80)
    apart = GraphBatch.from_arrays(batch.features, batch.offsets)
    free = fit(batch.without_edges(), labels, [0.1])[0]
    bare = fit(apart, labels, [0.1])[0]
    assert np.array_equal(free.confidence(apart), bare.confidence(apart))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [1, 3, 12])
def test_few_problems(n):
    batch, labels = problems(n, 8)
    for scorer in fit(batch, labels, [0.02, 0.5]):
        assert np.isfinite(scorer.confidence(batch)).all()
        assert scorer.selection_.weights.sum() == pytest.approx(1)
        assert scorer.selection_.n_folds == (0 if n == 1 else min(n, 3))


@pytest.mark.parametrize("truth", [True, False])
def test_one_kind_of_label(truth):
    batch, labels = problems(20)
    with pytest.warns(
        ConvergenceWarning, match=f"no training claim is {not truth}".lower()
    ):
        scorer = fit(batch, np.full_like(labels, truth), [0.1])[0]
    assert np.isfinite(scorer.confidence(batch)).all()
    np.testing.assert_allclose(scorer.selection_.weights, softmax([0, 2, 1]))
    kind = "true" if truth else "false"
    assert (
        f"as all {len(labels)} claims that train are {kind}" in scorer.selection_.prior
    )


def test_nothing_was_judged_that_trains():
    batch, _ = problems(20)
    with pytest.warns(ConvergenceWarning, match="no training claim"):
        scorer = fit(batch, np.full(batch.n_claims, -1), [0.1])[0]
    assert np.isfinite(scorer.confidence(batch)).all()
    assert "no claim that trains was judged" in scorer.selection_.prior


def test_no_claim_below_an_error_was_judged():
    """As in answers of which people marked the first error: none of these counts as true."""
    batch, labels = problems(60)
    labels = labels.astype(int)
    below_an_error = ~below_true_claims(labels != 0, batch)
    labels = np.where(below_an_error, -1, labels)
    assert below_an_error.any()
    scorer = fit(batch, labels, [0.1])[0]
    prices = scorer.members_["neyman-pearson"]
    assert prices.true_after_error_ == 0
    assert np.isfinite(scorer.confidence(batch)).all()
    assert 0 < scorer.selection_.weights.min() < scorer.selection_.weights.max()


def test_bad_arguments():
    batch, labels = problems(10)
    with pytest.raises(ValueError, match=r"alpha is 1\.5"):
        fit(batch, labels, [0.1, 1.5])
    with pytest.raises(ValueError, match="'n_folds' parameter of MixtureScorer"):
        fit(batch, labels, [0.1], scorer=MixtureScorer(n_folds=1))
    with pytest.raises(ValueError, match="the problems have no features yet"):
        fit(batch.replace_features(None), labels, [0.1])


@pytest.mark.long
def test_a_loaded_scorer_needs_no_gradients(tmp_path):
    """Prediction in a fresh process, from a pickle, without autograd."""
    batch, labels = problems(30)
    scorer = fit(batch, labels, [0.1])[0]
    path = tmp_path / "scorer.pkl"
    path.write_bytes(pickle.dumps((scorer, batch, scorer.confidence(batch))))
    code = (
        "import pickle, sys, numpy as np\n"
        f"scorer, batch, expected = pickle.load(open({str(path)!r}, 'rb'))\n"
        "assert np.array_equal(scorer.confidence(batch), expected)\n"
        "assert 'autograd' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
