"""The public prior: what it reads, what it has seen, and how it is blended."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

import skdcf
from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.estimators import seen
from skdcf.exceptions import CalibrationWarning, GuaranteeWarning
from skdcf.features import reasoning_features
from skdcf.monitoring import SlidingCalibration, release_claims
from skdcf.persistence import load, save
from skdcf.scorers import (
    ClassifierScorer,
    FitTask,
    NeymanPearsonScorer,
    PublicPrior,
    StackingScorer,
)
from skdcf.scorers._prior import blend, digest
from skdcf.scorers._scorer import Folded
from skdcf.training import SoftTraining

SHIPPED = Path(skdcf.__file__).parent / "scorers" / "mathematics_prior.json"
RECORD = json.loads(SHIPPED.read_text())
COLUMNS = RECORD["columns"]
TREES, WEIGHTS = RECORD["trees"], RECORD["weights"]
N = len(COLUMNS)
MEAN, SCALE = (np.array(RECORD["scale"][k], dtype=float) for k in ("mean", "scale"))


def problems(n, seed=0, shift=0.0, names=COLUMNS, texts=None):
    """Chains whose columns are drawn around the centre; errors follow one column."""
    rng = np.random.RandomState(seed)
    sizes = rng.randint(2, 6, n)
    offsets = np.append(0, np.cumsum(sizes))
    rows = offsets[-1]
    scale = np.where(np.isfinite(SCALE[:N]), SCALE[:N], 0)
    X = MEAN[:N] + scale * (shift + rng.normal(size=(rows, N)))
    last = np.isin(np.arange(1, rows), offsets)
    edges = np.column_stack([np.arange(rows - 1), np.arange(1, rows)])[~last]
    texts = [f"question {seed} {i}" for i in range(n)] if texts is None else texts
    batch = GraphBatch.from_arrays(
        X, offsets, edges, problems=texts, feature_names=names
    )
    false = rng.uniform(size=rows) < 1 / (1 + np.exp(1.5 - X[:, 3]))
    return batch, (~false).astype(int)


KNOWN = "Is this one of the questions?"  # those of the shipped prior are hashes only


@pytest.fixture
def having_seen(tmp_path):
    """A prior that has seen thirty questions."""
    from skdcf.graphs.hashes import question_hashes

    batch, _ = problems(30, texts=[f"{KNOWN} {i}" for i in range(30)])
    record = RECORD | {"questions": question_hashes(batch).tolist()}
    path = tmp_path / "prior.json"
    path.write_text(json.dumps(record | {"sha256": digest(record)}))
    return PublicPrior(path)


def by_one(i, x):
    """Log odds of one source, which has a linear and a boosted classifier."""
    mean, scale = (
        np.array(RECORD["units"][k][i], dtype=float) for k in RECORD["units"]
    )
    z = np.clip((x - mean) / np.where(np.isnan(scale), np.inf, scale), -3, 3)
    *weights, total = RECORD["linear"][i]
    total += z @ weights
    for root, forest in zip(TREES["root"], TREES["forest"], strict=True):
        node = root
        while forest == i and TREES["down"][node]:
            column = TREES["feature"][node] - i * len(z)
            node += TREES["down"][node] + (z[column] > TREES["threshold"][node])
        total += TREES["value"][node] * (forest == i)
    return total / 2


def by_hand(batch):
    """Log odds of each source from the file, claim by claim and tree by tree."""
    odds = []
    for X in batch.split(batch.features):
        wide = np.append(X.mean(axis=0), np.log(len(X)))
        for x in X:
            row = np.append(x, wide)
            odds.append([by_one(i, row) for i in range(len(WEIGHTS))])
    return np.array(odds).T


def test_it_is_what_stands_in_the_file():
    batch, labels = problems(12)
    prior = PublicPrior().fit(batch, labels)
    np.testing.assert_allclose(prior.hazards(batch), by_hand(batch), rtol=1e-12)
    mean = WEIGHTS @ by_hand(batch)
    np.testing.assert_allclose(prior.hazard(batch), mean, rtol=1e-12)
    assert prior.columns_read() == tuple(COLUMNS)
    assert set(prior.card_) >= {"what", "fails", "sources", "text"}
    for about in prior.card_["sources"].values():
        assert about["labels under"].startswith(("MIT", "Apache-2.0"))
    # Other columns beside its own, in another order, change nothing.
    order = np.random.RandomState(0).permutation(N)
    more = np.column_stack([batch.features[:, order], np.ones(batch.n_claims)])
    other = batch.replace_features(more, [*(COLUMNS[i] for i in order), "own"])
    np.testing.assert_array_equal(prior.hazard(other), prior.hazard(batch))
    both = [SHIPPED, SHIPPED.with_name("agreement_prior.json")]
    assert sum(path.stat().st_size for path in both) < 500_000
    assert "?" not in SHIPPED.read_text()  # no question stands in it


def test_it_reads_the_recommended_columns():
    claims = ["3 * 4 = 12", "12 / 2 = 8"]
    graph = skdcf.ReasoningGraph.from_parents([[], [0]], claims=claims, problem="Why?")
    X = reasoning_features().fit_transform([graph])
    assert list(X.feature_names) == COLUMNS
    right, wrong = PublicPrior().fit(X).hazard(X)
    assert right < wrong


def test_weights_are_those_that_explain_best():
    rng = np.random.RandomState(0)
    own, first, second = rng.normal(size=(3, 4000))
    public = np.array([first, second])
    odds = own + 0.3 * first + 0.1 * second - 1
    false = rng.uniform(size=4000) < 1 / (1 + np.exp(-odds))

    def loss(w):
        z = w[0] + w[1] * own + w[2] * first + w[3] * second
        chance = 1 / (1 + np.exp(-z))
        likelihood = np.where(false, np.log(chance), np.log(1 - chance)).sum()
        pull = (w[1] - 0.6) ** 2 + (w[2] - 0.7) ** 2 + (w[3] - 0.3) ** 2
        return -likelihood + 30 * pull

    start, shares = [0, 0.6, 0.7, 0.3], np.array([0.7, 0.3])
    best = minimize(loss, start, method="Nelder-Mead", tol=1e-10).x
    expected = np.r_[best[0], 1.6 * best[1:] / best[1:].sum()]
    np.testing.assert_allclose(blend(own, public, false, shares), expected, atol=1e-3)
    misleading = np.array([-first - own, second])
    _, w1, w2, w3 = blend(own, misleading, false, shares)
    assert w2 == 0 and w3 > 0 and w1 + w3 == pytest.approx(1.6)  # left out
    none = blend(own[:0], public[:, :0], false[:0], shares)
    np.testing.assert_allclose(none, start)


def test_log_odds_are_blended():
    batch, labels = problems(60)
    task = FitTask(groups=np.arange(60), rng=np.random.RandomState(0))
    prior = PublicPrior()
    scorer = NeymanPearsonScorer(public_prior=prior).fit(batch, labels, task)
    b, w1, *weights = scorer.blend_
    assert w1 + sum(weights) == pytest.approx(1.6)
    task = FitTask(groups=np.arange(60), rng=np.random.RandomState(0))
    folded = Folded(batch, task.rng.permutation(60) % 3)
    own = NeymanPearsonScorer().fit_folds(folded, labels, [task])[0][0]
    expected = b + w1 * own.hazard(batch) + weights @ by_hand(batch)
    np.testing.assert_allclose(scorer.hazard(batch), expected, rtol=1e-9, atol=1e-9)
    assert len(weights) == len(prior.fit(batch).card_["sources"])


def test_a_blend_starts_with_all_of_the_weight():
    batch, labels = problems(60)
    stack = StackingScorer(public_prior=PublicPrior())
    held = FitTask(training=SoftTraining(shrinkage=1e9))
    stack = stack.fit(batch, labels, held)
    assert list(stack.scorers_) == ["neyman-pearson", "regression"]
    np.testing.assert_allclose(stack.selection_.weights, [1, 0], atol=1e-3)
    blended = stack.scorers_["neyman-pearson"].confidence(batch)
    assert np.corrcoef(stack.confidence(batch), blended)[0, 1] > 0.999


def test_it_is_used_only_if_it_is_asked_for():
    batch, labels = problems(80)
    y = batch.split(labels)
    plain = CoherentConformalFilter(random_state=0).fit(batch, y)
    assert plain.scorer_.priors == ()
    asked = StackingScorer(public_prior=PublicPrior())
    blended = CoherentConformalFilter(asked, random_state=0).fit(batch, y)
    assert len(blended.scorer_.priors) == 1
    assert len(blended.scorer_.scorers_["neyman-pearson"].blend_) > 2
    for wrong in (True, "mathematics"):
        with pytest.raises(ValueError, match="public_prior"):
            StackingScorer(public_prior=wrong).validate()


def test_its_columns_have_to_be_there():
    batch, labels = problems(60, names=[*COLUMNS[:-1], "other"])
    with pytest.raises(ValueError, match=f"29 columns.*but 1 .*{COLUMNS[-1]}"):
        HardCF(PublicPrior()).fit(batch, batch.split(labels))


def among(n_known, n, *, seed=0):
    """So many problems, of which the last ones ask what the prior has seen."""
    known = [f" {KNOWN.upper()}  {i} " for i in range(n_known)]
    return problems(
        n, seed, texts=[f"question {i}" for i in range(n - n_known)] + known
    )


USED_BY = {
    "prior": lambda prior: prior,
    "blend": lambda prior: NeymanPearsonScorer(public_prior=prior),
    "stack": lambda prior: StackingScorer(public_prior=prior),
    "stack of its own": lambda prior: StackingScorer(
        {"own": NeymanPearsonScorer(public_prior=prior)}
    ),
}


class Same(TransformerMixin, BaseEstimator):
    """Learns nothing, but does not say so."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize("features", [None, Same()])
