"""
Surprisal of claims
===================

The log-probabilities of a language model show which words of a claim are improbable.
`skdcf.features.surprisal` computes four columns from them. This example implements a small
language model in a few lines and downloads nothing.
"""

# %%
# A small language model
# ----------------------
# The model is trained on documents about 800 towns, with none, one or several documents per fact.
# A tenth of the documents are wrong. The model counts the next word after each word, in sentences
# about the same town and in all sentences. It therefore lacks some facts, and some of its facts
# are false.

import re
from collections import Counter, defaultdict
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from skdcf import HardCF, ReasoningGraph
from skdcf.evaluation import evaluate_filter
from skdcf.features import FunctionColumns, surprisal

rng = np.random.default_rng(0)
RIVERS = ["Aare", "Emme", "Inn", "Linth", "Reuss", "Rhine", "Sitter", "Thur"]


def sentences(town, river, year, bridges):
    """Write three claims about a town."""
    return [
        f"{town} lies on the {river}.",
        f"{town} was founded in {year}.",
        f"{town} has {bridges} bridges.",
    ]


def draw_facts():
    """Draw a river, a year and a number of bridges."""
    return rng.choice(RIVERS), rng.integers(1100, 1900), rng.integers(2, 12)


towns = [f"Town-{chr(65 + i % 26)}{i}" for i in range(800)]
facts = [draw_facts() for _ in towns]
next_words = defaultdict(Counter)
for town, fact in zip(towns, facts, strict=True):
    for k, n_documents in enumerate(rng.poisson(2, size=3)):
        for wrong in rng.uniform(size=n_documents) < 0.1:
            sentence = sentences(town, *(draw_facts() if wrong else fact))[k]
            words = re.findall(r"[\w-]+|\.", sentence)
            for previous, word in pairwise(words):
                next_words[town, previous][word] += 1
                next_words[previous][word] += 0.002


def source(text):
    """Return the tokens of a text, and the log-probability of each."""
    tokens = re.findall(r"\s*[\w-]+|\.|\s+$", text)
    town = previous = None
    log_p = []
    for token in tokens:
        word = token.strip()
        town = word if word.startswith("Town-") else town
        after = next_words[town, previous] + next_words[previous]
        p = (after[word] + 0.01) / (sum(after.values()) + 0.1)
        log_p.append(float(np.log(p)))
        previous = word
    return tokens, log_p


def columns_of(graph):
    """Return the four columns of an answer."""
    answer = "\n".join(graph.claims)
    pairs = zip(*source(answer), strict=True)
    logprobs = [{"token": token, "logprob": p} for token, p in pairs]
    return surprisal(logprobs, answer, graph.claims)


names = ["mean", "sum", "maximum", "digits"]
columns = FunctionColumns(columns_of, names)

# %%
# One answer
# ----------
# The wrong year has a high surprisal. The word "has" has a high surprisal as well, because the
# training documents do not mention the bridges of this town.

river, year, bridges = facts[3]
claims = sentences(towns[3], river, year + 17, bridges)
graph = ReasoningGraph(claims=claims, edges=[], problem=towns[3])
one = columns.fit_transform([graph])
print(one.feature_names)
print(one.features.round(1))

# %%
# A filter with these columns
# ---------------------------
# Each claim of an answer is false with probability 0.1, so 2.7 claims per answer are true on
# average. A filter can use a single column, or learn weights of the columns from labels.

graphs, labels = [], []
for town, fact in zip(towns, facts, strict=True):
    other = draw_facts()
    false = rng.uniform(size=3) < 0.1
    said = [b if wrong else a for a, b, wrong in zip(fact, other, false, strict=True)]
    labels.append([int(a == b) for a, b in zip(fact, said, strict=True)])
    graphs.append(ReasoningGraph(claims=sentences(town, *said), edges=[], problem=town))

alphas = [0.05, 0.1, 0.2]
reports = {}
for name, scorer in (
    ("mean over the tokens", lambda batch: -batch.features[:, 0]),
    ("largest", lambda batch: -batch.features[:, 2]),
    ("all four columns, learnt", "linear"),
):
    cf = HardCF(scorer, features=columns, alpha=0.1, random_state=0)
    cf.fit(graphs[:400], labels[:400])
    reports[name] = evaluate_filter(cf, graphs[400:], labels[400:], alphas)
    print(f"{name:<26}{np.round(reports[name].retention, 2)} true claims kept")

# %%
# Plot
# ----
# The upper panel shows the tokens of the answer, with the wrong year in red. The lower panel
# shows the number of true claims that each filter keeps. All three filters have the same
# guarantee.

tokens, log_p = source("\n".join(claims))
fig, (top, bottom) = plt.subplots(2, figsize=(7, 5.6), layout="constrained")
wrong = [token.strip() == str(year + 17) for token in tokens]
top.bar(
    range(len(tokens)), -np.array(log_p), color=["C3" if w else "C0" for w in wrong]
)
top.set_xticks(range(len(tokens)), [t.strip() for t in tokens], rotation=60, ha="right")
top.set_ylabel("surprisal, $-\\log p$")
place = np.arange(len(alphas))
for i, (name, report) in enumerate(reports.items()):
    bottom.bar(place + 0.27 * (i - 1), report.retention, 0.25, label=name)
bottom.set_xticks(place, [f"alpha = {alpha:g}" for alpha in alphas])
bottom.set_ylabel("true claims kept per answer")
bottom.set_ylim(0, 3.6)
bottom.legend(frameon=False, ncols=3, loc="upper left")
