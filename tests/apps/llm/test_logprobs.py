"""An extractor turns the log-probabilities of given answers into columns."""

import numpy as np
import pytest

from skdcf.apps.llm import Answer, ClaimExtractor
from skdcf.apps.text import split_sentences
from skdcf.edges import chain_edges

NAMES = ("surprisal_mean", "surprisal_sum", "surprisal_max", "surprisal_digits")
ANSWER = "It is 3. So it is 4."
TOKENS = [
    {"token": token, "logprob": -number}
    for number, token in enumerate(
        ["It", " is", " 3", ".", " So", " it", " is", " 4", "."]
    )
]
EXPECTED = [[1.5, 6, 3, 2], [6, 30, 8, 7]]


def extractor(**more):
    return ClaimExtractor(decompose=split_sentences, graph=chain_edges, **more)


def answer(**more):
    return Answer("How many?", ANSWER, logprobs={"content": TOKENS}, **more)


def test_the_columns_stand_in_front_of_those_of_the_steps():
    [graph] = extractor().transform([answer()])
    assert graph.feature_names == NAMES
    assert np.allclose(graph.features, EXPECTED)
    length = ("length", lambda graph: [len(claim) for claim in graph.claims])
    [graph] = extractor(features=[length]).transform([answer()])
    assert graph.feature_names == (*NAMES, "length", "flagged")
    assert np.allclose(graph.features[:, :4], EXPECTED)
    assert graph.features[:, 4].tolist() == [8, 11]


def test_the_words_of_a_claim_get_its_tokens_even_if_the_claim_says_it_differently():
    class Worded(str):
        span = ""

    def decompose(text, problem):
        claims = [Worded("It equals 3."), Worded("Hence 4.")]
        for claim, words in zip(claims, split_sentences(text), strict=True):
            claim.span = words
        return claims

    [graph] = ClaimExtractor(decompose=decompose, graph=chain_edges).transform(
        [answer()]
    )
    assert graph.claims == ("It equals 3.", "Hence 4.")
    assert np.allclose(graph.features, EXPECTED)


def test_wrong_log_probabilities_are_found_before_the_first_call():
    def never(text, problem):
        raise AssertionError("a step was called")

    careful = ClaimExtractor(decompose=never, graph=chain_edges)
    with pytest.raises(ValueError, match=r"problem 1.*logprobs.*it is 4"):
        careful.transform([answer(), answer()._replace(answer="It is 5.")])
    with pytest.raises(ValueError, match=r"logprobs.*problem 1"):
        careful.transform([answer(), ("How many?", ANSWER)])


def test_an_answer_without_claims_has_the_same_columns():
    def decompose(text, problem):
        return split_sentences(text) if "4" in text else []

    short = Answer("Why?", "It is", logprobs=TOKENS[:2])
    batch = ClaimExtractor(decompose=decompose, graph=chain_edges).transform(
        [answer(), short]
    )
    assert batch.sizes.tolist() == [2, 0]
    assert batch.feature_names == NAMES
