"""What a person who knows scikit-learn tries first: it works, or the error says what does."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import FeatureUnion, make_pipeline

from skdcf import CoherentConformalFilter, HardCF, IndependentFactuality, ReasoningGraph
from skdcf.datasets import (
    make_reasoning_graphs,
    make_word_problems,
)
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


def test_a_single_graph_is_told_from_a_list():
    with pytest.raises(ValueError, match=r"single ReasoningGraph.*\[graph\]"):
        HardCF(0).fit(ReasoningGraph([[1.0]]), [[1]])
