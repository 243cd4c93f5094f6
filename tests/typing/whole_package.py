"""A program that uses every part of the package. Type checkers must accept it, and it must run."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import skdcf
from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.adapters import from_frame, to_frame
from skdcf.apps.labelling import RandomOrder, ReviewOrder, agreement
from skdcf.apps.llm import ChatClient, ClaimExtractor
from skdcf.apps.reporting import write_report
from skdcf.apps.service import create_app
from skdcf.apps.text import split_sentences
from skdcf.choosing import passing_answers, release
from skdcf.datasets import (
    labels_from_first_error,
    make_reasoning_graphs,
    make_word_problems,
)
from skdcf.edges import chain_edges, number_flow_edges
from skdcf.evaluation import (
    CalibratedSearch,
    Table,
    compare_filters,
    coverage_interval,
    leave_one_out,
)
from skdcf.features import AgreementFeatures, reasoning_features
from skdcf.graphs import answer_text
from skdcf.guarantees import ExpectedFalse, NoFalseClaim, problems_needed
from skdcf.identity import question_groups
from skdcf.inspection import explain, permutation_importance
from skdcf.labels import pack_labels
from skdcf.monitoring import (
    CoverageMonitor,
)
from skdcf.persistence import CalibratedThreshold, load_threshold, save_threshold
from skdcf.plots import ReasoningGraphDisplay, ReportDisplay
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import ClassifierScorer, ConfTrScorer, LinearModel
from skdcf.training import LBFGS, SoftTraining

Masks = NDArray[np.object_]


def name_of(estimator: BaseEstimator) -> str:
    """Filters are estimators of scikit-learn, to a checker as well."""
    return type(estimator).__name__


def make_filters() -> dict[str, BaseEstimator]:
    """One filter of each kind, with settings of several rooms."""
    training = SoftTraining(optimizer=LBFGS(max_iter=5))
    return {
        "trained": CoherentConformalFilter(
            LinearModel(),
            relaxation=GridRelaxation(),
            training=training,
            random_state=0,
        ),
        "hazards": HardCF(ConfTrScorer(gain=0.25), alpha=0.2),
        "regression": HardCF(ClassifierScorer(LogisticRegression()), edges=chain_edges),
        "few false": HardCF("frequency-score", guarantee=NoFalseClaim(max_false=1)),
        "share": HardCF("frequency-score", guarantee=ExpectedFalse()),
    }


def compare(graphs: GraphBatch, labels: list[NDArray[np.int64]]) -> Table:
    """Two filters side by side."""
    filters = {"frequency": HardCF("frequency-score"), "alone": HardCF(edges="none")}
    report: Table = compare_filters(filters, graphs, labels, [0.2], cv=2)
    return report


def search(graphs: GraphBatch, labels: list[NDArray[np.int64]]) -> Masks:
    """Search on one part, calibrate on the other."""
    grid = GridSearchCV(
        HardCF("frequency-score"), {"scorer": ["frequency-score", 0]}, cv=2
    )
    searched = CalibratedSearch(grid, random_state=0).fit(graphs, labels)
    masks: Masks = searched.predict(graphs)
    return masks


def look(
    cf: HardCF, graphs: GraphBatch, labels: list[NDArray[np.int64]], folder: Path
) -> str:
    """Explain, draw, report and save."""
    explanation = explain(cf, graphs[0])
    assert passing_answers(cf, graphs).all()
    importance = permutation_importance(cf, graphs, labels, n_repeats=1, random_state=0)
    left_out: Table = leave_one_out(cf, graphs, labels, alphas=[0.1])
    ReasoningGraphDisplay.from_estimator(cf, graphs[0])
    ReportDisplay.from_report(left_out)
    page: Path = write_report(folder / "page.html", cf, graphs, labels, alphas=[0.2])
    path: Path = skdcf.save(cf, folder / "filter.skops")
    again = skdcf.load(path)
    save_threshold(cf, folder / "threshold.json")
    threshold: CalibratedThreshold = load_threshold(folder / "threshold.json")
    same = bool((again.predict(graphs)[0] == cf.predict(graphs)[0]).all())
    return f"{explanation}{importance}{page.name}{same}{threshold}"


def watch(cf: HardCF, graphs: GraphBatch, labels: list[NDArray[np.int64]]) -> str:
    """A batch of answers, and a monitor."""
    monitor = CoverageMonitor(cf).update(graphs[:5], labels[:5])
    app = create_app(cf)
    review = ReviewOrder(cf, graphs[:20])
    place = review.next()
    if place is not None:
        review.told(*place, "true")
    kept: Masks = release(cf, graphs[:20], alpha=0.3)
    return f"{monitor}{app}{review.describe(0.1)}{len(kept)}"


def read(folder: Path) -> str:
    """From texts to claims, labels and columns."""
    claims = split_sentences("Two is even. So is four.")
    graph = ReasoningGraph(None, chain_edges(claims), claims=claims, problem="Even?")
    labels = labels_from_first_error(n_claims=2, first_error=1)
    kappa = agreement([labels], [labels])
    order = RandomOrder()
    table = to_frame(reasoning_features().fit_transform([graph]))
    data = from_frame(table, claim="claim", answer="answer")
    client = ChatClient("http://127.0.0.1:9/v1", key_variable=None)
    extractor = ClaimExtractor("a-model", client)
    edges = number_flow_edges(claims)
    columns = AgreementFeatures(optional=True)
    return f"{kappa}{order}{data}{extractor}{edges}{columns}{folder}"


def main(folder: Path) -> None:
    """Use every room once."""
    graphs, labels = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    problems, _ = make_word_problems(3, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.2).fit(graphs[:60], labels[:60])
    print([name_of(filter) for filter in make_filters().values()], len(problems))
    print(compare(graphs, labels), search(graphs, labels)[0])
    print(
        look(cf, graphs[60:], labels[60:], folder), watch(cf, graphs[60:], labels[60:])
    )
    print(read(folder), problems_needed(0.1), coverage_interval(54, 60))
    print(question_groups(problems), pack_labels(labels, graphs).sum())
    print(answer_text(problems[0]))
