"""The filters as scikit-learn estimators."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
)

import skdcf
from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    IndependentFactuality,
    ReasoningGraph,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.features import (
    AgreementFeatures,
    ContextFeatures,
    DomainIndicators,
    GraphFeatures,
    TextFeatures,
    paper_features,
    reasoning_features,
)
from skdcf.scorers import ClassifierScorer, FrequencyScorer
from skdcf.uses import check

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
    StandardScaler(),
    PCA(1),
    SelectKBest(k=1),
    LinearDiscriminantAnalysis(),
    ColumnTransformer([("first", "passthrough", [0])]),
    GraphFeatures(),
    make_pipeline(GraphFeatures(), StandardScaler(), PCA(1)),
]
# Of columns, those of a pipeline come first. The others are long tests, and so are xgboost's
# trees.
CHECKED = [
    *[pytest.param(f, id=type(f).__name__) for f in FILTERS if f is not FILTERS[3]],
    pytest.param(FILTERS[3], id="XGBoostCF", marks=pytest.mark.long),
]
for t in COLUMNS:
    marks = pytest.mark.long if t is not COLUMNS[-1] else ()
    name = f"columns of {type(t).__name__}"
    CHECKED.append(
        pytest.param(HardCF(features=t, random_state=0), id=name, marks=marks)
    )


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


# All filters, and the default once with another scorer.


TRANSFORMERS = [
    AgreementFeatures(),
    AgreementFeatures(optional=True),
    ContextFeatures(),
    DomainIndicators(["a", "b"]),
    GraphFeatures(),
    TextFeatures(),
    reasoning_features(),
    paper_features(),
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
def test_a_filter_is_not_a_classifier(filter):
    for estimator in (filter, make_pipeline(GraphFeatures(), filter)):
        assert get_tags(estimator).estimator_type is None
        assert not is_classifier(estimator)
    assert not get_tags(filter).classifier_tags.multi_class
    assert get_tags(filter).target_tags.required


def test_searches_do_not_divide_problems_by_their_labels():
    y = np.arange(90) >= 45
    X = y[:, None] + np.linspace(0, 1, 90)[:, None]
    search = GridSearchCV(
        HardCF(0), {"random_state": [0]}, cv=2, scoring=lambda cf, X, y: np.mean(y)
    ).fit(X, y)
    of_folds = [search.cv_results_[f"split{i}_test_score"][0] for i in (0, 1)]
    assert of_folds == [0, 1]


@pytest.mark.parametrize("filter", FILTERS, ids=names)
def test_a_table_is_one_claim_per_row(filter):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60) > 0
    filter = clone(filter).set_params(alpha=0.3, random_state=0)
    table = clone(filter).fit(X, y)
    graphs = [ReasoningGraph(row[None], []) for row in X]
    packed = clone(filter)
    packed.fit(graphs, [np.array([int(v)]) for v in y])
    assert table.predict(X).dtype == bool
    assert table.predict(X).shape == (60,)
    np.testing.assert_array_equal(
        table.predict(X), np.concatenate(packed.predict(graphs))
    )
    assert table.score(X, y) == packed.score(graphs, [[int(v)] for v in y])
    for true, false in ((7, -3), ("yes", "no"), ("right", "wrong")):
        again = clone(table).fit(X, np.where(y, true, false))
        kept = table.predict(X)
        np.testing.assert_array_equal(again.predict(X), np.where(kept, true, false))
    assert [g.n_claims for g in table.filter(X)] == table.predict(X).astype(
        int
    ).tolist()


def test_model_selection(data):
    graphs, y = data
    search = GridSearchCV(
        SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 0.5, 1.0]}, n_jobs=2, cv=3
    ).fit(graphs, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    scores = cross_val_score(
        HardCF(), graphs, y, cv=GroupKFold(3), groups=np.arange(240) % 50
    )
    assert scores.shape == (3,)
    kept = cross_val_predict(HardCF(), graphs, y, n_jobs=2)
    assert [len(k) for k in kept] == [g.n_claims for g in graphs]


def test_pipeline_with_a_feature_step(data):
    graphs, y = data

    def double(batch):
        return batch.replace_features(batch.features * 2, batch.feature_names)

    pipe = make_pipeline(FunctionTransformer(double), HardCF("frequency-score"))
    pipe.fit(graphs, y)
    plain = HardCF("frequency-score").fit(graphs, y)
    assert pipe[-1].threshold_ == pytest.approx(2 * plain.threshold_, abs=1e-9)
    np.testing.assert_array_equal(
        np.concatenate(pipe.predict(graphs)), np.concatenate(plain.predict(graphs))
    )


@pytest.mark.parametrize(
    "filter",
    [
        HardCF("frequency-score"),
        HardCF(ClassifierScorer()),
        IndependentFactuality("frequency-score"),
        SingleFeatureCF("frequency-score"),
        XGBoostCF(),
        BoostedIndependentFactuality(),
        CoherentConformalFilter(),
    ],
    ids=lambda filter: repr(filter)[:40],
)
def test_every_fitted_attribute_is_documented(filter, data):
    """In the section of its own class; a property has a docstring of its own."""
    graphs, y = data
    filter.set_params(random_state=0).fit(graphs[:100], y[:100])
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
    again = clone(filter).fit(*known)
    assert again.threshold_ == first


def test_another_alpha_needs_no_refit(data):
    graphs, y = data
    filter = HardCF().fit(graphs, y)
    fresh = HardCF(alpha=0.3).fit(graphs, y)
    assert filter.threshold(0.3) == fresh.threshold_
    np.testing.assert_array_equal(
        np.concatenate(filter.predict(graphs, alpha=0.3)),
        np.concatenate(fresh.predict(graphs)),
    )
    assert filter.set_params(alpha=0.3).score(graphs, y) == fresh.score(graphs, y)


def test_filter_returns_the_kept_claims(data):
    graphs, y = data
    filter = HardCF(alpha=0.15).fit(graphs, y)
    for graph, mask, kept in zip(
        graphs, filter.predict(graphs), filter.filter(graphs), strict=True
    ):
        assert kept == graph.subgraph(mask)


def test_score_is_true_claims_kept_per_problem(data):
    graphs, y = data
    filter = HardCF(alpha=0.15).fit(graphs, y)
    kept = filter.predict(graphs)
    each = [(m & (row == 1)).sum() for m, row in zip(kept, y, strict=True)]
    assert filter.score(graphs, y) == pytest.approx(np.mean(each))
    weights = np.random.default_rng(0).random(240)
    expected = np.average(each, weights=weights)
    assert filter.score(graphs, y, sample_weight=weights) == pytest.approx(expected)
    assert expected != pytest.approx(np.mean(each), rel=1e-3)


def test_check_is_what_all_methods_do_first(data):
    graphs, y = data
    unfitted = HardCF("frequency-score")
    batch, labels = check(unfitted, list(graphs), y)
    assert (
        isinstance(batch, GraphBatch) and labels.tolist() == np.concatenate(y).tolist()
    )
    assert not vars(unfitted).keys() - unfitted.get_params().keys()
    fitted = unfitted.fit(batch, labels)
    assert check(fitted, list(graphs)).offsets.tolist() == graphs.offsets.tolist()
    X = np.random.default_rng(0).normal(size=(30, 2))
    table, truth = check(HardCF(0), X, np.where(X[:, 0] > 0, "yes", "no"))
    assert table.sizes.tolist() == [1] * 30 and truth.tolist() == (X[:, 0] > 0).tolist()
    with pytest.raises(ValueError, match="labels"):
        check(fitted, graphs, y[:3])
    with pytest.raises(ValueError, match="feature 'frequency-score'"):
        check(fitted, graphs.replace_features(graphs.features[:, :1], ["a"]))


def test_a_pickle_of_another_version_warns(data, monkeypatch):
    fitted = HardCF("frequency-score").fit(*data)
    made = pickle.dumps(fitted)
    monkeypatch.setattr(skdcf._version, "__version__", "99.0")
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


def test_independent_claims_take_no_edges():
    assert "edges" not in IndependentFactuality().get_params()
    with pytest.raises(TypeError, match="edges"):
        IndependentFactuality(edges="given")
