"""Surprisal columns from the log-probabilities that the writer of an answer returned."""

import json

import numpy as np
import pytest

from skdcf.apps.cli import main
from skdcf.datasets import read_jsonl
from skdcf.features import SURPRISAL, surprisal

ANSWER = "Sure. He has 12 eggs.\n- So he has 24 €."
TOKENS = ["Sure", ".", " He", " has", " 12", " eggs", ".\n", "-", " So", " he"]
TOKENS += [" has", " 24", " \u20ac", ".", "<|im_end|>"]


def logprobs(tokens=TOKENS):
    """Log-probabilities -1/8, -2/8, ... of the tokens."""
    return [
        {"token": token, "logprob": -(i + 1) / 8, "top_logprobs": []}
        for i, token in enumerate(tokens)
    ]


def row(*numbers, digit):
    values = np.array(numbers) / 8
    return [values.mean(), values.sum(), values.max(), digit / 8]


EXPECTED = [row(3, 4, 5, 6, 7, digit=5), row(9, 10, 11, 12, 13, 14, digit=12)]
CLAIMS = ["He has 12 eggs.", "So he has 24 €."]


def test_tokens_are_assigned_to_the_words_of_each_claim():
    assert np.allclose(surprisal({"content": logprobs()}, ANSWER, CLAIMS), EXPECTED)
    assert surprisal(logprobs(), ANSWER, []).shape == (0, 4)


def test_a_repeated_sentence_gets_its_own_tokens():
    tokens = [
        {"token": t, "logprob": -i} for i, t in enumerate([" So", " 3.", " So", " 3."])
    ]
    found = surprisal(tokens, "So 3. So 3.", ["So 3.", "So 3."])
    assert found.tolist() == [[0.5, 1, 1, 1], [2.5, 5, 3, 3]]


def test_an_unknown_log_probability_is_ignored():
    tokens = [{"token": " 3", "logprob": -9999.0}, {"token": " 4", "logprob": -2.0}]
    assert surprisal(tokens, "3 4", ["3 4", "3"]).tolist() == [[2] * 4, [0] * 4]


def test_a_claim_that_the_answer_does_not_contain_gets_all_tokens():
    [[_, total, _, _]] = surprisal(logprobs(), ANSWER, ["Twelve eggs are his"])
    assert total == sum(range(1, 15)) / 8


def test_parts_of_a_character_are_joined_by_their_bytes():
    tokens = [
        {"token": "5 ", "logprob": -1, "bytes": [53, 32]},
        {"token": "\ufffd", "logprob": -2, "bytes": [0xE2, 0x82]},
        {"token": "\ufffd", "logprob": -4, "bytes": [0xAC]},
        {"token": " 6", "logprob": -8, "bytes": None},
    ]
    assert surprisal(tokens, "5 € 6", ["5 €", "6"])[:, 1].tolist() == [7, 8]
    for token in tokens:
        del token["bytes"]
    with pytest.raises(ValueError, match=r"logprobs.*bytes"):
        surprisal(tokens, "5 € 6", ["5 €", "6"])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (logprobs(["It", " is", " another"]), "logprobs.*after 0 .*'It is"),
        (logprobs(TOKENS[:5]), "logprobs.*after 15"),
        ({"refusal": []}, "logprobs.*None"),
        ([{"token": "a"}], "token 0.*logprob"),
        ([{"token": "a", "logprob": "-1"}], "token 0.*logprob"),
        ([-1.0], "token 0.*-1.0"),
        ([{"token": "a", "logprob": 0.5}], r"token 0.*0\.5"),
        ([{"token": "a", "logprob": float("nan")}], "token 0.*nan"),
    ],
)
def test_log_probabilities_of_another_text_are_refused(given, named):
    with pytest.raises(ValueError, match=named):
        surprisal(given, ANSWER, CLAIMS)


def write_log(path, *lines):
    path.write_text(
        "\n".join(json.dumps({"problem": "How many?", **line}) for line in lines)
    )
    return str(path)


@pytest.mark.parametrize(
    ("key", "options"),
    [("logprobs", []), ("extra", ["--map", "extra.logprobs=logprobs"])],
)
def test_split_computes_the_columns_of_an_answer(tmp_path, capsys, key, options):
    given = {"content": logprobs()}
    line = {"answer": ANSWER, key: given if key == "logprobs" else {"logprobs": given}}
    log = write_log(tmp_path / "log.jsonl", line)
    assert main(["split", log, "-o", str(tmp_path / "out.jsonl"), *options]) == 0
    [graph] = read_jsonl(tmp_path / "out.jsonl").graphs
    assert graph.claims == tuple(CLAIMS)  # "Sure." makes no claim
    assert graph.feature_names == SURPRISAL
    assert np.allclose(graph.features, EXPECTED)
    assert "with logprobs: 1" in capsys.readouterr().err
