"""Agreement with other answers: what counts as equal, and every share counted by hand."""

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.features import AgreementFeatures
from skdcf.features._answers import find_answer, normalise_answer
from skdcf.features._cleaning import clean
from skdcf.features._equations import find_results, split_clauses

NAMES = AgreementFeatures().fit([ReasoningGraph(None, [], claims=[], alternatives=[])])
NAMES = list(NAMES.get_feature_names_out())


def answer_of(text, has_options=False):
    found = find_answer(text, has_options)
    return found if found is None else normalise_answer(found, has_options, ("eggs",))


def table_of(graphs, **parameters):
    """Columns by name, over all claims."""
    batch = AgreementFeatures(**parameters).fit_transform(graphs)
    assert list(batch.feature_names)[-len(NAMES) :] == NAMES
    return dict(zip(NAMES, batch.features.T[-len(NAMES) :].tolist(), strict=True))


def graph_of(claims, alternatives, problem="Add 12 and 7", edges=()):
    more = {"problem": problem, "alternatives": alternatives}
    return ReasoningGraph(None, edges, claims=claims, **more)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{\\frac{3}{4}}.", 0.75),
        ("$x = \\boxed{\\dfrac34}$ or \\boxed{0.75}", 0.75),
        ("12 - 3 = 9\n#### 1,200", 1200),
        ("The answer is $18.50 per day. Of 7 days.", "18.5perday"),
        ("The answer is that Janet makes $18 a day", "thatjanetmakes18aday"),
        ("**Final Answer:** x = -5", -5),
        ("the answer is 50\\%", 50),
        ("The answer is 3 / 4.", 0.75),
        ("it is 16 - 3", 3),
        ("it is -3", -3),
        ("16-3", "16-3"),
        ("\u2212", None),
        ("Answer: 1", 1),
        ("Choice_A? No.\nThe answer is (B).", "b"),
        ("the answer is: b) 12 miles", "b)12miles"),
        ("\\boxed{\\text{Monday}}", "monday"),
        ("the answer is Monday!", "monday"),
        ("\\boxed{\\left(3, 4\\right)}", "(3,4)"),
        ("\\boxed{x^{2} + 1", "x^{2}+1"),
        ("the answer is 3 hours 20 minutes", "3hour20minute"),
        ("first 4, then 8 of them", 8),
        ("nothing", None),
        ("", None),
        ("#### Step 3: 4 and 5", "4and5"),
    ],
)
def test_final_answers(text, answer):
    assert answer_of(text) == answer
    assert answer_of(text.replace(" ", "\r\n")) == answer


