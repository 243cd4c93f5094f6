"""Wordings together with everything else that decides; what a text says is counted by hand."""

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF
from skdcf.apps.labelling import ReviewOrder
from skdcf.estimators import choose, chosen_answers, join_answers
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.monitoring import release, release_claims
from tests.worded import draw_answers

pytestmark = pytest.mark.filterwarnings("ignore::skdcf.exceptions.LabelWarning")
N_DRAWS = 12


def graphs_of(worlds, **metadata):
    rows = [
        world.graph(id=i, metadata={key: values[i] for key, values in metadata.items()})
        for i, world in enumerate(worlds)
    ]
    return GraphBatch.from_graphs(rows)


def labels_of(worlds):
    return [world.flat_labels for world in worlds]


def fitted(worlds, guarantee=None, alpha=0.1, **metadata):
    cf = HardCF(0, alpha=alpha, guarantee=guarantee or NoFalseClaim())
    return cf.fit(graphs_of(worlds, **metadata), labels_of(worlds), groups=False)


def wrong(worlds, masks):
    """Whether each text says something false."""
    return np.array([not all(w.says(m)) for w, m in zip(worlds, masks, strict=True)])


def first_statement(world):
    """The smallest risk that must be accepted for the text to say anything."""
    risks = world.thresholds()[:-1]
    return next(risk for risk in risks if world.text(np.nextafter(risk, np.inf)))


def assert_at_most(losses, alpha):
    error = np.std(losses, ddof=1) / np.sqrt(len(losses))
    assert np.mean(losses) < alpha + 3 * error
    assert np.mean(losses) > alpha / 4  # something is at stake


def test_the_safest_claim_is_a_wording_and_chosen_answers_are_covered():
    rng = np.random.default_rng(0)
    cf = fitted(draw_answers(rng, 100))
    losses = []
    for _ in range(N_DRAWS):
        sampled = draw_answers(rng, 3 * 400)
        question = np.arange(len(sampled)) // 3
        rows = choose(cf, graphs_of(sampled), question)
        least = [first_statement(world) for world in sampled]
        assert (rows % 3 == np.reshape(least, (-1, 3)).argmin(axis=1)).all()
        chosen = chosen_answers(cf, graphs_of(sampled), question)
        worlds = [sampled[i] for i in rows]
        cf.calibrate(chosen[:100], labels_of(worlds[:100]), groups=False)
        losses.append(wrong(worlds[100:], cf.predict(chosen[100:])).mean())
    assert_at_most(losses, 0.1)


def test_answers_with_wordings_are_not_joined():
    worlds = draw_answers(np.random.default_rng(1), 4)
    with pytest.raises(ValueError, match="wordings"):
        join_answers(graphs_of(worlds), [0, 0, 1, 1])


@pytest.mark.long
def test_released_answers_are_shown_in_their_most_specific_wordings():
    rng = np.random.default_rng(2)
    losses = []
    for _ in range(N_DRAWS):
        cf = fitted(draw_answers(rng, 200))
        worlds = draw_answers(rng, 300)
        free = release(cf, graphs_of(worlds), alpha=0.4)
        whole = [np.ones(len(world.flat_labels), dtype=bool) for world in worlds]
        losses.append(wrong(worlds, whole)[free].mean() if free.any() else 0.0)
    assert_at_most(losses, 0.4)


@pytest.mark.long
def test_claims_that_are_released_in_a_batch_are_counted_as_the_text_says_them():
    rng = np.random.default_rng(3)
    losses = []
    for _ in range(N_DRAWS):
        cf = fitted(draw_answers(rng, 300), alpha=0.05)
        worlds = draw_answers(rng, 200)
        masks = release_claims(cf, graphs_of(worlds), alpha=0.2, groups=False)
        shown = np.array([mask.any() for mask in masks])
        losses.append(wrong(worlds, masks)[shown].mean() if shown.any() else 0.0)
    assert_at_most(losses, 0.2)


@pytest.mark.parametrize("alpha", [0.05, 0.1])
@pytest.mark.parametrize("guarantee", [NoFalseClaim(), ExpectedFalse("share")])
def test_a_review_never_adds_a_false_statement(guarantee, alpha):
    rng = np.random.default_rng(4)
    cf = fitted(draw_answers(rng, 100), guarantee, alpha)
    worlds = draw_answers(rng, 60)
    review = ReviewOrder(cf, graphs_of(worlds))
    before = [
        world.says(mask) for world, mask in zip(worlds, review.masks(), strict=True)
    ]
    claims = [
        [(c, k) for c, row in enumerate(world.risks) for k in range(len(row))]
        for world in worlds
    ]
    while (check := review.next()) is not None:
        c, k = claims[check.problem][check.claim]
        kept = review.masks()[check.problem]
        if k + 1 < len(worlds[check.problem].risks[c]):
            assert kept[check.claim + 1]  # the vaguer wording was judged before
        true = worlds[check.problem].labels[c][k] == 1
        review.told(check.problem, check.claim, "true" if true else "false")
    after = [
        world.says(mask) for world, mask in zip(worlds, review.masks(), strict=True)
    ]
    for told_before, told_after in zip(before, after, strict=True):
        assert told_after.count(False) <= told_before.count(False)
        assert len(told_after) >= len(told_before)
    assert sum(map(len, after)) > sum(map(len, before))


@pytest.mark.long
def test_each_group_is_covered():
    rng = np.random.default_rng(5)
    losses = []
    for _ in range(N_DRAWS):
        worlds = draw_answers(rng, 900)
        # A hard answer has a surer claim that is false.
        colours = ["red" if min(map(max, w.risks)) < 0.3 else "blue" for w in worlds]
        cf = fitted(worlds[:300], NoFalseClaim(by="colour"), colour=colours[:300])
        new = graphs_of(worlds[300:], colour=colours[300:])
        lost = wrong(worlds[300:], cf.predict(new))
        red = np.array(colours[300:]) == "red"
        losses.append([lost[red].mean(), lost[~red].mean()])
    for of_group in np.transpose(losses):
        assert_at_most(of_group, 0.1)


def is_hard(batch):
    """Weights 4 and 1 by the risk of the first claim in its most specific wording."""
    return np.where(-batch.features[batch.offsets[:-1], 0] > 0.7, 4.0, 1.0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("guarantee", "level"),
    [
        (NoFalseClaim(weight=is_hard), 0.1),
        (ExpectedFalse("count", weight=is_hard), 0.3),
    ],
)
def test_a_shift_that_the_weights_describe_is_covered(guarantee, level):
    rng = np.random.default_rng(6)
    losses = []
    for _ in range(N_DRAWS):
        cf = fitted(draw_answers(rng, 200), guarantee, level)
        worlds = draw_answers(rng, 1000)
        likely = is_hard(graphs_of(worlds))
        drawn = rng.choice(len(worlds), 500, p=likely / likely.sum())
        worlds = [worlds[i] for i in drawn]
        masks = cf.predict(graphs_of(worlds))
        if isinstance(guarantee, NoFalseClaim):
            losses.append(wrong(worlds, masks).mean())
        else:
            false = [w.says(m).count(False) for w, m in zip(worlds, masks, strict=True)]
            losses.append(np.mean(false))
    assert_at_most(losses, level)
