"""Steps that call a model to convert an answer to a graph with feature columns.

The steps sample alternative answers, split an answer into claims, deduce the edges between
claims, and compute feature columns from the verdicts of a judge. `judge_labels` labels claims.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from itertools import product
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from ..._parameters import Number, Settings, StrOptions, positive
from ...edges import chain_edges, cited_edges
from ...graphs import GraphBatch, ReasoningGraph
from ...labels import LabelList
from ..text import split_sentences, splitter_of
from ._model import UnreadableError, gather_coroutines, run_all
from ._replies import (
    BareVerdict,
    Claims,
    Premises,
    Verdict,
    log_odds,
    number_rows,
    parse_object,
    read_object,
    read_texts,
    read_verdict,
    rows_of,
    schema_of,
    texts_in,
    verdicts_of,
    visible,
)

_FILES = files("skdcf.apps.llm").joinpath("prompts").iterdir()
_TEXTS = {path.name.removesuffix(".txt"): path.read_text("utf-8") for path in _FILES}
_FOUND = (full.rpartition("-") for full in _TEXTS)
#: Newest version of each prompt, which is used by default.
VERSIONS = {name: n for n, name in sorted((int(v), name) for name, _, v in _FOUND)}


class Prompt(NamedTuple):
    """Instructions to a model for one task.

    Parameters
    ----------
    name : str
        Name and version of a built-in prompt, or name and digest of a prompt defined by the
        caller.
    text : str
        Text of the instructions.
    """

    name: str
    text: str


def load_prompt(name: str, own: str | Path | None = None) -> Prompt:
    """Return the newest version of a built-in prompt, or a prompt defined by the caller.

    The prompt is part of the call and of the cache key, so replies to different prompts are
    cached separately. The input (questions, answers, claims) is never inserted into a prompt. The
    input follows the prompt as a JSON object.

    Parameters
    ----------
    name : str
        Name of the prompt, which is "answer", "decompose", "frequency", "graph", "labels",
        "semantic", "verdict", "verify" or "verify_all".
    own : str or Path, optional
        Text of a prompt to use instead of the built-in prompt, or the path of a file that
        contains the text.

    Returns
    -------
    prompt : Prompt
        Name and text of the prompt.

    Examples
    --------
    >>> from skdcf.apps.llm._steps import load_prompt
    >>> load_prompt("decompose").name
    'decompose-3'
    """
    full = f"{name}-{VERSIONS[name]}"
    if own is None:
        return Prompt(full, _TEXTS[full].strip())
    text = (own.read_text("utf-8") if isinstance(own, Path) else own).strip()
    if not text:
        raise ValueError(f"the prompt for {name!r} must not be empty")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Prompt(f"{name}-own-{digest}", text)


#: Number assigned to each verdict.
_VALUES = {"supports": 1, "contradicts": -1, "silent": 0}
_VALUES |= {"true": 1, "false": 0, "unsure": -1}
#: Valid types of the parameters shared by all steps.
COMMON: dict[str, list] = {"prompt": [str, Path, None], "model": [str, None]}


@dataclass(eq=False, repr=False)
class Step(Settings):
    """Base class of the steps that convert a model's answers to input for a filter.

    A subclass defines its prompt and the type of the reply. If some problems require no call, the
    reply type must contain a list. The method ``_question`` returns the model input for one
    problem, and the method ``_read`` interprets the reply. The default implementations ask for a
    verdict on each claim of a graph. A step that makes several calls overrides ``_run``.
    """

    _prompt_name: ClassVar[str] = ""
    _reply: ClassVar[Any]
    _written: ClassVar[int] = 37  # expected number of completion tokens per claim
    _parameter_constraints = COMMON

    prompt: str | Path | None = None
    _: KW_ONLY
    model: str | None = None

    def _question(self, *item: Any) -> dict[str, Any]:
        return tabled(*item)

    def _read(self, reply: Any, *item: Any) -> Any:
        rows = number_rows(reply.verdicts, item[0].n_claims)
        return np.array([_VALUES[row.verdict] for row in rows], dtype=np.int64)

    async def _run(self, chat: Any, *item: Any) -> Any:
        """Return the result of the step for one problem, in an open session."""
        question = self._question(*item)
        rows = question.get("claims")
        text = question.get("answer", "")
        if not (rows or text.strip()):  # There are no claims to verify.
            return self._read(self._reply([]), *item)

        def read(reply):
            return self._read(read_object(reply.text, self._reply), *item)

        n_rows = count_claims(text) if rows is None else len(rows)
        return await chat.ask(
            self.wording(),
            question,
            read,
            schema=schema_of(self._reply),
            limit=self._limit(n_rows),
        )

    def _limit(self, n_rows):
        """Return the token limit of a reply. Longer replies are probably repetitive."""
        return 3 * self._written * n_rows + 300

    def wording(self) -> Prompt:
        """Return the prompt of this step.

        Returns
        -------
        prompt : Prompt
            The built-in prompt, or the prompt passed by the caller.
        """
        return load_prompt(self._prompt_name, self.prompt)

    def apply(self, *columns: Sequence[Any], model: str, client: Any = None) -> list:
        """Apply this step alone to a list of problems.

        Parameters
        ----------
        *columns : sequences of equal length
            Inputs of the step, as described in the documentation of the class.
        model : str
            Model name, which is used unless the step sets another model.
        client : ChatClient or callable, optional
            Client for the model. The default is ``ChatClient()``.

        Returns
        -------
        results : list
            One result per problem.

        Raises
        ------
        CallError
            If a call failed. The replies to the other calls are in the cache.
        """
        self.validate()

        items = list(zip(*columns, strict=True))
        return run_all(client, items, lambda c, x: call_step(self, c, *x), model)[0]


def check_step(name: str, step: Any, model: str | None) -> None:
    """Raise ValueError if a step is invalid or has no model.

    Values that are not steps, such as functions, are accepted.
    """
    if isinstance(step, Step):
        step.validate()
        if model is step.model is None:
            raise ValueError(
                f"{name} calls a model, so model must be set, got None. Set model, or replace "
                "this step with a function"
            )


def count_claims(answer: str) -> int:
    """Return the estimated number of claims in an answer, assuming 160 bytes per claim."""
    return len(answer.encode()) // 160 + 1


async def call_step(step: Any, chat: Any, *item: Any) -> Any:
    """Return the result of a step, or of a callable that replaces the step."""
    if isinstance(step, Step):
        return await step._run(chat.of(step.model), *item)
    out = step(*item)
    return await out if inspect.isawaitable(out) else out


def number_texts(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return numbered rows for the input of a model, with one row per text."""
    return [{"claim": v, "text": text} for v, text in enumerate(texts, 1)]