@pytest.mark.parametrize("name", USED_BY)
def test_problems_that_it_has_seen_are_refused(name, features, having_seen):
    """By every entry point that calibrates, with their number, whatever learns."""
    batch, labels = among(19, 100)
    y = batch.split(labels)
    scorer = USED_BY[name](having_seen)
    cf = HardCF(scorer, features=features, random_state=0)
    with pytest.raises(ValueError, match=r"19 of 100 problems .*problem 81\b"):
        cf.fit(batch, y)
    known = having_seen.seen(batch)
    assert known.tolist() == [False] * 81 + [True] * 19
    cf.fit(batch[~known], y[:81])
    for enter in (cf.calibrate, cf.calibration_part):
        with pytest.raises(ValueError, match=r"19 of 100 problems .*problem 81\b"):
            enter(batch, y)
    sliding = SlidingCalibration(cf, window=40, smallest=10)
    for enter in (
        lambda: sliding.update(batch, y),
        lambda: release_claims(cf, batch, 0.1),
    ):
        with pytest.raises(ValueError, match="problem"):
            enter()
    trained, _ = seen(cf, batch)
    assert trained[81:].all()


@pytest.mark.parametrize("name", USED_BY)
def test_other_wordings_of_a_question_are_refused_with_it(name, having_seen):
    """Twenty answers have ten names; the prior knows the text of every second answer."""
    batch, labels = among(10, 100)
    names = np.r_[np.arange(80), np.repeat(np.arange(80, 90), 2)]
    rows = np.r_[
        np.arange(80), np.stack([np.arange(80, 90), np.arange(90, 100)]).T.flat
    ]
    batch, y = batch[rows], [batch.split(labels)[i] for i in rows]
    cf = HardCF(USED_BY[name](having_seen), random_state=0)
    with pytest.raises(ValueError, match=r"20 of 100 problems .*problem 80\b"):
        cf.fit(batch, y, groups=names)
    cf.fit(batch[:80], y[:80], groups=names[:80])
    with pytest.raises(ValueError, match="20 of 20 problems"):
        cf.calibrate(batch[80:], y[80:], groups=names[80:])
    with pytest.raises(ValueError, match="20 of 20 problems"):
        release_claims(cf, batch[80:], 0.1, groups=names[80:])


