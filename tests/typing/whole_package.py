"""A program that uses every part of the package. Type checkers must accept it, and it must run."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import skdcf
from skdcf import (
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    ReasoningGraph,
    save_threshold,
)
from skdcf.apps.labelling import agreement
from skdcf.apps.llm import ChatClient, ClaimExtractor
from skdcf.apps.reporting import write_report
from skdcf.apps.service import create_app
from skdcf.apps.text import split_sentences
from skdcf.choosing import passing_answers, release
from skdcf.datasets import (
    from_frame,
    labels_from_first_error,
    make_reasoning_graphs,
    make_word_problems,
    read_jsonl,
    write_jsonl,
)
from skdcf.edges import chain_edges, number_flow_edges
from skdcf.evaluation import (
    CalibratedSearch,
    Table,
    compare_filters,
    coverage_interval,
    coverage_score,
    leave_one_out,
)
from skdcf.features import AgreementFeatures, reasoning_features
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.inspection import explain, permutation_importance
from skdcf.monitoring import (
    CoverageMonitor,
)
from skdcf.plots import ReasoningGraphDisplay, ReportDisplay
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import ClassifierScorer, ConfTrScorer, LinearModel
from skdcf.training import LBFGS, SoftTraining

Masks = NDArray[np.object_]


def name_of(estimator: BaseEstimator) -> str:
    """Filters are estimators of scikit-learn, to a checker as well."""
    return type(estimator).__name__


def describe(graph: ReasoningGraph) -> str:
    """Look at a graph, at a changed copy of it and at what its first claim needs."""
    edges = graph.replace(id=1).to_dict()["edges"]
    return f"{graph}, edges {edges}, {graph.ancestors(0).tolist()}"


def make_filters() -> list[BaseEstimator]:
    """Filters with settings of several modules."""
    training = SoftTraining(optimizer=LBFGS(max_iter=5))
    return [
        CoherentConformalFilter(
            LinearModel(), relaxation=GridRelaxation(), training=training
        ),
        HardCF(ConfTrScorer(gain=0.25), alpha=0.2),
        HardCF(ClassifierScorer(LogisticRegression()), edges=chain_edges),
        HardCF("frequency-score", guarantee=NoFalseClaim(max_false=1)),
        HardCF("frequency-score", guarantee=ExpectedFalse()),
    ]


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
    threshold: Path = save_threshold(cf, folder / "threshold.json")
    same = bool((again.predict(graphs)[0] == cf.predict(graphs)[0]).all())
    return f"{explanation}{importance}{page.name}{same}{threshold.name}"


def watch(cf: HardCF, graphs: GraphBatch, labels: list[NDArray[np.int64]]) -> str:
    """A batch of answers, and a monitor."""
    monitor = CoverageMonitor().fit(cf).update(graphs[:5], labels[:5])
    app = create_app(cf)
    kept: Masks = release(cf, graphs[:20], alpha=0.3)
    return f"{monitor}{app}{len(kept)}"


def read(graphs: GraphBatch, labels: list[NDArray[np.int64]], folder: Path) -> str:
    """From texts to claims, labels and columns."""
    lines: Path = write_jsonl(folder / "lines.jsonl", graphs, labels)
    back = read_jsonl(lines)
    share = float(coverage_score(back.labels, labels))
    claims = split_sentences("Two is even. So is four.")
    graph = ReasoningGraph(None, chain_edges(claims), claims=claims, problem="Even?")
    verdicts = labels_from_first_error(n_claims=2, first_error=1)
    kappa = agreement([verdicts], [verdicts])
    columns = reasoning_features().fit_transform([graph]).features
    frame = DataFrame({"answer": ["p"], "claim": ["One."]})
    data = from_frame(frame, claim="claim", answer="answer")
    client = ChatClient("http://127.0.0.1:9/v1", key_variable=None)
    extractor = ClaimExtractor("a-model", client)
    edges = number_flow_edges(claims)
    agreeing = AgreementFeatures(optional=True)
    return f"{kappa}{columns}{data}{extractor}{edges}{agreeing}{share}"


def main(folder: Path) -> None:
    """Use every room once."""
    graphs, labels = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    problems, _ = make_word_problems(3, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.2).fit(graphs[:60], labels[:60])
    answers: list[ReasoningGraph] = cf.filter(graphs[60:])
    print([name_of(filter) for filter in make_filters()], len(problems), len(answers))
    print(compare(graphs, labels), search(graphs, labels)[0])
    print(
        look(cf, graphs[60:], labels[60:], folder), watch(cf, graphs[60:], labels[60:])
    )
    print(
        read(graphs, labels, folder),
        NoFalseClaim().problems_needed(0.1),
        coverage_interval(54, 60),
    )
    part: GraphBatch = graphs[:2]
    print(describe(graphs[0]), len(part))