def tabled(graph: Any) -> dict[str, Any]:
    """Return the question and the claims with their premises, as model input."""
    rows = number_texts(graph.claims)
    for v, row in enumerate(rows):
        row["builds_on"] = (graph.edges[graph.edges[:, 1] == v, 0] + 1).tolist()
    return {"question": graph.problem, "claims": rows, **context_of(graph)}


def context_of(graph: Any) -> dict[str, Any]:
    """Return the passages that must support the answer, as model input."""
    return {"context": list(graph.context)} if graph.context else {}


#: Pattern for the beginning of a refusal, in the languages in which models are used most often.
_REFUSAL = re.compile(
    r"""(?ix)\W*(?:
    (?:i'?m|i\ am|we\ are)?\ ?(?:very\ )?(?:sorry|unable|afraid)\b
    | (?:i|we)\ (?:can(?:no|')t|can\ not|won't|will\ not)
      \ (?:help|assist|answer|provide|comply|do|fulfill)
    | as\ an\ ai\b
    | (?:es\ )?tut\ mir\ (?:sehr\ )?leid\b | ich\ kann\ .{0,40}\bnicht\ (?:helfen|beantworten)
    | (?:je\ suis\ )?désolée?\b | je\ ne\ (?:peux|suis)\ pas\b
    | lo\ siento\b | no\ puedo\ (?:ayudar|responder|proporcionar|cumplir)
    | mi\ dispiace\b | non\ posso\ (?:aiutar|rispondere|fornire)
    | desculpe\b | (?:eu\ )?(?:sinto|lamento)\ muito\b | não\ posso\ (?:ajudar|responder|fornecer)
    | het\ spijt\ me\b | przepraszam\b | üzgünüm\b
    | извините\b | простите\b | к\ сожалению,?\ я\ не\ могу\b
    | (?:非常|很)?抱歉 | 对不起 | 對不起 | 我(?:无法|無法|不能)
    | 申し訳 | すみません | 죄송 | عذر[اًا] | آسف
    )"""
)
_NO_ODDS = (
    "the endpoint returns no log-probabilities with its verdicts, so the column "
    "judge_log_odds is missing. Pass log_odds=False (--no-log-odds), or use an "
    "endpoint that supports log-probabilities"
)
# default maximum number of tokens in an answer that the model writes
_LIMIT = 2100
# maximum number of characters in a text that can be considered a refusal
_LONGEST_REFUSAL = 400
REPAIRED = (
    "the graph was repaired: edges to later or unknown claims and self-loops were "
    "removed"
)
CHAINED = "the graph could not be read, so every claim depends on the previous one"
_RATED = (
    "coherent_to_ancestors inference_gap_size has_missing_dependencies "
    "has_unnecessary_dependencies problem_relevance uses_problem_data is_well_formed"
)
#: Maximum of each rating. The minimum is 0.
_RATINGS = dict.fromkeys(_RATED.split(), 1) | {"inference_gap_size": 5}