def test_a_prior_that_cannot_be_read_is_an_error(tmp_path):
    batch, labels = problems(60)
    path = tmp_path / "prior.json"
    path.write_text(json.dumps(RECORD | {"weights": WEIGHTS[::-1]}))
    with pytest.raises(ValueError, match="modified"):
        HardCF(PublicPrior(path)).fit(batch, batch.split(labels))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "skdcf public prior 0"}, "format"),
        (
            {"trees": TREES | {"down": [7] * len(TREES["down"])}},
            "branch",
        ),
        (
            {"trees": {k: v for k, v in TREES.items() if k != "value"}},
            "prior",
        ),
        ({"columns": None}, r"prior.*public"),
        ({"questions": ["a"]}, r"prior.*public"),
    ],
)
def test_a_file_that_does_not_fit(change, reason, tmp_path):
    batch, labels = problems(5)
    path = tmp_path / "prior.json"
    record = RECORD | change
    path.write_text(json.dumps(record | {"sha256": digest(record)}))
    with pytest.raises(ValueError, match=reason):
        PublicPrior(path).fit(batch, labels)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"prior.*public"):
        PublicPrior(tmp_path / "." / "prior.json").fit(batch, labels)


@pytest.mark.parametrize(
    "change",
    [
        {"questions": []},
        {"true_after_error": 0.9},
        {"columns": COLUMNS[::-1]},
        {"trees": {}},
        {"weights": [0.9, *WEIGHTS[1:]]},
        {"sha256": None},
    ],
)
def test_a_file_that_was_changed(change, tmp_path):
    batch, labels = problems(5)
    path = tmp_path / "prior.json"
    path.write_text(json.dumps(RECORD))
    prior = PublicPrior(path).fit(batch, labels)
    path.write_text(json.dumps(RECORD | change))
    os.utime(path, ns=(0, 1))  # another file at the same place
    with pytest.raises(ValueError, match=r"modified.*make_prior"):
        PublicPrior(path).fit(batch, labels)
    for array in (
        prior.questions_,
        prior.weights_,
        prior.table_.value,
        prior.units_.mean,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_problems_without_a_question():
    """Nothing tells whether the prior was learnt from them."""
    batch, labels = problems(60, texts=[""] * 60)
    y = batch.split(labels)
    said_so = "60 of 60 problems have no question"
    for scorer in (PublicPrior(), StackingScorer(public_prior=PublicPrior())):
        with pytest.warns(GuaranteeWarning, match=said_so):
            HardCF(scorer, random_state=0).fit(batch, y)
    known, labels = problems(60)
    cf = HardCF(PublicPrior(), random_state=0).fit(known, known.split(labels))
    with pytest.warns(GuaranteeWarning, match=said_so):
        cf.calibrate(batch, y)


def test_settings_that_nothing_would_use():
    with pytest.raises(ValueError, match=r"public_prior.*scorers"):
        StackingScorer({"a": ClassifierScorer()}, public_prior=PublicPrior()).validate()


def test_nothing_to_learn_beside_it():
    """No error among the labels: the weights stay where they are pulled."""
    batch, labels = problems(30)
    scorer = StackingScorer(public_prior=PublicPrior())
    with pytest.warns(ConvergenceWarning, match=r"training.*claim"):
        scorer.fit(batch, np.ones_like(labels), FitTask())
    assert np.isfinite(scorer.confidence(batch)).all()


def test_the_script_makes_the_file(data_home, monkeypatch):
    """From one source, to keep it short; benchmarks/retention/make_prior.py --check takes all."""
    monkeypatch.setenv("SKDCF_DATA", str(data_home))
    from benchmarks.retention import make_prior

    record = make_prior.make(names=("ProcessBench gsm8k",))
    recorded = json.loads((Path(__file__).parent / "recorded_prior.json").read_text())
    found = make_prior.log_odds(record, make_prior.probes(record))
    if [int(part) for part in sklearn.__version__.split(".")[:2]] >= [1, 9]:
        # Older versions of scikit-learn grow other trees.
        np.testing.assert_allclose(found, recorded, atol=1e-6)
    shipped = make_prior.log_odds(RECORD, make_prior.probes(RECORD))
    np.testing.assert_allclose(shipped, RECORD["probes"], atol=1e-6)


class Says:
    """Classifiers of a source that say the first column times a number."""

    def __init__(self, sign):
        self.sign = sign

    def read(self, X):
        return self.sign * X[:, 0], None


def test_a_source_weighs_what_it_tells_of_others():
    from benchmarks.retention.make_prior import transfer

    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    sure, half = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1])
    # Of 6 pairs of a true and a false claim, all and 5 are in order.
    tables = Says(1), Says(1), Says(-1)
    tried = ("a", X, sure), ("b", X, half), ("c", X, half)
    first, second = (5 / 6 + 5 / 6) / 2 - 0.5, (1 + 5 / 6) / 2 - 0.5
    expected = np.round([first / (first + second), second / (first + second), 0], 3)
    assert transfer(tables, tried) == expected.tolist()
    # Sets of one family say nothing of transfer.
    same = [("a", X, sure)] * 3
    assert transfer(tables, same) == [0.333] * 3


