"""Words for labels that the alphabet would put upside down, through every reader."""

import enum
import json
import re

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.labelling.exchange import read_csv
from skdcf.datasets import read_jsonl
from skdcf.evaluation import coverage_score
from skdcf.uses import check

PAIRS = [
    ("correct", "incorrect"),
    ("supported", "unsupported"),
    ("factual", "hallucinated"),
    ("right", "wrong"),
    ("ok", "wrong"),
    ("Entailed", "Refuted"),
]
X = np.array([[0.1], [0.2]] * 30)


@pytest.mark.filterwarnings("ignore:the column 0 has one value for all true")
@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
@pytest.mark.parametrize("pair", PAIRS, ids="/".join)
@pytest.mark.parametrize("kind", ["list", "U", "S", "O", "series", "category"])
def test_tables_of_words_of_any_kind(pair, kind):
    """Bytes were compared by the alphabet still: every pair but one upside down."""
    y = list(pair) * 30
    if kind in "USO":
        y = np.array(y, dtype=kind)
    elif kind != "list":
        pandas = pytest.importorskip("pandas")
        y = pandas.Series(y, dtype="category" if kind == "category" else None)
    assert check(HardCF(0), X, y)[1].tolist() == [1, 0] * 30
    assert check(HardCF(0, alpha=0.3).fit(X, y), X, y)[1].tolist() == [1, 0] * 30


class Verdict(enum.Enum):
    RIGHT = "right"
    WRONG = "wrong"


class Ordered(enum.IntEnum):
    FALSE = 0
    TRUE = 1


def test_what_is_neither_number_nor_word():
    y = [Verdict.RIGHT, Verdict.WRONG] * 30
    with pytest.raises(ValueError, match=r"numbers.*words"):
        check(HardCF(0), X, y)
    dates = np.array(["2020-01-01", "2021-01-01"] * 30, dtype="datetime64[D]")
    with pytest.raises(ValueError, match=r"numbers.*words"):
        check(HardCF(0), X, dates)
    with pytest.raises(ValueError, match=r"numbers.*words.*right"):
        check(HardCF(0), X, np.array(["right", 0] * 30, dtype=object))
    numbers = [Ordered.TRUE, Ordered.FALSE] * 30
    assert check(HardCF(0), X, numbers)[1].tolist() == [1, 0] * 30


def by_meaning(read):
    """Labels that were read are those of the words; None if the words were refused."""
    try:
        labels = read()
    except ValueError as error:
        assert re.search(r"label|judgement|y must contain", str(error))
        return None
    assert list(labels) == [1, 0]
    return labels


@pytest.mark.parametrize("pair", [*PAIRS, ("good", "bad")], ids="/".join)
def test_readers_take_words_by_meaning_or_refuse_them(pair, tmp_path):
    true, false = pair
    path = tmp_path / "lines.jsonl"
    line = {"claims": ["a", "b"], "edges": [], "labels": pair}
    path.write_text(json.dumps(line) + "\n")
    by_meaning(lambda: read_jsonl(path).labels[0])
    table = tmp_path / "labels.csv"
    table.write_text(f"problem_id,claim_number,label\np,1,{true}\np,2,{false}\n")
    graph = ReasoningGraph(None, (), claims=["a", "b"], id="p")
    numbers = {"true": 1, "false": 0}
    by_meaning(
        lambda: [numbers[word] for word in read_csv(table, [graph])["imported"][0]]
    )
    table.write_text("problem_id,claim_number,label\np,1,True\np,2,False\n")
    assert read_csv(table, [graph]) == {"imported": [["true", "false"]]}
    by_meaning(lambda: check(HardCF(), [graph], [[true, false]])[1])
    kept_false = [[False, True]]
    try:
        score = coverage_score([[true, false]], kept_false)
    except ValueError as error:
        assert "label" in str(error) or "y must contain" in str(error)
    else:
        assert score == 0
