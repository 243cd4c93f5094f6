"""DeepEval: train a filter on faithfulness verdicts, and calibrate it on human labels."""

import offline
from deepeval.metrics import FaithfulnessMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase
from desk import JUDGED, TEST, answer_of, new_filter

from skdcf.adapters import from_verdicts
from skdcf.metrics import coverage_score


class Recorded(DeepEvalBaseLLM):
    """Model that returns recorded verdicts on an answer, in place of a language model."""

    def __init__(self, claims, labels):
        self.replies = {
            "Truths": {"truths": []},
            "Claims": {"claims": list(claims)},
            # Claims that the passages neither support nor contradict are "borderline".
            "Verdicts": {
                "verdicts": [
                    {"verdict": "yes" if label else ("no", "borderline")[v % 2]}
                    for v, label in enumerate(labels)
                ]
            },
        }
        super().__init__("recorded")

    def load_model(self):
        """Do nothing, because there is no model to load."""

    def get_model_name(self):
        """Return the name of the model in DeepEval's report."""
        return "recorded"

    def generate(self, prompt, schema):
        """Return the recorded reply in the form of the schema."""
        return schema(**self.replies[schema.__name__])

    async def a_generate(self, prompt, schema):
        """Return the same reply as `generate`."""
        return self.generate(prompt, schema)


results, by_people = [], JUDGED.graphs[60:]
for graph, labels in zip(JUDGED.graphs[:60], JUDGED.labels[:60], strict=True):
    case = LLMTestCase(
        input=graph.problem,
        actual_output=answer_of(graph),
        retrieval_context=list(graph.context),
    )
    judge = Recorded(graph.claims, labels)
    metric = FaithfulnessMetric(model=judge, include_reason=False, async_mode=False)
    metric.measure(case, _show_indicator=False)

    # A claim and its verdict have the same position in the two lists.
    results.append({"claims": metric.claims, "verdicts": metric.verdicts})

data = from_verdicts(
    results,
    edges=lambda claims, problem: (),
    problems=JUDGED.graphs[:60].problems,
    context=JUDGED.graphs[:60].context,
    metadata=[{"label_meaning": "supported"}] * 60,
)
words = {verdict.verdict for result in results for verdict in result["verdicts"]}
assert words == {"yes", "no", "borderline"}
assert [row.tolist() for row in data.labels] == [
    row.tolist() for row in JUDGED.labels[:60]
]
cf = new_filter().fit(data.graphs, data.labels).calibrate(by_people, JUDGED.labels[60:])
covered = coverage_score(TEST.labels, cf.predict(TEST.graphs))
print(f"{len(results)} answers were read; coverage on new answers: {covered:.2f}")
assert covered > 0.7
offline.finish("deepeval")
