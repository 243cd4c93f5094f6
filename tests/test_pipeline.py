"""Pipelines that can do what filters can, text out of filters, links to the pages."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import fit_search
from skdcf.features import ClaimTransformer, reasoning_features
from skdcf.pipeline import FilterPipeline, make_filter_pipeline
from skdcf.scorers import LinearScorer, NeymanPearsonScorer

X, Y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
FIT, NEW = (X[:150], Y[:150]), X[150:]


def same(a, b):
    return all(np.array_equal(i, j) for i, j in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def fitted():
    steps = ClaimTransformer(StandardScaler()), HardCF("claim_index", alpha=0.2)
    return make_filter_pipeline(*steps).fit(*FIT)


def by_hand(pipe):
    scaler, cf = (step for _, step in pipe.steps)
    return cf, scaler.transform(NEW)


def test_groups_reach_the_filter_by_their_own_name(fitted):
    model = make_filter_pipeline(
        ClaimTransformer(StandardScaler()), HardCF("neyman-pearson", random_state=0)
    )
    groups = np.arange(150) // 5
    scaled = model[0].fit_transform(FIT[0])
    expected = clone(model[-1]).fit(scaled, FIT[1], groups)
    assert model.fit(*FIT, groups).threshold() == expected.threshold()
    assert expected.threshold() != clone(model).fit(*FIT).threshold()
    with config_context(enable_metadata_routing=True):
        routed = clone(model)
        routed[-1].set_fit_request(groups=True)
        assert routed.fit(*FIT, groups=groups).threshold() == expected.threshold()
    assert not hasattr(model, "set_fit_request")


def test_methods_are_those_of_the_filter(fitted):
    cf, seen = by_hand(fitted)
    for name in (
        "predict_alpha",
        "path_risk",
        "predict",
        "decision_function",
        "filter",
    ):
        found, expected = (getattr(f, name)(x) for f, x in ((fitted, NEW), (cf, seen)))
        if name == "filter":
            assert found == expected
        else:
            assert same(found, expected)
    assert same([e.kept for e in fitted.explain(NEW)], cf.predict(seen))
    assert fitted.explain(NEW[0], alpha=0.3).alpha == 0.3
    assert fitted.threshold(0.1) == cf.threshold(0.1)
    again = clone(fitted).fit(*FIT).calibrate(X[100:150], Y[100:150])
    assert again.steps[-1][1].n_calibration_ == 50
    assert pickle.loads(pickle.dumps(fitted)).threshold() == fitted.threshold()


def test_what_is_a_pipeline_already(fitted):
    plain = Pipeline(fitted.steps)
    search = GridSearchCV(clone(plain), {"hardcf__alpha": [0.2]}, cv=2).fit(*FIT)
    for given in (plain, search):
        assert same(
            FilterPipeline.of(given).predict_alpha(NEW), fitted.predict_alpha(NEW)
        )
    cf, seen = by_hand(fitted)
    alone = FilterPipeline.of(cf)
    assert same(alone.predict_alpha(seen), cf.predict_alpha(seen))
    assert alone.filter(seen) == cf.filter(seen)
    assert alone.explain(seen[0]).alpha == 0.2
    with pytest.raises(ValueError, match="does not end in a filter"):
        FilterPipeline.of(make_pipeline(StandardScaler()))


def test_searches_and_settings():
    pipe = make_filter_pipeline(
        ClaimTransformer(StandardScaler()), HardCF("claim_index", alpha=0.2)
    )
    best = fit_search(
        GridSearchCV(pipe, {"hardcf__scorer": ["claim_index", "nx_pagerank"]}, cv=2),
        *FIT,
        random_state=0,
    )
    assert isinstance(best, FilterPipeline)
    assert len(best.filter(NEW)) == len(NEW)
    with pytest.raises(NotFittedError):
        pipe.predict_alpha(NEW)


@pytest.fixture(scope="module")
def spoken():
    graphs = [
        ReasoningGraph.from_parents(
            [[], [0], [1]], [[3.0], [2.0], [0.0]], claims=["a = 1", "b = 2", "c < 0"]
        )
    ]
    rows = [ReasoningGraph([[s]], [], claims=["x"]) for s in np.arange(-4, 1.5, 0.5)]
    return HardCF(0, alpha=0.2).fit(rows, [[0]] * len(rows)), graphs


def test_text_of_what_is_kept(spoken):
    cf, graphs = spoken
    assert cf.filter(graphs, output="text") == ["a = 1\nb = 2"]
    assert cf.filter(graphs, output="text") == [
        "\n".join(g.claims) for g in cf.filter(graphs)
    ]
    nothing = [graphs[0].replace(features=[[-9.0], [0], [0]])]
    assert cf.filter(nothing, output="text") == [""]
    with pytest.raises(ValueError, match="output is 'html', but must be one of"):
        cf.filter(graphs, output="html")
    with pytest.raises(ValueError, match=r"\(q7\) have no texts"):
        cf.filter([graphs[0].replace(claims=None, id="q7")], output="text")


def test_estimators_link_to_their_pages(monkeypatch, fitted):
    monkeypatch.setenv("SKDCF_DOCS", "https://docs.example/skdcf/")
    at = "https://docs.example/skdcf/generated/"
    pages = {
        HardCF(): "skdcf.HardCF",
        NeymanPearsonScorer(): "skdcf.scorers.NeymanPearsonScorer",
        LinearScorer(): "skdcf.scorers.LinearScorer",
        reasoning_features(): "skdcf.features.FeatureUnion",
        fitted: "skdcf.pipeline.FilterPipeline",
    }
    for estimator, page in pages.items():
        name = page if "FeatureUnion" not in page else None
        link = estimator._get_doc_link()
        assert link.startswith(at) and (name is None or link == f"{at}{name}.html")
    html = fitted._repr_html_()
    assert f'href="{at}skdcf.HardCF.html"' in html
    assert "scikit-learn.org" in html  # of the scaler
    monkeypatch.setenv("SKDCF_DOCS", "")
    assert HardCF()._get_doc_link() == ""
    assert "docs.example" not in HardCF()._repr_html_()


def test_pipelines_are_saved_and_loaded(tmp_path, fitted):
    pytest.importorskip("skops")
    from skdcf.persistence import load, save

    loaded = load(save(fitted, tmp_path / "pipe.skops"))
    assert isinstance(loaded, FilterPipeline)
    assert same(loaded.predict_alpha(NEW), fitted.predict_alpha(NEW))