class Claim(str):
    """Claim text whose attribute ``span`` contains the words of the answer that state the claim."""

    span = ""


@dataclass(eq=False, repr=False, kw_only=True)
class Decompose(Step):
    """Use a model to split an answer into claims.

    The method `apply` requires a list of answers and a list of problems. `apply` returns an
    ordered list of claims for each answer.

    Parameters
    ----------
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "decompose".
    model : str, optional
        Model name for this step. The default is the extractor's model.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from skdcf.apps.llm import Decompose
    >>> def complete(messages):
    ...     return 'Sure! {"claims": ["2 + 2 = 4", "4 is even"]}'
    >>> Decompose().apply(["4, even"], ["2 + 2?"], model="any", client=complete)
    [['2 + 2 = 4', '4 is even']]
    """

    _prompt_name, _written, _reply = "decompose", 38, Claims

    def _question(self, answer, problem):
        return {"question": problem, "answer": answer}

    def _read(self, reply, answer, problem):
        shown = [visible(getattr(row, "text", row)).strip() for row in reply.claims]
        texts = read_texts(shown)
        claims = list(map(Claim, texts))
        for claim, row in zip(claims, reply.claims, strict=True):
            claim.span = getattr(row, "span", "")
        return claims


class DeducedGraph(NamedTuple):
    """Edges between claims, with a flag if the graph had to be repaired.

    Parameters
    ----------
    edges : list of (parent, child)
        Edges as pairs of claim positions, counted from 0.
    flag : str or None
        Description of the repair, if the graph was still malformed after the last request.
    """

    edges: list[tuple[int, int]]
    flag: str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class DeduceGraph(Step):
    """Use a model to deduce the dependencies between claims.

    The method `apply` requires lists of claims and problems. `apply` returns a ``DeducedGraph``
    for each problem.

    If the claims cite their premises, as in "(by #2 #4)", the model is not called. If the graph
    is cyclic or malformed, the model is asked again with a description of the error. After three
    requests, the graph is repaired. Edges are removed if they start at a later claim, connect a
    claim to itself or refer to an unknown claim. A claim that the reply does not mention depends
    on the previous claim. If the reply contains no graph, every claim depends on the previous
    claim, which is conservative. Repaired and missing graphs are flagged. Replies that number the
    claims from 0 are recognised.

    Parameters
    ----------
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "graph".
    model : str, optional
        Model name for this step. The default is the extractor's model.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from skdcf.apps.llm import DeduceGraph
    >>> def complete(messages):
    ...     return '{"premises": [{"claim": 1, "builds_on": []}, {"claim": 2, "builds_on": [1]}]}'
    >>> claims = ["2 + 2 = 4", "4 is even"]
    >>> DeduceGraph().apply([claims], [None], model="any", client=complete)
    [DeducedGraph(edges=[(0, 1)], flag=None)]
    """

    _prompt_name, _written, _reply = "graph", 12, Premises

    def _question(self, claims, problem):
        return {"question": problem, "claims": number_texts(claims)}

    def _read(self, reply, claims, problem):
        return DeducedGraph(_edges(number_rows(reply.premises, len(claims))))

    async def _run(self, chat, claims, problem):
        cited = cited_edges(claims, problem)
        if cited or len(claims) < 2:
            return DeducedGraph(cited)
        try:
            return await super()._run(chat, claims, problem)
        except UnreadableError as error:
            return _repaired(error.text, claims)


