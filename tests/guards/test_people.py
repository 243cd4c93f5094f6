"""Who assigned the labels, in which order, and copies of answers."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdcf import HardCF, ReasoningGraph, load, save
from skdcf.evaluation import evaluate_filter
from skdcf.exceptions import CalibrationWarning, GuaranteeWarning, LabelWarning
from skdcf.guarantees import NoFalseClaim
from skdcf.scorers import ClassifierScorer
from skdcf.uses import seen


def draw(n, who, first=0, order=None):
    """Answers of a law in which a model overlooks errors with high scores."""
    rng = np.random.default_rng([n, first])
    made = {"label_source": who} | ({} if order is None else {"label_order": order})
    graphs, labels, truth = [], [], []
    for i in range(n):
        score = rng.random((3, 1))
        true = rng.random(3) >= 0.35 * (1 - score[:, 0])
        overlooked = (score[:, 0] > 0.6) & (who != "person")
        graphs.append(
            ReasoningGraph(score, (), problem=f"{who} {first + i}", provenance=made)
        )
        labels.append((true | overlooked).astype(int))
        truth.append(true.astype(int))
    return graphs, labels, truth


@pytest.fixture
def scored():
    graphs, labels, _ = draw(60, "person", first=5_000)
    plain = [graph.replace(provenance=None) for graph in graphs]
    single = [graph.subgraph([True, False, False]) for graph in plain]
    return HardCF(0, alpha=0.1).fit(single, [row[:1] for row in labels])


def test_the_share_of_a_models_labels_and_its_names_are_noted():
    """Claims that nobody judged do not count."""
    sources = ["model judge", "model critic", "person", "person", "model judge"]
    labels = [[1, 0], [1], [1, 0, 1], [0], [-1] * 9]
    graphs = [
        ReasoningGraph(np.ones((len(row), 1)), (), provenance={"label_source": source})
        for source, row in zip(sources, labels, strict=True)
    ]
    cf = HardCF(0, alpha=0.5)
    with pytest.warns(LabelWarning) as caught:
        cf.fit(graphs, labels)
    assert any("critic, judge" in str(warning.message) for warning in caught)
    assert cf._record.origin["judges"]["share"] == [3 / 7]
    assert cf._record.origin["judges"]["names"] == ["critic", "judge"]
    cf.fit(*draw(30, "person")[:2])
    assert cf._record.origin["judges"] == {"share": [0], "names": []}


def trained_on_a_model(n=60, **settings):
    graphs, labels, _ = draw(n, "model judge", order="doubtful")
    cf = HardCF(ClassifierScorer(), alpha=0.1, calibration_size=0, **settings)
    return cf.fit(graphs, labels)


@pytest.mark.parametrize("order", ["doubtful", "review"])
def test_answers_in_another_order_do_not_calibrate(order):
    graphs, labels, _ = draw(60, "person", first=300)
    graphs[7] = graphs[7].replace(provenance={"label_order": order}, id="seven")
    cf = trained_on_a_model()
    for use in (
        cf.calibrate,
        cf.calibration_part,
        HardCF(0).fit,
        HardCF(ClassifierScorer()).fit,
    ):
        with pytest.raises(ValueError, match=f"seven.*{order}.*calibration_size=0"):
            use(graphs, labels)
    graphs[7] = graphs[7].replace(provenance={"label_order": "random"})
    assert cf.calibrate(graphs, labels).n_calibration_ == 59


def test_calibration_size_0_trains_on_all_and_calibrates_nothing(tmp_path):
    graphs, labels, _ = draw(60, "model judge")
    cf = trained_on_a_model()
    assert cf.n_calibration_ == 0
    seen_, calibrated = seen(cf, graphs)
    assert seen_.all() and not calibrated.any()
    fewer = HardCF(ClassifierScorer(), alpha=0.1, calibration_size=1, random_state=0)
    with pytest.warns(CalibrationWarning), pytest.warns(LabelWarning):
        fewer.fit(graphs, labels)
    assert not np.array_equal(fewer.path_risk(graphs)[0], cf.path_risk(graphs)[0])
    back = load(save(cf, tmp_path / "filter.skops"))
    np.testing.assert_array_equal(back.path_risk(graphs)[0], cf.path_risk(graphs)[0])
    people = draw(60, "person")[:2]
    back.calibrate(*people)
    cf.calibrate(*people)
    assert cf.n_calibration_ == 59 and back.threshold_ == cf.threshold_
    with pytest.raises(ValueError, match="used for training"):
        cf.calibrate(graphs, labels)
    # A second fit forgets the calibration.
    assert cf.fit(graphs, labels).n_calibration_ == 0
    with pytest.raises(NotFittedError):
        cf.predict(people[0])


@pytest.mark.parametrize(
    "use",
    [
        lambda cf, X, y: cf.predict(X),
        lambda cf, X, y: cf.predict_alpha(X),
        lambda cf, X, y: cf.decision_function(X),
        lambda cf, X, y: cf.filter(X),
        lambda cf, X, y: cf.stream([]),
        lambda cf, X, y: cf.score(X, y),
        lambda cf, X, y: cf.describe(),
        lambda cf, X, y: cf.threshold(),
        lambda cf, X, y: cf.threshold_,
        lambda cf, X, y: evaluate_filter(cf, X, y),
    ],
)
def test_all_else_asks_for_a_calibration(use):
    graphs, labels, _ = draw(60, "person")
    with pytest.raises(
        NotFittedError, match=r"calibration_size=0\. Call calibrate\(X, y\)"
    ):
        use(trained_on_a_model(online=True), graphs, labels)


@pytest.mark.parametrize("guarantee", [None, NoFalseClaim(show="auto")])
def test_what_learns_nothing_is_refused(guarantee):
    cf = HardCF(0, calibration_size=0, guarantee=guarantee)
    with pytest.raises(ValueError, match=r"calibration_size=0 .* learn from labels"):
        cf.fit(*draw(60, "person")[:2])


def test_the_share_is_chosen_on_the_training_answers():
    cf = trained_on_a_model(200, guarantee=NoFalseClaim(show="auto"))
    assert cf.share_ is None
    table = cf.share_table_.copy()
    cf.calibrate(*draw(200, "person")[:2])
    np.testing.assert_array_equal(cf.share_table_, table)
    assert cf.calibration_.guarantee.show == cf.share_ > 0


def texts(n, word="claim", **more):
    rng = np.random.default_rng(7)
    return [
        ReasoningGraph([[x]], (), claims=[f"{word} {i}"], **more)
        for i, x in enumerate(rng.random(n))
    ]


def test_several_answers_to_one_question_are_told_of_once(scored):
    graphs = texts(10)
    asked = [g.replace(problem=f"What is {i // 7}?") for i, g in enumerate(graphs)]
    for decide in (scored.predict, scored.filter):
        with pytest.warns(GuaranteeWarning, match="7 answers to 1 question") as told:
            decide(asked[:8])
        assert len(told) == 1
    with pytest.warns(GuaranteeWarning, match="10 answers to 2 questions"):
        scored.predict(asked)
    named = [g.replace(metadata={"group": i // 2}) for i, g in enumerate(graphs)]
    with pytest.warns(GuaranteeWarning, match="10 answers to 5 questions"):
        scored.predict(named)
    # One each, and no question at all.
    scored.predict(asked[::7])
    scored.predict(graphs)


@pytest.mark.parametrize(
    "provenance",
    [{"label_order": "Random"}, {"label_source": "Person"}, {"label_source": "judge"}],
)
def test_unknown_words_are_refused(provenance):
    [(name, word)] = provenance.items()
    with pytest.raises(ValueError, match=f"{name}.*{word}"):
        ReasoningGraph([[1]], (), provenance=provenance)
