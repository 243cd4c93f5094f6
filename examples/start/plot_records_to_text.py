"""
Convert records to filtered text
================================

This example converts records with texts, dependencies and verdicts into graphs, fits a filter on
them, and filters new records.
"""

# %%
# Records
# -------
# A record contains a question, claims, the parents of each claim, verdicts by a person, and two
# other answers to the same question. The records are generated. This is the first record:

import textwrap

from skdcf.datasets import make_word_problems


def make_records(n, seed):
    """Return generated answers as records."""
    data = make_word_problems(n, random_state=seed)
    return [
        {
            "question": graph.problem,
            "claims": list(graph.claims),
            "builds_on": [
                graph.edges[graph.edges[:, 1] == v, 0].tolist()
                for v in range(graph.n_claims)
            ],
            "verdicts": labels.astype(bool).tolist(),
            "others": list(graph.alternatives),
        }
        for graph, labels in zip(data.graphs, data.labels, strict=True)
    ]


old, new = make_records(500, seed=0), make_records(100, seed=1)
for key, value in old[0].items():
    print(textwrap.fill(f"{key}: {value}", 88, subsequent_indent="    "))

# %%
# Graphs
# ------
# Only this function depends on the format of the records:

from skdcf import ReasoningGraph


def to_graph(record):
    """Convert a record to a graph."""
    return ReasoningGraph.from_parents(
        record["builds_on"],
        claims=record["claims"],
        problem=record["question"],
        alternatives=record["others"],
    )


graphs = [to_graph(record) for record in old]
labels = [record["verdicts"] for record in old]
graphs[0]

# %%
# Fit and filter
# --------------
# Each question occurs once in these records. If questions have several answers, pass ``groups``
# to `fit`, so all answers to a question are used either for training or for calibration.

from skdcf import CoherentConformalFilter

pipe = CoherentConformalFilter(alpha=0.1, random_state=0)
pipe.fit(graphs, labels)
answers = [to_graph(record) for record in new]
texts = pipe.filter(answers, output="text")

# %%
# This answer contains both kept and dropped claims. The first output is the original answer, and
# the second is the filtered answer:

kept = pipe.predict(answers)
truth = [record["verdicts"] for record in new]


def shows(i):
    """Return the smaller of the numbers of correctly kept and correctly dropped claims."""
    right = [(k, y) for k, y in zip(kept[i], truth[i], strict=True) if k == y]
    return min(sum(k for k, _ in right), sum(not k for k, _ in right))


best = max(range(len(new)), key=shows)
question = textwrap.fill(new[best]["question"], 88)
print("\n".join([question, "", *new[best]["claims"]]))

# %%

print(texts[best])

# %%
# In a notebook, `skdcf.inspection.explain` shows the reasons for the dropped claims:

from skdcf.inspection import explain

explained = explain(pipe, answers[best], truth[best])
explained

# %%
# The same explanation can be saved as a figure:

from skdcf.plots import ReasoningGraphDisplay

display = ReasoningGraphDisplay.from_graph(
    answers[best], kept=kept[best], labels=truth[best]
)