def _edges(rows):
    """Return the edges in a reply, or raise a ValueError whose message is sent to the model."""
    n = len(rows)
    for row in rows:
        # A list [0] means that there are no premises, because claim numbers start at 1.
        if row.builds_on == [0]:
            row.builds_on = []
        if wrong := [u for u in row.builds_on if not 1 <= u <= n or u == row.claim]:
            raise ValueError(
                f"claim {row.claim} must only depend on earlier claims, but it depends on "
                f"claim {wrong[0]}"
            )
    try:
        TopologicalSorter({row.claim: row.builds_on for row in rows}).prepare()
    except CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise ValueError(
            f"claims must not depend on each other in a cycle, got {circle}"
        ) from error
    return [(u - 1, row.claim - 1) for row in rows for u in sorted(set(row.builds_on))]


def _repaired(text, claims):
    rows = None
    parents_of = {}
    with suppress(ValueError):
        rows = parse_object(text, "premises")["premises"]
    for row in rows if isinstance(rows, list) else ():
        match row:
            case {"claim": int(v), "builds_on": list(listed)} if 0 < v <= len(claims):
                parents_of.setdefault(
                    v, {u for u in listed if type(u) is int and 0 < u < v}
                )
    if not parents_of:
        return DeducedGraph(chain_edges(claims), CHAINED)
    parents_of_each = [
        parents_of.get(v, {v - 1} - {0}) for v in range(1, len(claims) + 1)
    ]
    edges = [
        (u - 1, v) for v, parents in enumerate(parents_of_each) for u in sorted(parents)
    ]
    return DeducedGraph(edges, REPAIRED)


@dataclass(eq=False, repr=False)
class SampleAnswers(Step):
    """Use a model to sample other answers to a question.

    The answers are stored in the field ``alternatives`` of a problem. The method `apply` requires
    a list of problems, and optionally accepts their passages. `apply` returns a list of answers
    for each problem. Use the same settings for calibration and prediction.

    Parameters
    ----------
    n : int, default=5
        Number of answers.
    prompt : str or Path, optional
        Instructions that precede the question, as a string or a file path. The default is the
        built-in prompt "answer". Pass the prompt that your application uses to write answers.
    model : str, optional
        Model name for this step. The default is the extractor's model.
    temperature : float, default=1.0
        Sampling temperature, from 0 to 2. Higher temperatures increase the diversity of
        answers.

    Raises
    ------
    ValueError
        If a parameter is invalid, or if a problem has no question.

    Notes
    -----
    Answer number i has the seed i. If the endpoint supports seeds, a second run therefore
    returns the same answers. Cached answers are not requested again. An answer that is empty,
    refused or cut off provides no evidence about a claim. Such an answer is sampled again with
    the seeds i + n and i + 2n. If these attempts also fail, the answer is omitted and a flag is
    added.

    Examples
    --------
    >>> from skdcf.apps.llm import SampleAnswers
    >>> def complete(messages, *, seed, **options):
    ...     return f"{messages[1]['content']} {3 + seed}"
    >>> SampleAnswers(2).apply(["2 + 2 ="], model="any", client=complete)
    [['2 + 2 = 4', '2 + 2 = 5']]
    """

    _prompt_name, _written = "answer", 15
    _parameter_constraints = COMMON | {"n": [positive(Integral)]}
    _parameter_constraints |= {"temperature": [Number(Real, 0, 2, closed="both")]}

    n: int = 5
    _: KW_ONLY
    prompt: str | Path | None = None
    temperature: float = 1.0

    async def _run(self, chat, problem, context=None):
        question = _with_passages(problem, context)

        async def draw(seed):
            with suppress(UnreadableError):
                return await self._one(chat, question, seed)

        drawn = await gather_coroutines(*map(draw, range(1, self.n + 1)))
        texts = [text for text in drawn if text is not None]
        if len(texts) < self.n:
            chat.flag(f"only {len(texts)} of {self.n} other answers are usable")
        return texts

    async def _one(self, chat, question, seed):
        return await chat.ask(
            self.wording(),
            question,
            _said,
            stride=self.n,
            limit=_LIMIT,
            seed=seed,
            temperature=float(self.temperature),
        )


