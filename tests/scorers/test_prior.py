"""The public prior: what it reads, what it has seen, how it is blended, when it is left out."""

import json
import os
import re
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, TransformerMixin, clone

import skdcf
from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.evaluation import fit_levels
from skdcf.exceptions import CalibrationWarning, GuaranteeWarning, ParameterWarning
from skdcf.features import reasoning_features
from skdcf.metrics import leave_one_out
from skdcf.monitoring import SlidingCalibration, release_claims
from skdcf.persistence import load, save
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    FitTask,
    MixtureScorer,
    NeymanPearsonScorer,
    PublicPrior,
)
from skdcf.scorers._prior import blend, digest
from skdcf.scorers._scorer import Folded
from skdcf.training import SoftTraining

SHIPPED = Path(skdcf.__file__).parent / "scorers" / "public_prior.json"
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


def test_beside_a_blend_nothing_else_trains_unless_it_is_told_how():
    batch, labels = problems(60)
    [alone] = MixtureScorer().fit_levels(batch, labels, [FitTask()])
    assert list(alone.members_) == ["neyman-pearson"]
    assert alone.selection_.weights.tolist() == [1.0]
    order = np.argsort(alone.confidence(batch))
    member = alone.members_["neyman-pearson"].confidence(batch)
    assert (np.diff(member[order]) >= 0).all()
    for setting in ({"training": SoftTraining()}, {"relaxation": PathRelaxation()}):
        [both] = MixtureScorer().fit_levels(batch, labels, [FitTask(**setting)])
        assert list(both.members_) == ["linear", "neyman-pearson"]


def said(scorer):
    return scorer.selection_.prior


def test_auto_says_what_the_prior_did():
    batch, labels = problems(80)
    y = batch.split(labels)
    cf = CoherentConformalFilter(random_state=0).fit(batch, y)
    assert re.match(r"log odds .* own \+ .* public", said(cf.scorer_))
    off = CoherentConformalFilter(MixtureScorer(public_prior=False), random_state=0)
    assert said(off.fit(batch, y).scorer_) == "left out: turned off"
    assert off.scorer_.members_["neyman-pearson"].prior_ is None
    own = MixtureScorer({"own": ClassifierScorer()}).fit(batch, labels, FitTask())
    assert said(own) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"shift": 3.0}, "deviations from its sources"),
        (
            {"names": [*COLUMNS[:-1], "other"]},
            f"1 of the 29 columns .* are missing, .*{COLUMNS[-1]}",
        ),
        ({"n": 1001}, "1001 problems train"),
    ],
)
@pytest.mark.filterwarnings("ignore:all training claims have the same score")
def test_where_auto_leaves_it_out(change, reason):
    batch, labels = problems(**{"n": 60} | change)
    mixture = MixtureScorer(n_folds=2)
    found = mixture.fit(batch, labels, FitTask(rng=np.random.RandomState(0)))
    assert re.search(f"left out: .*{reason}", said(found))
    if "names" in change:
        with pytest.raises(ValueError, match="missing"):
            HardCF(PublicPrior()).fit(batch, batch.split(labels))


@pytest.fixture
def every_prior_has_seen(having_seen, monkeypatch):
    """The shipped prior has seen that question, too."""
    attributes = having_seen.read_file()
    monkeypatch.setattr(PublicPrior, "read_file", lambda self: attributes)
    return having_seen


def among(n_known, n, *, seed=0):
    """So many problems, of which the last ones ask what the prior has seen."""
    known = [f" {KNOWN.upper()}  {i} " for i in range(n_known)]
    return problems(
        n, seed, texts=[f"question {i}" for i in range(n - n_known)] + known
    )


SEEN_BY = {
    "prior": PublicPrior,
    "blend": lambda: NeymanPearsonScorer(public_prior=PublicPrior()),
    "auto": lambda: MixtureScorer(),
    "mixture": lambda: MixtureScorer(
        {"own": NeymanPearsonScorer(public_prior=PublicPrior())}
    ),
}


