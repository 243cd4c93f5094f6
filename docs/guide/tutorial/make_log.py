"""Write the simulated log of the tutorial, which is that of the help desk of a fictitious library.

python docs/guide/tutorial/make_log.py

Each answer has two to four sentences. Most sentences are supported by a passage. Some contain a
wrong number, and some contain information that is not in any passage.
"""

import json
import random
from pathlib import Path

from skdcf.apps.text import AnswerSplitter

HERE = Path(__file__).parent
BRANCHES = [
    "Northgate",
    "Riverside",
    "Millfield",
    "Oakhill",
    "Station",
    "Harbour",
    "Castle",
    "Parkside",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
# The sentence of a passage, the sentence of an answer, and the range of the number.
FACTS = [
    (
        "The {b} branch opens at {n} o'clock on {d}.",
        "On {d} the {b} branch opens at {n} o'clock.",
        (8, 11),
    ),
    (
        "Members of the {b} branch may borrow up to {n} books at a time.",
        "You may borrow up to {n} books at a time.",
        (6, 30),
    ),
    (
        "At {b}, films are lent for {n} days.",
        "Films are lent for {n} days.",
        (3, 14),
    ),
    (
        "The reading room of the {b} branch has {n} seats.",
        "The reading room has {n} seats.",
        (12, 90),
    ),
    (
        "A lost card is replaced at the {b} branch for {n} euros.",
        "A lost card is replaced for {n} euros.",
        (2, 9),
    ),
]
ADDED = [
    "Parking behind the building is free.",
    "You can also renew by telephone.",
    "Students pay half of that.",
    "The staff will be happy to send books by post.",
    "Late fees were abolished last year.",
]


def draw(rng, number):
    """Return a question, and its passages, answer sentences and verdicts."""
    branch, day = rng.choice(BRANCHES), rng.choice(DAYS)
    passages, sentences, verdicts = [], [], []
    for said, answered, (low, high) in rng.sample(FACTS, rng.randint(2, 3)):
        n = rng.randint(low, high)
        passages.append(said.format(b=branch, d=day, n=n))
        wrong = rng.random() < 0.08
        n = rng.choice([k for k in range(low, high + 1) if k != n]) if wrong else n
        sentences.append(answered.format(b=branch, d=day, n=n))
        verdicts.append(int(not wrong))
    if rng.random() < 0.25:
        sentences.append(rng.choice(ADDED))
        verdicts.append(0)
    rng.shuffle(passages)
    question = (
        f"Question {number}: what should I know about the {branch} branch on {day}?"
    )
    return question, passages, sentences, verdicts


def main():
    """Write three files: judged answers for fitting and for testing, and a raw log."""
    rng = random.Random(0)
    rows = [draw(rng, number) for number in range(1, 161)]
    for name, some in (("judged", rows[:100]), ("test", rows[100:150])):
        write(
            name,
            [
                {
                    "problem": question,
                    "context": passages,
                    "claims": sentences,
                    "edges": [],
                    "labels": verdicts,
                    "provenance": {
                        "label_meaning": "supported",
                        **AnswerSplitter().provenance,
                    },
                }
                for question, passages, sentences, verdicts in some
            ],
        )
    write(
        "log",
        [
            {"asked": question, "passages": passages, "answered": " ".join(sentences)}
            for question, passages, sentences, _ in rows[150:]
        ],
    )


def write(name, lines):
    """Write one object per line."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (HERE / f"{name}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
