"""Equal answers are recognised without their questions, and many of them are refused."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.exceptions import GuaranteeWarning
from skdcf.graphs import as_batch
from skdcf.guarantees import NoFalseClaim
from skdcf.identity import are_fine, hashes_of, problem_digest, text_code
from skdcf.scorers import ClassifierScorer, Scorer
from skdcf.uses import seen


def answers(n, first=0, texts=True, kind=lambda i: "a"):
    """Answers with two claims and two columns, with texts or without."""
    rng = np.random.default_rng(first)
    graphs = [
        ReasoningGraph(
            rng.normal(size=(2, 2)),
            [(0, 1)],
            problem=f"question {i}",
            claims=[f"claim {k} of {i}" for k in range(2)] if texts else None,
            metadata={"kind": kind(i)},
        )
        for i in range(first, first + n)
    ]
    return graphs, list(rng.integers(0, 2, size=(n, 2)))


def reworded(graphs, **more):
    return [g.replace(problem=f"reworded {i}", **more) for i, g in enumerate(graphs)]


def trained(graphs, labels, groups=None, **settings):
    cf = HardCF(ClassifierScorer(), alpha=0.2, calibration_size=0, **settings)
    return cf.fit(graphs, labels, groups=groups)


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("scorer", [0, ClassifierScorer()])
def test_answers_under_two_questions_are_refused(texts, scorer):
    graphs, labels = answers(60, texts=texts)
    X, y = graphs + reworded(graphs), labels * 2
    with pytest.raises(ValueError, match=r"5%.* of \d+ do.*groups=.*groups=False"):
        HardCF(scorer, alpha=0.2, random_state=0).fit(X, y)
    HardCF(scorer, alpha=0.2, random_state=0).fit(
        X, y, groups=np.tile(np.arange(60), 2)
    )
    HardCF(scorer, alpha=0.2, random_state=0).fit(X, y, groups=False)


def test_the_most_frequent_copy_is_shown():
    graphs, labels = answers(60)
    rows = [*range(9), 7, 0]
    X, y = graphs + reworded([graphs[i] for i in rows]), labels + [labels[0]] * 11
    X[7] = X[7].replace(claims=["x" * 99, "y"])
    for i in (60 + 7, 60 + 9):
        X[i] = X[i].replace(claims=X[7].claims)
    for step in (1, -1):
        with pytest.raises(ValueError, match=r"begins with 'x{70,80}\.\.\.\. If"):
            HardCF(0, alpha=0.2).fit(X[::step], y[::step], groups=None)


def test_a_fit_that_can_only_train_on_copies_of_held_out_answers_is_refused():
    graphs, labels = answers(1)
    with pytest.raises(
        ValueError, match=r"calibration_size=1 leaves no answer.*groups="
    ):
        HardCF(ClassifierScorer(), calibration_size=1).fit(
            graphs + reworded(graphs), labels * 2
        )


@pytest.mark.parametrize("texts", [True, False])
def test_training_answers_calibrate_neither_reworded_nor_rounded(texts):
    graphs, labels = answers(60, texts=texts)
    cf = trained(graphs, labels)
    single = [g.replace(features=np.float32(g.features)) for g in reworded(graphs)]
    with pytest.raises(ValueError, match=r"5%.*60 of 60"):
        cf.calibrate(single, labels)
    full = HardCF(ClassifierScorer(), alpha=0.2, calibration_size="all")
    assert seen(cf, single)[0].all()
    assert not seen(trained(graphs, labels, groups=range(60)), single)[0].any()
    for filter in cf, full.fit(graphs, labels):
        with pytest.raises(ValueError, match=r"50%.*60 of 60"):
            filter.calibrate(single, labels, groups=False)
    new, new_labels = answers(60, first=100, texts=texts)
    assert seen(full.calibrate(new, new_labels, groups=range(60)), graphs)[0].all()


def test_few_copies_of_training_answers_are_left_out():
    graphs, labels = answers(40)
    cf = trained(graphs, labels)
    new, new_labels = answers(200, first=100)
    with pytest.warns(GuaranteeWarning, match="3 of 203 .*left out"):
        cf.calibrate([*new, *reworded(graphs[:3])], [*new_labels, *labels[:3]])
    scores = cf.nonconformity_scores_
    assert not np.isin(cf.unused_indices_, [200, 201, 202]).any()
    cf.calibrate(new, new_labels)
    np.testing.assert_array_equal(cf.nonconformity_scores_, scores)


class Rows(Scorer):
    """Remembers the claims that it was trained on."""

    requires_fit = True

    def fit(self, batch, labels, task):
        self.claims_ = list(batch.claims)
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
@pytest.mark.parametrize(
    ("groups", "counts"), [(None, {0, 2}), (range(121), {0, 1, 2})]
)
def test_training_leaves_out_what_equals_a_calibration_answer(groups, counts):
    """But if the model repeats itself, as groups= states, nothing is left out."""
    graphs, labels = answers(120)
    X, y = [*graphs, *reworded(graphs[:1])], [*labels, labels[0]]
    found = set()
    for seed in range(12):
        cf = HardCF(Rows(), alpha=0.2, calibration_size=60, random_state=seed)
        cf.fit(X, y, groups=groups)
        found.add(cf.scorer_.claims_.count("claim 0 of 0"))
    assert found == counts  # 1: one of them in training and the other in calibration


@pytest.mark.parametrize(
    ("n", "n_copies", "alpha", "message"),
    [
        (15, 1, 0.2, r"2 of \d+ "),  # One pair calibrates whatever its share.
        (97, 2, 0.01, r"4 of 99 .* level 0.0104 instead of 0.01"),
    ],
)
def test_few_copies_change_the_stated_level(n, n_copies, alpha, message):
    graphs, labels = answers(n)
    X, y = graphs + reworded(graphs[:n_copies]), labels + labels[:n_copies]
    with pytest.warns(GuaranteeWarning, match=message):
        HardCF(0, alpha=alpha).fit(X, y)


def test_the_limits_are_those_of_each_group():
    by = NoFalseClaim(by="kind")
    graphs, labels = answers(100, kind=lambda i: "ab"[i < 20])
    X, y = graphs + reworded(graphs[:2]), labels + labels[:2]
    with pytest.raises(ValueError, match="4 of 22"):
        HardCF(0, alpha=0.01, guarantee=by).fit(X, y)
    # Two groups are counted together, in any order of the rows.
    X, y = X + reworded(graphs[20:30]), y + labels[20:30]
    for step in (1, -1):
        with pytest.raises(ValueError, match="24 of 112"):
            HardCF(0, alpha=0.01, guarantee=by).fit(X[::step], y[::step])
    new, new_labels = answers(200, first=100, kind=lambda i: "ab"[i < 110])
    X, y = new + reworded(graphs[:2]), new_labels + labels[:2]
    with pytest.warns(GuaranteeWarning, match="2 of 202"):
        trained(graphs, labels).calibrate(X, y)
    with pytest.raises(ValueError, match="2 of 12"):
        trained(graphs, labels, guarantee=by).calibrate(X, y)


def test_named_copies_in_other_groups_are_counted():
    graphs, labels = answers(30)
    names = np.arange(30)
    with pytest.warns(GuaranteeWarning, match="of other groups"):
        HardCF(0, alpha=0.02).fit(graphs * 2, labels * 2, groups=np.arange(60))
    cf = trained(graphs, labels, groups=names)
    with pytest.warns(GuaranteeWarning, match="29 of 29 .* other groups"):
        cf.calibrate(graphs, labels, groups=names + 100)


@pytest.mark.parametrize(
    ("columns", "fine"),
    [
        (lambda rng: rng.normal(size=(99, 2)), True),
        (lambda rng: np.float32(rng.normal(size=(99, 2))), True),
        (lambda rng: rng.integers(2**24, 2**25, size=(99, 2)), True),
        (lambda rng: rng.normal(size=(99, 1)), False),
        (lambda rng: rng.normal(size=(99, 2)).round(3), False),
        (lambda rng: rng.integers(0, 8, size=(99, 5)) / 7, False),
        (lambda rng: rng.normal(size=(29, 2)), False),
    ],
)
def test_which_columns_recognise_copies(columns, fine):
    table = np.asarray(columns(np.random.default_rng(0)), dtype=float)
    assert are_fine(as_batch(table)) == fine
    hashes = [
        hashes_of(as_batch(rows), columns_are_fine=True).answer.tobytes()
        for rows in (table, np.float32(table))
    ]
    assert len({*hashes}) == 1
    X, y = np.repeat(table, 3, axis=0), np.arange(3 * len(table)) // 3 % 2
    if fine:
        with pytest.raises(ValueError, match="groups="):
            HardCF(0).fit(X, y)
    else:
        HardCF(0).fit(X, y)


def test_all_rows_decide_whether_columns_recognise_copies():
    rng = np.random.default_rng(0)
    coarse, fine = rng.normal(size=(10_000, 2)).round(1), rng.normal(size=(2000, 2))
    for table in ([coarse, fine], [fine, coarse]):
        assert are_fine(as_batch(np.concatenate(table)))


def test_answers_with_one_text_or_no_claim_are_no_copies():
    short = [ReasoningGraph([[i]], (), claims=["Yes."]) for i in range(30)]
    empty = [ReasoningGraph(np.empty((0, 1)), (), claims=[])] * 9
    HardCF(0).fit([*short, *empty], [*([[1], [0]] * 15), *([[]] * 9)])


def test_hash_values_never_change():
    """Saved filters, label files and the metadata of data sets contain them."""
    texts = as_batch(
        [ReasoningGraph(claims=["a", "b"], edges=[(0, 1)]), ReasoningGraph(claims=[])]
    )
    assert hashes_of(texts).content.tolist() == [17891760522800452624, 0]
    columns = [[0.1, 2.0], [-0.0, 1e9]]
    graph = ReasoningGraph(columns, [(0, 1)], problem="Why?")
    hashes = hashes_of(as_batch([graph]), [7.0], columns_are_fine=True)
    assert [int(values[0]) for values in list(vars(hashes).values())[1:]] == [
        5658055402015703109,  # the question 7
        7431058332231565686,  # its text
        17522509376939473567,
        17795020860083985596,
    ]
    assert text_code(" A  b") == 7220463191400036201
    assert problem_digest(graph) == "242864ce9996b17a"
