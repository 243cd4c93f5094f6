"""Columns against passages, compared with plain definitions that share no code with them."""

import re
import time

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.features import ContextFeatures

NAMES = ContextFeatures.columns


def graph_of(claims, context, **more):
    return ReasoningGraph(None, [], claims=claims, context=context, **more)


def columns_of(claim, *passages):
    batch = ContextFeatures().fit_transform([graph_of([claim], passages)])
    return dict(zip(batch.feature_names, batch.features[0], strict=True))


def words_of(text):
    return re.findall("[a-z0-9]+", text.lower())


def longest_run(words, passages):
    """By trying every run of the claim at every place of every passage."""
    best = 0
    for passage in map(words_of, passages):
        for i in range(len(words)):
            for p in range(len(passage)):
                n = 0
                while words[i + n : i + n + 1] == passage[p + n : p + n + 1] != []:
                    n += 1
                best = max(best, n)
    return best if best > 1 else 0


def expected(claim, passages):
    """Five of the columns from their definition."""
    words = words_of(claim)
    texts = [words_of(passage) for passage in passages]
    row = []
    for n in (1, 2, 3):
        held = {tuple(t[i : i + n]) for t in texts for i in range(len(t) - n + 1)}
        runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        if n == 1:
            runs = sorted(set(runs))
        row.append(sum(run in held for run in runs) / (len(runs) + (n > 1)))
    sentences = [s for p in passages for s in re.split(r"(?<=[.!?])\s+", p)]
    best = max(len(set(words) & set(words_of(s))) for s in sentences)
    return [*row, best / len(set(words)), longest_run(words, passages) / len(words)]


@pytest.mark.parametrize("seed", range(60))
def test_as_defined(seed):
    rng = np.random.default_rng(seed)
    vocabulary = ["the", "red", "fox", "saw", "a", "Dog", "Ann"]

    def draw(n, stops):
        words = [vocabulary[k] for k in rng.integers(len(vocabulary), size=n)]
        ends = np.where(rng.random(n) < stops, ". ", " ")
        return "".join(w + e for w, e in zip(words, ends, strict=True)).strip()

    passages = [draw(rng.integers(1, 40), 0.2) for _ in range(rng.integers(1, 4))]
    for n in (1, 2, 3, 8, 20):
        found = columns_of(claim := draw(n, 0), *passages)
        names = [*NAMES[:3], "context_sentence", "context_longest_run"]
        np.testing.assert_allclose(
            [found[name] for name in names], expected(claim, passages)
        )


def test_numbers_and_names():
    passage = "In three weeks Ann Lee sold 1,250 pens, says the BBC."
    found = columns_of("She sold 1250 pens and 17 books in 3 weeks.", passage)
    assert found["context_numbers"] == pytest.approx(2 / 3)
    assert columns_of("She sold pens.", passage)["context_numbers"] == 1
    # The first word is in upper case wherever a sentence begins.
    found = columns_of("Yesterday Ann met Bob at the BBC.", passage)
    assert found["context_names"] == pytest.approx(2 / 3)
    assert columns_of("Yesterday it rained.", passage)["context_names"] == 1


def test_no_passage_and_no_words():
    assert set(columns_of("Some words.").values()) == {0.0}
    assert columns_of("...", "A text.")["context_words"] == 0
    assert columns_of("A text.", "")["context_words"] == 0


def test_blanks_case_and_marks_change_nothing():
    plain = columns_of("The fox saw 12 dogs.", "A fox saw 12 dogs. It ran.")
    other = columns_of("the  FOX saw,\n12 dogs!", "A Fox  saw\t(12) dogs! It ran.")
    del plain["context_names"], other["context_names"]
    assert plain == other


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Die Brücke öffnete 1932.", "Die Brücke öffnete 1932 für die Straßenbahn."),
        ("大桥于1932年开放", "这座大桥于1932年开放，耗时八年。"),  # noqa: RUF001
        ("橋は1932年に開通した。", "この橋は1932年に開通した。電車が通った。"),
        ("Мост открылся в 1932 году.", "Этот мост открылся в 1932 году."),
    ],
)
def test_other_languages_are_found(claim, passage):
    found = columns_of(claim, passage)
    for name in ("context_words", "context_longest_run", "context_numbers"):
        assert found[name] == 1
    # Another year in the same words.
    changed = columns_of(claim.replace("1932", "1945"), passage)
    assert changed["context_numbers"] == 0 and changed["context_words"] < 1


def test_words_and_digits_are_written_in_one_way():
    plain = columns_of("The office has 1234 m\u00b2.", "The office has 1234 m\u00b2.")
    odd = "The o\ufb03- \r\n  ce has \uff11\uff12\uff13\uff14 m\u00b2."
    assert columns_of(odd, "The office has 1234 m\u00b2.") == plain
    assert columns_of("The office has 1234 m\u00b2.", odd) == plain
    assert columns_of("5 m2", "5 m\u00b2")["context_words"] == 0.5


@pytest.mark.parametrize(
    "odd", ["\0", "\ud800", "İstanbul", "a\u0301", "", "。。", "\n\n"]
)
def test_odd_characters(odd):
    found = columns_of(f"x {odd} y", f"{odd} x y {odd}", odd)
    assert all(0 <= value <= 1 for value in found.values())


def test_unknown_context_is_refused_and_too_much_of_it():
    known, unknown = graph_of(["a"], ["a"]), graph_of(["a"], None, id="x")
    transformer = ContextFeatures().fit([known])
    with pytest.raises(ValueError, match=r"'context' of problem 1 .*None"):
        transformer.transform([known, unknown])
    with pytest.raises(ValueError, match=r"context.*problem.*0"):
        ContextFeatures().fit([unknown])
    without = ContextFeatures(optional=True).fit([unknown]).transform([unknown])
    assert without.n_features in (None, 0)
    huge = graph_of(["a"], ["b", "c" * 50_000_000])
    with pytest.raises(ValueError, match=r"problem 0 .*50,000,001.* passage 1"):
        transformer.transform([huge])


@pytest.mark.parametrize(
    "passage",
    [
        "a " * 200_000,
        "a. " * 130_000,
        ".)" * 200_000,
        "\n " * 200_000 + "x",
        "1," * 200_000,
    ],
    ids=["words", "sentences", "brackets", "blanks", "numbers"],
)
def test_time_is_bounded_whatever_the_passage(passage):
    start = time.process_time()
    columns_of("a " * 2000 + "b", passage)
    assert time.process_time() - start < 20
