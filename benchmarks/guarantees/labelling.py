"""Measure the effect of judging courtesies, and of stopping at the first false claim.

    python -m benchmarks.guarantees.labelling [logs]

The program prints benchmarks/results/labelling.txt. Each log contains 260 answers of the help desk
of the tutorial, with courtesies such as "Sure." at the beginning and at the end. Some sentences
paraphrase the passages, and some contain a number from the wrong passage, so scores are not
perfect. 100 answers are judged, and the default filter is fitted on them at alpha = 0.1. The claims
kept in the other 160 answers are counted. Errors are standard errors over the logs.
"""

import random
import re
import sys
from runpy import run_path
from typing import NamedTuple

import numpy as np

from benchmarks import GUIDE
from skdcf import CoherentConformalFilter, ReasoningGraph
from skdcf.apps.llm import no_claim_list
from skdcf.features import reasoning_features

DRAW = run_path(str(GUIDE / "tutorial" / "make_log.py"))["draw"]
BEFORE = ("Sure.", "Happy to help.", "Here is what I found:")
AFTER = ("I hope this helps.", "Let me know if you have any questions.")
N_JUDGED, N_NEW, ALPHA = 100, 160, 0.1
NO_CLAIM = None  # the verdict on a courtesy
OTHER_WORDS = {
    "opens": "lets readers in",
    "borrow": "take home",
    "lent": "handed out",
    "replaced": "issued again",
    "seats": "places to sit",
    "reading room": "hall",
    "lost card": "missing one",
}


class Answer(NamedTuple):
    """An answer of the help desk, with a verdict on each sentence."""

    question: str
    passages: list
    sentences: list
    verdicts: list


def draw_log(seed):
    """Answers with courtesies; 70 % have one in front, and 40 % one behind."""
    rng = random.Random(seed)
    answers = []
    for number in range(N_JUDGED + N_NEW):
        question, passages, sentences, verdicts = DRAW(rng, number)
        for i, sentence in enumerate(sentences):
            [mine] = re.findall(r"\d+", sentence) or [None]
            others = {*re.findall(r"\d+", " ".join(passages))} - {mine}
            if mine and others and rng.random() < 0.08:
                sentence = sentence.replace(mine, rng.choice(sorted(others)))
                verdicts[i] = 0
            for word, other in OTHER_WORDS.items():
                if rng.random() < 0.3:
                    sentence = sentence.replace(word, other)
            sentences[i] = sentence
        if rng.random() < 0.7:
            sentences = [rng.choice(BEFORE), *sentences]
            verdicts = [NO_CLAIM, *verdicts]
        if rng.random() < 0.4:
            sentences = [*sentences, rng.choice(AFTER)]
            verdicts = [*verdicts, NO_CLAIM]
        answers.append(Answer(question, passages, sentences, verdicts))
    return answers


def judged_as(label):
    """Return a function that gives courtesies this label."""

    def judge(answer):
        labels = [label if v is NO_CLAIM else v for v in answer.verdicts]
        return answer.sentences, labels

    return judge


def left_out(answer):
    """Leave out the sentences that the list of the package matches, as `skdcf split` does."""
    courtesies = no_claim_list()
    pairs = zip(answer.sentences, answer.verdicts, strict=True)
    kept = [(text, v) for text, v in pairs if not courtesies.matches(text)]
    return [text for text, _ in kept], [v for _, v in kept]


def stopped(answer):
    """Leave out courtesies, and judge nothing behind the first false claim."""
    sentences, verdicts = left_out(answer)
    first = verdicts.index(0) + 1 if 0 in verdicts else len(verdicts)
    return sentences, verdicts[:first] + [-1] * (len(verdicts) - first)


def result(answers, judge):
    """Return true facts per answer, coverage, and the share of texts of courtesies alone."""
    judged = [judge(answer) for answer in answers]
    graphs = [
        ReasoningGraph(claims=claims, edges=[], problem=a.question, context=a.passages)
        for a, (claims, _) in zip(answers, judged, strict=True)
    ]
    cf = CoherentConformalFilter(
        features=reasoning_features(), alpha=ALPHA, random_state=0
    )
    cf.fit(graphs[:N_JUDGED], [labels for _, labels in judged[:N_JUDGED]])
    facts, covered, empty = [], [], []
    for answer, graph, mask in zip(
        answers[N_JUDGED:],
        graphs[N_JUDGED:],
        cf.predict(graphs[N_JUDGED:]),
        strict=True,
    ):
        truth = dict(zip(answer.sentences, answer.verdicts, strict=True))
        shown = [truth[c] for c, keep in zip(graph.claims, mask, strict=True) if keep]
        facts.append(sum(v == 1 for v in shown))
        covered.append(0 not in shown)
        empty.append(bool(shown) and all(v is NO_CLAIM for v in shown))
    return np.mean(facts), np.mean(covered), np.mean(empty)


LEFT_OUT = "courtesies are left out by split"
CASES = {
    "courtesies are judged false": judged_as(0),
    "courtesies are judged true": judged_as(1),
    LEFT_OUT: left_out,
    "left out, and judging stops at the first false claim": stopped,
}


def main(n_logs=16):
    """Print a row for each way to judge."""
    logs = [draw_log(seed) for seed in range(n_logs)]
    print(f"{n_logs} logs, {N_JUDGED} judged and {N_NEW} new answers, alpha {ALPHA}")
    print(
        f"{'how answers are judged':54s}{'true facts kept':>17s}{'less than left out':>20s}"
        f"{'coverage':>16s}{'courtesies alone':>18s}"
    )
    of_case = {
        name: np.array([result(answers, judge) for answers in logs])
        for name, judge in CASES.items()
    }
    best = of_case[LEFT_OUT]
    for name, rows in of_case.items():
        # Facts, the difference on the same logs, coverage, and texts of courtesies alone.
        table = np.column_stack([rows[:, 0], best[:, 0] - rows[:, 0], rows[:, 1:]])
        mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(n_logs)
        print(
            f"{name:54s}{mean[0]:9.2f} +- {error[0]:.2f}{mean[1]:12.2f} +- {error[1]:.2f}"
            f"{mean[2]:9.3f} +- {error[2]:.3f}{mean[3]:17.1%}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
