"""Wrong lines, each with the error that mypy finds in it; nothing runs them.

Where mypy no longer finds it, it calls the `type: ignore` unused, and `make lint` fails.
"""

import skdcf
from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.apps.reporting import write_report
from skdcf.datasets import make_reasoning_graphs, write_jsonl
from skdcf.evaluation import evaluate_filter

skdcf.HardFilter()  # type: ignore[attr-defined]

graph = ReasoningGraph([[1.0]], [], ["a claim"])  # type: ignore[call-arg]
graph = ReasoningGraph([[1.0]], [], claim=["a claim"])  # type: ignore[call-arg]
print(graph.labels)  # type: ignore[attr-defined]
graph.ancestors()  # type: ignore[call-arg]

GraphBatch.from_graphs()  # type: ignore[call-arg]

cf = HardCF("frequency-score", 0.1)  # type: ignore[call-arg]
cf = HardCF(alhpa=0.1)  # type: ignore[call-arg]
cf.fit([graph], group=[1])  # type: ignore[call-arg]
cf.predict([graph], level=0.2)  # type: ignore[call-arg]

write_jsonl("answers.jsonl")  # type: ignore[call-arg]
make_reasoning_graphs(n=10)  # type: ignore[call-arg]

HardCF(alpha="0.1")  # type: ignore[arg-type]
HardCF(ties="first")  # type: ignore[arg-type]
cf.threshold("0.1")  # type: ignore[arg-type]
kept: str = cf.filter([graph])  # type: ignore[assignment]

evaluate_filter(cf, [graph], [[1]], 0.1)  # type: ignore[arg-type]
write_report("report.html", [cf], [graph], [[1]])  # type: ignore[arg-type]
