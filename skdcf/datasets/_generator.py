"""Simulate reasoning graphs and word problems.

The simulated graphs match the statistics of the paper's two data sets. The word problems are
intended for demonstrations and tests. Each word problem is generated from a template that
contains a question and the solution steps. The operands of a step are either numbers in the
question, which the template denotes by letters, or results of earlier steps, which the template
denotes by their positions.

``simulation.json`` contains the parameters of the reasoning graphs. A list contains the values for
clean, partly wrong and hallucinated problems. ``semantic`` contains the means of the semantic
columns for true, false and hallucinated claims.

================  ==================================================================
share             proportions of the problems
extra_claims      mean number of claims beyond the first two
source            probability that a claim has no parent
more_parents      probability of each of the two additional parents
recency           factor by which the weight of a parent decreases for each step back
inherit           probability that an error propagates
frequency         log odds that a claim occurs in a resampled answer: ``constant``,
                  ``deviation`` of the problem, factor of the ``difficulty``, and terms
                  of true, false and hallucinated claims (``by_state``)
================  ==================================================================
"""

import json
from importlib.resources import files
from operator import add, mul, sub
from typing import Literal

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from .._arrays import offsets_of
from .._checks import Seed, check_choice, check_count
from ..features import DomainIndicators
from ..graphs import GraphBatch, ReasoningGraph, pass_on
from ..labels import LabelList
from ..ops.graph_metrics import PAPER_METRICS, compute_metrics


def _read(name):
    return json.loads(files(__package__).joinpath(name).read_text("utf-8"))


def make_reasoning_graphs(
    n_problems: int = 1000,
    kind: Literal["math", "felm"] = "math",
    *,
    random_state: Seed = None,
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
    return_X_y : bool
        Whether to return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch without texts), ``labels`` (list of one
        0/1 int array per problem), ``groups`` (problem indices, because all questions differ), and
        ``feature_names``.

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
    check_choice("kind", kind, ("math", "felm"))
    check_count("n_problems", n_problems, 1)
    rng = check_random_state(random_state)
    parameters = _read("simulation.json")
    setting = parameters[kind]
    type_of = rng.choice(3, size=n_problems, p=setting["share"])
    extra = np.array(setting["extra_claims"])[type_of]
    sizes = 2 + rng.poisson(rng.gamma(4, extra / 4))
    type_of = type_of.repeat(sizes)
    offsets = offsets_of(sizes)
    edges = _draw_edges(rng, setting, type_of, offsets)
    batch = GraphBatch.from_arrays(np.empty((offsets[-1], 0)), offsets, edges)
    difficulty = rng.normal(size=batch.n_claims)
    true = _draw_labels(rng, setting["inherit"], batch, type_of, difficulty)
    state = np.where(type_of == 2, 2, ~true)
    terms = setting["frequency"]
    deviation = rng.normal(0, terms["deviation"], n_problems)
    logit = terms["constant"] + deviation[batch.problem_of]
    logit += np.array(terms["by_state"])[state]
    columns = {
        "frequency-score": rng.binomial(
            5, expit(logit - terms["difficulty"] * difficulty)
        ),
        "claim_index": batch.position,
    }
    for name, means in parameters["semantic"].items():
        mean = np.array(means)[state]
        columns[name] = (
            rng.poisson(mean)
            if name == "inference_gap_size"
            else rng.random_sample(mean.shape) < mean
        )
    columns |= _draw_topics(rng, batch, kind)
    table = np.column_stack([*columns.values(), compute_metrics(batch, PAPER_METRICS)])
    batch = batch.replace_features(table, [*columns, *PAPER_METRICS])
    return _dataset(batch, batch.split(true.astype(np.int64)), return_X_y)


def _dataset(batch, labels, return_X_y):
    labels = LabelList(labels)
    if return_X_y:
        return batch, labels
    return Bunch(
        graphs=batch,
        labels=labels,
        groups=np.arange(len(batch)),
        feature_names=batch.feature_names and list(batch.feature_names),
    )


def _draw_edges(rng, setting, type_of, offsets):
    """Draw up to three earlier claims as the parents of each claim, favouring recent claims."""
    number = np.arange(len(type_of))
    n_before = number - offsets[:-1].repeat(np.diff(offsets))
    is_source = rng.random_sample(len(number)) < np.array(setting["source"])[type_of]
    n_parents = 1 + rng.binomial(2, setting["more_parents"], size=len(number))
    n_parents = np.where(is_source, 0, np.minimum(n_parents, n_before))
    back = np.zeros((len(number), 3), np.int64)
    pairs = []
    for k in range(3):
        rows = np.flatnonzero(n_parents > k)
        taken = np.sort(back[rows, :k], axis=1)
        back[rows, k] = _draw_lag(rng, setting["recency"], n_before[rows], taken)
        pairs.append(np.stack([rows - back[rows, k], rows], axis=1))
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


