"""RAGAS: train a filter on faithfulness verdicts, and calibrate it on human labels."""

import json

import offline
from desk import JUDGED, TEST, answer_of, new_filter
from langchain_core.outputs import Generation, LLMResult
from ragas import EvaluationDataset, evaluate
from ragas.llms import BaseRagasLLM
from ragas.metrics import Faithfulness

from skdcf.apps.text import split_sentences
from skdcf.datasets import build_dataset
from skdcf.evaluation import coverage_score

verdicts = {
    ("\n".join(graph.context), claim): int(label)
    for graph, row in zip(JUDGED.graphs, JUDGED.labels, strict=True)
    for claim, label in zip(graph.claims, row, strict=True)
}


class Recorded(BaseRagasLLM):
    """Model that returns recorded verdicts, in place of a language model."""

    def generate_text(self, prompt, *args, **options):
        """Return the statements of an answer, or the verdicts on statements."""
        data = json.loads(
            prompt.to_string().rpartition("input: ")[2].removesuffix("Output: ")
        )
        if "answer" in data:
            reply = {"statements": split_sentences(data["answer"])}
        else:
            context = data["context"]
            rows = [
                {"statement": text, "reason": "", "verdict": verdicts[context, text]}
                for text in data["statements"]
            ]
            reply = {"statements": rows}
        return LLMResult(generations=[[Generation(text=json.dumps(reply))]])

    async def agenerate_text(self, prompt, *args, **options):
        """Return the same reply as `generate_text`."""
        return self.generate_text(prompt)

    def is_finished(self, response):
        """Return True, because recorded replies are complete."""
        return True


by_ragas, by_people = JUDGED.graphs[:60], JUDGED.graphs[60:]
rows = [
    {
        "user_input": g.problem,
        "response": answer_of(g),
        "retrieved_contexts": list(g.context),
    }
    for g in by_ragas
]
result = evaluate(
    EvaluationDataset.from_list(rows),
    metrics=[Faithfulness(llm=Recorded())],
    show_progress=False,
)


def problem(pair):
    """Return the problem line of an answer and its verdicts."""
    row, trace = pair
    judged = trace["faithfulness"]["n_l_i_statement_prompt"]["output"].statements
    return {
        "problem": row["user_input"],
        "context": row["retrieved_contexts"],
        "claims": [verdict.statement for verdict in judged],
        "labels": [verdict.verdict for verdict in judged],
        "edges": [],
        "metadata": {"label_meaning": "supported"},
    }


data = build_dataset(enumerate(zip(rows, result.traces, strict=True)), problem)
assert [row.tolist() for row in data.labels] == [
    row.tolist() for row in JUDGED.labels[:60]
]
cf = new_filter().fit(data.graphs, data.labels).calibrate(by_people, JUDGED.labels[60:])
covered = coverage_score(TEST.labels, cf.predict(TEST.graphs))
print(f"faithfulness {result['faithfulness'][:5]}..., coverage {covered:.2f}")
assert covered > 0.7
offline.finish("ragas")
