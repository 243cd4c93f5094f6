"""The mixture: its parts, its weights, what it shares, what it leaves alone."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import softmax
from skdcf.training.auto import fit_auto

from skdcf import GraphBatch
from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import LinearScorer, NeymanPearsonScorer
from skdcf.training import auto, train


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch)


def fit(batch, labels, alphas, seed=0, **more):
    return fit_auto(batch, labels, alphas, rng=np.random.RandomState(seed), **more)


def kept_by_hand(confidence, batch, labels, alpha):
    """True claims per problem with every problem calibrated on all others, slowly."""
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
        k = int(np.floor(alpha * n + 1e-9))
        threshold = others[k - 1] if k else -np.inf
        total += (truth[i] & (risks[i] < threshold)).sum()
    return total / n


def test_a_member_alone_is_what_its_own_training_gives():
    batch, labels = problems(120)
    scorer = fit(batch, labels, [0.1])[0]
    fresh, _ = problems(50, 1)
    result = train(
        LinearScorer(),
        PathRelaxation(),
        batch,
        labels,
        alpha=0.1,
        rng=np.random.RandomState(0),
    )
    np.testing.assert_allclose(
        scorer.members["linear"].confidence(fresh),
        result.confidence(LinearScorer(), fresh.features),
        rtol=1e-3,
        atol=1e-3,
    )
    alone = NeymanPearsonScorer().fit(batch, labels)
    expected = alone.confidence(fresh)
    assert np.array_equal(scorer.members["neyman-pearson"].confidence(fresh), expected)


def test_confidence_is_the_weighted_sum_of_standardised_members():
    batch, labels = problems(120)
    fresh, _ = problems(40, 1)
    for scorer in fit(batch, labels, [0.05, 0.2]):
        total = 0
        parts = zip(
            scorer.members.values(),
            scorer.selection_.weights,
            scorer.centre,
            scorer.scale,
            strict=True,
        )
        for member, weight, centre, scale in parts:
            total += weight * (member.confidence(fresh) - centre) / scale
        np.testing.assert_allclose(scorer.confidence(fresh), total, atol=1e-12)


def test_weights_are_a_softmax_of_what_was_kept():
    for scorer in fit(*problems(150), [0.03, 0.1, 0.3]):
        chosen = scorer.selection_
        best = chosen.retention.max()
        np.testing.assert_allclose(
            chosen.weights, softmax([0, 2] + chosen.retention / (0.05 * best))
        )
        assert chosen.n_folds == 3


def test_few_problems_keep_the_weights_together():
    batch, labels = problems(40, 2)
    chosen = fit(batch, labels, [0.1])[0].selection_
    best = chosen.retention.max()
    expected = softmax([0, 2] + chosen.retention / (best / (0.1 * 40)))
    np.testing.assert_allclose(chosen.weights, expected)


def test_retention_is_that_of_leave_one_out_on_unseen_problems():
    batch, labels = problems(60, 3)
    alpha, n = 0.1, 60
    confidence = np.random.RandomState(0).normal(size=batch.n_claims)
    levels = np.geomspace(max(0.06, 1.5 / n), max(0.16, 6.5 / n), 9)
    expected = np.mean([kept_by_hand(confidence, batch, labels, a) for a in levels])
    found = auto._retention(confidence, batch, labels, alpha, True)
    assert found == pytest.approx(expected)


def test_out_of_fold_confidences_do_not_know_the_problem():
    """A leak would show as retention where labels have nothing to do with features."""
    batch, _ = problems(150, 4)
    rng = np.random.RandomState(0)
    labels = rng.uniform(size=batch.n_claims) > 0.3
    noise = batch.replace_features(rng.normal(size=(batch.n_claims, 30)))
    scorer = fit(noise, labels, [0.1])[0]
    flat = noise.replace_features(np.zeros((noise.n_claims, 1)))
    constant = NeymanPearsonScorer().fit(flat, labels).confidence(flat)
    by_chance = auto._retention(constant, noise, labels, 0.1, True)
    seen = [
        auto._retention(member.confidence(noise), noise, labels, 0.1, True)
        for member in scorer.members.values()
    ]
    assert max(scorer.selection_.retention) < by_chance + 0.15
    assert (seen > scorer.selection_.retention).all()


def test_levels_share_what_knows_no_alpha():
    batch, labels = problems(100)
    several = fit(batch, labels, [0.05, 0.1, 0.2])
    assert len({id(s.members["neyman-pearson"]) for s in several}) == 1
    assert [s.selection_.alpha for s in several] == [0.05, 0.1, 0.2]
    for alpha, scorer in zip([0.05, 0.1, 0.2], several, strict=True):
        alone = fit(batch, labels, [alpha])[0]
        assert np.array_equal(alone.confidence(batch), scorer.confidence(batch))


def test_groups_share_a_fold():
    groups = np.repeat(np.arange(23), [1, 2, 3, 4, 5] * 4 + [6, 7, 8])
    fold = auto._folds(len(groups), groups, 5, np.random.RandomState(0))
    assert sorted(set(fold)) == [0, 1, 2, 3, 4]
    for i in range(23):
        assert len(set(fold[groups == i])) == 1
    single = auto._folds(40, None, 5, np.random.RandomState(0))
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
        name: auto._retention(member.confidence(fresh), fresh, truth, 0.1, True)
        for name, member in (scorer.members | {"auto": scorer}).items()
    }
    assert kept["auto"] > 1.02 * kept["linear"]
    assert kept["auto"] > 0.97 * max(kept.values())


def test_without_coherence():
    batch, labels = problems(80)
    apart = GraphBatch.from_arrays(batch.features, batch.offsets)
    free = fit(batch, labels, [0.1], coherent=False)[0]
    bare = fit(apart, labels, [0.1])[0]
    np.testing.assert_allclose(
        free.confidence(batch), bare.confidence(apart), atol=1e-9
    )


@pytest.mark.parametrize("n", [1, 2, 3, 6, 12])
def test_few_problems(n):
    batch, labels = problems(n, 8)
    for scorer in fit(batch, labels, [0.02, 0.5]):
        assert np.isfinite(scorer.confidence(batch)).all()
        assert scorer.selection_.weights.sum() == pytest.approx(1)
        assert scorer.selection_.n_folds == (0 if n == 1 else min(n, 3))


@pytest.mark.parametrize("truth", [True, False])
def test_one_kind_of_label(truth):
    batch, labels = problems(20)
    scorer = fit(batch, np.full_like(labels, truth), [0.1])[0]
    assert np.isfinite(scorer.confidence(batch)).all()
    np.testing.assert_allclose(scorer.selection_.weights, softmax([0, 2]))


def test_bad_arguments():
    batch, labels = problems(10)
    with pytest.raises(ValueError, match=r"alpha is 1\.5"):
        fit(batch, labels, [0.1, 1.5])
    with pytest.raises(ValueError, match="the problems have none yet"):
        fit(batch.replace_features(None), labels, [0.1])


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
