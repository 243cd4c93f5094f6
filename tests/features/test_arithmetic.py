"""Which equalities are read, and how they are judged."""

import random
from fractions import Fraction

import numpy as np
import pytest

from skdcf.features._cleaning import clean, find_numbers, find_spelled_numbers
from skdcf.features._equations import check_equalities, split_clauses
from skdcf.features._expression import evaluate

RIGHT = [
    "3 + 4 = 7",
    "So 3 * $4 = $12 in total.",
    "$1,000 - $250.50 = $749.50",
    "60 meters/sprint * 9 sprints = 540 meters",
    "3 (breakfast) + 4 (baked) = 7 eggs",
    "2/3 * 60 = 120/3 = 40",
    r"$\frac{3}{4} + \frac{1}{4} = 1$",
    r"\(\dfrac{\frac{1}{2}}{2} = \frac14\) and 2 \cdot 3 = 6",
    r"$5 \times 3 = 15$ and $12 \div 4 = 3$",
    r"$\sqrt{49} = 7$",
    "√(9 + 16) = 5",
    "2^3 = 8",
    r"$2^{10} = 1024$",
    "3² = 9",
    "40% of 200 = 80",
    "20% * 50 = 10",
    "5! = 120.",
    r"$\binom{5}{2} = 10$",
    "1/3 = 0.33",
    "20 / 3 = 6.67 liters",
    r"22 / 7 \approx 3.14",
    "(2)(3) = 6",
    "2(3 + 4) = 14",
    "-3 - (-5) = 2",
    "5 times 3 = 15",
    "5 x 3 = 15",
    "Total = $50 - $33 Total = $17",
    "Total cost = 3 * 5. Total cost = 15.",
    "time = 12 miles / 4 miles per hour time = 3 hours",
    "- 4 = 2 * 2 - 6 = 2 * 3",
    "-2^2 = -4",
    "1{,}000 + 1 = 1001",
    "2/3 = 67%",
    "1/6 = 16.7%",
    "He buys eggs (3 * 5 = 15) and leaves.",
    "48/2 = <<48/2=24>>24 clips",
    "- He has 3 * 4 = 12",
    "2. He has 3 * 4 = 12",
    "3 feet + 3 feet = 6 feet",
    "99999999999 + 1 = 100000000000",
]
WRONG = [
    "3 + 4 = 8",
    "3 + 4 = 7 = 5 + 3",
    "$7 + $7 = $15.",
    r"$\frac{3}{4} + \frac{1}{4} = 2$",
    "1,000 * 2 = 20,000",
    "20% of 50 = 12",
    "Total = $50 - $33 Total = $27",
    "Total cost = 3 * 5. Total cost = 16.",
    "8192 = 2^12",
    "20 / 3 = 6.5",
    "15 + 4 = 18",
    "2/3 = 69%",
    "50% + 30% = 90%",
    "He buys eggs (3 * 5 = 16) and leaves.",
    "48/2 = <<48/2=25>>25 clips",
    "5 hours + 2 hours = 8 hours",
    "Total time = 12 miles / 4 miles per hour Total time = 4 hours",
    "99999999999 + 1 = 100000000001",
    "99347*33937 + 39756 = 3371578897",
]
UNDECIDED = [
    "x + 3 = 5",
    "2x = 10",
    "3 hours = 180 minutes",
    "3 hours = 3 * 60 minutes",
    "In the next 6 hours, bees = 5. So 6 = six",
    "the cost of 2 apples + the cost of 3 * 2 apples = 12",
    "30% of total time = 6 hours",
    "5 less than 3 * 10 = 25",
    "cost + 3 * 2 = 12",
    "10 = 3 * 2 + cost",
    "1 + 2 + ... + 10 = 55",
    "1 + 2 + \\cdots + 10 = 55",
    "34_5 = 3 * 5 + 5",
    "5 + 1 + 1 = 6 in base b",
    "3 + 4 != 8",
    "3 + 4 <= 8",
    "3 + 4 == 8",
    r"3 + 4 \neq 8",
    "is 3 + 4 = 8?",
    "100 / 3 = 33",
    "f(2) = 9",
    "(1, 2) = (1, 3)",
    "sin(30) = 1/2",
    "17 mod 5 = 3 - 1",
    "2lw = 3 * 2",
    "1/0 = 5 * 0",
    "10^400 = 3 * 2",
    "((2 + 3) = 4 * 2",
    "2 1/2 = 5 / 3",
    "Pension for 10 years = $5 Other pension for 10 years = $3 * 10",
    "5/20 * 100 = 25%",
    r"$2\frac{1}{2} + 1 = 3.5$",
    r"$1 \frac{3}{4} = 7/4$",
    "100 - 30% = 70",
    "50 + 50% = 75",
    "2 hours + 30 minutes = 150 minutes",
    "2 * 30 minutes = 1 hour",
    "Total time = 2 * 30 minutes. Total time = 1 hour.",
    "$1 - 25 cents = 75 cents",
    "5 feet + 3 inches = 63 inches",
    "10 pm + 4 hours = 2 am",
    "11:00 + 2 = 13:00",
    "0x10 = 16",
    "0b101 = 5",
]