@pytest.mark.parametrize("name", SEEN_BY)
def test_problems_that_it_has_seen_are_set_aside(name, every_prior_has_seen):
    """The filter is the one of the other problems alone: no rank is lost."""
    batch, labels = among(19, 100)
    y = batch.split(labels)
    cf = HardCF(SEEN_BY[name](), random_state=0)
    with pytest.warns(ParameterWarning, match="19 of 100 problems have questions that"):
        fitted = clone(cf).fit(batch, y)
    alone = clone(cf).fit(batch[:81], y[:81])
    assert fitted.threshold_ == alone.threshold_
    assert fitted.n_calibration_ == alone.n_calibration_
    fresh, _ = problems(40, 1)
    assert all(map(np.array_equal, fitted.predict(fresh), alone.predict(fresh)))
    trained, calibrated = fitted.seen(batch)
    assert trained[81:].all() and not calibrated[81:].any()


@pytest.mark.parametrize("n_known", [21, 100])
@pytest.mark.parametrize("name", SEEN_BY)
def test_too_many_of_them_leave_the_prior_out(name, n_known, every_prior_has_seen):
    batch, labels = among(n_known, 100)
    cf = HardCF(SEEN_BY[name](), random_state=0)
    if name != "auto":
        with pytest.raises(
            ValueError,
            match=r"questions of \d+ of the \d+ problems, more than the fifth",
        ):
            cf.fit(batch, batch.split(labels))
        return
    cf.fit(batch, batch.split(labels))
    assert "left out: the public prior was learnt" in said(cf.scorer_)
    assert len(np.union1d(cf.unused_indices_, np.flatnonzero(cf.seen(batch)[1]))) > 0
    trained, calibrated = cf.seen(batch)
    assert (trained | calibrated).all()


def test_some_of_what_was_drawn_blindly_has_to_be_new_to_it(every_prior_has_seen):
    batch, labels = among(10, 100)
    drawn = ["review"] * 90 + ["random"] * 10
    marked = [
        graph.replace(metadata={"sampling": how})
        for graph, how in zip(batch, drawn, strict=True)
    ]
    with (
        pytest.warns(ParameterWarning, match="10 of 100 problems"),
        pytest.raises(ValueError, match="nothing is left to calibrate on"),
    ):
        HardCF("auto", random_state=0).fit(marked, batch.split(labels))


@pytest.mark.parametrize("name", SEEN_BY)
def test_they_calibrate_by_no_door(name, every_prior_has_seen):
    fresh, truth = problems(60, 1)
    cf = HardCF(SEEN_BY[name](), random_state=0).fit(fresh, fresh.split(truth))
    batch, labels = among(10, 60)
    y = batch.split(labels)
    aside = pytest.warns(
        ParameterWarning, match="10 of 60 problems have questions that"
    )
    with aside:
        threshold = deepcopy(cf).calibrate(batch, y).threshold_
    assert threshold == deepcopy(cf).calibrate(batch[:50], y[:50]).threshold_
    with aside:
        part = cf.calibration_part(batch, y)
    assert part.rows.tolist() == list(range(50))
    with aside:
        sliding = SlidingCalibration(cf, window=40, smallest=10).update(batch, y)
    assert len(sliding.part_) == 40 and sliding.n_seen_ == 50
    with aside:
        report = leave_one_out(cf, batch, y, [0.1])
    alone = leave_one_out(cf, batch[:50], y[:50], [0.1])
    assert report.retention == alone.retention and report.n_calibration == 49
    with pytest.raises(ValueError, match="all 10 problems have questions that"):
        cf.calibrate(batch[50:], y[50:])
    with pytest.raises(ValueError, match=r"10 problems, .* first, have questions that"):
        release_claims(cf, batch, 0.1)


@pytest.mark.parametrize("name", SEEN_BY)
def test_other_wordings_of_a_question_go_with_it(name, every_prior_has_seen):
    """Twenty answers have ten names; the prior knows the text of every second answer."""
    batch, labels = among(10, 100)
    names = np.r_[np.arange(80), np.repeat(np.arange(80, 90), 2)]
    rows = np.r_[
        np.arange(80), np.stack([np.arange(80, 90), np.arange(90, 100)]).T.flat
    ]
    batch, y = batch[rows], [batch.split(labels)[i] for i in rows]
    cf = HardCF(SEEN_BY[name](), random_state=0)
    with pytest.warns(ParameterWarning, match="20 of 100 problems have questions that"):
        fitted = clone(cf).fit(batch, y, groups=names)
    trained, calibrated = fitted.seen(batch, names)
    assert trained[80:].all() and not calibrated[80:].any()
    with pytest.raises(ValueError, match="all 20 problems have questions that"):
        fitted.calibrate(batch[80:], y[80:], groups=names[80:])
    with pytest.raises(ValueError, match=r"20 problems, .* first, have questions that"):
        release_claims(fitted, batch[80:], 0.1, groups=names[80:])