def summaries(n):
    """Claims that quote a passage where they are true, and share no run of words else."""
    rng = np.random.RandomState(0)
    graphs, y = [], []
    for i in range(n):
        passage = [f"word{j}" for j in rng.permutation(200)]
        true = (rng.uniform(size=3) < 0.7).astype(int)
        claims = [
            " ".join(
                passage[10 * j : 10 * j + 6] if t else rng.permutation(passage)[:6]
            )
            for j, t in enumerate(true)
        ]
        context = [" ".join(passage)]
        parts = {"problem": f"summary {i}", "claims": claims, "context": context}
        graphs.append(skdcf.ReasoningGraph(None, (), **parts))
        y.append(true)
    return graphs, y


def test_too_few_labels_train_what_was_asked_for():
    """The scorer is never another one; the warning names what needs no training."""
    graphs, y = summaries(20)
    cf = CoherentConformalFilter(features=reasoning_features(), alpha=0.05)
    with pytest.warns(CalibrationWarning, match=r"alpha.*=.*0\.05.*column"):
        cf.fit(graphs, y)
    assert len(cf.scorer_.selection_.scorers) == 2 and cf.n_calibration_ < 19
    column = HardCF("context_trigrams", features=reasoning_features(), alpha=0.05)
    assert column.fit(graphs, y).n_calibration_ == 19


