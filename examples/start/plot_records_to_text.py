"""
From records to filtered text
=============================

Records as they lie in a file, with texts, dependencies and verdicts, become graphs; a
pipeline learns from them; new records come back without what it does not trust.
"""

# %%
# Records
# -------
# A record has a question, claims, for each claim those that it builds on, verdicts of
# whoever checked it, and here two further answers to the same question. These records are
# generated; the first one shows the form.

import textwrap

from skdcf.datasets import make_word_problems


def make_records(n, seed):
    """Answers as somebody may have written them down."""
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
# One function is all that depends on the form of the records.

from skdcf import ReasoningGraph


def to_graph(record):
    """The graph of a record."""
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
# ``groups`` would keep answers to one question on one side; here every question is asked
# once.

from skdcf import CoherentConformalFilter
from skdcf.features import reasoning_features

pipe = CoherentConformalFilter(features=reasoning_features(), alpha=0.1, random_state=0)
pipe.fit(graphs, labels)
answers = [to_graph(record) for record in new]
texts = pipe.filter(answers, output="text")

# %%
# The answer of which most is to be seen, before and after:

kept = pipe.predict(answers)
truth = [record["verdicts"] for record in new]


def shows(i):
    """Claims that are rightly kept or rightly dropped, whichever are fewer."""
    right = [(k, y) for k, y in zip(kept[i], truth[i], strict=True) if k == y]
    return min(sum(k for k, _ in right), sum(not k for k, _ in right))


best = max(range(len(new)), key=shows)
question = textwrap.fill(new[best]["question"], 88)
print("\n".join([question, "", *new[best]["claims"]]))

# %%

print(texts[best])

# %%
# Why the others went, as a notebook shows it:

from skdcf.inspection import explain

explained = explain(pipe, answers[best], truth[best])
explained

# %%
# The same as a picture for a file.

from skdcf.plots import ReasoningGraphDisplay

display = ReasoningGraphDisplay.from_graph(
    answers[best], kept=kept[best], labels=truth[best]
)