def test_where_columns_learn_they_are_set_aside_after_the_split(every_prior_has_seen):
    class Same(TransformerMixin, BaseEstimator):
        """Learns nothing, but does not say so."""

        texts = []

        def fit(self, X, y=None):
            self.texts.append({row.tobytes() for row in np.asarray(X)})
            return self

        def transform(self, X):
            return X

    batch, labels = among(10, 100)
    y = batch.split(labels)
    cf = HardCF(SEEN_BY["auto"](), features=Same(), random_state=0)
    with pytest.warns(ParameterWarning, match="10 of 100 problems have questions that"):
        cf.fit(batch, y)
    _, calibrated = cf.seen(batch)
    assert not calibrated[90:].any()
    assert "log odds" in said(cf.scorer_)
    assert cf.n_calibration_ == calibrated.sum() <= 90
    # The columns are learnt once more, without them.
    aside = {row.tobytes() for row in batch[90:].features}
    assert Same.texts[0] & aside and not Same.texts[-1] & aside


def test_a_prior_that_cannot_be_read_is_an_error(monkeypatch):
    """Not a reason to leave it out in silence."""

    def read_file(self):
        raise ValueError("it was changed")

    monkeypatch.setattr(PublicPrior, "read_file", read_file)
    batch, labels = problems(60)
    with pytest.raises(ValueError, match="it was changed"):
        MixtureScorer().fit(batch, labels, FitTask())


@pytest.mark.parametrize("yes", [True, np.True_])
def test_any_truth_blends_the_prior_in(yes):
    batch, labels = problems(60)
    cf = HardCF(MixtureScorer(public_prior=yes), random_state=0)
    assert "log odds" in said(cf.fit(batch, batch.split(labels)).scorer_)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "skdcf public prior 0"}, "its format"),
        (
            {"trees": TREES | {"down": [7] * len(TREES["down"])}},
            "damaged",
        ),
        (
            {"trees": {k: v for k, v in TREES.items() if k != "value"}},
            "prior",
        ),
        ({"columns": None}, "no public prior"),
        ({"questions": ["a"]}, "no public prior"),
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
    with pytest.raises(ValueError, match="is no public prior"):
        PublicPrior(tmp_path / "." / "prior.json").fit(batch, labels)


