"""The data of Conformal-RAG: against the published files, and against made-up ones."""

import json
import re

import numpy as np
import pytest

from skdcf.datasets import fetch_conformal_rag
from skdcf.datasets.fetch import SOURCES
from skdcf.graphs import question_groups

SUBSETS = ("medication_qa", "live_qa", "kqa_silver_wogold")


@pytest.fixture
def fetch(data_home):
    """Load the data, or skip where the files are not there."""
    if not (data_home / "conformal_rag").is_dir():
        pytest.skip("no real data: SKDCF_DATA has no conformal_rag/")

    def load(*args, **options):
        options |= {"data_home": data_home, "download_if_missing": False}
        return fetch_conformal_rag(*args, **options)

    return load


def passages_by_regex(path):
    """Pairs of question and passage of a published file, read in another way."""
    form = (
        r"page_content='(.*)' metadata=\{'source': (['\"])(.*)\2, 'file_path': '.*'\}"
    )
    for _, text in json.loads(path.read_text("utf-8")):
        content, _, question = re.fullmatch(form, text, re.DOTALL).groups()
        question = question.encode().decode("unicode_escape").replace("\\'", "'")
        yield question, content


@pytest.mark.parametrize(
    ("irrelevant", "n_false", "n_right"), [(False, 586, 1179), (True, 182, 1448)]
)
def test_counts(fetch, irrelevant, n_false, n_right):
    data = fetch(irrelevant=irrelevant)
    assert (len(data.graphs), data.graphs.n_claims) == (1603, 14093)
    assert sum(int((y == 0).sum()) for y in data.labels) == n_false
    assert not any((y == -1).any() for y in data.labels)
    assert sum(bool((y == 1).all()) for y in data.labels) == n_right
    assert data.dropped == []
    assert len(set(data.groups.tolist())) == 1603
    assert len(set(question_groups(data.graphs).tolist())) == 1603
    word = "true" if irrelevant else "false"
    assert f"as {word} here" in data.DESCR
    assert [len(y) for y in data.labels].count(0) == 1  # and its features have a column
    assert data.graphs.features.shape == (14093, 1)


@pytest.mark.long
@pytest.mark.parametrize("subset", SUBSETS)
def test_against_the_records(fetch, data_home, subset):
    data = fetch(subset)
    folder = data_home / "conformal_rag"
    path = folder / f"{subset}_subclaims_with_scores.jsonl"
    records = json.loads(path.read_text("utf-8"))["data"]
    passages = list(passages_by_regex(folder / f"{subset}_ref_docs_texts.json"))
    contents = {content.strip() for _, content in passages}
    assert data.feature_names == ["similarity-score"]
    for graph, y, row, record in zip(
        data.graphs, data.labels, data.metadata, records, strict=True
    ):
        claims = record["claims"]
        assert graph.problem == record["prompt"]
        assert graph.claims == tuple(claim["subclaim"].strip() for claim in claims)
        assert graph.features[:, 0].tolist() == [c["similarity-score"] for c in claims]
        assert y.tolist() == [int(c["annotation"] == "S") for c in claims]
        assert row["verdicts"] == [claim["annotation"] for claim in claims]
        assert (row["subset"], row["label_meaning"]) == (subset, "supported")
        for passage in graph.context:
            assert f"{record['prompt']}: {passage}" in contents
    n_empty = sum(content.strip().endswith(f"{q}:") for q, content in passages)
    n_read = sum(len(graph.context) for graph in data.graphs)
    assert n_read == len(passages) - n_empty


def made_up(place, documents, annotation="S"):
    """A folder with one answer of two claims, and with documents as the authors keep them."""
    claims = [
        {"subclaim": " a", "similarity-score": 0.5, "annotation": "I"},
        {"subclaim": "b ", "similarity-score": 0, "annotation": annotation},
    ]
    answer = {"prompt": "Why's that?", "original-output": "a b", "claims": claims}
    folder = "conformal_rag/live_qa"
    place(f"{folder}_ref_docs_texts.json", list(enumerate(documents)))
    return place(f"{folder}_subclaims_with_scores.jsonl", {"data": [answer]})


def document(text, question="Why's that?"):
    """A passage as the text of the object that held it."""
    about = {"source": question, "file_path": "a.txt"}
    return f"page_content='{question}: {text}' metadata={about}"


def test_passages_may_hold_what_describes_them(place):
    texts = ["it's 'so' metadata={'source': 'x'}", "", "of another"]
    documents = [document(text) for text in texts[:2]]
    documents.append(document(texts[2], "Who?"))
    data = fetch_conformal_rag("live_qa", data_home=made_up(place, documents))
    assert data.graphs[0].context == (texts[0],)
    assert data.graphs[0].claims == ("a", "b")
    assert data.labels[0].tolist() == [0, 1]
    again = fetch_conformal_rag(
        "live_qa", irrelevant=True, data_home=made_up(place, documents, "NF")
    )
    assert again.labels[0].tolist() == [1, 0]
    assert np.array_equal(again.graphs.features, [[0.5], [0.0]])


def test_what_is_broken_is_named(place):
    home = made_up(place, [document("a", "Who?")])
    with pytest.raises(ValueError, match=r"live_qa/0.*Why"):
        fetch_conformal_rag("live_qa", data_home=home)
    home = made_up(place, [document("a")], annotation="maybe")
    with pytest.raises(ValueError, match=r"annotation .*'maybe'"):
        fetch_conformal_rag("live_qa", data_home=home)
    data_home = made_up(place, [document("a")])
    with pytest.raises(ValueError, match=r"subset .*'health_qa'"):
        fetch_conformal_rag("health_qa", data_home=data_home)


def test_sources_are_two_folders_of_one_commit():
    names = [name for name in SOURCES if name.startswith("conformal_rag/")]
    assert len(names) == 8
    for name in names:
        folder = "out" if name.endswith("_subclaims_with_scores.jsonl") else "ref"
        file = name.partition("/")[2]
        assert SOURCES[name].url.endswith(f"/conditional/data/{folder}/{file}")
        assert "/d6e033f013db73b6c3d65690a43e25e10cc6c190/" in SOURCES[name].url
