"""Options of multiple-choice questions, and flags for metadata."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.exceptions import GuaranteeWarning
from skdcf.features import MetadataIndicators, OptionFeatures, reasoning_features

QUESTION = "Which is it?\nA: red fox \nB: grey wolf\n(C) brown bear\nD. none of these"


def rows(*claims, problem=QUESTION):
    graph = ReasoningGraph(None, claims=claims, problem=problem)
    batch = OptionFeatures().fit_transform([graph])
    return dict(zip(batch.feature_names, batch.features.T.tolist(), strict=True))


def test_options_by_hand():
    found = rows(
        "A fox is red, and this is not.",
        "A bear would be brown, which is incorrect.",
        "It is grey, a wolf.",
        "Choice_B",
    )
    assert found["option_is_chosen"] == [0, 0, 0, 1]
    assert found["option_words"] == [0, 0, 1, 0]
    assert found["option_rival"] == [1, 1, 0, 0]
    assert found["options_ruled_out"] == [0.25, 0.5, 0.5, 0.5]
    assert found["option_agrees"] == [1] * 4


def test_letter_that_the_text_does_not_support():
    found = rows("So it is a grey wolf.", "The answer is (A).")
    assert found["option_agrees"] == [-1, -1]
    assert found["option_is_chosen"] == [0, 1]


@pytest.mark.parametrize("problem", [None, "", "Why?\nA: one", "I saw a: b"])
def test_questions_without_options(problem):
    found = rows("The answer is A.", problem=problem)
    assert set(map(tuple, found.values())) == {(0.0,)}


def test_they_join_where_a_question_has_options():
    plain = ReasoningGraph(None, claims=["a"], problem="Why?")
    choice = plain.replace(problem=QUESTION)
    assert reasoning_features().fit([plain]).transform([choice]).n_features == 29
    names = reasoning_features().fit([plain, choice]).get_feature_names_out()
    assert tuple(names[29:]) == OptionFeatures.columns


def of_model(*models, **more):
    return [ReasoningGraph(None, claims=["a"], metadata={"model": m}) for m in models]


def test_flags_of_metadata():
    fitted = MetadataIndicators(["model"]).fit(of_model("b", "a", "b"))
    assert fitted.get_feature_names_out().tolist() == ["model=a", "model=b"]
    batch = fitted.transform(of_model("a", "b"))
    assert batch.features.tolist() == [[1, 0], [0, 1]]
    with pytest.warns(GuaranteeWarning, match=r"\['c'\].*'model'"):
        assert fitted.transform(of_model("c")).features.tolist() == [[0, 0]]
    given = MetadataIndicators({"model": ["a", "b"]})
    assert fitted.requires_fit and not given.requires_fit
    with pytest.warns(GuaranteeWarning, match=r"values \['c'\]"):
        given.fit(of_model("c"))
    with pytest.raises(ValueError, match=r"problem 1.*metadata key 'model'"):
        MetadataIndicators().fit([*of_model("a"), ReasoningGraph(None, claims=["b"])])
    with pytest.raises(ValueError, match="keys"):
        MetadataIndicators("model").fit(of_model("a"))


def test_a_filter_learns_which_model_is_right():
    rng = np.random.default_rng(0)
    models = rng.choice(["good", "bad"], 300).tolist()
    graphs = [
        ReasoningGraph(None, claims=["a"], problem=f"q{k}", metadata={"model": model})
        for k, model in enumerate(models)
    ]
    y = [[int(rng.random() < (0.98 if model == "good" else 0.3))] for model in models]
    features = reasoning_features(metadata=["model"])
    cf = HardCF(features=features, alpha=0.1, random_state=0).fit(graphs, y)
    kept = [bool(mask[0]) for mask in cf.predict(graphs)]
    good = np.array(models) == "good"
    assert np.mean(np.array(kept)[good]) > 0.9
    assert np.mean(np.array(kept)[~good]) < 0.5