def _draw_labels(rng, inherit, batch, type_of, difficulty):
    """Draw labels with errors at difficult claims, and propagate the errors along the edges."""
    pressure = -2 + 0.9 * difficulty - rng.logistic(size=batch.n_claims)
    worst = np.maximum.reduceat(pressure, batch.offsets[:-1])[batch.problem_of]
    partial = type_of == 1
    # Mark at least one claim per problem as wrong.
    wrong = partial & ((pressure > 0) | (pressure == worst))
    handed_on = partial & (rng.random_sample(batch.n_claims) < inherit)
    kept = batch.replace_edges(batch.edges[handed_on[batch.edges[:, 1]]])
    wrong = pass_on(np.bitwise_or, wrong, kept)
    return ~wrong & (type_of < 2)


def _draw_topics(rng, batch, kind):
    """Draw a FELM domain, or a main topic and sometimes a second one, for each problem."""
    if kind == "felm":
        shares = np.array([125, 207, 184, 194]) / 710
        domain = rng.choice(4, size=len(batch), p=shares)[batch.problem_of]
        return {"domain_science": domain == 0, "domain_reasoning": domain == 1}
    topics = DomainIndicators.topics
    main, side = rng.randint(len(topics), size=(2, len(batch)))
    side = np.where(rng.random_sample(len(batch)) < 0.3, side, main)
    return {
        topic: ((main == k) | (side == k))[batch.problem_of]
        for k, topic in enumerate(topics)
    }


_SIGNS = {"+": add, "-": sub, "*": mul}


def make_word_problems(
    n_problems: int = 300,
    *,
    n_alternatives: int = 2,
    random_state: Seed = None,
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
    return_X_y : bool
        Whether to return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with claims, questions, alternatives and
        the exact edges, without features), ``labels`` (list of one 0/1 int array per problem),
        ``groups`` (problem indices, because all questions differ), and ``feature_names`` (None).

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
    plots = _read("word_problems.json")
    problems = [_draw_problem(i, plots, n_alternatives, rng) for i in range(n_problems)]
    graphs, labels = zip(*problems, strict=True)
    return _dataset(GraphBatch.from_graphs(graphs), labels, return_X_y)


def _draw_problem(i, plots, n_alternatives, rng):
    """Draw a question and an answer, and return their graph and the claim labels."""
    plot = plots[rng.randint(len(plots))]
    names = "Ann Bob Carla Deniz Eva Femi Grace Hana Ivan Jo"
    goods = "apples cups pens tiles bulbs plates"
    words = {"name": rng.choice(names.split()), "goods": rng.choice(goods.split())}
    steps = plot["steps"]
    numbers = {
        k: rng.randint(low, high + 1) for k, (low, high) in plot["numbers"].items()
    }
    # Some questions cause the same mistake in several answers.
    tempting = rng.randint(len(steps)) if rng.rand() < 0.4 else None
    trap = (tempting, rng.randint(1, 3), rng.randint(100), rng.rand())
    (claims, labels), *alternatives = [
        _draw_answer(steps, numbers, words, trap, rng)
        for _ in range(1 + n_alternatives)
    ]
    used = [(u, v) for v, (_, *terms) in enumerate(steps) for u in terms[::2]]
    used.append((len(steps) - 1, len(steps)))
    graph = ReasoningGraph(
        edges=[(u, v) for u, v in used if isinstance(u, int)],
        claims=claims,
        problem=plot["question"].format(**words, **numbers),
        alternatives=[" ".join(texts) for texts, _ in alternatives],
        id=f"word-{i}",
    )
    return graph, labels


def _draw_answer(steps, numbers, words, trap, rng):
    """Draw the sentences of one answer, and return the sentences and their labels.

    ``trap`` is a mistake that several answers to the question may contain, given by its step, its
    kind, a random number and its probability.
    """
    tempting, *mistake, chance = trap
    right_values = dict(numbers)
    values = dict(numbers)
    claims = []
    labels = []
    for v, (text, first, sign, second) in enumerate(steps):
        right_values[v] = _SIGNS[sign](right_values[first], right_values[second])
        left = values[first]
        right = values[second]
        kind = None
        error = 0
        if v == tempting and rng.rand() < chance:
            kind, choice = mistake
        elif rng.rand() < 0.03:  # probability of a careless mistake
            kind, choice = rng.randint(3), rng.randint(100)
        if kind == 0:  # The result is miscalculated.
            error = (-10, -2, -1, 1, 2, 10)[choice % 6]
        elif kind == 1 and isinstance(second, str):  # The wrong number is used.
            others = [n for n in numbers.values() if n != right] or [right + 1]
            right = others[choice % len(others)]
        elif kind is not None:  # The wrong operation is used.
            sign = {"+": "-", "-": "+", "*": "+"}[sign]
        values[v] = value = _SIGNS[sign](left, right) + error
        equation = f"{left} {sign} {right} = {value}"
        claims.append(text.format(equation=equation, **words))
        labels.append(not error and value == right_values[v])
    claims.append(f"The answer is {value}.")
    labels.append(value == right_values[v])
    return claims, np.array(labels, int)
