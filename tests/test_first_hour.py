"""What a person who knows scikit-learn tries first: it works, or the error says what does."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union

from skdcf import CoherentConformalFilter, HardCF, IndependentFactuality, ReasoningGraph
from skdcf.datasets import (
    make_reasoning_graphs,
    make_word_problems,
)
from skdcf.evaluation import CalibratedSearch
from skdcf.features import GraphFeatures, TextFeatures

GRAPHS, Y = make_reasoning_graphs(90, random_state=0, return_X_y=True)
UNION = FeatureUnion([("a", GraphFeatures()), ("b", TextFeatures())])
PIPELINE = r"make_pipeline\(GraphFeatures\(\), TextFeatures\(\)\)"


def test_a_feature_union_of_graph_transformers_names_the_pipeline():
    problems = make_word_problems(60)
    for X in (problems.graphs, GRAPHS):
        with pytest.raises(ValueError, match=f"FeatureUnion.*{PIPELINE}"):
            HardCF(features=UNION).fit(X, problems.labels if X is not GRAPHS else Y)
    # Here scikit-learn speaks first, except that old versions make an array of the graphs.
    with pytest.raises((ValueError, TypeError), match=f"1 dimensions|{PIPELINE}"):
        make_pipeline(UNION, HardCF()).fit(problems.graphs, problems.labels)


def test_a_pipeline_has_the_columns_of_all_steps():
    problems = make_word_problems(60)
    columns = make_pipeline(GraphFeatures(), TextFeatures())
    cf = HardCF(features=columns, alpha=0.3, random_state=0)
    names = list(cf.fit(problems.graphs, problems.labels).get_feature_names_out())
    expected = columns.fit(problems.graphs).get_feature_names_out()
    assert names == expected.tolist()
    # Transformers of tables are what a FeatureUnion joins.
    tables = make_union("passthrough", "passthrough")
    HardCF(features=tables, alpha=0.3, random_state=0).fit(GRAPHS, Y)


@pytest.mark.parametrize(
    "filter", [HardCF(0), IndependentFactuality(), CoherentConformalFilter()]
)
def test_what_is_missing_in_a_call_is_named_with_the_class(filter):
    name = type(filter).__name__
    for method in ("fit", "calibrate"):
        with pytest.raises(ValueError, match=f"{name}.*y"):
            getattr(clone(filter), method)(GRAPHS)
    with pytest.raises(TypeError, match="group"):
        filter.fit(GRAPHS, Y, group=np.arange(90))
    with pytest.raises(TypeError, match="sample_weight"):
        filter.fit(GRAPHS, Y, sample_weight=np.ones(90))


def test_a_series_of_labels_is_read():
    plain = HardCF(0, alpha=0.3).fit(GRAPHS, Y).threshold_
    for labels in (
        pd.Series(Y),
        pd.Series(list(Y)),
        pd.Series(list(Y), index=np.arange(90)[::-1]),
    ):
        assert HardCF(0, alpha=0.3).fit(GRAPHS, labels).threshold_ == plain
        assert (
            HardCF(0, alpha=0.3).fit(pd.Series(list(GRAPHS)), labels).threshold_
            == plain
        )


def test_a_single_graph_is_told_from_a_list():
    with pytest.raises(ValueError, match=r"single ReasoningGraph.*\[graph\]"):
        HardCF(0).fit(ReasoningGraph([[1.0]]), [[1]])


def test_the_html_representation_links_to_no_page_of_another_package():
    """The documentation has no address yet, and a filter has no page at scikit-learn's."""
    for estimator in (HardCF(0), GraphFeatures()):
        assert "href=" not in estimator._repr_html_()


def test_a_halving_search_works_alone_and_calibrated():
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    cf = HardCF("frequency-score", alpha=0.3)
    grid = {"scorer": ["frequency-score", 0, 1]}
    halving = HalvingGridSearchCV(
        cf, grid, cv=2, factor=2, min_resources=40, random_state=0
    )
    for X in (GRAPHS, list(GRAPHS)):
        fitted = clone(halving).fit(X, Y)
        assert fitted.n_resources_ == [40, 80]
        assert len(fitted.predict(X)) == 90
        last = fitted.cv_results_["iter"] == 1
        assert fitted.best_score_ == max(fitted.cv_results_["mean_test_score"][last])
    calibrated = CalibratedSearch(halving, random_state=0).fit(GRAPHS, Y)
    assert calibrated.best_params_ in [{"scorer": name} for name in grid["scorer"]]
    assert calibrated.n_calibration_ < 90