DIFFERENT = """
\\boxed{(3,4)} | \\boxed{[3,4]}
answer is x>3 | answer is x<3
The answer is U.S. territory. | The answer is U.K. territory.
The answer is Dr. Smith. | The answer is Dr. Jones.
The answer is Dr. No. | The answer is Dr. Who.
The answer is Ms. Smith. | The answer is Ms. Jones.
The answer is J. Smith. | The answer is J. Doe.
The answer is No. 5. | The answer is No. 6.
The answer is Jan. 5. | The answer is Jan. 6.
The answer is Sen. Smith. | The answer is Sen. Jones.
The answer is the Univ. of Rome. | The answer is the Univ. of Bonn.
The answer is Apollo 11. | The answer is 11.
The answer is 2020-10-05. | The answer is 2020-05-10.
It was on 2020-10-05. | It was on 2021-10-05.
The answer is 10/5/2020. | The answer is 5/10/2020.
The answer is 11:30. | The answer is 11:45.
The answer is not 5. | The answer is 5.
It is not 5. | It is 5.
The answer is at least 5. | The answer is 5.
The answer is 5 or more. | The answer is 5+.
The answer is 5-6. | The answer is 5 to 6.
The answer is 3-2. | The answer is 1.
The answer is 3 million. | The answer is 3.
The answer is 5 km. | The answer is 5 miles.
It is 5 km. | It is 5 miles.
The tower is 330 m tall [1]. | The tower is 300 m tall [1].
It is 5 (source: 2021). | It is 6 (source: 2021).
The answer is 1e-8. | The answer is 2e-8.
The answer is 1.5 * 10^{-3}. | The answer is 15^{-3}.
The answer is 5 \u00b0C. | The answer is 5 \u00b0F.
The answer is 5 MB. | The answer is 5 GB.
The answer is \u20ac5. | The answer is $5.
The answer is 5k. | The answer is 5.
The answer is 5x. | The answer is 5.
The answer is 5!. | The answer is 5.
The answer is 5 May. | The answer is 5 June.
The answer is 5 is wrong. | The answer is 5.
The answer cannot be 5. | The answer is 5.
The answer is capped at 5. | The answer is 5.
The answer is up to 5. | The answer is a minimum of 5.
The answer is 3\u00bd. | The answer is 1.5.
The answer is 1000000000 1/2. | The answer is 10.5.
The answer is Bros. Grimm. | The answer is Bros. Marx.
The answer is Fig. A. | The answer is Fig. B.
The best choice a person has is 5 EUR. | The best choice a person has is 6 EUR.
It costs up to 5. | It costs 5.
It was on May 5, 2020. | It was on June 7, 2020.
It is 5 million. | It is 5 billion.
It is 5 to 6. | It is 4 to 6.
x < 5 | x > 5
The tower is 330 m tall.[1] | The tower is 300 m tall.[1]
It is 5 [1, 2]. | It is 6 [1, 2].
The 2 roots are [1, 5]. | The 2 roots are [7, 9].
The answer is the interval [1, 5]. | The answer is the interval [2, 9].
The answer is the matrix [1, 2], [3, 4]. | The answer is the matrix [1, 2], [3, 5].
\\boxed{x \\in [1, 5]} | \\boxed{x \\in [1, 6]}
So x \u2208 [1, 5]. | So x \u2208 [1, 6].
The answer is Paris (Texas). | The answer is Paris (France).
\\boxed{2 (mod 5)} | \\boxed{2 (mod 7)}
\\boxed{3 (\\sqrt{2})} | \\boxed{3 (\\sqrt{5})}
\\boxed{5 (million)} | \\boxed{5 (billion)}
The answer is 5 (10). | The answer is 5 (12).
The answer is 5 (not 6). | The answer is 5.
\\boxed{x \\not= 5} | \\boxed{x = 5}
\\boxed{x = 3, y = 4} | \\boxed{x = 5, y = 4}
The answer is x + y = 5. | The answer is x - y = 5.
The answer is 3 when x = 4. | The answer is 5 when x = 4.
It isn't 5. | It is 5.
It can\u2019t be 5. | It is 5.
It opens at 10 a.m. | It opens at 10 p.m.
It is 5 (million). | It is 5 (billion).
It fell in 300 B.C. | It fell in 300 AD.
It is 20 \u00b0C. | It is 20 \u00b0F.
It is 5 m\u00b2. | It is 5 m\u00b3.
The answer is 1; 2. | The answer is 1; 3.
The answer is Bldg. 5. | The answer is Bldg. 6.
The answer is room 1 Bldg. 5. | The answer is room 1 Bldg. 6.
The answer is Tenn. 5. | The answer is Tenn. 6.
The answer is max. 5. | The answer is max. 6.
The answer is Apt. B. | The answer is Apt. C.
The answer is approx. \\sqrt{2}. | The answer is approx. \\sqrt{3}.
The answer is approx. one hour. | The answer is approx. two hours.
The answer is approx. US$5. | The answer is approx. US$6.
The answer is Sat. and Sun. | The answer is Sat. and Mon.
The answer is Sun. 5 May. | The answer is Sun. 6 May.
The answer is Mon. May 5. | The answer is Mon. May 6.
The answer is approx. USD 5. | The answer is approx. USD 6.
The answer is 8 p.m. Sat. | The answer is 8 p.m. Sun.
The answer is MAX. 5. | The answer is MAX. 6.
The answer is 5 p.m. EST. | The answer is 5 p.m. PST.
The answer is 5 p.m. Pacific time. | The answer is 5 p.m. Eastern time.
The answer is 5 a.m. Monday. | The answer is 5 a.m. Tuesday.
The answer is 10 a.m. 5 May. | The answer is 10 a.m. 6 May.
The answer is U.S. No. 1. | The answer is U.S. No. 2.
The answer is No. II. | The answer is No. IV.
The answer is 5 hrs. 10 min. | The answer is 5 hrs. 20 min.
The answer is Rom. 5. I hope so. | The answer is Rom. 6. I hope so.
The answer is 3.14. I hope so. | The answer is 3.15. I hope so.
The answer is a.com. I hope so. | The answer is a.org. I hope so.
"""
EQUAL = """
\\boxed{3\\frac{1}{2}} | The answer is 3.5. | It is 3.5. | answer: 3 1/2 | \\boxed{\\frac{7}{2}}
\\boxed{3\\frac12} | The answer is 3\u00bd. | 3.5 | \\boxed{x = 3 + 0.5 = 3.5}
The answer is 1e3. | 1000 | $1,000 | \\boxed{10^{3}} | The answer is 10 * 100.
The answer is 5 kilometers. | It is 5 km long [1]. | #### 5 km [1][2] | answer: 5.0 km
The answer is no. It rains. | The answer is No. | answer: no [1]
The answer is yes. 17 is prime. | answer: yes
The answer is 5 km. 3 are left. | answer: 5 km
The answer is 5. Then 3 are left. | Answer: 5. 3 are left. | Sum: #### 5. So it is.
The answer is 3 m. It is long. | answer: 3 m
The answer is 5. --- | The answer is 5. \u2705 | The answer is 5! :) | answer: 5
The answer is x < 5. But y > 3. | answer: x < 5
The answer is "Yes." So it is. | answer: yes
The answer is A. No, B is wrong. | answer: A
The answer is No. I think so. | The answer is No. A prime is odd. | answer: no
The answer is Rom. 5. It is so. | answer: Rom. 5
The answer is option B: 5. It is so. | answer: option B: 5
The answer is \\frac{3}{4}. [1] | answer: 3/4 | answer: "3/4" [1]
The answer is the interval [1, 5]. [1] | answer: the interval [1, 5]
The answer is 5 euros. | answer: \u20ac5 | \\boxed{5 EUR}
The answer is 5 a.m. | It is at 5 am. | answer: 5am
\\boxed{1.5 \\times 10^{-3}} | 0.0015 | \\boxed{\\frac{-3}{-2000}} | 1.5e-3
#### 18 | So she makes $18 a day. | The answer is 18 eggs. | answer: **18**.[1] [12]
"""


