"""Equal answers are recognised without their questions, and many of them are refused."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.exceptions import GuaranteeWarning
from skdcf.graphs import as_batch
from skdcf.guarantees import NoFalseClaim
from skdcf.identity import are_fine
from skdcf.scorers import ClassifierScorer, Scorer


def answers(n, question="question {}", texts=True, seed=0, **metadata):
    """Answers with two claims and two columns, with texts or without."""
    rng = np.random.default_rng(seed)
    graphs = [
        ReasoningGraph(
            rng.normal(size=(2, 2)),
            (),
            problem=question and question.format(i),
            claims=[f"claim {k} of {i}" for k in range(2)] if texts else None,
            metadata={name: value(i) for name, value in metadata.items()} or None,
        )
        for i in range(n)
    ]
    return graphs, list(rng.integers(0, 2, size=(n, 2)))


def twice(graphs, n=None, question="reworded {}"):
    """The graphs, followed by copies of the first n of them under other questions."""
    copies = [g.replace(problem=question.format(i)) for i, g in enumerate(graphs[:n])]
    return [*graphs, *copies]


def learning(**settings):
    return HardCF(ClassifierScorer(), alpha=0.2, random_state=0, **settings)


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("scorer", [0, ClassifierScorer()])
def test_answers_under_two_questions_are_refused(texts, scorer):
    graphs, labels = answers(60, texts=texts)
    with pytest.raises(ValueError, match=r"5%.* of \d+ are.*groups=.*groups=False"):
        HardCF(scorer, alpha=0.2).fit(twice(graphs), labels * 2)
    X, groups = twice(graphs), np.tile(np.arange(60), 2)
    HardCF(scorer, alpha=0.2).fit(X, labels * 2, groups=groups)
    HardCF(scorer, alpha=0.2).fit(X, labels * 2, groups=False)


def test_training_answers_calibrate_neither_reworded_nor_rounded():
    graphs, labels = answers(60)
    cf = learning(calibration_size=0).fit(graphs, labels)
    for again in (
        [g.replace(problem=None) for g in graphs],
        twice(graphs)[60:],
    ):
        with pytest.raises(ValueError, match="60 of 60"):
            cf.calibrate(again, labels)
        with pytest.raises(ValueError, match=r"50%.*60 of 60"):
            cf.calibrate(again, labels, groups=False)
    rows, labels = answers(60, None, texts=False)
    cf = learning(calibration_size=0).fit(rows, labels)
    single = [ReasoningGraph(np.float32(g.features), ()) for g in rows]
    with pytest.raises(ValueError, match="60 of 60"):
        cf.calibrate(single, labels)


def test_few_copies_of_training_answers_are_left_out():
    graphs, labels = answers(60)
    cf = learning(calibration_size=0).fit(graphs[:40], labels[:40])
    new, new_labels = answers(200, "new {}", seed=1)
    new = [g.replace(claims=[f"other {i}", "b"]) for i, g in enumerate(new)]
    copied = [*new, *twice(graphs[:3], 3)[3:]]
    with pytest.warns(GuaranteeWarning, match="3 of 203 .*left out"):
        cf.calibrate(copied, [*new_labels, *labels[:3]])
    scores = cf.nonconformity_scores_
    cf.calibrate(new, new_labels)
    np.testing.assert_array_equal(cf.nonconformity_scores_, scores)
    assert not np.isin(cf.unused_indices_, [200, 201, 202]).any()


class Rows(Scorer):
    """Remembers the claims that it was trained on."""

    requires_fit = True

    def fit(self, batch, labels, task):
        self.claims_ = list(batch.claims)
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
def test_training_leaves_out_what_equals_a_calibration_answer():
    graphs, labels = answers(120)
    X, y = twice(graphs, 1), [*labels, labels[0]]
    seen = set()
    for seed in range(12):
        cf = HardCF(Rows(), alpha=0.2, calibration_size=60, random_state=seed)
        cf.fit(X, y)
        seen.add(cf.scorer_.claims_.count("claim 0 of 0"))
    assert seen == {0, 2}  # never one of them in training and the other in calibration


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
def test_one_pair_calibrates_whatever_its_share():
    graphs, labels = answers(15)
    cf = HardCF(0, alpha=0.2).fit(twice(graphs, 1), [*labels, labels[0]])
    assert cf.n_calibration_ + len(cf.unused_indices_) == 16


def test_few_copies_change_the_stated_level():
    graphs, labels = answers(97)
    X, y = twice(graphs, 2), [*labels, *labels[:2]]
    with pytest.warns(
        GuaranteeWarning, match=r"4 of 99 .* level 0.0104 instead of 0.01"
    ):
        HardCF(0, alpha=0.01).fit(X, y)


def test_the_limit_is_that_of_each_group():
    graphs, labels = answers(100, kind=lambda i: "rare" if i < 20 else "frequent")
    X, y = twice(graphs, 2), [*labels, *labels[:2]]
    HardCF(0, alpha=0.01).fit(X[:100], y[:100])
    by = NoFalseClaim(by="kind")
    with pytest.raises(ValueError, match="4 of 22"):
        HardCF(0, alpha=0.01, guarantee=by).fit(X, y)


def test_named_copies_in_other_groups_are_counted():
    graphs, labels = answers(30)
    with pytest.warns(GuaranteeWarning, match="of other groups"):
        HardCF(0, alpha=0.02).fit(twice(graphs), labels * 2, groups=np.arange(60))
    names = np.arange(30)
    cf = learning(calibration_size=0).fit(graphs, labels, groups=names)
    with pytest.warns(GuaranteeWarning, match="29 of 29 .* other groups"):
        cf.calibrate(graphs, labels, groups=names + 100)


@pytest.mark.parametrize(
    ("columns", "fine"),
    [
        (lambda rng: rng.normal(size=(99, 2)), True),
        (lambda rng: np.float32(rng.normal(size=(99, 2))), True),
        (lambda rng: rng.normal(size=(99, 1)), False),
        (lambda rng: rng.normal(size=(99, 2)).round(3), False),
        (lambda rng: rng.integers(0, 2, size=(99, 5)), False),
        (lambda rng: rng.integers(0, 8, size=(99, 5)) / 7, False),
        (lambda rng: rng.integers(0, 999, size=(99, 5)), False),
        (lambda rng: rng.normal(size=(29, 2)), False),
    ],
)
def test_which_columns_recognise_copies(columns, fine):
    table = np.asarray(columns(np.random.default_rng(0)), dtype=float)
    assert are_fine(as_batch(table)) == fine
    labels = np.arange(len(table)) % 2
    if fine:
        with pytest.raises(ValueError, match="groups="):
            HardCF(0).fit(np.repeat(table, 3, axis=0), np.repeat(labels, 3))
    else:
        HardCF(0).fit(np.repeat(table, 3, axis=0), np.repeat(labels, 3))


def test_answers_with_one_text_or_no_claim_are_no_copies():
    short = [ReasoningGraph([[i]], (), claims=["Yes."]) for i in range(30)]
    empty = [ReasoningGraph(np.empty((0, 1)), (), claims=[])] * 9
    HardCF(0).fit([*short, *empty], [*([[1], [0]] * 15), *([[]] * 9)])


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
def test_the_limit_of_training_answers_is_that_of_each_group():
    graphs, labels = answers(60)
    by = NoFalseClaim(by="kind")
    graphs = [g.replace(metadata={"kind": "a"}) for g in graphs]
    new, new_labels = answers(200, "new {}", seed=1, kind=lambda i: "ab"[i < 10])
    new = [g.replace(claims=[f"other {i}", "b"]) for i, g in enumerate(new)]
    copies = [g.replace(problem="x", metadata={"kind": "b"}) for g in graphs[:2]]
    X, y = [*new, *copies], [*new_labels, *labels[:2]]
    learning(calibration_size=0).fit(graphs, labels).calibrate(X, y)
    cf = learning(calibration_size=0, guarantee=by).fit(graphs, labels)
    with pytest.raises(ValueError, match="2 of 12"):
        cf.calibrate(X, y)
