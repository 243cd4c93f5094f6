"""Sentences that claim nothing are taken out of the claims, in calibration and in use."""

import json
import re

import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.cli import main
from skdcf.apps.labelling import LabelStore
from skdcf.apps.text import kept_text, no_claim_list
from skdcf.datasets import read_jsonl, write_jsonl

ANSWER = (
    "Sure. Here is what I found:\n"
    "## Side effects:\n"
    "Aspirin thins the blood. It may upset the stomach.\n"
    "I hope this helps!"
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [{"answer": ANSWER}, {"answer": "Sure. I hope this helps!"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def split(log, *options):
    out = log.with_name("problems.jsonl")
    assert main(["split", str(log), "-o", str(out), *map(str, options)]) == 0
    return read_jsonl(out)


COURTESIES = """
Sure. Certainly! Great! You're very welcome! Got it!
Happy to help. I\u2019m happy to help! I'd be happy to help you with that! Glad I could help!
Hope this helps. I hope that answers your question! Hope it was helpful
I hope you find this useful! Hope this clarifies things.
That's a really great question! What an interesting question! Good point!
Thanks for your message! Thank you so much for your question.
I apologize for the confusion. Sorry for any inconvenience.
Let me know if you have any questions! Please let me know if you need further assistance.
Let me know if you'd like more details. Let me know if anything is unclear.
Let me know if there is anything else I can help you with. Just let me know!
Please don't hesitate to ask if you have further questions. Feel free to ask!
Feel free to reach out if you have any other questions or concerns.
If you have any other questions, feel free to ask! If you'd like to know more, just ask!
Is there anything else I can help you with today? Can I help you with anything else?
Would you like me to explain? Do you have any other questions? Does that make sense?
Good luck! Have a great day! Take care! Enjoy! Happy coding! Let me explain. Let's dive in!
Here is what I found: Here's a short summary of the passage: Here are some tips:
"""
HEADINGS = """
## Side effects:
## Step 3:
## Introduction
**Summary**
Solution:
**Side effects**:
**Step 2:**
**Summary:**
Conclusion:
Pros:
**Cons:**
"""


def test_what_claims_nothing_is_on_the_list():
    sentences = re.findall(r"\S[^.!?:\n]+[.!?:]?", COURTESIES)
    sentences += HEADINGS.strip().splitlines()
    assert len(sentences) > 50
    assert [text for text in sentences if not no_claim_list().matches(text)] == []


# Such a line may be the whole answer to the question.
CLAIMS = """
Sure, aspirin is safe.
Yes.
Ask.
Aspirin helps here:
Here is what kills bacteria: heat.
Here is the summary: aspirin is safe.
The cover includes:
Your policy:
## Aspirin is a painkiller
**Aspirin is safe**
**Aspirin**
**42:**
**No:**
**(B)**
**Option B:**
**Not covered:**
**Unsafe:**
**Vaccines kill:**
**Aspirin works:**
## Taxes rise:
**\u2705:**
Step 3
Introduction
**Solution**
**Case 2**
### Yes
## Buenos Aires
I hope this helps your heart heal.
Feel free to take aspirin.
Let me know if you have diabetes.
I found nothing.
"""


def test_what_may_be_false_is_a_claim():
    assert not any(map(no_claim_list().matches, CLAIMS.strip().splitlines()))


def test_split_takes_them_out_before_anything_is_computed(log, capsys):
    graphs = split(log).graphs
    claims = ("Aspirin thins the blood.", "It may upset the stomach.")
    assert graphs[0].claims == claims and graphs[1].claims == ()
    assert "6 sentences without a claim" in capsys.readouterr().err
    chain = split(log, "--edges", "chain").graphs[0]
    assert chain.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        ((True, True), ANSWER),
        (
            (False, True),
            "Here is what I found:\n## Side effects:\n"
            "It may upset the stomach.\nI hope this helps!",
        ),
        (
            (True, False),
            "Sure. Here is what I found:\n## Side effects:\nAspirin thins the blood.",
        ),
        ((False, False), ""),
    ],
)
def test_text_has_them_only_next_to_a_claim_that_is_kept(log, mask, text):
    graph = split(log).graphs[0]
    assert kept_text(graph, mask) == text


def test_an_answer_never_consists_of_them_alone(log):
    assert kept_text(split(log).graphs[1], []) == ""


def test_the_list_can_be_replaced_and_is_compared(log, tmp_path):
    """Whoever splits by another list makes other problems, and filters refuse them."""
    own = tmp_path / "own.txt"
    own.write_text("# mine\nAspirin .*\n")
    made_by_own = split(log, "--no-claim", own).graphs
    assert made_by_own[0].claims[0] == "Sure."
    assert "Aspirin thins the blood." not in made_by_own[0].claims
    made = split(log).graphs
    names = {graphs[0].provenance["no_claim"] for graphs in (made, made_by_own)}
    assert len(names) == 2
    assert no_claim_list(own).name in names
    graphs = [graph.replace(features=[[0.1]] * 2) for graph in (made[0], made[0])]
    y = [[0] * graph.n_claims for graph in graphs]
    cf = HardCF(0, alpha=0.4).fit(graphs, y, groups=False)
    other = made_by_own[0]
    with pytest.raises(ValueError, match="no_claim"):
        cf.predict([other.replace(features=[[0.1]] * other.n_claims)])


def test_a_line_that_is_no_pattern_is_named(log, tmp_path, capsys):
    own = tmp_path / "own.txt"
    own.write_text("\n(\n")
    options = ["split", str(log), "-o", "-", "--no-claim", str(own)]
    assert main(options) == 2
    assert "line 2: '('" in capsys.readouterr().err


def test_a_person_can_say_that_a_sentence_makes_no_claim(tmp_path):
    """It cannot be false."""
    graphs = [
        ReasoningGraph([[0.9], [0.1 * i]], [], claims=["Oh well", f"so {i}"])
        for i in range(9)
    ]
    store = LabelStore(graphs, tmp_path / "journal")
    for i in range(9):
        store.label(i, 0, "no claim", by="ann")
        store.label(i, 1, "true" if i else "false", by="ann")
    out = store.export("ann")
    assert [row.tolist() for row in out.labels] == [[1, 0]] + [[1, 1]] * 8


def test_sentences_that_always_make_no_claim_are_proposed_as_patterns(tmp_path, capsys):
    graphs = [
        ReasoningGraph(None, [], claims=["Oh (well)", "So"], id=str(i))
        for i in range(3)
    ]
    path = write_jsonl(tmp_path / "p.jsonl", graphs)
    store = LabelStore(graphs, tmp_path / "journal")
    for i, word in enumerate(("no claim", "no claim", "true")):
        store.label(i, 0, "no claim", by="ann")
        store.label(i, 1, word, by="ann")
    options = ["--annotator", "ann", "--journal", tmp_path / "journal", "--no-page"]
    main(["label", *map(str, [path, "-o", tmp_path / "out.jsonl", *options])])
    lines = capsys.readouterr().err.splitlines()
    assert r"Oh\ \(well\)" in lines and "So" not in lines


def test_no_claim_stands_in_files_as_a_label(tmp_path):
    path = tmp_path / "labels.jsonl"
    line = {"claims": ["Well", "So it is"], "labels": ["no claim", 0]}
    path.write_text(json.dumps(line))
    data = read_jsonl(path)
    assert data.labels[0].tolist() == [1, 0]
