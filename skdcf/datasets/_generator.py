"""Simulate reasoning graphs and word problems.

The simulated graphs match the statistics of the paper's two data sets. The word problems are
intended for demonstrations and tests. Each word problem is generated from a template that
contains a question and the solution steps. The operands of a step are either numbers in the
question, which the template denotes by letters, or results of earlier steps, which the template
denotes by their positions.
"""

import json
from functools import cache
from importlib.resources import files
from operator import add, mul, sub
from typing import Literal

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from .._checks import check_choice, check_count
from .._docs import documented
from ..features import DomainIndicators
from ..graphs import GraphBatch, ReasoningGraph
from ..graphs.ragged import offsets_of
from ..labels import LabelList
from ..ops.ancestors import pass_on
from ..ops.graph_metrics import PAPER_METRICS, compute_metrics
from .fetch import describe

CLEAN, PARTIAL, HALLUCINATED = range(3)

DRAWN_DOMAINS = ("domain_science", "domain_reasoning")


#: Parameters of the simulation. Each triple contains the values for clean, partly wrong and
#: hallucinated problems.
_SETTINGS = {
    "math": {
        "share": (0.812, 0.118, 0.07),  # proportions of the problems
        "extra_claims": (5.7, 4.6, 3.0),  # mean number of claims beyond the first two
        "source": (0.11, 0.20, 0.50),  # probability that a claim has no parent
        "more_parents": 0.17,  # probability of each of the two additional parents
        "recency": 0.55,  # factor by which the weight of a parent decreases for each step back
        "inherit": 0.85,  # probability that an error propagates
    },
    "felm": {
        "share": (0.624, 0.336, 0.04),
        "extra_claims": (2.1, 2.1, 1.3),
        "source": (0.20, 0.24, 0.40),
        "more_parents": 0.12,
        "recency": 0.60,
        "inherit": 0.75,
    },
}
#: Terms of the log odds that a claim occurs in a resampled answer.
_FREQUENCY = {
    "math": dict(base=-0.3, problem=0.9, hard=0.6, true=0.9, hallucinated=0.7),
    "felm": dict(base=-0.9, problem=0.7, hard=0.7, true=2.0, hallucinated=0.6),
}


