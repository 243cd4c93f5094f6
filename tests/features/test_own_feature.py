"""Columns that users compute themselves, from problems that have none yet."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler

from skdcf import HardCF, ReasoningGraph
from skdcf.features import GraphTransformer

GRAPHS = [
    ReasoningGraph(claims=["abc" * (i % 7 + 1), f"a{i}"], edges=[], problem=f"q{i}")
    for i in range(60)
]
LABELS = [[1, int(i % 3 == 0)] for i in range(60)]


class Lengths(TransformerMixin, BaseEstimator):
    def fit(self, problems, labels=None):
        self.n_seen_ = (len(problems), len(labels))
        return self

    def transform(self, problems):
        return np.array([[len(text)] for graph in problems for text in graph.claims])


class OwnLengths(GraphTransformer):
    requires_fit = False
    reads_edges = False

    def own_names(self):
        return ["length"]

    def own_columns(self, batch):
        return np.array([[len(text)] for text in batch.claims])


@pytest.mark.parametrize("features", [Lengths(), OwnLengths()])
def test_a_feature_of_ones_own_reaches_the_scorer(features):
    cf = HardCF(0, features=features, alpha=0.3).fit(GRAPHS, LABELS)
    lengths = [[[len(text)] for text in graph.claims] for graph in GRAPHS]
    assert [
        graph.features.tolist() for graph in cf.transform_features(GRAPHS)
    ] == lengths


def test_a_plain_transformer_learns_from_training_problems_only():
    cf = HardCF(0, features=Lengths(), alpha=0.3).fit(GRAPHS, LABELS)
    n_problems, n_labels = cf.features_.n_seen_
    assert n_problems < len(GRAPHS) and n_labels == 2 * n_problems


def test_a_row_is_needed_for_each_claim():
    class Wrong(Lengths):
        def transform(self, problems):
            return super().transform(problems)[1:]

    with pytest.raises(ValueError, match=r"row.*\d+ claims"):
        HardCF(0, features=Wrong(), alpha=0.3).fit(GRAPHS, LABELS)


@pytest.mark.parametrize(
    ("wrong", "got"),
    [(lambda c: c[:, 0], r"\(120,\)"), (lambda c: c[1:], r"\(119, 1\)")],
)
def test_own_columns_have_a_row_per_claim_and_a_column_per_name(wrong, got):
    class Wrong(OwnLengths):
        def own_columns(self, batch):
            return wrong(super().own_columns(batch))

    with pytest.raises(ValueError, match=rf"Wrong.own_columns.*\(120, 1\).*{got}"):
        Wrong().fit_transform(GRAPHS)


def test_a_transformer_of_tables_leads_to_the_page():
    with pytest.raises(ValueError, match=r"StandardScaler\(\).*feature"):
        HardCF(0, features=StandardScaler(), alpha=0.3).fit(GRAPHS, LABELS)
