"""What a user writes; mypy has to accept it, and it has to run."""

from pathlib import Path

import numpy as np

from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.adapters import from_frame, to_frame
from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl
from skdcf.edges import chain_edges
from skdcf.evaluation import coverage_score, evaluate_filter, retention_score
from skdcf.features import reasoning_features
from skdcf.relaxation import PathRelaxation


def make_graph(claims: list[str], question: str) -> ReasoningGraph:
    """An answer of which only the texts are known."""
    return ReasoningGraph(None, chain_edges(claims), claims=claims, problem=question)


def describe(graph: ReasoningGraph) -> str:
    """Look at a graph, at a changed copy of it and at what its first claim needs."""
    edges = graph.replace(id=1).to_dict()["edges"]
    return f"{graph}, edges {edges}, {graph.ancestors(0).tolist()}"


def pack(graphs: list[ReasoningGraph]) -> GraphBatch:
    """Many problems side by side, a part of them, and one of them."""
    batch = GraphBatch.from_graphs(graphs)
    part: GraphBatch = batch[: len(batch) // 2]
    first: ReasoningGraph = batch[0]
    assert len(part) <= len(batch)
    assert first == graphs[0]
    return batch


def filter_answers(folder: Path) -> float:
    """Fit, choose another level, look at what is kept and save it."""
    graphs, labels = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:100], labels[:100])
    kept = cf.predict(graphs[100:], alpha=0.2)
    answers: list[ReasoningGraph] = cf.filter(graphs[100:])
    print(describe(answers[0]), cf.threshold(0.2), cf.n_calibration_)
    path: Path = write_jsonl(folder / "kept.jsonl", graphs[100:], labels[100:], kept)
    back = read_jsonl(path)
    share = float(coverage_score(back.labels, back.masks))
    return share * float(retention_score(labels[100:], kept))


def learn() -> str:
    """Train a score, and report how well it filters."""
    graphs, labels = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    relaxation = PathRelaxation()
    cf = CoherentConformalFilter("linear", relaxation=relaxation, random_state=0)
    cf.fit(graphs[:100], labels[:100], groups=np.arange(100)).calibrate(
        graphs[100:], labels[100:]
    )
    new, truth = make_reasoning_graphs(200, random_state=1, return_X_y=True)
    return str(evaluate_filter(cf, new, truth, alphas=[0.1, 0.2]))


def through_a_table(graphs: GraphBatch) -> int:
    """Texts become features, features a table, and a table problems."""
    table = to_frame(reasoning_features().fit_transform(graphs))
    features = ["n_ancestors"]
    data = from_frame(table, claim="claim", answer="answer", features=features)
    return len(data.graphs)


def main(folder: Path) -> None:
    """Do all of it."""
    batch = pack([make_graph(["1 + 1 = 2", "so 2"], "What is 1 + 1?")] * 3)
    print(describe(batch[0]), filter_answers(folder), learn(), through_a_table(batch))
