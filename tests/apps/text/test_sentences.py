"""Answers are cut into sentences, not at every period."""

import time

import pytest

from skdcf.apps.text import split_sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Mrs. Okoro owes $2.75, i.e. a lot.", "The U.K. office closed.", "It did!"]),
        ("en", ["See Fig. 2 and Eq. 4.", "Prof. B. Lee agrees at 10 p.m. sharp."]),
        ("en", ["Let $y = 0.5$.", "Then $y^2 = 0.25$, vs. 0.5 before."]),
        ("en", ["Step 1. Add 2 and 3.", "Step 2. Halve it."]),
        ("en", ["Version 3.11.2 is out.", "It is at example.org/a.b?c=1.", "Use it."]),
        ("de", ["Er wohnt in der Bahnhofstr. 7.", "Am 9. Mai kam z. B. Herr Dr. Kern."]),
        ("de", ["Im 19. Jahrhundert war das so.", "Der 2. Weltkrieg kam.", "Es waren 3.", "Ja."]),
        ("en", ["See e.g. No. 5 of the terms.", "It ends, i.e. Dr. Lee, viz. B, pays.", "So."]),
        ("en", ["See Eq. (4) and vol. 2.", "It is approx. 5.", "Done."]),
        ("en", ["Ms. Lee met Dr. No in Apt. B.", "It takes max. 5 h.", "It did on Mon. 5 May."]),
        ("en", ["There are two Ms.", "Since he left M&Ms.", "Go to Elm Dr.", "It is 5 Ft.", "Ok."]),
        ("en", ["Read the Vol.", "It has the Eqs.", "They are at their max.", "(It is 5.)"]),
        ("en", ["It is open on Wed. and Sat. at 5.", "It is approx. half of U.S. No. 1."]),
        ("en", ["It ends at 5 p.m. EST today.", "It began at 9 a.m. Monday.", "At 5 p.m.", "So."]),
        ("en", ["It cost approx. $4.2 million, or ca. \u20ac4.", "Done."]),
        ("fr", ["L'art. 5 le dit.", "C'est p. ex. vrai."]),
        ("nl", ["Het kost o.a. 3,5 euro.", "Klaar."]),
        ("sv", ["Han kom kl. 9 idag.", "Slut."]),
        ("en", ["**It is bold.**", "So *is this.*", "2 * 3 is __six.__", "Yes."]),
        ("fr", ["M. Petit est là.", "Il a 3,5 ans."]),
        ("es", ["El Sr. Ruiz llegó.", "¿Cuándo?", "Ayer."]),
        ("zh", ["你好。", "我很好\uff01"]),
        ("en", ["你好。", "我很好\uff01"]),
        ("en", ["They can be arranged in 6! ways.", "Then go on."]),
        ("en", ["A sum of 1! + 2! + 3!", "is nine."]),
        ("en", ["I. The trace is 5.", "II. The rest is zero.", "Done."]),
        ("ja", ["これは本です。", "そうですか\uff1f"]),
    ],
)  # fmt: skip
def test_sentences_of_many_languages(language, sentences):
    gap = "" if language in ("zh", "ja") or sentences[0][0] > "\u3000" else " "
    assert split_sentences(gap.join(sentences), language=language) == sentences


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("So:\n```py\nx = 1.\n\ny = 2. # z\n```\nYes. No.",
         ["So:", "```py\nx = 1.\n\ny = 2. # z\n```", "Yes.", "No."]),
        ("~~~~\na. b.\n~~~\nc.\n~~~~\nd.", ["~~~~\na. b.\n~~~\nc.\n~~~~", "d."]),
        ("1. Run:\n   ```\n   ls. \n   ```", ["Run:", "```\n   ls. \n   ```"]),
        ("Cut off:\n```\na. B. c", ["Cut off:", "```\na. B. c"]),
        ("| A. b | C |\n|:--|--:|\n| Dr. X. Y | 2. |", ["| A. b | C |", "| Dr. X. Y | 2. |"]),
        ("Name | Age\n-|-\nA. B. | 5\n\nEnd | of. It.",
         ["Name | Age", "A. B. | 5", "End | of.", "It."]),
        ("+---+---+\n| a | b |\n+===+===+\n| c. D | d |", ["| a | b |", "| c. D | d |"]),
        ("One.\n---\nTwo.\n* * *\nThree.\n=====", ["One.", "Two.", "Three."]),
        ("- First. Again.\n* Second\n\u2022 Third\n1) Fourth\n2) Fifth",
         ["First.", "Again.", "Second", "Third", "Fourth", "Fifth"]),
        # A number that does not count the items of a list may be part of the answer.
        ("1. One\n   1) Inside\n\n2. Two", ["One", "Inside", "Two"]),
        ("How many?\n\n12. apples", ["How many?", "12. apples"]),
        ("> 2024. The games were in Paris.\n1. Yes.\n3. No.",
         ["2024. The games were in Paris.", "Yes.", "3. No."]),
        ("So:\n$$\nx = 1. \\\\\ny = 2.\n$$\nYes. No.",
         ["So:", "$$\nx = 1. \\\\\ny = 2.\n$$", "Yes.", "No."]),
        ("\\[\nx = 1.\n\\].\nYes.", ["\\[\nx = 1.\n\\].", "Yes."]),
        ("\\begin{align*}\nx &= 1. Y\n\\end{align*}\nYes.",
         ["\\begin{align*}\nx &= 1. Y\n\\end{align*}", "Yes."]),
        ("$$ x = 1 $$\nYes. No.", ["$$ x = 1 $$", "Yes.", "No."]),
        ("- [ ] Buy it. Now.\n- [x] Done.", ["[ ] Buy it.", "Now.", "[x] Done."]),
        # A mark before a number or a formula may be a sign.
        ("- 5\n  * **6**\n- Item", ["- 5", "* **6**", "Item"]),
        ("> 5\n> - .5\n> \u00bd\n> A", ["> 5", "- .5", "> \u00bd", "A"]),
        ("- \u20ac5\n- $x$\n- \\(x\\)", ["- \u20ac5", "- $x$", "- \\(x\\)"]),
        ("> 1. A\n> 2. B\n- 1. C", ["A", "B", "1. C"]),
        ("A.\n1.  \n- \u00a0\n>  ", ["A.", "1.", "-", ">"]),
        # An operator is not a rule.
        ("==\nIt compares.\n--\nOk.", ["==", "It compares.", "--", "Ok."]),
        ("A.\n-_-\n_ _ _\nB.", ["A.", "-_-", "B."]),
        ("Yes. ~~A is. B is.~~ C is.", ["Yes.", "~~A is. B is.~~", "C is."]),
        ("> Dr. Lee said it. He left.\n> > 1. So it is.",
         ["Dr. Lee said it.", "He left.", "So it is."]),
        ("## 1. Results\nIt rained.", ["## 1. Results", "It rained."]),
        ("**1. Overview:**\n**Step 2. Mix it:**", ["**1. Overview:**", "**Step 2. Mix it:**"]),
        ("It is safe. \u2705 It is old. \u274c\n\u2705",
         ["It is safe.", "\u2705 It is old. \u274c", "\u2705"]),
        ("2 + 2 = 4\nso it is even", ["2 + 2 = 4", "so it is even"]),
        ("half \ud83d of it. Two.", ["half ? of it.", "Two."]),
        ("\n \n", []),
    ],
)  # fmt: skip
def test_code_tables_and_lists(answer, claims):
    assert split_sentences(answer) == claims