def test_the_prior_of_agreement(tmp_path):
    """A name in place of a file, which opens nothing."""
    prior = PublicPrior("agreement")
    graphs, y = [], []
    for i in range(40):
        right, said = 3 * i + 4, 3 * i + 4 + i % 3 // 2  # every third answer is wrong
        others = [f"That is 3 * {i} + 4 = {right}. The answer is {right}."] * 2
        claims = [
            f"3 * {i} = {3 * i}",
            f"3 * {i} + 4 = {said}",
            f"The answer is {said}.",
        ]
        question = f"What is three times {i}, and four more?"
        parts = {"claims": claims, "problem": question, "alternatives": others}
        graphs.append(skdcf.ReasoningGraph.from_parents([[], [0], [1]], **parts))
        y.append([1, said == right, said == right])
    X = reasoning_features().fit_transform(graphs)
    cf = HardCF(prior, features=reasoning_features(), alpha=0.1).fit(graphs, y)
    assert set(cf.scorer_.columns_) < set(X.feature_names) - set(COLUMNS)
    assert cf.score(graphs, y) > 1.5  # of 2.35 true claims
    for about in cf.scorer_.card_["sources"].values():
        assert about["labels under"] == "MIT"
    again = load(save(cf, tmp_path / "filter.skops"))  # which trusts no file
    assert again.scorer.file == "agreement"
    np.testing.assert_array_equal(
        again.path_risk(graphs[:1])[0], cf.path_risk(graphs[:1])[0]
    )
    with pytest.raises(ValueError, match=r"columns.*missing.*example"):
        prior.fit(problems(3)[0])
