"""Steps in which a model judges: frequency, ratings, verdicts, labels, its own text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._parameters import StrOptions
from ..graphs import GraphBatch, ReasoningGraph
from ..labelling.sources import LabelSource, set_label_sources
from . import _reading as reading
from ._calls import CallError, UnreadableError, load_prompt
from ._client import COMMON, Step, context_of, number_texts, tabled
from ._session import gather_steps

#: The qualities that are rated, each from its smallest to its largest value.
_RATINGS = {
    "coherent_to_ancestors": (0, 1),
    "inference_gap_size": (0, 5),
    "has_missing_dependencies": (0, 1),
    "has_unnecessary_dependencies": (0, 1),
    "problem_relevance": (0, 1),
    "uses_problem_data": (0, 1),
    "is_well_formed": (0, 1),
}


class Frequency(Step):
    """The frequency score: in how many other answers a claim comes back.

    For each of the problem's ``alternatives`` a model says of each claim whether that
    answer supports it (+1), contradicts it (-1) or is silent (0); the score is the sum.
    One call per alternative. `apply` takes graphs, and returns an array of shape
    (n_claims, 1) for each; the column is called ``frequency-score``.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "frequency".
    model : str, optional
        Another model than that of the other steps.

    Raises
    ------
    ValueError
        If a parameter has a wrong value, or the alternatives of a problem are not known.

    Notes
    -----
    Base scoring of Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix "Feature
    Descriptions", summed as in the data of Rubin-Toles et al. (ICLR 2025).

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.llm import Frequency
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "supports"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["x = 2"], alternatives=["x is 2", "2"])
    >>> Frequency().apply([graph], model="any", client=complete)
    [array([[2.]])]
    """

    names = ("frequency-score",)
    _prompt_name, per = "frequency", "alternative"
    _reply = reading.verdicts_of("supports", "contradicts", "silent")

    def _question(self, graph, other):
        asked = {"question": graph.problem, "claims": number_texts(graph.claims)}
        return {**asked, "other": other, **context_of(graph)}

    async def _run(self, chat, graph):
        if graph.alternatives is None:
            name = "a problem" if graph.id is None else f'problem "{graph.id}"'
            said = "frequency needs other answers, which sample=SampleAnswers() draws"
            raise ValueError(f"{name} has no alternatives: {said}")
        others, run = graph.alternatives if graph.n_claims else (), super()._run
        votes = await gather_steps(*(run(chat, graph, other) for other in others))
        return sum(votes, np.zeros(graph.n_claims))[:, None]


class SemanticJudge(Step):
    """The eight semantic features, seven rated by a model and one counted.

    ``claim_index``, ``coherent_to_ancestors`` (0 to 1), ``inference_gap_size`` (0 to 5
    missing steps), ``has_missing_dependencies``, ``has_unnecessary_dependencies``,
    ``problem_relevance`` (0 to 1), ``uses_problem_data`` and ``is_well_formed``. One call
    per problem. `apply` takes graphs, and returns an array of shape (n_claims, 8) for
    each. `skdcf.features.SemanticFeatures` takes the columns from there.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "semantic".
    model : str, optional
        Another model than that of the other steps.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Notes
    -----
    The features are those of arXiv:2604.20098, appendix "Feature Descriptions"; their
    scales and the prompt are ours.
    """

    names = ("claim_index", *_RATINGS)
    _prompt_name, _written = "semantic", 74
    _reply = reading.rows_of("ratings", claim=int, **dict.fromkeys(_RATINGS, float))

    def _read(self, reply, graph):
        rows = reading.number_rows(reply.ratings, graph.n_claims)
        for row, (name, (low, high)) in product(rows, _RATINGS.items()):
            if not low <= (value := getattr(row, name)) <= high:
                raise ValueError(f'"{name}" is {value}, and not from {low} to {high}')
        table = [[v, *attrgetter(*_RATINGS)(row)] for v, row in enumerate(rows)]
        return np.array(table, dtype=float).reshape(graph.n_claims, len(self.names))


@dataclass(eq=False, repr=False, kw_only=True)
class Verify(Step):
    """A judge's verdict on each claim, with the log odds that the judge gives it.

    Other answers say which claims are doubtful; strict levels need a signal that tells
    the last doubtful ones apart, and this is one. Columns ``judge_verdict`` (1 true, 0
    false) and ``judge_log_odds``, the log of the probability of "true" over that of
    "false" at the place of the verdict, between -14 and 14. `apply` takes graphs, and
    returns an array of shape (n_claims, 2) for each, or (n_claims, 1) without log odds.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "verify", "verdict" (without a reason) or "verify_all" (per answer).
    model : str, optional
        Another model than that of the other steps; a judge had best be another one.
    log_odds : bool, default=True
        Whether log-probabilities are asked for. Not every endpoint has them.
    per : {"claim", "answer"}
        Whether each claim has a call of its own, with the claims that it builds on, or
        all claims of an answer share one, which is cheaper.
    why : bool, default=True
        Whether the judge gives a reason before each verdict, as room to think. Without
        one, a reply per claim is a single word.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Notes
    -----
    A reply without a verdict is asked for again. A claim that has none after the third
    time is NaN in both columns; an extractor makes that 0 and notes it in the metadata
    (``no_verdict``), and filters keep neither it nor what builds on it. Where an endpoint
    gives no log-probabilities at the place of a verdict, or ones that say the opposite,
    the log odds are +1 or -1 by the verdict.
    """

    _reply = reading.verdicts_of("true", "false")
    _parameter_constraints = COMMON | {
        "log_odds": ["boolean"],
        "per": [StrOptions({"claim", "answer"})],
        "why": ["boolean"],
    }

    log_odds: bool = True
    per: str = "claim"
    why: bool = True

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.per == "answer" and not self.why:
            raise ValueError('why=False is for per="claim": rows have room for reasons')

    @property
    def _prompt_name(self):
        single = "verify" if self.why else "verdict"
        return single if self.per == "claim" else "verify_all"

    @property
    def _written(self):
        return 36 if self.why else 2

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("judge_verdict", "judge_log_odds")[: 1 + self.log_odds]

    def _question(self, graph, v=None):
        if v is None:
            return tabled(graph)
        premises = [graph.claims[u] for u in graph.edges[graph.edges[:, 1] == v, 0]]
        claim = {"premises": premises, "claim": graph.claims[v]}
        return {"question": graph.problem, **claim, **context_of(graph)}

    async def _run(self, chat, graph):
        n = graph.n_claims
        calls = [None] if self.per == "answer" else range(n)
        found = await gather_steps(*(self._judge(chat, graph, v) for v in calls if n))
        table = np.array(found, dtype=float).reshape(n, 2)
        if n_none := np.isnan(table[:, 0]).sum():
            chat.flag(f"{n_none} of {n} claims have no verdict")
        return table[:, : len(self.names)]

    async def _judge(self, chat, graph, v):
        """Verdict and log odds of one claim, or of all."""
        n, kind = graph.n_claims, self._reply if v is None else reading.Verdict

        def read(reply):
            if v is not None:
                return _judged([reading.read_verdict(reply.text)], reply)
            rows = reading.read_object(reply.text, kind).verdicts
            judged = _judged([row.verdict for row in rows], reply)
            for row, one in zip(rows, judged, strict=True):
                row.verdict = one
            return [row.verdict for row in reading.number_rows(rows, n)]

        schema = reading.reply_schema(kind, n) if self.why else None
        options = {"schema": schema, "logprobs": bool(self.log_odds)}
        question = self._question(graph, v)
        try:
            return await chat.ask(self.wording(), question, read, **options)
        except UnreadableError:
            return np.full((n if v is None else 1, 2), np.nan)


def _judged(verdicts, reply):
    """Verdicts as numbers, with their log odds: +1 or -1 where the endpoint gives none."""
    true = [float(word == "true") for word in verdicts]
    odds = reading.log_odds(reply, verdicts)
    pairs = zip(true, odds, strict=True)
    return [[t, 2 * t - 1 if o is None else o] for t, o in pairs]


class _Label(Step):
    """One call per problem: a verdict on each claim, which may be "unsure"."""

    _prompt_name = "labels"
    _reply = reading.verdicts_of("true", "false", "unsure")


def judge_labels(
    graphs: Sequence[ReasoningGraph],
    model: str,
    client: Any = None,
    *,
    prompt: str | Path | None = None,
) -> Bunch:
    """Let a model propose labels, marked as a model's.

    A help for people who label, and a stopgap. Filters that calibrate on such labels
    alone warn: what they promise then is about the model's verdicts.
    `skdcf.labelling.agreement` compares them with people's.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        With claims. Where a graph has a context, a claim is true if that supports it, and
        the metadata say so (``label_meaning``).
    model : str
        Name of the judge; had best be another model than the one that answered.
    client : ChatClient or callable, optional
        None is ``ChatClient()``.
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "labels".

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch, with the source of each label in its metadata) and
        ``labels`` (list of int arrays: 1 true, 0 false, -1 where the model is unsure).

    Raises
    ------
    CallError
        If calls failed; replies to the others are in the client's cache.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.llm import judge_labels
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "false"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 5"])
    >>> judge_labels([graph], "any", complete).labels
    [array([0])]
    """
    step, graphs = _Label(prompt), list(graphs)
    labels = step.apply(graphs, model=model, client=client)
    source = LabelSource.now("model", model, step.wording().name)
    marked = []
    for graph, row in zip(graphs, labels, strict=True):
        if graph.context:
            metadata = {"label_meaning": "supported", **(graph.metadata or {})}
            graph = graph.replace(metadata=metadata)
        sources = [source if label >= 0 else None for label in row]
        marked.append(set_label_sources(graph, sources))
    return Bunch(graphs=GraphBatch.pack(marked), labels=labels)


ABSTENTION = "I have no statement on this question that I can stand behind."
_ENTAILED = reading.verdicts_of("entailed", "not entailed")
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
#: A word that begins with a capital within a sentence.
_NAME = re.compile(r"(?<!^)\b[^\W\d_a-z]\w+")


class MergedText(NamedTuple):
    """The text of the kept claims.

    Parameters
    ----------
    text : str
    refused : tuple of str
        Sentences of a model's text that the claims do not entail. If there are any, the
        text is not the model's but the claims as they stand.
    flag : str or None
        Why the text is not a model's, where it was to be one.
    """

    text: str
    refused: tuple[str, ...] = ()
    flag: str | None = None


def join_claims(claims: Sequence[str], problem: str | None = None) -> str:
    """The claims as they stand, one after the other: no model, nothing added.

    The only text for which a filter's promise holds.

    Parameters
    ----------
    claims : sequence of str
        Texts of the claims, in their order.
    problem : str, optional
        Not looked at.

    Returns
    -------
    str
        The claims as sentences of one line.

    Examples
    --------
    >>> from skdcf.llm import join_claims
    >>> join_claims(["2 + 2 = 4", "So it is even."])
    '2 + 2 = 4. So it is even.'
    """
    texts = (text.strip() for text in claims)
    return " ".join(t if t.endswith((".", "!", "?")) else f"{t}." for t in texts if t)


@dataclass(eq=False, repr=False, kw_only=True)
class Merge(Step):
    """Write kept claims as fluent text, by a model, and check that nothing was added.

    Nothing is promised for such a text: a model writes it, and a model checks it. Every
    sentence has to be entailed by the claims, to state none of the dropped ones, and to
    hold no number and no name that the claims or the question do not hold. If one does
    not, the claims are given as they stand, and the sentence is reported. No claims give
    the text for abstention, and a single claim is itself. `apply` takes lists of claims
    and problems, and, if there are some, of dropped claims, and returns a ``MergedText`` for
    each.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "merge".
    model : str, optional
        Another model than that of the other steps.
    abstention : str, optional
        The text where no claim is kept.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Examples
    --------
    >>> import json
    >>> from skdcf.llm import Merge
    >>> def complete(messages):
    ...     if "sentences" not in messages[1]["content"]:
    ...         return '{"text": "As 2 + 2 = 4, it is even. It is prime."}'
    ...     words = ["entailed", "not entailed"]
    ...     rows = [{"claim": i + 1, "verdict": word} for i, word in enumerate(words)]
    ...     return json.dumps({"verdicts": rows})
    >>> claims = ["2 + 2 = 4", "4 is even"]
    >>> merged = Merge().apply([claims], [None], model="any", client=complete)[0]
    >>> merged.text, merged.refused
    ('2 + 2 = 4. 4 is even.', ('It is prime.',))
    """

    _prompt_name, _written, _reply = "merge", 45, reading.Text
    _parameter_constraints = COMMON | {"abstention": [str]}

    abstention: str = ABSTENTION

    def _question(self, claims, problem):
        return {"question": problem, "claims": list(claims)}

    def _read(self, reply, claims, problem):
        return reading.read_texts([reply.text])[0]

    async def _run(self, chat, claims, problem, dropped=()):
        if len(claims) < 2:
            return MergedText(join_claims(claims) or self.abstention)
        try:
            text = await super()._run(chat, claims, problem)
            refused = await self._refused(chat, claims, problem, dropped, text)
        except CallError as error:
            return MergedText(join_claims(claims), flag=f"not merged: {error}")
        if refused:
            flag = f"not merged: {len(refused)} sentences added something"
            return MergedText(join_claims(claims), tuple(refused), flag)
        return MergedText(text)

    async def _refused(self, chat, claims, problem, dropped, text):
        """Sentences of a text that are not entailed, or add a number or a name."""
        sentences = [part for part in _SENTENCE.split(text) if part.strip()]
        n, known = len(sentences), " ".join([*claims, problem or ""])
        given = {"claims": list(claims), "sentences": number_texts(sentences)}
        given |= {"dropped": list(dropped)}

        def read(reply):
            rows = reading.number_rows(reply.verdicts, n)
            pairs = zip(sentences, rows, strict=True)
            return [s for s, r in pairs if r.verdict != "entailed" or _adds(s, known)]

        prompt = load_prompt("entailment")
        return await chat.ask_object(prompt, given, _ENTAILED, read, n)


def _adds(sentence, known):
    """Whether a sentence holds a number or a name that is not known."""
    numbers = set(_NUMBER.findall(sentence)) - set(_NUMBER.findall(known))
    words = {word.lower() for word in re.findall(r"\w+", known)}
    names = {name.lower() for name in _NAME.findall(sentence)}
    return bool(numbers or names - words)
