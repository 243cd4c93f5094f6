"""
From answers of a language model to trusted text
================================================

Questions and answers go in, labelled claims calibrate a filter, and of new answers comes
back what can be trusted, as text. The model here is a small scripted one that sits behind
a real server on this machine and is called over HTTP, as any endpoint would be; it can add
and errs now and then. With an endpoint of your own, only its address and its name change.
"""

# %%
# A model behind an endpoint
# --------------------------
# The server belongs to the tests of this package. It speaks the chat-completions protocol.

import random
import sys
import tempfile
import textwrap
from pathlib import Path

tests = [folder for folder in (Path("../../tests"), Path("tests")) if folder.is_dir()]
sys.path.insert(0, str(tests[0].resolve()))

from chat_server import ChatServer
from scripted_model import ScriptedModel, is_right, make_question

server = ChatServer(ScriptedModel(mislabelled=0.05)).__enter__()
rng = random.Random(0)
questions = [make_question(rng) for _ in range(140)]
print(questions[0])

# %%
# Extract
# -------
# Each answer is cut into claims, the claims get their dependencies, the problem two other
# answers, and every claim three columns: the frequency score, and a judge's verdict with its
# log odds. The answers themselves are asked for first.

from skdcf.apps.llm import (
    ChatClient,
    ClaimExtractor,
    Frequency,
    SampleAnswers,
    Verify,
)

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
print(textwrap.fill(str(extractor.estimate(known)), 88))
graphs = extractor.transform(known)
print(textwrap.fill(str(extractor.usage_), 88))
graphs

# %%
# Label
# -----
# Here a person would judge the claims on the page that ``skdcf label`` opens. A rule that
# checks every sum stands in for this person; judgements go into the same journal.

from skdcf.apps.labelling import LabelStore, describe_labels

store = LabelStore(graphs, f"{folder.name}/labels.journal")
for i, graph in enumerate(graphs):
    for v, text in enumerate(graph.claims):
        store.label(i, v, "true" if is_right(text) else "false", by="ann")
labelled = store.export("ann")
print(describe_labels(labelled.graphs, labelled.labels))

# %%
# Fit and answer
# --------------
# The filter learns nothing here: the judge's log odds rank the claims, and all problems
# calibrate.

from skdcf import HardCF
from skdcf.apps.llm import ConformalFactualityPipeline

filter = HardCF("judge_log_odds", alpha=0.1, ties="jitter", random_state=0)
pipeline = ConformalFactualityPipeline(extractor, filter)
pipeline.fit(labelled.graphs, labelled.labels)
out = pipeline.answer(questions[100:], answers[100:])

shown = max(out, key=lambda a: (len(a.dropped) > 0, a.graph.n_claims))
print(f"{shown.original.problem}\n")
print(f"kept:     {shown.text}")
print(f"excerpt:  {shown.excerpt}")
for text, reason in shown.dropped:
    print(f"dropped:  {text}\n{textwrap.indent(textwrap.fill(reason, 78), ' ' * 10)}")

# %%
# How often was a false claim kept, and how many true ones?

from skdcf.metrics import coverage_score, retention_score

truth = [[int(is_right(text)) for text in a.original.claims] for a in out]
masks = [a.kept for a in out]
print(f"coverage  {coverage_score(truth, masks):.2f} (guaranteed: 0.90)")
print(f"retention {retention_score(truth, masks):.2f} true claims per answer")

# %%
# The answer as a graph; what is grey was dropped.

from skdcf.plots import ReasoningGraphDisplay

labels = [int(is_right(text)) for text in shown.original.claims]
ReasoningGraphDisplay.from_graph(shown.original, kept=shown.kept, labels=labels)

# %%
# A model's labels
# ----------------
# A model can propose labels. How far they can be trusted is measured on claims that people
# have judged; the last line is what a filter may lose that calibrates on them.

from skdcf.apps.labelling import agreement
from skdcf.apps.llm import judge_labels

proposed = judge_labels(list(graphs), "scripted-judge", client)
for line in str(agreement(proposed.labels, labelled.labels)).splitlines():
    print(textwrap.fill(line, 88, subsequent_indent="    "))

# %%
server.__exit__()
folder.cleanup()
