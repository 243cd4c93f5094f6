"""Symbolic columns against polynomials whose coefficients are known exactly."""

import random
import sys
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.features import SymbolicFeatures, make_graph_union, reasoning_features
from skdcf.features._algebra import MOST_EQUATIONS, find_equations
from skdcf.features._clean import clean

COLUMNS = tuple(SymbolicFeatures()._own_names())


def counts(*claims, problem=None):
    """{column without its prefix: values} of one chain of claims."""
    parents = [[v - 1] if v else [] for v in range(len(claims))]
    graph = ReasoningGraph.from_parents(parents, claims=claims, problem=problem)
    table = SymbolicFeatures().fit_transform([graph]).features
    names = [name.removeprefix("symbolic_") for name in COLUMNS]
    return dict(zip(names, table.T.tolist(), strict=True))


def found(*claims, problem=None):
    """{column: count} of the last claim, where it counts anything."""
    table = counts(*claims, problem=problem)
    return {name: column[-1] for name, column in table.items() if column[-1]}


# Polynomials in x and y as {(power of x, power of y): coefficient}, and their texts.


def multiply(p, q):
    out = {}
    for (a, b), (c, d) in product(p, q):
        power = a + c, b + d
        out[power] = out.get(power, 0) + p[a, b] * q[c, d]
    return out


def difference(p, q):
    out = {power: p.get(power, 0) - q.get(power, 0) for power in {*p, *q}}
    return {power: c for power, c in out.items() if c}


def proportional(p, q):
    """Whether two polynomials differ by a constant factor, in exact arithmetic."""
    if p.keys() != q.keys() or not p:
        return False
    return len({Fraction(p[power], q[power]) for power in p}) == 1


def text_of(p, style):
    """A polynomial as people write it; style 1 has a sign for each product."""
    out = ""
    for (a, b), c in p.items():
        powers = [(v, n) for v, n in (("x", a), ("y", b)) if n]
        letters = "*".join(f"{v}^{{{n}}}" if n > 1 else v for v, n in powers)
        size = str(abs(c)) if abs(c) != 1 or not letters else ""
        sign = "-" if c < 0 else "+"
        out += f" {sign} " if out else sign.strip("+")
        out += size + ("*" if style and size and letters else "") + letters
    return out or "0"


def some_polynomial(rng, n_terms=3):
    powers = rng.sample([(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)], n_terms)
    return {power: rng.choice([-7, -3, -2, -1, 1, 2, 5, 12]) for power in powers}


def another_form(left, right, rng):
    """The same equation multiplied, with a term moved; in half of the cases a slip."""
    factor, shift = rng.choice([-4, -1, 2, 3, 10]), some_polynomial(rng, 1)
    sides = [multiply({(0, 0): factor}, side) for side in (left, right)]
    sides = [difference(side, shift) for side in sides]
    if rng.random() < 0.5:
        sides[0][1, 0] = sides[0].get((1, 0), 0) + rng.choice([1, 2])
    return [{power: c for power, c in side.items() if c} for side in sides]


def is_plain(left, right):
    """An equation with a variable, and none of the kind x = number."""
    apart = difference(left, right)
    return any(map(any, apart)) and {(1, 0), (0, 1)}.isdisjoint(
        [next(iter(side)) for side in (left, right) if len(side) == 1]
    )


def test_equivalent_equations_against_coefficients():
    rng, seen = random.Random(0), [0, 0]
    for _ in range(400):
        one = some_polynomial(rng), some_polynomial(rng)
        other = another_form(*one, rng)
        if not (is_plain(*one) and is_plain(*other)):
            continue
        texts = [
            f"{text_of(left, style)} = {text_of(right, style)}"
            for style, (left, right) in enumerate((one, other))
        ]
        same = proportional(difference(*one), difference(*other))
        assert found(*texts) == {"repeated" if same else "new": 1}, texts
        seen[same] += 1
    assert min(seen) > 50


@pytest.mark.parametrize("slip", [0, 1])
def test_identities_against_coefficients(slip):
    rng = random.Random(1)
    for _ in range(100):
        one, other = some_polynomial(rng, 2), some_polynomial(rng, 3)
        whole = multiply(one, other)
        power = rng.choice(sorted(whole))
        whole[power] += slip
        whole = {p: c for p, c in whole.items() if c}
        text = f"({text_of(one, 0)})({text_of(other, 1)}) = {text_of(whole, 0)}"
        if not any("x" in side or "y" in side for side in text.split("=")):
            continue
        assert ("identities" in found(text)) == (not slip), text


def test_solutions_against_exact_roots():
    rng = random.Random(2)
    for _ in range(200):
        a, b, x = rng.choice([-9, -4, 2, 3, 7]), rng.randint(1, 30), rng.randint(-9, 9)
        said = x + rng.choice([0, 0, 1, -2])
        equation = f"{a}x + {b} = {a * x + b}"
        expected = "solved" if a * said + b == a * x + b else "unsolved"
        assert found(f"x = {said}", problem=f"Solve: {equation}.") == {expected: 1}
        assert found(equation, f"so, x = {said}.") == {expected: 1}


def test_found_values_are_substituted():
    values = "x = 3 and y = 4"
    assert found(values, "x^2 + y^2 = 25") == {"new": 1, "values_agree": 1}
    assert found(values, "x^2 + y^2 = 24") == {"new": 1, "values_disagree": 1}
    assert found(values, "x + z = 24") == {"new": 1}
    assert found("x + y = 7", "y = 4", "x = 3") == {"solved": 1}
    assert found("x + y = 7", "y = 4", "x = 2") == {"unsolved": 1}


