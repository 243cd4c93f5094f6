"""Text features: each formula by another way, no leak, and their worth on PERL."""

import itertools
import math
import random
import re

import numpy as np
import pytest

from skdcf import GraphBatch, ReasoningGraph
from skdcf.datasets import make_word_problems
from skdcf.features import TextFeatures, reasoning_features


@pytest.fixture(scope="module")
def perl(data_home):
    """PERL gsm8k and math with the features, labels, and the problems without features."""
    fetch_perl = pytest.importorskip("benchmarks.data").fetch_perl
    data = fetch_perl(label="any", data_home=data_home)
    return reasoning_features().fit_transform(data.graphs), data.labels, data.graphs


def table_of(graphs):
    batch = TextFeatures().fit_transform(graphs)
    columns = zip(batch.feature_names, batch.features.T, strict=True)
    return {name: column.tolist() for name, column in columns}


QUESTION = "Ann has 30 apples and buys five bags of 12. How many are 40%?"
CLAIMS = [
    "Step 1: Let x be the number of apples. She buys 5 * 12 = 60 apples.",
    "She has 30 + 60 = 90 apples.",
    "Take about 0.4 * 90 = 37 (not 77).",
    "Therefore the final answer is 37.",
]


@pytest.fixture(scope="module")
def example():
    graph = ReasoningGraph.from_parents(
        [[], [0], [1], [2]], claims=CLAIMS, problem=QUESTION
    )
    return table_of([graph])


def logs(*values):
    return pytest.approx([math.log1p(v) for v in values])


def test_position_and_length(example):
    assert example["claim_index"] == [0, 1, 2, 3]
    assert example["relative_position"] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert example["log_n_claims"] == pytest.approx([math.log(4)] * 4)
    bare = [CLAIMS[0].removeprefix("Step 1: "), *CLAIMS[1:]]
    assert example["log_length"] == logs(*map(len, bare))
    assert example["n_numbers"] == logs(3, 3, 4, 1)
    assert example["n_equalities"] == logs(1, 1, 1, 0)


def test_question(example):
    """Asked: 30, 12, 40 (as 0.4) and, spelled out, 5. All are used."""
    assert example["question_unused"] == [0, 0, 0, 0]
    assert example["question_covered"] == [0.5, 0.75, 1, 1]
    assert example["numbers_in_question"] == pytest.approx([2 / 3, 1 / 3, 1 / 4, 0])
    assert example["uses_problem_data"] == [1, 1, 1, 0]
    largest = [60, 90, 90, 37]
    expected = [math.log10(1 + n) - math.log10(1 + 40) for n in largest]
    assert example["log_magnitude"] == pytest.approx(expected)


def test_numbers_and_arithmetic(example):
    assert example["arithmetic_right"] == [1, 1, 0, 0]
    assert example["arithmetic_wrong"] == [0, 0, 1, 0]
    assert example["arithmetic_wrong_above"] == logs(0, 0, 0, 1)
    assert example["new_numbers"] == logs(1, 1, 2, 0)
    assert example["unsupported_numbers"] == logs(0, 0, 2, 0)
    assert example["numbers_in_premises"] == pytest.approx([2 / 3, 2 / 3, 0.5, 1])
    # 37 is refuted; 77 is no sum, product, ... of two of 30, 12, 40, 5, 60, 90
    assert example["underived_numbers"] == logs(0, 0, 2, 2)


def test_words(example):
    assert example["defines"] == [1, 0, 0, 0]
    assert example["concludes"] == [0, 0, 0, 1]
    assert example["hedges"] == [0, 0, 1, 0]
    assert example["contrasts"] == [0, 0, 0, 0]  # "(not": brackets are no end of a word
    words = [set(c.lower().removeprefix("step 1: ").split()) for c in CLAIMS]
    shared = [0.0] + [len(b & a) / len(b) for a, b in itertools.pairwise(words)]
    assert example["words_in_premises"] == pytest.approx(shared)


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        # A hundredth of the smallest number vanishes in rounding and must not divide.
        ("0.0000000000000001 + 7", "Add 0.0000000000000001, 9."),
        ("3 pens", "thousand " * 500 + "hundred " * 500),
    ],
)
def test_tiny_and_huge_numbers(claim, question):
    graph = ReasoningGraph(None, [], claims=[claim], problem=question)
    assert all(np.isfinite(value).all() for value in table_of([graph]).values())


def test_marks_of_lists_and_headings_change_nothing():
    def table(first):
        graph = ReasoningGraph(None, [], claims=[first + "he has 3 * 4 = 12"])
        return TextFeatures().fit_transform([graph]).features

    for mark in (
        "- ",
        "* ",
        "> ",
        "7. ",
        "12) ",
        "## ",
        "- **Step 3:** ",
        "### Step 1",
    ):
        np.testing.assert_array_equal(table(mark), table(""))


