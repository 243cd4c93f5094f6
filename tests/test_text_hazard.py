"""The hazard from words: what it reads, what it learns, where it is refused."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import GuaranteeWarning, SettingWarning
from skdcf.graphs import pack_labels
from skdcf.scorers import MixtureScorer, NeymanPearsonScorer, TextHazard
from skdcf.scorers import Task as TaskOfFit

pytestmark = pytest.mark.filterwarnings("ignore:text. half of what the hazard")
WORDS = ["we", "add", "both", "sides", "and", "divide", "by", "the", "total", "so"]


def texts_for(labels, rng, word="presumably"):
    """Random words; nine of ten false claims have one more, and one of fifty true ones."""
    texts = []
    for true in labels:
        words = rng.choice(WORDS, size=8).tolist()
        if rng.uniform() < (0.02 if true else 0.9):
            words.insert(int(rng.randint(8)), word)
        texts.append(" ".join(words))
    return texts


def problems(n, seed=0):
    """Features say nothing, and texts give errors away."""
    rng = np.random.RandomState(seed)
    base, y = make_reasoning_graphs(n, random_state=seed, return_X_y=True)
    labels = pack_labels(y, base)
    batch = GraphBatch.from_arrays(
        np.ones((base.n_claims, 1)),
        base.offsets,
        base.edges,
        claims=texts_for(labels, rng),
        problems=[f"How many are {i} and {i + 1}?" for i in range(n)],
    )
    return batch, labels


BATCH, LABELS = problems(350)
LISTED = list(BATCH.split(LABELS))
FRESH, TRUTH = problems(300, 1)
FEW = TextHazard(min_problems=2)


def test_a_signal_that_only_words_have():
    for make in (
        lambda text: HardCF(NeymanPearsonScorer(text=text), alpha=0.05, random_state=0),
        lambda text: CoherentConformalFilter(
            MixtureScorer(text=text, n_folds=2), alpha=0.05, random_state=0
        ),
    ):
        with_words = make(TextHazard(min_problems=100)).fit(BATCH, LABELS)
        without = make(None).fit(BATCH, LABELS)
        kept = [cf.score(FRESH, TRUTH) for cf in (without, with_words)]
        assert kept[1] > 1.08 * kept[0]


def test_it_is_the_fifth_of_five():
    scorer = NeymanPearsonScorer(text=TextHazard()).fit(BATCH, LABELS)
    assert [hazard.n_hazards for hazard in scorer.hazards_] == [4, 1]
    assert isinstance(scorer.hazards_[-1], TextHazard)
    plain = NeymanPearsonScorer().fit(BATCH, LABELS)
    words = scorer.text_.words(FRESH)
    own = scorer.hazards_[-1].estimator_.decision_function(words)
    expected = (4 * plain.hazard(FRESH) + own) / 5
    np.testing.assert_allclose(scorer.hazard(FRESH), expected)
    assert plain.text_ is None
    tasks = [TaskOfFit(0.1, rng=np.random.RandomState(0))]
    fold_of = np.arange(len(BATCH)) % 3
    [folded], _ = clone(scorer).fit_folds(BATCH, LABELS, tasks, fold_of)
    assert sum(isinstance(h, TextHazard) for h in folded.hazards_) == 3


# --- what is read


def pairs_too(tokens):
    return tokens + [f"{a} {b}" for a, b in pairwise(tokens)]


def weights_by_hand(known, asked):
    """Rows of {term: weight}: (1 + log count) * (log((1 + n) / (1 + df)) + 1), unit."""
    terms = [set(pairs_too(tokens)) for tokens in known]
    df = {t: sum(t in row for row in terms) for t in set().union(*terms)}
    rows = []
    for tokens in asked:
        found = [t for t in pairs_too(tokens) if t in df]
        row = {
            t: (1 + np.log(found.count(t)))
            * (np.log((1 + len(known)) / (1 + df[t])) + 1)
            for t in set(found)
        }
        norm = np.sqrt(sum(w * w for w in row.values())) or 1.0
        rows.append({t: w / norm for t, w in row.items()})
    return rows


def test_words_by_hand():
    claims = [
        "Step 1: So x + x = 12.5",
        "**Thus** \\frac{1,200}{3} so so",
        "x, x and x",
    ]
    tokens = [
        ["so", "x", "+", "x", "=", "0"],
        ["thus", "\\frac", "{", "0", "}", "{", "0", "}", "so", "so"],
        ["x", ",", "x", "and", "x"],
    ]
    asked = [["what", "is", "x", "?"], ["what", "is", "0", "?"]]
    batch = GraphBatch.from_arrays(
        np.zeros((3, 1)),
        [0, 2, 3],
        claims=claims,
        problems=["What is x?", "What is 7?"],
    )
    reader = TextHazard(min_claims=1, question_weight=0.25).read(batch)
    found = reader.words(batch).toarray()
    own = list(reader.claim_words_.get_feature_names_out())
    of_question = list(reader.question_words_.get_feature_names_out())
    n = len(own)
    assert found.shape == (3, n + len(of_question))
    by_claim = weights_by_hand(tokens, tokens)
    by_question = weights_by_hand(asked, asked)
    for v, question in enumerate([0, 0, 1]):
        expected = [by_claim[v].get(t, 0.0) for t in own]
        np.testing.assert_allclose(found[v, :n], expected)
        expected = [0.25 * by_question[question].get(t, 0.0) for t in of_question]
        np.testing.assert_allclose(found[v, n:], expected)
    assert set(own) == set().union(*by_claim)


def test_white_space_marks_and_numbers_do_not_matter():
    graph = {"features": np.zeros((4, 1)), "offsets": [0, 4]}
    texts = [
        "so 3 + 4 = 7",
        "Step 2: so\n\n3 + 4 = 7",
        "**So** $3 + 4 = 7$",
        "so 9 + 1,000 = 2.5",
    ]
    batch = GraphBatch.from_arrays(**graph, claims=texts)
    words = TextHazard(min_claims=1).read(batch).words(batch).toarray()
    np.testing.assert_array_equal(words, np.tile(words[0], (4, 1)))


def test_rare_words_are_not_read():
    claims = ["alpha beta", "alpha gamma", "alpha beta"]
    batch = GraphBatch.from_arrays(np.zeros((3, 1)), [0, 1, 2, 3], claims=claims)

    def read(least):
        names = TextHazard(min_claims=least).read(batch).claim_words_
        return sorted(names.get_feature_names_out())

    assert read(3) == ["alpha"]
    assert read(2) == ["alpha", "alpha beta", "beta"]


def test_a_question_that_is_missing_or_not_wanted():
    without = TextHazard(question_weight=0.0).read(BATCH)
    n = len(without.claim_words_.vocabulary_)
    assert without.words(BATCH).shape == (BATCH.n_claims, n)
    bare = GraphBatch.from_arrays(
        BATCH.features, BATCH.offsets, BATCH.edges, claims=BATCH.claims
    )
    assert TextHazard().read(bare).words(bare).shape == (BATCH.n_claims, n)
    # Questions seen in training only: their columns are empty.
    both = TextHazard().read(BATCH)
    assert both.words(BATCH).shape[1] > n
    np.testing.assert_array_equal(both.words(bare)[:, n:].toarray(), 0)


@pytest.mark.parametrize("text", ["", "   ", "unheard-of {}"])
def test_texts_without_a_word_that_is_frequent(text):
    claims = [text.format("a" * (i + 1)) for i in range(BATCH.n_claims)]
    claims = (
        claims if "{}" not in text else [c.replace("unheard-of", "") for c in claims]
    )
    batch = GraphBatch.from_arrays(
        BATCH.features, BATCH.offsets, BATCH.edges, claims=claims
    )
    scorer = NeymanPearsonScorer(text=TextHazard()).fit(batch, LABELS)
    assert np.isfinite(scorer.confidence(batch)).all()


# --- the promises of a scorer


def test_alone_and_among_others_to_the_bit():
    scorer = NeymanPearsonScorer(text=TextHazard()).fit(BATCH, LABELS)
    whole = scorer.text_.words(FRESH)
    odds = scorer.hazards_[-1].estimator_.decision_function(whole)
    confidence = scorer.confidence(FRESH)
    for i in (0, 17, 299):
        rows = FRESH.problem_of == i
        words = scorer.text_.words(FRESH[[i]])
        alone = scorer.hazards_[-1].estimator_.decision_function(words)
        np.testing.assert_array_equal(alone, odds[rows])
        np.testing.assert_allclose(
            scorer.confidence(FRESH[[i]]), confidence[rows], rtol=1e-12, atol=1e-12
        )


def test_no_label_of_a_fold_is_in_what_is_said_of_it():
    fold_of = np.arange(len(BATCH)) % 3
    rows = np.flatnonzero(fold_of[BATCH.problem_of] == 1)
    other = LABELS.copy()
    other[rows] = np.random.RandomState(0).permutation(other[rows])
    assert (other != LABELS).any()
    scorer, found = NeymanPearsonScorer(text=TextHazard()), []
    for labels in (LABELS, other):
        tasks = [TaskOfFit(0.1, rng=np.random.RandomState(0))]
        found.append(clone(scorer).fit_folds(BATCH, labels, tasks, fold_of)[1][0])
    np.testing.assert_array_equal(found[0][rows], found[1][rows])
    assert (found[0] != found[1]).any()


def test_pickle_clone_and_the_same_fit_again():
    scorer = NeymanPearsonScorer(text=TextHazard(C=0.5)).fit(BATCH, LABELS)
    expected = scorer.confidence(FRESH)
    for again in (
        pickle.loads(pickle.dumps(scorer)),
        clone(scorer).fit(BATCH, LABELS),
    ):
        np.testing.assert_array_equal(again.confidence(FRESH), expected)
    assert not hasattr(scorer.text, "claim_words_")  # what is passed stays unfitted
    assert repr(clone(scorer)) == "NeymanPearsonScorer(text=TextHazard(C=0.5))"


def test_saved_without_pickle(tmp_path):
    pytest.importorskip("skops")
    from skdcf import load, save

    cf = HardCF(NeymanPearsonScorer(text=FEW), random_state=0).fit(BATCH, LABELS)
    save(cf, tmp_path / "filter.skdcf")
    again = load(tmp_path / "filter.skdcf")
    for one, other in zip(cf.path_risk(FRESH), again.path_risk(FRESH), strict=True):
        np.testing.assert_array_equal(one, other)


def test_settings_can_be_searched():
    hazards = HardCF(NeymanPearsonScorer(text=FEW), alpha=0.05, random_state=0)
    grid = {"scorer__text__C": [1e-6, 10.0], "scorer__text__question_weight": [0.0]}
    search = GridSearchCV(hazards, grid, cv=2, error_score="raise").fit(BATCH, LISTED)
    assert search.best_params_["scorer__text__C"] == 10.0
    grid = {"scorer__text": [None, TextHazard(10.0, min_problems=2)]}
    search = GridSearchCV(hazards, grid, cv=2, error_score="raise").fit(BATCH, LISTED)
    assert search.best_params_["scorer__text"] is not None


# --- what is said and what is refused


def test_it_warns_of_what_it_learns():
    with pytest.warns(GuaranteeWarning, match="half of what .* is who wrote an answer"):
        NeymanPearsonScorer(text=TextHazard()).fit(BATCH, LABELS)
    with pytest.warns(UserWarning) as seen:
        MixtureScorer(text=TextHazard()).fit(BATCH, LABELS, TaskOfFit())
    assert len([w for w in seen if "who wrote" in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeymanPearsonScorer().fit(BATCH, LABELS)


def test_few_problems_leave_it_out():
    few, labels = BATCH[:299], LABELS[: BATCH.offsets[299]]
    scorer = NeymanPearsonScorer(text=TextHazard())
    with pytest.warns(SettingWarning, match="left out, as 299 .* min_problems=300"):
        scorer.fit(few, labels)
    assert scorer.text_ is None and [h.n_hazards for h in scorer.hazards_] == [4]
    plain = NeymanPearsonScorer().fit(few, labels)
    np.testing.assert_array_equal(scorer.confidence(few), plain.confidence(few))


def without_texts(batch):
    return GraphBatch.from_arrays(batch.features, batch.offsets, batch.edges)


@pytest.mark.parametrize(
    "scorer",
    [
        NeymanPearsonScorer(text=TextHazard()),
        NeymanPearsonScorer(text=FEW),
        MixtureScorer(text=TextHazard()),
    ],
)
def test_problems_without_texts(scorer):
    message = "the problems have no claim texts. Give them to ReasoningGraph as claims"
    with pytest.raises(ValueError, match=message):
        HardCF(scorer).fit(without_texts(BATCH[:40]), LABELS[: BATCH.offsets[40]])
    with pytest.raises(ValueError, match=message):
        clone(scorer).fit(BATCH, LABELS, TaskOfFit()).confidence(without_texts(FRESH))


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (NeymanPearsonScorer(text="words"), "'text' parameter of NeymanPearsonScorer"),
        (NeymanPearsonScorer(text=TextHazard), "'text' parameter of NeymanPearson"),
        (MixtureScorer(text=True), "'text' parameter of MixtureScorer"),
        (NeymanPearsonScorer([TextHazard()]), r"is passed as text=TextHazard\(\)"),
        (NeymanPearsonScorer(text=TextHazard(C=0)), "'C' parameter of TextHazard"),
        (
            NeymanPearsonScorer(text=TextHazard(question_weight=-1)),
            r"'question_weight' .* \[0.0, inf\)",
        ),
        (NeymanPearsonScorer(text=TextHazard(min_claims=0)), "'min_claims' .* Got 0"),
        (MixtureScorer(text=TextHazard(min_problems=1.5)), "'min_problems' .* Got 1.5"),
        (
            MixtureScorer({"a": NeymanPearsonScorer()}, text=TextHazard()),
            "only the default members would use it",
        ),
    ],
)
def test_settings_that_make_no_sense(scorer, message):
    with pytest.raises(ValueError, match=message):
        HardCF(scorer).fit(BATCH, LABELS)