def judged(text):
    right, wrong = check_equalities(split_clauses(clean(text)))
    return len(right), len(wrong)


@pytest.mark.parametrize("text", RIGHT)
def test_right(text):
    right, wrong = judged(text)
    assert right and not wrong


@pytest.mark.parametrize("text", WRONG)
def test_wrong(text):
    assert judged(text)[1] == 1


@pytest.mark.parametrize("text", UNDECIDED)
def test_left_undecided(text):
    assert judged(text) == (0, 0)


def random_expression(rng, depth):
    """Text and exact value of a random expression."""
    if not depth or rng.random() < 0.2:
        n = rng.randint(1, 99)
        return str(n), Fraction(n)
    (a, x), (b, y) = (random_expression(rng, depth - 1) for _ in range(2))
    sign = rng.choice("+-*/")
    if sign == "/" and not y:
        sign = "+"
    value = {"+": x + y, "-": x - y, "*": x * y}.get(sign)
    return f"({a}){sign}({b})", x / y if value is None else value


def test_expressions_against_exact_fractions():
    rng = random.Random(0)
    for _ in range(500):
        text, value = random_expression(rng, 4)
        top, bottom = value.numerator, value.denominator
        if max(abs(top), bottom) > 10**8:
            continue
        assert judged(f"{text} = {top} / {bottom}") == (1, 0)
        assert judged(f"{text} = {top + bottom} / {bottom}") == (0, 1)


def test_flat_expressions_against_python():
    """Precedence and association, where no brackets help."""
    rng = random.Random(1)
    for _ in range(500):
        n = rng.randint(2, 8)
        parts = [str(rng.randint(1, 9)) for _ in range(n)]
        signs = [rng.choice(["+", "-", "*", "/"]) for _ in range(n - 1)]
        text = parts[0] + "".join(s + p for s, p in zip(signs, parts[1:], strict=True))
        items = [float(c) if c.isdigit() else c for c in text]
        assert evaluate(items) == pytest.approx(eval(text), rel=1e-12)


@pytest.mark.parametrize(
    "items",
    [
        [],
        ["+"],
        [1.0, 2.0],
        [1.0, "+"],
        ["("],
        [1.0, ")"],
        ["(", 1.0],
        [1.0, "r", 4.0],
        ["r", "-", 4.0],
        [3.5, "!"],
        [2.0, "C", 3.0],
        [200.0, "!"],
        ["word"],
        [float("nan")],
    ],
)
def test_ill_formed_expressions_have_no_value(items):
    assert evaluate(items) is None


@pytest.mark.parametrize(
    "text, found",
    [
        ("Step 3: there are 12,345 pens and 3.5 kg", [12345.0, 3.5]),
        ("0, 1, 2 and 100 do not count, 101 does", [101.0]),
        ("(3,4) and .75", [3.0, 4.0, 0.75]),
        ("from Step 4 and steps 5, 6 and 7: 8", [8.0]),
        ("10{,}000 ways", [10000.0]),
        ("9" * 31, []),
        ("٣٤ apples", [34.0]),
    ],
)
def test_numbers(text, found):
    assert find_numbers(clean(text)) == found


@pytest.mark.parametrize(
    "text, found",
    [
        ("twenty-five men and three hundred boats", [25.0, 300.0]),
        ("two-thirds of a dozen", [3.0, 12.0]),
        ("one or two", []),
        ("seven thousand", [7000.0]),
    ],
)
def test_number_words(text, found):
    assert find_spelled_numbers(clean(text)) == found


HOSTILE = {
    "brackets": lambda n: "(" * n + "1 = 1" + ")" * n,
    "groups": lambda n: "1" + ",000" * n + " = 1 + 1",
    "numbers": lambda n: " ".join(map(str, range(n))) + " 1 + 1 = 2",
    "powers": lambda n: "9^" * n + "9 = 1 + 1",
    "fractions": lambda n: r"\frac{" * n + "1 = 1",
    "notes": lambda n: "(abc" * n + "= 1 + 1",
    "text": lambda n: r"\text{" * n + "= 1 + 1",
    "roots": lambda n: r"\sqrt{" * n + "4 = 2",
    "names": lambda n: "cost " * n + "= 3 * 5 " + "cost " * n + "= 15",
    "right to left": lambda n: "\u202e\u05d0 \u0663+\u0664=\u0667 " * n,
    "every script": lambda n: (
        "".join(chr(c) for c in range(0x110000) if chr(c).isdecimal()) * (n // 700)
        + "= 1 + 1"
    ),
    "steps": lambda n: "step 1, " * n + "= 2",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name):
    """A quadratic pattern would not come back today."""
    from skdcf import ReasoningGraph
    from skdcf.features import TextFeatures

    claims = [HOSTILE[name](25_000), "1 + 1 = 2"]
    graph = ReasoningGraph(None, [], claims=claims, problem="2 + 2?")
    assert np.isfinite(TextFeatures().fit_transform([graph]).features).all()
