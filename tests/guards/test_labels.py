"""Labels that do not calibrate, and labels, scores and edges that are doubted."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdcf import GraphBatch, HardCF, ReasoningGraph, load, save
from skdcf.evaluation import evaluate_filter
from skdcf.exceptions import GuaranteeWarning, LabelWarning, ParameterWarning
from skdcf.scorers import ClassifierScorer
from skdcf.uses import seen


def draw(n, source="person", first=0):
    rng = np.random.default_rng([n, first])
    graphs, labels = [], []
    for i in range(first, first + n):
        score = rng.random((3, 1))
        labels.append((rng.random(3) >= 0.35 * (1 - score[:, 0])).astype(int))
        made = {"label_source": source}
        question = f"{source} {i}"
        graphs.append(ReasoningGraph(score, (), problem=question, provenance=made))
    return graphs, labels


def trained_on_a_model(n=60, **settings):
    cf = HardCF(ClassifierScorer(), calibration_size=0, **settings)
    return cf.fit(*draw(n, "model judge"))


def test_the_share_of_a_models_labels_and_its_names_are_recorded():
    sources = ["model judge", "model critic", "person", "person", "model judge"]
    labels = [[1, 0], [1], [1, 0, 1], [0], [-1] * 9]
    graphs = [
        ReasoningGraph(np.ones((len(row), 1)), (), provenance={"label_source": source})
        for source, row in zip(sources, labels, strict=True)
    ]
    with pytest.warns(LabelWarning) as caught:
        cf = HardCF(0, alpha=0.5).fit(graphs, labels)
    assert any("43%" in str(w.message) for w in caught)
    assert any("critic, judge" in str(w.message) for w in caught)
    assert "critic, judge" in cf.describe()
    assert "judge" not in cf.fit(*draw(30)).describe()


@pytest.mark.parametrize("order", ["doubtful", "review"])
def test_answers_that_were_not_drawn_at_random_do_not_calibrate(order):
    graphs, labels = draw(60)
    graphs[7] = graphs[7].replace(provenance={"label_order": order}, id="seven")
    cf = trained_on_a_model()
    for use in (cf.calibrate, HardCF(0).fit, HardCF(ClassifierScorer()).fit):
        with pytest.raises(ValueError, match=f"seven.*{order}.*calibration_size=0"):
            use(graphs, labels)
    graphs[7] = graphs[7].replace(provenance={"label_order": "random"})
    assert cf.calibrate(graphs, labels).n_calibration_ == 59


def test_calibration_size_0_trains_on_all_and_calibrates_nothing(tmp_path):
    graphs, labels = draw(60, "model judge")
    cf = trained_on_a_model()
    assert cf.n_calibration_ == 0 and seen(cf, graphs)[0].all()
    back = load(save(cf, tmp_path / "filter.skops"))
    for one in (cf, back):
        one.calibrate(*draw(60))
    assert cf.n_calibration_ == 59 and back.threshold_ == cf.threshold_
    with pytest.raises(ValueError, match="used for training"):
        cf.calibrate(graphs, labels)
    # A second fit forgets the calibration.
    assert cf.fit(graphs, labels).n_calibration_ == 0
    with pytest.raises(NotFittedError):
        cf.predict(graphs)


@pytest.mark.parametrize(
    "use",
    [
        lambda cf, X, y: cf.predict(X),
        lambda cf, X, y: cf.stream([]),
        lambda cf, X, y: cf.score(X, y),
        lambda cf, X, y: cf.describe(),
        lambda cf, X, y: evaluate_filter(cf, X, y),
    ],
)
def test_decisions_need_a_calibration(use):
    with pytest.raises(NotFittedError, match=r"calibration_size=0.*calibrate\(X, y\)"):
        use(trained_on_a_model(online=True), *draw(60))


RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 60)
NOISE = RNG.random(60)
ALMOST = LABELS ^ (np.arange(60) == 7)
FEW = np.where(np.arange(60) < 19, LABELS, -1)


@pytest.mark.filterwarnings("ignore:.*no claims judged", "ignore:.*too few")
@pytest.mark.parametrize(
    ("column", "labels", "n_judged"),
    [
        (LABELS, LABELS, 60),
        (7 - 2 * LABELS, LABELS, 60),
        (LABELS, np.where(np.arange(60) < 10, -1, LABELS), 50),
        (ALMOST, LABELS, None),
        (LABELS, FEW, None),
        (LABELS + 0.01 * NOISE, LABELS, None),
        (LABELS, np.ones(60, int), None),
    ],
)
def test_a_column_of_the_labels_is_named(column, labels, n_judged):
    table = np.column_stack([NOISE, column])
    X = GraphBatch.from_arrays(
        table, range(0, 61, 2), (), feature_names=("noise", "human")
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        HardCF("noise", alpha=0.3).fit(X, labels)
    told = [str(w.message) for w in caught if "the column" in str(w.message)]
    assert len(told) == (n_judged is not None)
    assert all("human" in text and f"{n_judged} judged" in text for text in told)


def test_a_score_that_is_a_risk_gives_a_warning():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.7
    trust = (y + rng.normal(size=200))[:, None]
    with pytest.warns(ParameterWarning, match=r"sign.*risk"):
        HardCF(0).fit(-trust, y)
    HardCF(0).fit(trust, y)


@pytest.mark.parametrize("n_claims", [1, 20])
def test_a_score_without_information_gives_no_warning(n_claims):
    """Not even if all claims of an answer have one score and mostly one label."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        column = np.repeat(rng.normal(size=60), n_claims)[:, None]
        y = [(rng.random(n_claims) < p).astype(int) for p in rng.choice([0.1, 0.9], 60)]
        X = GraphBatch.from_arrays(column, np.arange(61) * n_claims, ())
        HardCF(0, alpha=0.2).fit(X, y)


@pytest.mark.parametrize("n_forward", [0, 1])
def test_edges_are_doubted_if_all_lead_back(n_forward):
    edges = [(2 * i + 1, 2 * i) for i in range(30)]
    edges[:n_forward] = [(0, 1)][:n_forward]
    X = GraphBatch.from_arrays(NOISE[:, None], np.arange(31) * 2, edges)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GuaranteeWarning)
        HardCF(0, alpha=0.2).fit(X, [[1, 0]] * 30)
    assert ["reversed" in str(w.message) for w in caught] == [True] * (1 - n_forward)
