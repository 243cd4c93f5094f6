"""What other tools write becomes graphs, with the right polarity and nothing lost."""

import math
from types import SimpleNamespace

import pytest

from skdcf.datasets import from_lm_polygraph, from_uqlm

# --- UQLM: the structures of its long-text and its graph scorers -----------------------

CLAIMS = [
    [
        {"claim": "Ada was born in 1815.", "removed": False, "entailment": 0.97},
        {"claim": "She flew to Mars.", "removed": True, "entailment": 0.02},
    ],
    [{"sentence": "Paris is in France.", "removed": False, "entailment": 1.0}],
]
DATA = {
    "prompts": ["Ada?", "Paris?"],
    "responses": ["...", "..."],
    "sampled_responses": [["s", "<think>Or u?</think>t"], []],
    "entailment": [0.6, 1.0],
    "claims_data": CLAIMS,
}


def result_of(form):
    if form == "frame":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(DATA).rename(columns={"prompts": "prompt"})
    return {"result": SimpleNamespace(data=DATA), "dict": {"data": DATA}}[form]


@pytest.mark.parametrize("form", ["result", "dict", "frame"])
def test_uqlm_long_text(form):
    data = from_uqlm(result_of(form), labels=[[1, 0], [-1]])
    first, second = data.graphs
    assert first.claims == ("Ada was born in 1815.", "She flew to Mars.")
    assert first.features.tolist() == [[0.97], [0.02]]  # higher: more confident
    assert data.graphs.feature_names == ("entailment",)
    assert (first.problem, first.id) == ("Ada?", "uqlm/0")
    assert second.claims == ("Paris is in France.",) and second.alternatives == ()
    assert first.alternatives == ("s", "t") and not first.edges_known
    assert [y.tolist() for y in data.labels] == [[1, 0], [-1]]


def test_uqlm_leaves_out_claims_of_other_responses():
    def claim(text, original, score):
        about = {"claim": text, "original_response": original, "removed": False}
        return about | {"scorer_type": "graphuq", "page_rank": score}

    rows = [
        [claim("a", True, 0.3), claim("sampled", False, 0.1), claim("b", True, 1)],
        [claim("sampled", False, 0.2)],
    ]
    data = from_uqlm({"claims_data": rows}, labels=[[1, 0], []])
    assert data.graphs[0].claims == ("a", "b")
    assert data.graphs.features.tolist() == [[0.3], [1.0]]
    assert data.graphs[1].n_claims == 0 and data.graphs[1].problem is None


def one_claim(**keys):
    return {"claims_data": [[{"claim": "a", "entailment": 0.5}, {"claim": "b"} | keys]]}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (one_claim(entailment=1.0, annotation=1), "problem 0: .*'annotation'"),
        (one_claim(), r"uqlm/0.*features\[1\]\[0\].*None"),
        ({"claims_data": [[{"claim": "a"}]]}, "score.*'entailment'"),
        ({"claims_data": [[{"entailment": 1.0}]]}, r"claims\[0\].*None"),
        ({"claims_data": ["[{'claim': 'a'}]"]}, "UQResult"),
        ({"data": {"responses": []}}, "'claims_data'"),
        (DATA | {"prompts": ["?"]}, "problem .*2.*1"),
    ],
)
def test_what_uqlm_does_not_write_is_named(result, message):
    with pytest.raises(ValueError, match=message):
        from_uqlm(result)


def test_uqlm_labels_of_another_number():
    for labels in ([[1, 0]], [[1, 0, 1], [1]], [[1, 2], [1]]):
        with pytest.raises(ValueError, match=r"labels.* 2"):
            from_uqlm(DATA, labels=labels)


# --- LM-Polygraph: Claim objects beside flat estimates -----------------------------------

TEXTS = [["a", "b"], [], ["c"]]
OBJECTS = [[SimpleNamespace(claim_text=text) for text in row] for row in TEXTS]
ESTIMATES = {
    ("claim", "MaximumClaimProbability"): [0.1, 7.5, 2.0],
    ("claim", "PTrueClaim"): [-0.9, -0.2, -0.5],
    ("sequence", "Perplexity"): [1.0, 2.0, 3.0],
}


def test_lm_polygraph_polarity():
    """Uncertain is high there and label 1 is false; here it is the other way round."""
    data = from_lm_polygraph(
        OBJECTS, ESTIMATES, labels=[0, 1, math.nan], problems=["p", "q", "p"]
    )
    names = ("neg_MaximumClaimProbability", "neg_PTrueClaim")
    assert data.graphs.feature_names == names
    assert data.graphs.features.tolist() == [[-0.1, 0.9], [-7.5, 0.2], [-2.0, 0.5]]
    assert [y.tolist() for y in data.labels] == [[1, 0], [], [-1]]
    assert [graph.claims or () for graph in data.graphs] == list(map(tuple, TEXTS))
    assert data.graphs.problems.tolist() == ["p", "q", "p"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claims": []}, r'save_stats=\["claims"\]'),
        ({"claims": [["a", "b"], [], ["c"]]}, "claim_text"),
        ({"estimates": {("claim", "Max"): [1.0, 2.0]}}, "Max .* 3 claims"),
        ({"estimates": {("sequence", "P"): [1.0]}}, "claim-level.*sequence"),
        ({"estimates": {("word", "P"): [1.0]}}, "'word'"),
        ({"labels": [0, 1]}, "labels .* 3 claims"),
        ({"labels": [0, 1, 5]}, r"lm_polygraph/2.*labels\[0\] .*5\.0"),
        ({"problems": ["p"]}, "problem .*3.*1"),
    ],
)
def test_what_lm_polygraph_does_not_write_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        from_lm_polygraph(**({"claims": OBJECTS, "estimates": ESTIMATES} | change))