def test_chains():
    identity = {"identities": 1.0, "new": 1.0}
    assert found("f = 2(x + 1) = 2x + 2") == identity
    assert found("f = 2(x + 1) = 2x + 1") == {"broken_chains": 1, "new": 2}
    # An equation with a value at its end is no chain of transformations.
    assert found("f = 2x + 2 = 8") == {"new": 2}
    # A line end that became a blank: the value 10 belongs to the first line.
    assert counts("2x = 10 x = 5")["solved"] == [1.0]


@pytest.mark.parametrize(
    "text, equations",
    [
        (r"so \frac{x + 1}{2} = 3x", [("(x+1)/2", "3*x")]),
        (r"$x = \frac{1 - \sqrt{1 - 4a}}{2}$", [("x", "(1-(1-4*a)**.5)/2")]),
        ("the width is w = 3 cm.", [("w", "3")]),
        ("x_1 = 2x_2", [("x_1", "2*x_2")]),
        ("y = 3 x 4 apples", [("y", "3*4")]),
        ("x^{2} - 4 = 0", [("x**2-4", "0")]),
        ("r = √(9)", [("r", "9**.5")]),
        ("f(x) = x^2", []),
        ("y = 1/2x", []),
        ("y = 2ab", []),
        ("y = 5 more than z", []),
        ("x != 4 and x <= 5", []),
        ("y = sin x", []),
        ("z = 3 + i", []),
        ("3 + 4 = 7", []),
        ("a = 5", [("a", "5")]),
        ("this is a = sign", []),
    ],
)
def test_reading(text, equations):
    """Sides against Python's own arithmetic at a few values; none of it in the package."""
    read = [e for chain in find_equations(clean(text)) for e in chain]
    assert len(read) == len(equations)
    for equation, sides in zip(read, equations, strict=True):
        names = sorted(name.removeprefix("$") for name in equation.variables)
        for seed in range(5):
            rng = random.Random(seed)
            values = {name: rng.uniform(0.01, 0.2) for name in names}
            left, right = (eval(side, {}, dict(values)) for side in sides)
            at = {f"${name}": value for name, value in values.items()}
            assert equation.holds_at(at) == (abs(left - right) < 1e-9)


def test_a_problem_by_itself():
    rng = random.Random(3)
    texts = ["2x + 3 = 7", "x = 2", "y = 2x = 4", "x + y = 9", "(x+1)^2 = x^2 + 2x + 1"]
    graphs = []
    for _ in range(20):
        claims = [rng.choice(texts) for _ in range(rng.randint(0, 5))]
        graphs.append(
            ReasoningGraph(None, [], claims=claims, problem=rng.choice(texts))
        )
    together = SymbolicFeatures().fit_transform(graphs).features
    alone = [SymbolicFeatures().fit_transform([graph]).features for graph in graphs]
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_white_space_and_mark_up_change_nothing():
    plain = counts("2x + 3 = 7", "so x = 2", problem="Solve 2x + 3 = 7.")
    marked = counts(
        "Step 1: $2x +\n3 = 7$", r"so \(x = 2\)", problem="Solve 2x + 3 = 7."
    )
    assert plain == marked


HOSTILE = {
    "powers": "x = 9^9^9^9^9^9^9^9",
    "factor": "x^99999999999 = 9^99999999999x",
    "long side": "x" + " + x" * 100_000 + " = 3",
    "many": "x = 3. " * 20_000,
    "chain": "x = " * 20_000 + "3",
    "brackets": "(" * 50_000 + "x" + ")" * 50_000 + " = 3",
    "braces": "^{" * 20_000 + "x" + "}" * 20_000 + " = 3",
    "division": "1/(x - x) = 3/0 = x",
    "long number": "x = " + "9" * 50_000,
    "other signs": "x = \x00\ud800 ½² = y√ ∁ ٣",
    "code": "x = __import__('os').system('true')",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text(name):
    text, start = HOSTILE[name], time.process_time()
    table = counts(text, text, "x = 3", problem=text)
    assert np.isfinite(list(table.values())).all()
    assert time.process_time() - start < 20  # a bound on its growth, not on its speed


def test_work_is_bounded():
    """Operations, counted: a text ten times as long costs ten times as many at most."""

    def calls(n):
        total = 0

        def count(*_):
            nonlocal total
            total += 1

        claims = [f"x{'+ x' * 20} + {v} = {v}y." * 5 for v in range(n)]
        sys.setprofile(count)
        counts(*claims)
        sys.setprofile(None)
        return total

    counts("x = 3")  # what is cached
    assert calls(400) < 15 * calls(40)


def test_limits_and_errors():
    assert len(find_equations("x = 3. " * 50)) == MOST_EQUATIONS
    assert counts("x + y = 1. x + y = 2. x + y = 3. x + y = 4. x + y = 5")["new"] == [
        3.0
    ]
    with pytest.raises(ValueError, match="claim texts"):
        SymbolicFeatures().fit([ReasoningGraph([[1.0]], [])])
    empty = ReasoningGraph(None, [], claims=[])
    assert SymbolicFeatures().fit_transform([empty]).features.shape == (0, len(COLUMNS))


def test_optional():
    graph = ReasoningGraph(None, [], claims=["x + 1 = 2", "x = 1"])
    plain = reasoning_features().fit_transform([graph])
    assert not any(name.startswith("symbolic") for name in plain.feature_names)
    both = make_graph_union(reasoning_features(), SymbolicFeatures())
    joined = both.fit_transform([graph])
    assert joined.feature_names == plain.feature_names + COLUMNS