@documented
def make_reasoning_graphs(
    n_problems: int = 1000,
    kind: Literal["math", "felm"] = "math",
    *,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[GraphBatch, list[np.ndarray]]:
    """Generate problems with claims, graphs, features and labels.

    Most problems are *clean*, with true claims only. In *partial* problems, some claims are false,
    and errors are propagated to dependent claims. Errors usually start at difficult claims. In
    *hallucinated* problems, every claim is false, the graph is sparse and the frequency score is
    high. A filter that uses the frequency score alone cannot detect hallucinated problems.

    Parameters
    ----------
    n_problems : int
        Number of problems, at least 1.
    kind : {"math", "felm"}
        Data set to imitate. With "math", problems have 7.4 claims and 7.2 edges on average, 81 %
        of the problems are clean, and the frequency score is weakly informative (AUC 0.61 for
        true claims). With "felm", problems have 4.1 claims and 2.8 edges on average, 62 % of the
        problems are clean, and the frequency score is informative (AUC 0.85).
    random_state : int, RandomState instance or None
        Seed. The same seed always generates the same problems.
    {return_X_y}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch without texts), ``labels`` (list of one
        0/1 int array per problem), ``groups`` (problem indices, because all questions differ),
        ``feature_names``, and ``DESCR``.

    Raises
    ------
    ValueError
        If ``n_problems`` is below 1 or ``kind`` is unknown.

    Notes
    -----
    The frequency has a binomial distribution over five resampled answers, and the log odds of
    its success probability decrease with the claim's difficulty. The graph metrics are computed
    from the generated graph. The semantic columns depend weakly on the label, except
    ``is_well_formed``, which is independent of it, like the domain columns. The statistics follow
    Hittesdorf, Salzetta, Cheng, *Differentiable Conformal Training for LLM Reasoning Factuality*
    (arXiv:2604.20098), section 5. Use these data to try out a method, not to estimate its gain on
    real problems.

    Examples
    --------
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> data = make_reasoning_graphs(100, random_state=0)
    >>> len(data.graphs), len(data.labels), data.graphs.n_features
    (100, 100, 31)
    >>> X, y = make_reasoning_graphs(3, "felm", random_state=0, return_X_y=True)
    >>> [len(labels) == graph.n_claims for graph, labels in zip(X, y)]
    [True, True, True]
    """
    check_choice("kind", kind, _SETTINGS)
    check_count("n_problems", n_problems, 1)
    rng = check_random_state(random_state)
    setting = _SETTINGS[kind]
    type_of = rng.choice(3, size=n_problems, p=setting["share"])
    extra = np.array(setting["extra_claims"])[type_of]
    sizes = 2 + rng.poisson(rng.gamma(4, extra / 4))
    offsets = offsets_of(sizes)
    edges = _draw_edges(rng, setting, type_of, sizes)
    blank = np.empty((offsets[-1], 0))
    batch = GraphBatch.from_arrays(blank, offsets, edges)
    difficulty = rng.normal(size=batch.n_claims)
    true = _draw_labels(rng, setting, batch, type_of=type_of, difficulty=difficulty)
    names, features = _draw_features(
        rng, kind, batch, type_of=type_of, difficulty=difficulty, true=true
    )
    batch = batch.replace_features(features, names)
    labels = batch.split(true.astype(np.int64))
    descr = describe("reasoning_graphs").format(kind=kind, n=n_problems)
    return _made(batch, labels, names=list(names), descr=descr, return_X_y=return_X_y)


def _made(batch, labels, names, descr, return_X_y):
    """Return a data set as a Bunch or as (graphs, labels)."""
    labels = LabelList(labels)
    if return_X_y:
        return batch, labels
    columns = {"groups": np.arange(len(batch)), "feature_names": names, "DESCR": descr}
    return Bunch(graphs=batch, labels=labels, data=batch, target=labels, **columns)


def _draw_edges(rng, setting, type_of, sizes):
    """Draw up to three earlier claims as the parents of each claim, favouring recent claims."""
    first = np.repeat(offsets_of(sizes)[:-1], sizes)
    number = np.arange(len(first))
    n_before = number - first
    share = np.array(setting["source"])[type_of].repeat(sizes)
    is_source = rng.random_sample(len(first)) < share
    n_parents = 1 + rng.binomial(2, setting["more_parents"], size=len(first))
    n_parents = np.where(is_source, 0, np.minimum(n_parents, n_before))
    back = np.zeros((len(first), 3), dtype=np.int64)
    pairs = []
    for k in range(3):
        rows = np.flatnonzero(n_parents > k)
        taken = np.sort(back[rows, :k], axis=1)
        back[rows, k] = _draw_lag(rng, setting["recency"], n_before[rows], taken)
        pairs.append(np.stack([number[rows] - back[rows, k], number[rows]], axis=1))
    return np.concatenate(pairs)


def _draw_lag(rng, weight, longest, taken):
    """Draw a lag that is not in ``taken``, with probabilities proportional to weight ** lag.

    The distribution function over the remaining lags is inverted, and the lags in ``taken`` are
    then skipped in increasing order.
    """
    at = rng.random_sample(len(longest))
    mass = weight ** (taken - 1.0) * (1 - weight)
    at *= 1 - weight**longest - mass.sum(axis=1)
    for lag, cut in zip(taken.T, mass.T, strict=True):
        at += np.where(at >= 1 - weight ** (lag - 1.0), cut, 0)
    lag = 1 + np.floor(np.log1p(-at) / np.log(weight)).astype(np.int64)
    return np.clip(lag, 1, longest)


def _draw_labels(rng, setting, batch, type_of, difficulty):
    """Draw labels with errors at difficult claims, and propagate the errors along the edges."""
    pressure = -2 + 0.9 * difficulty - rng.logistic(size=batch.n_claims)
    worst = np.maximum.reduceat(pressure, batch.offsets[:-1])[batch.problem_of]
    # Mark at least one claim per problem as wrong.
    wrong = (pressure > 0) | (pressure == worst)
    partial = (type_of == PARTIAL)[batch.problem_of]
    wrong &= partial
    handed_on = partial & (rng.random_sample(batch.n_claims) < setting["inherit"])
    kept = batch.replace_edges(batch.edges[handed_on[batch.edges[:, 1]]])
    wrong = pass_on(np.bitwise_or, wrong, kept)
    return ~(wrong | (type_of == HALLUCINATED)[batch.problem_of])


def _draw_features(rng, kind, batch, type_of, difficulty, true):
    hallucinated = (type_of == HALLUCINATED)[batch.problem_of]
    frequency = _draw_frequency(
        rng, kind, batch, hallucinated=hallucinated, difficulty=difficulty, true=true
    )
    semantic = _draw_semantic(rng, batch, hallucinated, true)
    domain = _draw_topics(rng, batch) if kind == "math" else _draw_domains(rng, batch)
    columns = {"frequency-score": frequency, **semantic, **domain}
    metrics = compute_metrics(batch, PAPER_METRICS)
    table = np.column_stack([*columns.values(), metrics])
    return (*columns, *PAPER_METRICS), table


def _draw_frequency(rng, kind, batch, hallucinated, difficulty, true):
    c = _FREQUENCY[kind]
    logit = c["base"] + rng.normal(0, c["problem"], len(batch))[batch.problem_of]
    logit += c["true"] * true + c["hallucinated"] * hallucinated
    return rng.binomial(5, expit(logit - c["hard"] * difficulty))


def _draw_semantic(rng, batch, hallucinated, true):
    """Draw the semantic features, which depend weakly on the labels."""

    def flag(if_true, if_false, if_hallucinated=None):
        chance = np.where(true, if_true, if_false)
        if if_hallucinated is not None:
            chance = np.where(hallucinated, if_hallucinated, chance)
        return rng.random_sample(batch.n_claims) < chance

    gap = np.where(true, 1.2, 1.6) + 0.4 * hallucinated
    return {
        "claim_index": np.arange(batch.n_claims) - batch.offsets[batch.problem_of],
        "coherent_to_ancestors": flag(0.90, 0.80, 0.70),
        "inference_gap_size": rng.poisson(gap),
        "has_missing_dependencies": flag(0.15, 0.24, 0.34),
        "has_unnecessary_dependencies": flag(0.12, 0.12),
        "problem_relevance": flag(0.90, 0.86, 0.76),
        "uses_problem_data": flag(0.45, 0.41, 0.32),
        "is_well_formed": flag(0.95, 0.95),
    }


def _draw_topics(rng, batch):
    """Draw a main topic, and sometimes a second topic, for each problem."""
    topics = DomainIndicators.topics
    main, side_topic = rng.randint(len(topics), size=(2, len(batch)))
    side_topic = np.where(rng.random_sample(len(batch)) < 0.3, side_topic, main)
    drawn = (
        ((main == k) | (side_topic == k))[batch.problem_of] for k in range(len(topics))
    )
    return dict(zip(topics, drawn, strict=True))


def _draw_domains(rng, batch):
    """Draw one of the four FELM domains for each problem, and return the domain features."""
    shares = np.array([125, 207, 184, 194]) / 710
    domain = rng.choice(4, size=len(batch), p=shares)[batch.problem_of]
    return {name: domain == k for k, name in enumerate(DRAWN_DOMAINS)}


_CARELESS = 0.03  # probability of a mistake per step
_SIGNS = {"+": add, "-": sub, "*": mul}
_NAMES = ("Ann", "Bob", "Carla", "Deniz", "Eva", "Femi", "Grace", "Hana", "Ivan", "Jo")
_GOODS = ("apples", "cups", "pens", "tiles", "bulbs", "plates")


@cache
def _plots():
    """Load the templates of the word problems."""
    path = files(__package__) / "word_problems.json"
    return json.loads(path.read_text("utf-8"))


@documented
def make_word_problems(
    n_problems: int = 300,
    *,
    n_alternatives: int = 2,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[GraphBatch, list[np.ndarray]]:
    """Generate word problems with answers that consist of true and false sentences.

    Parameters
    ----------
    n_problems : int
        Number of problems, at least 1. All questions are different.
    n_alternatives : int
        Number of alternative answers to each question.
    random_state : int, RandomState instance or None
        Seed. The same seed always generates the same problems.
    {return_X_y}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with claims, questions, alternatives and
        the exact edges, without features), ``labels`` (list of one 0/1 int array per problem),
        ``groups`` (problem indices, because all questions differ), ``feature_names`` (None), and
        ``DESCR``.

    Raises
    ------
    ValueError
        If ``n_problems`` or ``n_alternatives`` is too small.

    See Also
    --------
    make_reasoning_graphs : Graphs with the statistics of the paper's data, without texts.

    Examples
    --------
    >>> from skdcf.datasets import make_word_problems
    >>> data = make_word_problems(50, random_state=0)
    >>> graph = data.graphs[0]
    >>> print(graph.problem[:51])
    A baker makes 15 trays of 23 rolls in the morning a
    >>> print(*graph.claims[2:], sep="\\n")
    They hold 11 * 23 = 253 rolls.
    The baker makes 345 + 253 = 598 rolls in total.
    The number of rolls sold is 598 - 56 = 542.
    The answer is 542.
    >>> graph.edges.tolist()
    [[1, 2], [0, 3], [2, 3], [3, 4], [4, 5]]
    >>> data.labels[0].tolist()
    [1, 1, 1, 1, 1, 1]
    """
    check_count("n_problems", n_problems, 1)
    check_count("n_alternatives", n_alternatives, 0)
    rng = check_random_state(random_state)
    graphs = []
    labels = []
    for i in range(n_problems):
        graph, labels_of_graph = _draw_problem(i, n_alternatives, rng)
        graphs.append(graph)
        labels.append(labels_of_graph)
    batch = GraphBatch.from_graphs(graphs)
    descr = describe("word_problems")
    return _made(batch, labels, names=None, descr=descr, return_X_y=return_X_y)


def _draw_problem(i, n_alternatives, rng):
    """Draw a question and an answer, and return their graph and the claim labels."""
    plots = _plots()
    plot = plots[rng.randint(len(plots))]
    words = {"name": rng.choice(_NAMES), "goods": rng.choice(_GOODS)}
    ranges = plot["numbers"].items()
    steps = plot["steps"]
    numbers = {k: rng.randint(low, high + 1) for k, (low, high) in ranges}
    # Some questions cause the same mistake in several answers.
    tempting = rng.randint(len(steps)) if rng.rand() < 0.4 else None
    trap = tempting, (rng.randint(1, 3), rng.randint(100)), rng.rand()
    many = range(1 + n_alternatives)
    answers = [_draw_answer(steps, numbers, words, trap, rng=rng) for _ in many]
    (claims, labels), *alternatives = answers
    used = [(u, v) for v, (_, *terms) in enumerate(steps) for u in terms[::2]]
    edges = [(u, v) for u, v in used if isinstance(u, int)]
    graph = ReasoningGraph(
        None,
        [*edges, (len(steps) - 1, len(steps))],
        claims=claims,
        problem=plot["question"].format(**words, **numbers),
        alternatives=[" ".join(texts) for texts, _ in alternatives],
        id=f"word-{i}",
    )
    return graph, labels


def _draw_answer(steps, numbers, words, trap, rng):
    """Draw the sentences of one answer, and return the sentences and their labels.

    ``trap`` is a mistake that several answers to the question may contain, given by its step, its
    kind and its probability.
    """
    right = []
    results = []
    claims = []
    labels = []
    for v, (text, *terms) in enumerate(steps):
        right.append(_calculate(terms, numbers, right)[-1])
        calculation = _calculate(terms, numbers, results)
        if v == trap[0] and rng.rand() < trap[2]:
            kind, choice = trap[1]
            calculation = _mistake(
                kind, choice, terms=terms, made=calculation, numbers=numbers
            )
        elif rng.rand() < _CARELESS:
            kind = rng.randint(3)
            choice = rng.randint(100)
            calculation = _mistake(
                kind, choice, terms=terms, made=calculation, numbers=numbers
            )
        left, sign, right_hand, value = calculation
        results.append(value)
        equation = f"{left} {sign} {right_hand} = {value}"
        claims.append(text.format(equation=equation, **words))
        labels.append(value == right[-1] and value == _SIGNS[sign](left, right_hand))
    claims.append(f"The answer is {results[-1]}.")
    labels.append(results[-1] == right[-1])
    return claims, np.array(labels, dtype=int)


def _calculate(terms, numbers, results):
    """Return the left operand, the sign, the right operand and the result of a step."""
    value_of = {**numbers, **dict(enumerate(results))}
    left_name, sign, right_name = terms
    left = value_of[left_name]
    right = value_of[right_name]
    return left, sign, right, _SIGNS[sign](left, right)


def _mistake(kind, choice, terms, made, numbers):
    """Return a calculation with one of three kinds of mistake."""
    left, sign, right, value = made
    if kind == 0:  # The result is miscalculated.
        return left, sign, right, value + (-10, -2, -1, 1, 2, 10)[choice % 6]
    if kind == 1 and isinstance(terms[2], str):  # The step uses the wrong number.
        other_numbers = [n for n in numbers.values() if n != right] or [right + 1]
        right = other_numbers[choice % len(other_numbers)]
    else:  # The step uses the wrong operation.
        sign = {"+": "-", "-": "+", "*": "+"}[sign]
    return left, sign, right, _SIGNS[sign](left, right)
