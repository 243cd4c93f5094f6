"""
Filter the answers of a language model
======================================

This example extracts claims from the answers of a language model, calibrates a filter on labelled
claims, and filters new answers. The model is a small script behind a local server and is called
over HTTP like any other endpoint. It adds numbers and sometimes makes errors. For your own
endpoint, change only the address and the name of the model.
"""

# %%
# A model behind an endpoint
# --------------------------
# The server is part of the tests of this package. It uses the chat completions protocol.

import random
import sys
import tempfile
import textwrap
from pathlib import Path

tests = [folder for folder in (Path("../../tests"), Path("tests")) if folder.is_dir()]
sys.path.insert(0, str(tests[0].resolve()))

from chat_server import ChatServer
from scripted_model import ScriptedModel, is_right, make_question

server = ChatServer(ScriptedModel()).__enter__()
rng = random.Random(0)
questions = [make_question(rng) for _ in range(140)]
print(questions[0])

# %%
# Extract
# -------
# The model first answers each question. The extractor then splits the answer into claims,
# determines their dependencies, and samples two other answers. It computes four columns per claim:
# the frequency score, the verdict of a judge, its log odds, and ``flagged``.

from skdcf.apps.llm import ChatClient, ClaimExtractor, Frequency, SampleAnswers, Verify

folder = tempfile.TemporaryDirectory()
client = ChatClient(server.url, cache=f"{folder.name}/replies.sqlite")
extractor = ClaimExtractor(
    "scripted",
    client,
    sample=SampleAnswers(2),
    features=[Frequency(), Verify()],
)
drawn = SampleAnswers(1, temperature=0.7).apply(
    questions, model="scripted", client=client
)
answers = [answer for [answer] in drawn]
known = list(zip(questions[:100], answers[:100], strict=True))
graphs = extractor.transform(known)
print(textwrap.fill(str(extractor.usage_), 88))
graphs

# %%
# Label
# -----
# Usually, a person judges the claims on the page opened by ``skdcf label``. In this example, a
# rule that checks every sum replaces the person. Its judgements are written to the same journal.

from skdcf.apps.labelling import LabelStore, describe_labels

store = LabelStore(graphs, f"{folder.name}/labels.journal")
for i, graph in enumerate(graphs):
    for v, text in enumerate(graph.claims):
        store.label(i, v, "true" if is_right(text) else "false", by="ann")
labelled = store.export("ann")
print(describe_labels(labelled.graphs, labelled.labels))

# %%
# Fit and filter
# --------------
# This filter uses the log odds of the judge as its score. It is not trained, so no problems are
# held out for training.

from skdcf import HardCF
from skdcf.inspection import explain

filter = HardCF("judge_log_odds", alpha=0.1, ties="jitter", random_state=0)
filter.fit(labelled.graphs, labelled.labels)
new = extractor.transform(zip(questions[100:], answers[100:], strict=True))
masks = filter.predict(new)

i = max(range(len(new)), key=lambda i: ((~masks[i]).any(), new[i].n_claims))
print(f"{new[i].problem}\n")
print(f"kept:     {' '.join(new[i].subgraph(masks[i]).claims)}")
[explained] = explain(filter, [new[i]])
for v, reason in explained.reasons.items():
    print(f"dropped:  {new[i].claims[v]}")
    print(textwrap.indent(textwrap.fill(reason, 78), " " * 10))

# %%
# Coverage and retention on the new answers:

from skdcf.evaluation import coverage_score, retention_score

truth = [[int(is_right(text)) for text in graph.claims] for graph in new]
print(f"coverage  {coverage_score(truth, masks):.2f} (guaranteed: 0.90)")
print(f"retention {retention_score(truth, masks):.2f} true claims per answer")

# %%
# The graph of the answer shows dropped claims in grey.

from skdcf.plots import ReasoningGraphDisplay

ReasoningGraphDisplay.from_graph(new[i], kept=masks[i], labels=truth[i])

# %%
# Labels from a model
# -------------------
# A model can propose labels. Their reliability is measured on claims that people have judged. The
# last line shows the possible loss of coverage of a filter that is calibrated on these labels.

from skdcf.apps.labelling import agreement
from skdcf.apps.llm import judge_labels

proposed = judge_labels(list(graphs), "scripted-judge", client)
for line in str(agreement(proposed.labels, labelled.labels)).splitlines():
    print(textwrap.fill(line, 88, subsequent_indent="    "))

# %%
server.__exit__()
folder.cleanup()
