"""The filters as scikit-learn estimators."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
)

import skdcf
from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    ReasoningGraph,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.features import (
    AgreementFeatures,
    ContextFeatures,
    DomainIndicators,
    GraphFeatures,
    reasoning_features,
)
from skdcf.scorers import FrequencyScorer

FILTERS = [
    HardCF(),
    IndependentFactuality(),
    SingleFeatureCF(),
    XGBoostCF(random_state=0),
    CoherentConformalFilter(random_state=0),
    BoostedIndependentFactuality(random_state=0),
]
names = [type(f).__name__ for f in FILTERS]


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(240, random_state=0, return_X_y=True)


COLUMNS = [
    ColumnTransformer([("first", "passthrough", [0])]),
    SelectKBest(k=1),
    make_pipeline(GraphFeatures(), StandardScaler(), PCA(1)),
]
CHECKED = [
    pytest.param(f, marks=pytest.mark.long if i not in (0, 2) else ())
    for i, f in enumerate(
        [*FILTERS, *(HardCF(features=t, random_state=0) for t in COLUMNS)]
    )
]


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("filter", CHECKED)
def test_scikit_learns_own_checks(filter):
    """All pass, and no wrong tag collects almost no checks."""
    assert len(list(estimator_checks_generator(filter))) >= 41
    results = check_estimator(filter, on_skip=None)
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}  # runs where SCIPY_ARRAY_API is set
    assert get_tags(filter).estimator_type is None
    assert get_tags(filter).target_tags.required


TRANSFORMERS = [
    AgreementFeatures(),
    ContextFeatures(),
    DomainIndicators(["a", "b"]),
    reasoning_features(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda t: type(t).__name__)
def test_scikit_learns_own_checks_of_transformers(transformer):
    """They read graphs, so checks that pass tables are left out, as for `CountVectorizer`."""
    n_checks = len(list(estimator_checks_generator(transformer)))
    assert n_checks >= len(list(estimator_checks_generator(CountVectorizer())))
    results = check_estimator(transformer, on_skip=None)
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}


@pytest.mark.parametrize("filter", FILTERS, ids=names)
def test_a_table_is_one_claim_per_row(filter):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60) > 0
    filter = clone(filter).set_params(alpha=0.3, random_state=0)
    table = clone(filter).fit(X, y)
    graphs = [ReasoningGraph(row[None], []) for row in X]
    packed = clone(filter).fit(graphs, y.astype(int)[:, None])
    assert not hasattr(packed, "classes_")
    kept = np.concatenate(packed.predict(graphs))
    assert kept.dtype == bool
    np.testing.assert_array_equal(table.predict(X), kept)
    np.testing.assert_array_equal(packed.predict(X), kept)
    assert table.score(X, y) == packed.score(graphs, y.astype(int)[:, None])
    assert [g.n_claims for g in table.filter(X)] == kept.astype(int).tolist()


@pytest.mark.parametrize("filter", FILTERS, ids=names)
def test_every_fitted_attribute_is_documented(filter, data):
    """In the section of its own class; a property has a docstring of its own."""
    graphs, y = data
    filter = clone(filter).set_params(random_state=0).fit(graphs[:100], y[:100])
    for one in (filter, filter.scorer_):
        fitted = {n for n in vars(one) if n.endswith("_") and n[0] != "_"}
        described = inspect.getdoc(type(one)).partition("Attributes\n---")[2]
        described = set(re.findall(r"\w+_\b", described.partition("\n---")[0]))
        assert fitted - described == set(), type(one).__name__


def test_calibrating_again_and_again(data):
    graphs, y = data
    known = graphs[100:], y[100:]
    filter = HardCF(LogisticRegression(max_iter=5000), random_state=0).fit(*known)
    scorer, first = filter.scorer_, filter.threshold_
    assert filter.calibrate(graphs[:50], y[:50]) is filter
    assert filter.n_calibration_ == 49  # of rank 5, like 50
    assert len(filter.unused_indices_) == 1
    assert filter.scorer_ is scorer
    filter.calibrate(graphs[50:100], y[50:100])
    assert filter.fit(*known).threshold_ == first


def test_another_alpha_needs_no_refit(data):
    graphs, y = data
    filter = HardCF().fit(graphs, y)
    fresh = HardCF(alpha=0.3).fit(graphs, y)
    assert filter.threshold(0.3) == fresh.threshold_
    rows = filter.predict(graphs, alpha=[0.1, 0.3])
    for row, cf in zip(rows, (filter, fresh), strict=True):
        assert all(map(np.array_equal, row, cf.predict(graphs)))
    for alpha in ([], "0.1", [[0.1]], np.array("0.1")):
        with pytest.raises(ValueError, match="alpha"):
            filter.predict(graphs, alpha=alpha)
    assert filter.set_params(alpha=0.3).score(graphs, y) == fresh.score(graphs, y)


@pytest.mark.filterwarnings("ignore:.*answers to:skdcf.exceptions.GuaranteeWarning")
def test_filter_returns_the_kept_claims():
    graphs, y = make_word_problems(120, random_state=0, return_X_y=True)
    score = np.random.default_rng(0).uniform(size=(graphs.n_claims, 1))
    graphs = graphs.replace_features(score, ["score"])
    filter = HardCF(0, alpha=0.3).fit(graphs, y)
    kept = filter.filter(graphs)
    masks = filter.predict(graphs)
    assert kept == [g.subgraph(mask) for g, mask in zip(graphs, masks, strict=True)]
    texts = ["\n".join(graph.claims or ()) for graph in kept]
    assert filter.filter(graphs, output="text") == texts and any(texts)


def test_a_pickle_of_another_version_warns(data, monkeypatch):
    fitted = HardCF("frequency-score").fit(*data)
    made = pickle.dumps(fitted)
    monkeypatch.setattr(skdcf._parameters, "__version__", "99.0")
    with pytest.warns(InconsistentVersionWarning, match=r"HardCF .* 99\.0"):
        assert pickle.loads(made).threshold_ == fitted.threshold_
    pickle.loads(pickle.dumps(fitted))  # made by this one


def test_frequency_scorer_against_a_loop(data):
    import networkx as nx

    graphs, _ = data
    for over in ("descendants", "children"):
        found = FrequencyScorer(0.3, over).confidence(graphs)
        for graph, row in zip(graphs, graphs.split(found), strict=True):
            f = graph.features[:, graph.feature_names.index("frequency-score")]
            nxg = graph.to_networkx()
            for v in range(graph.n_claims):
                if over == "children":
                    risks = sorted(-f[u] for u in nxg.successors(v))
                    below = -risks[len(risks) // 2] if risks else f[v]
                else:
                    values = [f[u] for u in nx.descendants(nxg, v)]
                    below = np.median(values) if values else f[v]
                assert row[v] == pytest.approx(0.7 * f[v] + 0.3 * below)


def test_settings_of_boosted_trees(data):
    pytest.importorskip("xgboost")
    options = {"max_depth": 1, "n_estimators": 5, "learning_rate": 0.9}
    scorer = XGBoostCF(**options, target="own", random_state=0).fit(*data).scorer_
    assert scorer.estimator_.get_params().items() >= options.items()
    assert (scorer.target, scorer.gain) == ("own", None)
