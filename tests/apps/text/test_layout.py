"""The filtered text has the layout of the answer, whichever way the answer is filtered."""

import json
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdcf import ReasoningGraph
from skdcf.apps.text import AnswerSplitter, kept_text

MARKDOWN = """\
Sure. Here is what I found:

## Your policy

You pay the first 150 euros. We pay the rest.

- Dental care is included. You have 2 visits.
  - Children are free.
  - Adults pay half.
* Glasses are not.

1. Call us.
2. Send the form.
10) Wait for 3\u00a0days.

| item | cap |
|:-----|----:|
| tooth | 100 |
| eye | 50 |

Duties
======
> We pay late. We always do.
> > You wait.

---

```python
x = 150

print(x)
```

- [x] \u05d4\u05d9\u05d0 \u05d1\u05ea\u05d5\u05e7\u05e3.
- [ ] \u05d4\u05d9\u05d0 \u05de\u05db\u05e1\u05d4 100.

I hope this helps!
"""


def split(answer):
    return AnswerSplitter().split({"answer": answer})


WORDS = "A.|The cap is 150 euros.|Sure.|Summary:|x = 1|\u05d0.|\u597d\u3002|5|- 5|~~|==|\u2705"
MORE_WORDS = "2. |Sales:|\u00bd|<br>|+|[^1]"
MARKS = "- _1. _> _- [x] _## _**_|_|---|_---_```_$$"
SPACES = [" ", "\t", "\n", "\n\n", "\r\n", "\r", "\xa0", "\u2028", "\x0c", "\x1c"]
PIECES = [*f"{WORDS}|{MORE_WORDS}".split("|"), *MARKS.split("_"), *SPACES]
ANSWERS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@settings(deadline=None)
@given(ANSWERS | st.text())
@example(MARKDOWN)
@example(MARKDOWN.replace("\n", "\r\n"))
@example("```\r\nx\n\ny\r```\n---\n\n* * *")
@example("A.\n---\nB.")
def test_every_answer_is_unchanged_if_all_claims_are_kept(answer):
    graph = split(answer)
    again = ReasoningGraph.from_dict(json.loads(json.dumps(graph.to_dict())))
    if graph.n_claims:
        assert kept_text(again, np.ones(graph.n_claims, bool)) == answer.strip()


@settings(deadline=None)
@given(ANSWERS, st.randoms())
def test_a_filtered_text_has_only_markers_between_its_sentences(answer, random):
    graph = split(answer)
    mask = [random.random() < 0.6 for _ in graph.claims]
    text = kept_text(graph, mask)
    if not any(mask):
        assert text == ""
        return
    gap = r"(?:[-=|+:*_>\s]|(?<!\d)[12]\.(?=\s))*"
    claims = iter(zip(graph.claims, mask, strict=True))
    pattern = gap
    for other in graph.metadata["layout"][1::2]:
        sentence, is_kept = (other, None) if other else next(claims)
        words = gap.join(map(re.escape, sentence.split("\n"))) + gap
        # Sentences without a claim may be there or not.
        pattern += {True: words, False: "", None: f"(?:{words})?"}[is_kept]
    assert re.fullmatch(pattern, text)


SENTENCES = {"A": "Ants are red", "B": "Bees hum", "C": "Cats purr", "X": "Oxen swim"}


def spelled(text):
    """Replace each letter by a sentence."""
    return re.sub(r"\b[ABCX]\b", lambda match: SENTENCES[match[0]], text)


@pytest.mark.parametrize(
    ("answer", "kept", "text"),
    [
        ("- A.\n- B.\n- C.", "A C", "- A.\n- C."),
        ("1. A.\n2. B.\n3. C.", "B C", "2. B.\n3. C."),
        ("- X.\n- A. B.", "X B", "- X.\n- B."),
        ("A. X. B.", "A B", "A. B."),
        (
            "\u597d\u3002\u574f\u3002\u5927\u3002",
            "\u597d \u5927",
            "\u597d\u3002\u5927\u3002",
        ),
        ("A.\r\nX.\r\n\r\nB.", "A B", "A.\r\n\r\nB."),
        ("A.\n\n---\n\nX.\n\nB.", "A B", "A.\n\nB."),
        ("A.\n\n---\n\nB. X.", "A B", "A.\n\n---\n\nB."),
        ("---\nX. A.", "A", "A."),
        (
            "| h | k |\n|--|--|\n| X | 1 |\n| B | 2 |",
            "h B",
            "| h | k |\n|--|--|\n| B | 2 |",
        ),
        ("A.\n\n| X |\n|--|\n| B |\n| C |", "A B C", "A.\n\n| B |\n| C |"),
        ("A\n===\nX.\n\nB.", "A B", "A\n===\n\nB."),
        ("A.\n***\nX.", "A", "A."),
        ("A.\n## Sales:\nB. X.\n## Costs:", "A B", "A.\n## Sales:\nB."),
        ("Pros:\n- A.\n\nCons:\n- X.\n- B.", "A B", "Pros:\n- A.\n\nCons:\n- B."),
        ("Pros:\n- A.\n\nCons:\n- X.\n- B.", "B", "Cons:\n- B."),
        (
            "## Sales:\n### Pros:\nX.\n## Costs:\n### Cons:\nB.",
            "B",
            "## Costs:\n### Cons:\nB.",
        ),
        ("Summary:\n\nPros:\n- A.\n- X.", "A", "Summary:\n\nPros:\n- A."),
        ("## Pros\n- A.\n- X.\n## Cons\n- B.", "B", "## Cons\n- B."),
        ("**Pros**\n- A.\n- X.\n\n**Cons**:\n- B.", "B", "**Cons**:\n- B."),
        ("Pros:\n- X.\n\nX\n===\n- B.", "B", "- B."),
        ("Pros:\n- X.\n## Limits of X\n- B.", "B", "- B."),
        (
            "- A.\r\n  ```\r\n  B\r\n  ```\r\n- X.",
            "A B",
            "- A.\r\n  ```\r\n  B\r\n  ```",
        ),
    ],
)
def test_markers_go_with_their_lines_and_headings_with_their_claims(answer, kept, text):
    graph = split(spelled(answer))
    mask = [any(spelled(w) in claim for w in kept.split()) for claim in graph.claims]
    assert 0 < sum(mask) < len(mask)
    assert kept_text(graph, mask) == spelled(text)


@pytest.mark.parametrize(
    "layout",
    [
        None,
        "a",
        [],
        ["", None, "", None],
        ["", None, "", None, "", None, ""],
        ["", None, "", None, "", 1, ""],
        *(["", None, gap, None, ""] for gap in (1, "\nThe bank is safe. ", " \u2705 ")),
        *(["", None, gap, None, ""] for gap in (" 5 ", "\n1.5. ", " ~~")),
    ],
)
def test_a_layout_that_does_not_fit_or_has_words_is_not_used(layout):
    metadata = {"layout": layout}
    graph = ReasoningGraph(None, [], claims=["A.", "B."], metadata=metadata)
    assert kept_text(graph, [True, True]) == "A.\nB."