def _with_passages(problem, context):
    """Return a question with the passages that must support the answer."""
    if not isinstance(problem, str) or not problem.strip():
        raise ValueError(
            "each problem must have a question, because other answers to the question "
            "are sampled"
        )
    if not context:
        return problem
    passages = json.dumps({"context": list(context)}, ensure_ascii=False)
    return f"{problem}\n\n{passages}"


def _said(reply):
    """Return the text of an answer, or raise ValueError if the answer is unusable."""
    text = reply.text.rpartition("</think>")[2].strip()
    refused = len(text) < _LONGEST_REFUSAL and _REFUSAL.match(text)
    if not text or refused or reply.finish_reason in ("content_filter", "length"):
        raise ValueError("the answer must not be empty, incomplete or a refusal")
    return text


class Frequency(Step):
    """Compute the frequency score, which measures how far other answers support each claim.

    For each of the ``alternatives`` of the problem, a model judges whether the alternative
    supports a claim (+1), contradicts the claim (-1) or does neither (0). The score of a claim is
    the sum of these values. The step makes one call per alternative. The method `apply` accepts a
    list of graphs and returns an array of shape (n_claims, 1) for each graph. The column is named
    ``frequency-score``.

    Parameters
    ----------
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "frequency".
    model : str, optional
        Model name for this step. The default is the extractor's model.

    Raises
    ------
    ValueError
        If a parameter is invalid, or if the alternatives of a problem are unknown.

    Notes
    -----
    The score follows the base scoring of Hittesdorf, Salzetta, Cheng (arXiv:2604.20098),
    appendix "Feature Descriptions", with sums as in the data of Rubin-Toles et al. (ICLR 2025).

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.llm import Frequency
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "supports"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["x = 2"], alternatives=["x is 2", "2"])
    >>> Frequency().apply([graph], model="any", client=complete)
    [array([[2.]])]
    """

    names = ("frequency-score",)
    _prompt_name = "frequency"
    _reply = verdicts_of("supports", "contradicts", "silent")

    def _question(self, graph, other):
        asked = {"question": graph.problem, "claims": number_texts(graph.claims)}
        return {**asked, "other": other, **context_of(graph)}

    async def _run(self, chat, graph):
        if graph.alternatives is None:
            raise ValueError(
                f"{graph.id or graph.problem!r} must have alternatives, because Frequency "
                "compares an answer with other answers to the same question. Sample other "
                "answers with SampleAnswers or --samples"
            )
        alternatives = graph.alternatives if graph.n_claims else ()
        run = super()._run
        votes = await gather_coroutines(
            *(run(chat, graph, alternative) for alternative in alternatives)
        )
        return sum(votes, np.zeros(graph.n_claims))[:, None]


class SemanticJudge(Step):
    """Compute eight semantic features, including seven ratings by a model.

    The features are ``claim_index``, ``coherent_to_ancestors`` (0 to 1), ``inference_gap_size``
    (0 to 5 missing steps), ``has_missing_dependencies``, ``has_unnecessary_dependencies``,
    ``problem_relevance`` (0 to 1), ``uses_problem_data`` and ``is_well_formed``. The step makes
    one call per problem. The method `apply` accepts a list of graphs and returns an array of
    shape (n_claims, 8) for each graph. `skdcf.features.paper_features` selects these columns.

    Parameters
    ----------
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "semantic".
    model : str, optional
        Model name for this step. The default is the extractor's model.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    The features are described in the appendix "Feature Descriptions" of arXiv:2604.20098. The
    scales of the features and the prompt were chosen for this package.
    """

    names = ("claim_index", *_RATINGS)
    _prompt_name, _written = "semantic", 74
    _reply = rows_of("ratings", claim=int, **dict.fromkeys(_RATINGS, float))

    def _read(self, reply, graph):
        rows = number_rows(reply.ratings, graph.n_claims)
        for row, (name, high) in product(rows, _RATINGS.items()):
            if not 0 <= (value := getattr(row, name)) <= high:
                raise ValueError(f'"{name}" must be between 0 and {high}, got {value}')
        table = [[v, *(vars(r)[name] for name in _RATINGS)] for v, r in enumerate(rows)]
        return np.array(table, dtype=float).reshape(graph.n_claims, len(self.names))