@pytest.mark.parametrize("pair", DIFFERENT.strip().splitlines())
def test_different_answers(pair):
    one, other = map(answer_of, pair.split(" | "))
    assert one != other


@pytest.mark.parametrize("forms", EQUAL.strip().splitlines())
def test_equal_answers(forms):
    assert len({*map(answer_of, forms.split(" | "))}) == 1


def test_the_noun_after_how_many_may_be_omitted():
    claims, others = ["The answer is 18 eggs."], ["#### 18"]
    for question, share in ("How many eggs are left?", 1), ("What is left?", 0):
        table = table_of([graph_of(claims, others, problem=question)])
        assert table["answer_agreement"] == [share]


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Step 2: A or B? Solution: Choice_B", "b"),
        ("so it is Choice\\_C, (3, 4)", "c"),
        ("None but Choice B: 2\nis right", "b"),
        ("The best choice a person has", "a"),
        ("the answer is: b) a mile", "b"),
        ("The answer is B. C and D only, as A is wrong.", "b"),
        ("The answer is B (not C).", "b"),
        ("The answer is B, E. coli.", "b"),
    ],
)
def test_a_choice_is_an_option_if_there_are_options(text, letter):
    assert answer_of(text, True) == letter
    assert answer_of(text) != letter


def test_several_letters_are_not_an_option():
    for text in (
        "A, C",
        "(A) or (C)",
        "A. and C.",
        "A, a or c",
        "(A), (B)",
        "A (or B)",
        "A, B both",
    ):
        assert len(answer_of(f"The answer is {text}", True)) > 1
    assert answer_of("The answer is I. Newton.") == "i.newton"


def results_of(text):
    return find_results(split_clauses(clean(text)))


def test_results():
    text = "cost = 3*5 = 15, x = \\frac{1}{2} and 16 - 3 = <<16-3=13>>13 eggs. 7 > 2"
    assert results_of(text) == {15, 0.5, 13}
    assert results_of("about 10 / 3 ≈ 3.33") == {3.33}
    assert results_of("no equation, 5") == frozenset()
    many = ", ".join(f"x = {k}" for k in range(1000))
    assert len(results_of(many)) == 200