def test_digits_of_every_script():
    def table(digits):
        digits = str.maketrans("0123456789", digits)
        texts = ["Step 1: 12 + 30 = 42.", "So 1,234.5 is 7/3."]
        graph = ReasoningGraph.from_parents(
            [[], [0]],
            claims=[text.translate(digits) for text in texts],
            problem="Add 12 and 30.".translate(digits),
        )
        return TextFeatures().fit_transform([graph]).features

    for digits in ("٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"):  # noqa: RUF001
        np.testing.assert_array_equal(table(digits), table("0123456789"))


def test_question_unused_and_caps():
    text = "1 + 1 = 2, 2 + 2 = 4, 3 + 3 = 6, 4 + 4 = 8, 1 + 1 = 3, 2 + 2 = 5, 3 + 3 = 7"
    graph = ReasoningGraph(None, [], claims=[text], problem="There are 47 and 8.")
    table = table_of([graph])
    assert table["arithmetic_right"] == [3]
    assert table["arithmetic_wrong"] == [2]
    assert table["question_unused"] == [0.5]


def test_order_of_claims_need_not_follow_the_graph():
    graph = ReasoningGraph(
        None, [(1, 0)], claims=["so 12 + 7 = 19", "12"], problem="Add 12 and 7"
    )
    assert table_of([graph])["question_covered"] == [1, 0.5]


def test_empty_things():
    graphs = [
        ReasoningGraph(None, [], claims=[]),
        ReasoningGraph(None, [], claims=["", "   "]),
        ReasoningGraph(None, [], claims=["no numbers"], problem=""),
    ]
    batch = TextFeatures().fit_transform(GraphBatch.from_graphs(graphs))
    assert np.isfinite(batch.features).all()
    empty = TextFeatures().fit_transform([graphs[0]])
    assert empty.features.shape == (0, len(TextFeatures().own_names()))


def test_missing_texts_are_named():
    with pytest.raises(ValueError, match=r"problem 0, claim 0.*text"):
        TextFeatures().fit([ReasoningGraph([[1.0]], [])])


def decorate(text, rng):
    """Other line breaks, mark-up and case, the same words."""
    text = text.upper() if rng.random() < 0.5 else text.lower()
    words = []
    for word in re.split(r"\s+", text):
        mark = rng.choice(["", "", "**", "$", "`", "\\("])
        if any(c in word for c in "*$`\\"):
            mark = ""  # it has mark-up of its own
        words.append(mark + word + ("\\)" if mark == "\\(" else mark))
    return "".join(
        word + rng.choice([" ", "\n", "\n\n", "\t ", "\r\n"]) for word in words
    )


def changed(graphs, rng):
    return [
        graph.replace(
            claims=[decorate(text, rng) for text in graph.claims],
            problem=decorate(graph.problem, rng),
        )
        for graph in graphs
    ]


def test_line_breaks_mark_up_and_case_change_nothing(perl):
    batch, _, graphs = perl
    decorated = reasoning_features().fit_transform(changed(graphs, random.Random(0)))
    different = (decorated.features != batch.features).any(axis=0)
    assert [n for n, d in zip(batch.feature_names, different, strict=True) if d] == []


def test_precision_of_the_arithmetic_check(perl):
    batch, labels, _ = perl
    column = batch.feature_names.index("arithmetic_wrong")
    flagged = batch.features[:, column] > 0
    false = ~np.concatenate(labels).astype(bool)
    assert flagged.sum() >= 40
    assert false[flagged].mean() >= 0.85


def test_blocks_change_nothing():
    batch = make_word_problems(502, random_state=0).graphs
    together = reasoning_features().fit_transform(batch)
    alone = reasoning_features().fit_transform(batch[499:])
    n = alone.n_claims
    assert together.features[-n:].tobytes() == alone.features.tobytes()


def test_one_operation_is_found_as_by_its_definition():
    from skdcf.features._text import _is_derived

    rng = random.Random(0)
    for _ in range(3000):
        places = rng.choice([0, 0, 1, 2])
        known = {
            round(rng.uniform(0.5, 40), places) or 3.0 for _ in range(rng.randint(0, 5))
        }
        x = round(rng.uniform(1, 90), rng.choice([0, places]))
        results = [
            r for a in known for b in known for r in (a + b, a - b, b - a, a * b, a / b)
        ] + [math.sqrt(a) for a in known]
        near = min((abs(r - x) for r in results), default=math.inf)
        if 1e-12 < near < 3e-5:  # rounding may go either way
            continue
        assert _is_derived(x, known) == (near <= 1e-12), (x, known)