@dataclass(eq=False, repr=False, kw_only=True)
class Verify(Step):
    """Compute the verdict of a judge on each claim, and the log odds of the verdict.

    The frequency score identifies most of the doubtful claims. At strict levels, the verdicts of
    a judge are a stronger signal for the remaining doubtful claims. The columns are
    ``judge_verdict`` (1 true, 0 false) and ``judge_log_odds``. The log odds are the difference
    between the log-probabilities of "true" and "false" at the position of the verdict, clipped to
    the range from -14 to 14. The method `apply` accepts a list of graphs and returns an array of
    shape (n_claims, 2) for each graph, or (n_claims, 1) without log odds.

    Parameters
    ----------
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. With ``per="claim"``, the default
        is the built-in prompt "verify", or "verdict" if ``why`` is False. With ``per="answer"``,
        the default is "verify_all".
    model : str, optional
        Name of the judge model, which should differ from the model that wrote the answers.
    log_odds : bool, default=True
        Whether to request log-probabilities, which some endpoints do not support.
    per : {"claim", "answer"}
        Whether to make one call for each claim and its premises, or one cheaper call for all
        claims of an answer.
    why : bool, default=True
        Whether the judge writes a reason before each verdict. If False, the reply for each claim
        contains only the verdict.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    A reply without a verdict is requested again. If a claim has no verdict after three
    requests, both columns are NaN. An extractor replaces them by the columns of a
    claim that is certainly false. If the
    position of a verdict is not found, or if the log-probabilities contradict the verdict, the log
    odds are +1 for "true" and -1 for "false". If an endpoint returns no log-probabilities, the log
    odds are NaN, a warning is issued, and the value of the provenance key ``log_odds`` is
    "missing".
    """

    _reply = verdicts_of("true", "false")
    _parameter_constraints = COMMON | {"log_odds": ["boolean"], "why": ["boolean"]}
    _parameter_constraints |= {"per": [StrOptions({"claim", "answer"})]}

    log_odds: bool = True
    per: str = "claim"
    why: bool = True

    def validate(self) -> None:
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        if self.per == "answer" and not self.why:
            raise ValueError(
                'why must be True with per="answer", because rows for whole answers always '
                'include reasons. Set why=True or per="claim"'
            )

    @property
    def _prompt_name(self):  # type: ignore[override]
        if self.per == "answer":
            return "verify_all"
        return "verify" if self.why else "verdict"

    @property
    def _written(self):  # type: ignore[override]
        return 36 if self.why else 2

    @property
    def names(self) -> tuple[str, ...]:
        """Return the column names."""
        return ("judge_verdict", "judge_log_odds")[: 1 + self.log_odds]

    def _question(self, graph, v=None):
        if v is None:
            return tabled(graph)
        premises = [graph.claims[u] for u, child in graph.edges if child == v]
        claim = {"premises": premises, "claim": graph.claims[v]}
        return {"question": graph.problem, **claim, **context_of(graph)}

    async def _run(self, chat, graph):
        n = graph.n_claims
        asked = [None] if self.per == "answer" else range(n)
        verdicts = await gather_coroutines(
            *(self._judge(chat, graph, v) for v in asked if n)
        )
        table = np.array(verdicts, dtype=float).reshape(n, 2)
        if n_none := np.isnan(table[:, 0]).sum():
            chat.flag(f"{n_none} of {n} claims have no verdict")
        refused = "logprobs" in chat.left_out
        if self.log_odds and not refused and np.isnan(table[:, 1]).sum() > n_none:
            chat.engine.warn_once(_NO_ODDS)
        return table[:, : len(self.names)]

    async def _judge(self, chat, graph, v):
        """Return the verdict and the log odds of one claim, or of all claims."""
        n = graph.n_claims
        kind = self._reply if v is None else Verdict
        if not self.why:
            kind = BareVerdict
        question = self._question(graph, v)
        shown = "\n".join(texts_in(question))

        def read(reply):
            if v is not None:
                return _judged([read_verdict(reply, shown)], reply)
            rows = read_object(reply.text, kind).verdicts
            number_rows(rows, n)
            table = _judged([row.verdict for row in rows], reply)
            return table[np.argsort([row.claim for row in rows])]

        schema = schema_of(kind)
        odds = bool(self.log_odds)
        try:
            return await chat.ask(
                self.wording(),
                question,
                read,
                schema=schema,
                limit=self._limit(1 if v is not None else n),
                logprobs=odds,
            )
        except UnreadableError:
            return np.full((n if v is None else 1, 2), np.nan)