def test_every_column_by_hand():
    claims = [
        "Together that makes 12 + 7 = 19",
        "nothing here",
        "so 19 * 3 = 57, so 60",
    ]
    others = [
        "Together this makes 12 + 7 = 19. Then 19 * 3 = 57. The answer is 57.",
        "19 and 60, thus #### 60.0",
        "We have 3 * 20 = 60",
        "I do not know",
        "  ",
    ]
    table = table_of([graph_of(claims, others, edges=[(0, 1), (1, 2)])])
    assert set(table["answer_agreement"]) == {2 / 3}  # 60 three times, of which one own
    assert set(table["answer_rival"]) == {1 / 3}
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert table["answer_entropy"] == pytest.approx([entropy] * 3)
    assert table["log_n_alternatives"] == pytest.approx([np.log(5)] * 3)
    # 19; none; 19, 3, 57 and 60
    assert table["numbers_agreement"] == pytest.approx(
        [2 / 4, 0.5, (2 + 2 + 1 + 2) / 16]
    )
    assert table["numbers_all_agree"] == [2 / 4, 0.5, 0]
    assert table["has_new_numbers"] == [1, 0, 1]
    assert table["results_agreement"] == [1 / 4, 0.5, 1 / 4]
    assert table["results_all_agree"] == [1 / 4, 0.5, 1 / 4]
    assert table["has_results"] == [1, 0, 1]
    # together that makes: {together, makes} of {together, that, makes, this}
    assert table["words_agreement"] == [2 / 4 / 4, 0, 0]
    assert table["numbers_agreement_above"] == pytest.approx([0.5, 0.5, 7 / 16])


def test_nothing_to_compare():
    table = table_of(
        [graph_of(["so 19", "words alone"], others) for others in ((), [" "])]
    )
    neutral = dict.fromkeys(NAMES, [0.5] * 4)
    neutral |= dict.fromkeys([*NAMES[1:4], "words_agreement", "has_results"], [0.0] * 4)
    assert table == neutral | {"has_new_numbers": [1.0, 0.0] * 2}
    empty = AgreementFeatures().fit_transform([graph_of([], ["a"])])
    assert empty.features.shape == (0, len(NAMES))


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{" * 9999,
        "{" * 99999,
        "=1" * 9999,
        "9" * 99999,
        "####3 " * 9999,
        " (" * 99999,
        "1 (a" * 50000,
        "#### " + "1 1/1" * 50000,
        "1, " * 50000 + "]",
        "answer: 1" + "[1] " * 50000,
        "answer: " + "Dr. <\ud800" * 50000,
    ],
)
def test_hostile_texts(text):
    features = AgreementFeatures().fit_transform([graph_of([text], [text, "", "a"])])
    assert np.isfinite(features.features).all()


def test_an_answer_of_ones_own():
    def last_word(text):
        return text.split()[-1] if text.split() else None

    graph = graph_of(["so it is", "not red"], ["perhaps Red", "1 blue", "2 blue"])
    table = table_of([graph], answer=last_word)
    assert table["answer_agreement"] == pytest.approx([1 / 3] * 2)
    assert table["answer_rival"] == pytest.approx([2 / 3] * 2)
    with pytest.raises(ValueError, match=r"answer.*\b3\b"):
        table_of([graph], answer=lambda text: 3)
    with pytest.raises(ValueError, match="answer"):
        AgreementFeatures(answer="boxed").fit([graph])


def test_unknown_alternatives_are_refused():
    known = graph_of(["a"], ["b"])
    unknown = known.replace(alternatives=None, id="x")
    for transformer in (AgreementFeatures(), AgreementFeatures(optional=True)):
        with pytest.raises(ValueError, match=r'alternatives.*problem 1 \("x"\).*None'):
            transformer.fit([known, unknown])
        fitted = transformer.fit([known])
        with pytest.raises(ValueError, match=r"alternatives.*None"):
            fitted.transform([unknown])
        assert fitted.transform([known.replace(alternatives=())]).n_features == 12
    with pytest.raises(ValueError, match=r"alternatives.*None"):
        AgreementFeatures().fit([unknown])