@pytest.mark.parametrize(
    "change",
    [
        {"questions": []},
        {"farthest": 99.0},
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
    with pytest.raises(ValueError, match=r"was changed since .*make_prior"):
        PublicPrior(path).fit(batch, labels)
    for array in (
        prior.questions_,
        prior.weights_,
        prior.table_.value,
        prior.units_.mean,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_what_does_not_calibrate_says_how_far_the_problems_are():
    for shift, n, far in ((3.0, 30, True), (3.0, 28, False), (0.0, 30, False)):
        batch, labels = problems(n, shift=shift)
        y, filter = batch.split(labels), HardCF(PublicPrior(), alpha=0.05)
        expected = pytest.warns(ParameterWarning, match="deviations from its sources")
        with expected if far else nullcontext():
            assert len(filter.fit(batch, y).unused_indices_) == n - 19
    batch, labels = problems(60, shift=3.0)
    sized = HardCF(PublicPrior(), calibration_size=0.5)
    with pytest.warns(ParameterWarning, match="deviations from its sources"):
        sized.fit(batch, batch.split(labels))
    blended = HardCF(MixtureScorer(public_prior=PublicPrior()), random_state=0)
    with pytest.warns(ParameterWarning, match="deviations from its sources"):
        blended.fit(batch, batch.split(labels))


def test_problems_without_a_question():
    """Nothing tells whether the prior was learnt from them, so that auto leaves it out."""
    batch, labels = problems(60, texts=[""] * 60)
    y = batch.split(labels)
    said_so = "60 of 60 problems have no question"
    for scorer in (PublicPrior(), MixtureScorer(public_prior=PublicPrior())):
        with pytest.warns(GuaranteeWarning, match=said_so):
            HardCF(scorer, random_state=0).fit(batch, y)
    cf = CoherentConformalFilter(random_state=0).fit(batch, y)
    assert f"left out: {said_so}" in said(cf.scorer_)
    known, labels = problems(60)  # so does who calibrates, or looks, with such problems
    for scorer in (PublicPrior(), "auto"):
        cf = HardCF(scorer, random_state=0).fit(known, known.split(labels))
        for door in (lambda cf: cf.calibrate(batch, y), lambda cf: cf.seen(batch)):
            with pytest.warns(GuaranteeWarning, match=said_so):
                door(cf)


def test_settings_that_nothing_would_use():
    with pytest.raises(ValueError, match="public_prior is set"):
        MixtureScorer({"a": ClassifierScorer()}, public_prior=PublicPrior()).validate()
    with pytest.raises(ValueError, match="'public_prior' parameter"):
        MixtureScorer(public_prior="mathematics").validate()


def test_nothing_to_learn_beside_it():
    """No error among the labels: the weights stay where they are pulled."""
    batch, labels = problems(30)
    scorer = MixtureScorer().fit(batch, np.ones_like(labels), FitTask())
    assert np.isfinite(scorer.confidence(batch)).all()


def test_the_script_makes_the_file(data_home, monkeypatch):
    """From one source, to keep it short; benchmarks/make_prior.py --check takes all."""
    place = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("SKDCF_DATA", str(data_home))
    import make_prior

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


def test_a_source_weighs_what_it_tells_of_others(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from make_prior import transfer

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


def test_where_labels_allow_no_training():
    """One column of the context, or a prior that was passed; every label calibrates."""
    graphs, y = summaries(30)
    cf = CoherentConformalFilter(features=reasoning_features(), alpha=0.05)
    with pytest.warns(
        ParameterWarning, match="needs 19 of these 20 problems to calibrate"
    ):
        few = cf.fit(graphs[:20], y[:20])
    column = HardCF("context_trigrams", features=reasoning_features(), alpha=0.05)
    column.fit(graphs[:20], y[:20])
    assert few.scorer_.feature == "context_trigrams" and few.n_calibration_ == 19
    np.testing.assert_array_equal(
        few.nonconformity_scores_, column.nonconformity_scores_
    )
    kept = zip(few.predict(graphs[20:]), column.predict(graphs[20:]), strict=True)
    assert all(np.array_equal(*masks) for masks in kept)
    assert few.score(graphs[20:], y[20:]) > 1  # true claims, of two
    chosen = few.scorer_.selection_
    assert chosen.alpha == 0.05 and "context_trigrams" in chosen.members[0]
    assert (
        chosen.prior
        == "nothing trains, as alpha = 0.05 takes all problems to calibrate"
    )
    # At another level there is enough to train, and a size that is asked for is kept.
    with pytest.warns(ParameterWarning, match="takes the place of MixtureScorer()"):
        levels = fit_levels(cf, graphs, y, [0.05, 0.1])
    assert [len(f.scorer_.selection_.members) for f in levels.values()] == [1, 3]
    with pytest.warns(CalibrationWarning, match="such as a column or PublicPrior"):
        sized = clone(cf).set_params(calibration_size=6).fit(graphs[:20], y[:20])
    assert len(sized.scorer_.selection_.members) == 3
    with pytest.warns(CalibrationWarning, match="such as a column or PublicPrior"):
        told = clone(cf).set_params(training=SoftTraining()).fit(graphs[:20], y[:20])
    assert "linear" in told.scorer_.selection_.members
    # Without a context no prior is taken unasked.
    batch, labels = problems(20)
    y = batch.split(labels)
    with pytest.warns(CalibrationWarning, match=r"PublicPrior\(\), all problems can"):
        plain = CoherentConformalFilter(alpha=0.05, random_state=0).fit(batch, y)
    assert plain.n_calibration_ < 19
    asked = MixtureScorer(public_prior=PublicPrior())
    cf = CoherentConformalFilter(asked, alpha=0.05)
    with pytest.warns(ParameterWarning, match=r"PublicPrior\(\) takes the place"):
        cf.fit(batch, y)
    assert cf.n_calibration_ == 19 and isinstance(cf.scorer_, PublicPrior)
    mean = WEIGHTS @ by_hand(batch)
    np.testing.assert_allclose(cf.scorer_.hazard(batch), mean, rtol=1e-12)


def test_the_prior_of_agreement(tmp_path):
    """A name in place of a file: it opens nothing, and is never taken unasked."""
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
    with pytest.raises(ValueError, match=r"columns .* are missing, such as 'answer_"):
        prior.fit(problems(3)[0])