def _judged(verdicts, reply):
    """Return an array of verdicts (1 true, 0 false) and log odds."""
    true = [word == "true" for word in verdicts]
    return np.column_stack([true, log_odds(reply, verdicts)])


def describe_step(step: Any) -> dict[str, Any]:
    """Return the class, prompt and settings of a step, or the name of its function."""
    if not isinstance(step, Step):
        function = step
        options = {}
        if isinstance(step, partial):
            function = step.func
            options = step.keywords
        if function is split_sentences:
            options = splitter_of(**options)
        name = getattr(function, "__qualname__", type(function).__name__)
        full_name = f"{getattr(function, '__module__', None) or ''}.{name}"
        full_name = re.sub(r"^(skdcf\.apps\.\w+)\.\w+", r"\1", full_name)
        return {"function": full_name, **json.loads(json.dumps(options, default=repr))}
    settings = step.get_params(deep=False) | {"prompt": step.wording().name}
    plain = json.loads(json.dumps(settings, default=lambda number: number.item()))
    return {"step": type(step).__name__, **plain}


class _Label(Step):
    """Step that labels all claims of a problem as "true", "false" or "unsure" in one call."""

    _prompt_name = "labels"
    _reply = verdicts_of("true", "false", "unsure")


def judge_labels(
    graphs: Sequence[ReasoningGraph],
    model: str,
    client: Any = None,
    *,
    prompt: str | Path | None = None,
) -> Bunch:
    """Label claims with a model, and record the source of the labels.

    Use these labels to assist human annotators, or as a temporary substitute for human labels. A
    filter calibrated only on such labels issues a warning, because the guarantee then refers to
    the verdicts of the model. `skdcf.apps.labelling.agreement` compares these labels with human
    labels.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        Graphs with claims. For a graph with a context, label 1 means that the context supports
        the claim, and the provenance records this meaning (``label_meaning``).
    model : str
        Name of the judge model, which should differ from the model that wrote the answers.
    client : ChatClient or callable, optional
        Client for the model. The default is ``ChatClient()``.
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "labels".

    Returns
    -------
    dataset : Bunch
        ``graphs`` is a GraphBatch with the judge and the prompt in the provenance
        (``label_source``, ``label_prompt``). ``labels`` is a list of int arrays, in which 1 means
        true and 0 means false or unsure.

    Raises
    ------
    CallError
        If calls failed. The replies to the other calls are in the cache of the client.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.llm import judge_labels
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "false"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 5"])
    >>> judge_labels([graph], "any", complete).labels
    [array([0])]
    """
    step = _Label(prompt)
    graphs = list(graphs)
    verdicts = step.apply(graphs, model=model, client=client)
    marked = []
    labels = LabelList()
    for graph, row in zip(graphs, verdicts, strict=True):
        meant = {"label_meaning": "supported"} if graph.context else {}
        source = {"label_source": f"model {model}", "label_prompt": step.wording().name}
        provenance = meant | (graph.provenance or {}) | source
        marked.append(graph.replace(provenance=provenance))
        labels.append(np.maximum(row, 0))
    return Bunch(graphs=GraphBatch.from_graphs(marked), labels=labels)
