"""Claims that may not say what the answer says are flagged, and no filter keeps them."""

import json

import numpy as np
import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from skdcf import CoherentConformalFilter
from skdcf.apps.llm import ClaimExtractor
from skdcf.edges import chain_edges, no_edges

ANSWER = "Ann has 12 pens and 1,500 euros. She buys 3 more.\nSo she has **15** pens."
QUESTION = "Ann gets 3 pens. How many are there, of 40?"


def extract(claims, answer=ANSWER, question=QUESTION, graph=no_edges, **options):
    reply = json.dumps({"claims": claims})
    extractor = ClaimExtractor("any", lambda messages: reply, graph=graph, **options)
    [done] = extractor.extract([(question, answer)])
    return done


def claim(text, span):
    return {"text": text, "span": span}


@pytest.mark.parametrize(
    ("claims", "flagged", "flag"),
    [
        (["Ann has 12 pens", "She buys 3 more."], (), None),
        ([claim("Ann now has 15 pens.", "So she has 15 pens.")], (), None),
        ([claim("Ann has 1500 euros.", "1,500 euros")], (), None),
        ([claim("Of 40 pens Ann has 12.", "Ann has 12 pens")], (), None),
        (["ann HAS 12 pens!"], (), None),
        (["Ann has 12 pens", claim("Ann is tall.", "Ann is tall")], (1,), "1 claim is"),
        (
            ["Bob has 12 pens", "Ann is 3"],
            (0, 1),
            "2 claims are not stated in the answer",
        ),
        (
            [claim("Ann has 13 pens.", "Ann has 12 pens")],
            (0,),
            "1 claim contains a number",
        ),
        ([claim("She buys 4.", "She buys 3 more.")], (0,), "1 claim contains a number"),
        (["She buys 3 more.", "she buys  3 more."], (1,), "1 claim equals"),
    ],
)
def test_claims_that_the_answer_does_not_make_are_flagged(claims, flagged, flag):
    done = extract(claims)
    assert done.flagged == flagged
    assert any(flag in text for text in done.flags) if flag else done.flagged == ()


def test_a_sign_makes_another_claim():
    assert extract(["3 - 4", "3 + 4"], answer="3 - 4 and 3 + 4").flagged == ()


def test_altered_numbers_are_found_in_all_claims():
    """Of 28 claims with another number 26 passed without a flag."""
    answers = [
        f"There are {n} pens.\nHalf of them is {n / 2:g}." for n in range(30, 44)
    ]
    n_flagged = 0
    for answer in answers:
        lines = answer.split("\n")
        claims = [
            claim(line.replace("3", "7").replace("2", "8"), line) for line in lines
        ]
        changed = [c["text"] != c["span"] for c in claims]
        done = extract(claims, answer=answer, question="How many?")
        assert done.flagged == tuple(np.flatnonzero(changed))
        n_flagged += len(done.flagged)
    assert n_flagged > 12


def test_marks_that_show_nowhere_are_not_kept():
    done = extract(["Ann\u200b has \u202e12\u202c pens\ufeff"])
    assert done.graph.claims == ("Ann has 12 pens",)
    assert done.flagged == ()


def make_problems(extractor, n=60):
    """Answers of three claims, of which some have another number in the second claim."""
    return extractor.transform(
        [(f"q{i}", f"a is {i}.\nb is {i} too.\nc is {i}.") for i in range(n)]
    )


def altering(messages):
    payload = json.loads(messages[1]["content"])
    if "answer" not in payload:
        return '{"verdict": "true"}'
    lines = payload["answer"].split("\n")
    rows = [claim(line, line) for line in lines]
    if int(payload["question"][1:]) % 3 == 0:
        rows[1]["text"] = "b is 1000."
    return json.dumps({"claims": rows})


def extractor_of(**options):
    features = [("length", lambda graph: [len(text) for text in graph.claims])]
    return ClaimExtractor(
        "any", altering, graph=chain_edges, features=features, **options
    )


def labels_of(graphs):
    rng = np.random.default_rng(0)
    return [(rng.random(graph.n_claims) > 0.05).astype(int) for graph in graphs]


def test_flagged_claims_have_a_column():
    graphs = make_problems(extractor_of())
    assert graphs.feature_names == ("length", "flagged")
    flagged = graphs.features[:, 1].reshape(-1, 3)
    expected = np.zeros((60, 3))
    expected[::3, 1] = 1
    np.testing.assert_array_equal(flagged, expected)
    # Flagged claims are false, and the default filter learns not to keep them.
    labels = (graphs.features[:, 1] == 0).astype(int)
    labels[0] = 0
    cf = CoherentConformalFilter(alpha=0.3, random_state=0).fit(graphs, labels)
    kept = np.concatenate(list(cf.predict(graphs)))
    assert kept.any() and not (kept & (graphs.features[:, 1] == 1)).any()