@pytest.mark.parametrize(
    "mark",
    ["-", " ", "| ", "- ", "> ", "|-", ":", "*", "Dr. No ", "max. 5 ", ": 1. A "],
)
@pytest.mark.parametrize("end", ["", "x"])
def test_a_long_line_of_marks_is_read_in_linear_time(mark, end):
    begin = time.monotonic()
    split_sentences((50_000 * mark)[:100_000] + end)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u2009", "\u3000"])
def test_spaces_of_several_bytes_around_initials(space):
    """sentencex ends the program with these: "z. B." has a narrow space in good typography."""
    sentences = [f"Das ist z.{space}B. so.", f"J.{space}R.{space}. Lee kam.", "Ja."]
    for language in ("de", "en", "fr"):
        claims = split_sentences(" ".join(sentences), language=language)
        assert "".join("".join(claims).split()) == "".join("".join(sentences).split())
    assert claims[-1] == "Ja."


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Yan et al. [2004] found a rise. Ref. [5] agrees.",
         ["Yan et al. [2004] found a rise.", "Ref. [5] agrees."]),
        ("The mass is 5 kg. The length is 3 m. The time is 2 s. It moves.",
         ["The mass is 5 kg.", "The length is 3 m.", "The time is 2 s.", "It moves."]),
        ("There are three: 1. It is old. 2. It is iron.",
         ["There are three: 1. It is old.", "2. It is iron."]),
        ("We get $$a = 1 + 2\n= 3$$ and so on. Done.",
         ["We get $$a = 1 + 2\n= 3$$ and so on.", "Done."]),
        ("It is 330 m tall.\u00b9 It was built in 1889.\u00b2 It is iron.",
         ["It is 330 m tall.\u00b9", "It was built in 1889.\u00b2", "It is iron."]),
        ("The tower, which was built\nin 1889, is 330 m\ntall. It is iron.",
         ["The tower, which was built in 1889, is 330 m tall.", "It is iron."]),
        ("Use .NET here. It is fast.", ["Use .NET here.", "It is fast."]),
        ("We know that x < 5. So x <= 4. Then y<3. But $y > 2$. Done.",
         ["We know that x < 5.", "So x <= 4.", "Then y<3.", "But $y > 2$.", "Done."]),
        ("If p <.05. So x <-5. < b >No. It is.< /b > 5 m. \"It\" is > 4.",
         ["If p <.05.", "So x <-5.", "< b >No.", "It is.", "< /b > 5 m.", "\"It\" is > 4."]),
        ("It is tall.\u200b It is iron.", ["It is tall.", "It is iron."]),
        ("Let $x. Y$ be (see A. It is so.) \\(a. B\\) one. It is $5. It is $6.",
         ["Let $x. Y$ be (see A. It is so.) \\(a. B\\) one.", "It is $5.", "It is $6."]),
        ("It costs $$ a lot\nof money. So it is.\n\nYes.",
         ["It costs $$ a lot", "of money.", "So it is.", "Yes."]),
    ],
)  # fmt: skip
def test_sentences_do_not_end_within_formulas_brackets_and_wrapped_lines(
    text, sentences
):
    assert split_sentences(text) == sentences


@pytest.mark.parametrize("language", ["english", "EN", "", None, 3, "de-AT"])
def test_a_language_is_a_code(language):
    with pytest.raises(ValueError, match="language"):
        split_sentences("One.", language=language)
