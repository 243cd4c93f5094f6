"""Surprisal columns from the log-probabilities that the writer of an answer returned."""

import json

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.apps.cli import main
from skdcf.datasets import read_jsonl
from skdcf.features import Surprisal, add_surprisal, logprobs_of_claims

NAMES = ("surprisal_mean", "surprisal_sum", "surprisal_max", "surprisal_digits")
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


def test_the_columns_are_those_that_surprisal_computes():
    def source(text):
        tokens = ["He", " has", " 12", " eggs", ".", "\n"]
        return tokens, [None, -2, -3, -4, -5, -1]

    graph = ReasoningGraph(claims=["He has 12 eggs."])
    [[mean, total, most, digits]] = Surprisal(source).fit_transform([graph]).features
    rows = [{"token": " He", "logprob": 0}, {"token": " has", "logprob": -2}]
    rows += [{"token": " 12", "logprob": -3}, {"token": " eggs", "logprob": -4}]
    rows.append({"token": ".", "logprob": -5})
    ours = add_surprisal(graph, [rows])
    assert ours.features.tolist() == [[mean, total, most, digits]]
    assert ours.feature_names == NAMES


def test_tokens_are_assigned_to_the_words_of_each_claim():
    found = logprobs_of_claims({"content": logprobs()}, ANSWER, CLAIMS)
    graph = add_surprisal(ReasoningGraph(claims=CLAIMS), found)
    assert np.allclose(graph.features, EXPECTED)


def test_a_repeated_sentence_gets_its_own_tokens():
    tokens = [
        {"token": t, "logprob": -i} for i, t in enumerate([" So", " 3.", " So", " 3."])
    ]
    found = logprobs_of_claims(tokens, "So 3. So 3.", ["So 3.", "So 3."])
    assert found == [tokens[:2], tokens[2:]]


def test_a_claim_that_the_answer_does_not_contain_gets_all_tokens():
    [found] = logprobs_of_claims(logprobs(), ANSWER, ["Twelve eggs are his"])
    assert found == logprobs()[:14]


def test_parts_of_a_character_are_joined_by_their_bytes():
    tokens = [
        {"token": "5 ", "logprob": -1, "bytes": [53, 32]},
        {"token": "\ufffd", "logprob": -2, "bytes": [0xE2, 0x82]},
        {"token": "\ufffd", "logprob": -4, "bytes": [0xAC]},
        {"token": " 6", "logprob": -8, "bytes": None},
    ]
    assert logprobs_of_claims(tokens, "5 € 6", ["5 €", "6"]) == [tokens[:3], tokens[3:]]
    for token in tokens:
        del token["bytes"]
    with pytest.raises(ValueError, match=r"logprobs.*bytes"):
        logprobs_of_claims(tokens, "5 € 6", ["5 €", "6"])


def test_own_columns_stay_in_front():
    graph = ReasoningGraph(
        [[1.0], [2.0]], (), claims=["at 5", "so"], feature_names=["mine"]
    )
    tokens = [[{"token": "at 5", "logprob": -3}], []]
    table = add_surprisal(graph, tokens)
    assert table.feature_names == ("mine", *NAMES)
    assert table.features.tolist() == [[1, 3, 3, 3, 3], [2, 0, 0, 0, 0]]
    unnamed = add_surprisal(graph.replace(feature_names=None), tokens)
    assert unnamed.feature_names is None
    assert (unnamed.features == table.features).all()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (logprobs(["It", " is", " another"]), "logprobs.*after 0 .*'It is"),
        (logprobs(TOKENS[:5]), "logprobs.*after 15"),
        ({"refusal": []}, "logprobs.*None"),
        ([{"token": "a"}], "token 0.*logprob"),
        ([{"token": "a", "logprob": "-1"}], "token 0.*logprob"),
        ([-1.0], "token 0.*-1.0"),
    ],
)
def test_log_probabilities_of_another_text_are_refused(given, named):
    with pytest.raises(ValueError, match=named):
        logprobs_of_claims(given, ANSWER, CLAIMS)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([[]], "logprobs.*2 claims.*1"),
        ([[], [{"token": "a", "logprob": 0.5}]], r"claim 1.*0\.5"),
        ([[], [{"token": "a", "logprob": float("nan")}]], "claim 1.*nan"),
        ([[], -1.0], "claim 1.*-1.0"),
        ("high", "logprobs.*high"),
    ],
)
def test_lists_that_do_not_match_the_claims_are_refused(given, named):
    with pytest.raises(ValueError, match=named):
        add_surprisal(ReasoningGraph(claims=CLAIMS), given)


def test_a_list_per_claim_in_a_file_becomes_columns(tmp_path):
    per_claim = logprobs_of_claims(logprobs(), ANSWER, CLAIMS)
    line = {"claims": CLAIMS, "features": [[0], [1]], "feature_names": ["own"]}
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps(line | {"logprobs": per_claim}))
    [graph] = read_jsonl(path).graphs
    assert graph.feature_names == ("own", *NAMES)
    assert np.allclose(graph.features[:, 1:], EXPECTED)
    path.write_text(json.dumps(line | {"logprobs": per_claim[:1]}))
    with pytest.raises(ValueError, match=r"line 1.*logprobs.*2 claims.*1"):
        read_jsonl(path)


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
    assert graph.feature_names == NAMES
    assert np.allclose(graph.features, EXPECTED)
    assert "surprisal_mean" in capsys.readouterr().err


def test_split_names_the_line_of_wrong_or_missing_log_probabilities(tmp_path, capsys):
    good = {"answer": ANSWER, "logprobs": logprobs()}
    for second, named in (
        ({"answer": "Other words.", "logprobs": logprobs()}, "after 0 characters"),
        ({"answer": ANSWER, "logprobs": None}, "logprobs"),
    ):
        log = write_log(tmp_path / "log.jsonl", good, second)
        assert main(["split", log, "-o", str(tmp_path / "out.jsonl")]) != 0
        said = capsys.readouterr().err
        assert "line 2" in said
        assert named in said
