"""Steps that call a model to convert an answer to a graph with feature columns.

The steps sample alternative answers, split an answer into claims, deduce the edges between
claims, and compute feature columns from the verdicts of a judge. `judge_labels` labels claims.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from importlib.resources import files
from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from ..._parameters import Number, Settings, positive
from ...datasets.thoughts import without_thoughts
from ...edges import cited_edges
from ...graphs import GraphBatch, ReasoningGraph
from ...labels import LabelList
from ._model import CallError, UnreadableError, run_all
from ._replies import (
    bounded,
    log_odds,
    number_rows,
    object_of,
    read_object,
    read_verdict,
    rows_of,
    verdicts_of,
)


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


@dataclass(eq=False, repr=False)
class Step(Settings):
    """Base class of the steps that convert a model's answers to input for a filter.

    A subclass defines its prompt and the JSON schema of the reply, whose property is a list with
    one row per claim. The method ``_question`` returns the model input for one problem, and the
    method ``_read`` interprets the rows. The default implementations ask for a verdict on each
    claim of a graph. A step that makes several calls overrides ``_run``.
    """

    _prompt_name: ClassVar[str]
    #: Words for -1, 0 and 1, if the reply is a verdict on each claim.
    _words: ClassVar[tuple[str, ...]]
    _reply: ClassVar[dict[str, Any]]
    _parameter_constraints = {"prompt": [str, None], "model": [str, None]}

    prompt: str | None = None
    _: KW_ONLY
    model: str | None = None

    def _question(self, *item):
        [graph] = item
        rows = number_texts(graph.claims)
        for v, row in enumerate(rows):
            row["builds_on"] = (graph.edges[graph.edges[:, 1] == v, 0] + 1).tolist()
        return {"question": graph.problem, "claims": rows, **context_of(graph)}

    def _read(self, rows, *item):
        rows = number_rows(rows, item[0].n_claims)
        return np.array(
            [self._words.index(row["verdict"]) - 1 for row in rows], dtype=np.int64
        )

    async def _run(self, run, *item):
        """Return the result of the step for one problem."""
        question = self._question(*item)
        # An answer is expected to have a claim for each 120 characters.
        n_rows = len(question.get("claims", ()))
        n_rows = n_rows or ceil(len(question.get("answer", "").strip()) / 120)
        if not n_rows:  # There are no claims to verify.
            return self._read([], *item)

        def read(reply):
            [rows] = read_object(reply.text, self._reply).values()
            return self._read(rows, *item)

        return await self._ask(run, question, read, schema=self._reply, n_rows=n_rows)

    async def _ask(self, run, question, read, *, n_rows, schema=None, **options):
        # A longer reply is probably repetitive.
        limit = 300 + 150 * n_rows
        return await run.ask(
            self.wording(),
            question,
            read,
            model=self.model,
            limit=limit,
            schema=schema and bounded(schema, question),
            **options,
        )

    def wording(self):
        """Return the prompt of this step.

        The prompt is part of the cache key, so replies to different prompts are cached separately.
        The input (questions, answers, claims) is never inserted into a prompt. The input follows
        the prompt as a JSON object.

        Returns
        -------
        prompt : Prompt
            The built-in prompt, or the prompt passed by the caller.
        """
        name = self._prompt_name
        if self.prompt is None:
            file = files("skdcf.apps.llm").joinpath("prompts", f"{name}.txt")
            return Prompt(name, file.read_text("utf-8").strip())
        text = self.prompt.strip()
        if not text:
            raise ValueError(f"the prompt that replaces {name} must not be empty")
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return Prompt(f"{name.partition('-')[0]}-own-{digest}", text)

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
        results, _ = run_all(client, items, partial(call_step, self), model)
        for i, error in enumerate(results):
            if isinstance(error, CallError):
                raise type(error)(f"problem {i}: {error}") from error
        return results


async def call_step(step, run, *item):
    """Return the result of a step, or of a callable that replaces the step."""
    if isinstance(step, Step):
        return await step._run(run, *item)
    result = step(*item)
    return await result if inspect.isawaitable(result) else result


def number_texts(texts):
    """Return numbered rows for the input of a model, with one row per text."""
    return [{"claim": v, "text": text} for v, text in enumerate(texts, 1)]


def context_of(graph):
    """Return the passages that must support the answer, as model input."""
    return {"context": list(graph.context)} if graph.context else {}


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
    prompt : str, optional
        Instructions for the model. The default is the built-in prompt
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

    _prompt_name = "decompose-3"
    _reply = rows_of("claims", span="string", text="string")

    def _question(self, answer, problem):
        return {"question": problem, "answer": answer}

    def _read(self, rows, answer, problem):
        claims = []
        for row in rows:
            if not row["text"]:
                raise ValueError("the reply must not contain empty texts")
            claims.append(Claim(row["text"]))
            claims[-1].span = row["span"]
        if claims and not any(c.isalnum() for claim in claims for c in claim):
            # A model may copy the "..." from an example in the prompt.
            raise ValueError("the texts in the reply must contain a letter or digit")
        return claims


@dataclass(eq=False, repr=False, kw_only=True)
class DeduceGraph(Step):
    """Use a model to deduce the dependencies between claims.

    The method `apply` requires lists of claims and problems. `apply` returns a list of edges for
    each problem, or None if no graph could be read.

    If the claims cite their premises, as in "(by #2 #4)", the model is not called. If the graph
    is malformed or claims depend on later claims, the model is asked again with a description of
    the error. If the third reply is still malformed, an extractor adds a flag, and every claim
    depends on the previous claim, which is conservative.

    Parameters
    ----------
    prompt : str, optional
        Instructions for the model. The default is the built-in prompt
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
    [[(0, 1)]]
    """

    _prompt_name = "graph-1"
    _reply = rows_of(
        "premises",
        claim="integer",
        builds_on={"type": "array", "items": {"type": "integer"}},
    )

    def _question(self, claims, problem):
        return {"question": problem, "claims": number_texts(claims)}

    def _read(self, rows, claims, problem):
        edges = []
        for v, row in enumerate(number_rows(rows, len(claims))):
            # A list [0] means that there are no premises, because claim numbers start at 1.
            premises = {u - 1 for u in row["builds_on"] if row["builds_on"] != [0]}
            if wrong := premises - {*range(v)}:
                raise ValueError(
                    f"claim {v + 1} must only depend on earlier claims, but it depends on "
                    f"claim {min(wrong) + 1}"
                )
            edges += [(u, v) for u in sorted(premises)]
        return edges

    async def _run(self, run, claims, problem):
        cited = cited_edges(claims, problem)
        if cited or len(claims) < 2:
            return cited
        with suppress(UnreadableError):
            return await super()._run(run, claims, problem)


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
    prompt : str, optional
        Instructions that precede the question. The default is the
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
    the seeds i + 1000 and i + 2000. If these attempts also fail, the answer is omitted, and the
    extractor adds a flag.

    Examples
    --------
    >>> from skdcf.apps.llm import SampleAnswers
    >>> def complete(messages, *, seed, **options):
    ...     return f"{messages[1]['content']} {3 + seed}"
    >>> SampleAnswers(2).apply(["2 + 2 ="], model="any", client=complete)
    [['2 + 2 = 4', '2 + 2 = 5']]
    """

    _prompt_name = "answer-2"
    _parameter_constraints = Step._parameter_constraints | {
        "n": [positive(Integral)],
        "temperature": [Number(Real, 0, 2, closed="both")],
    }

    n: int = 5
    _: KW_ONLY
    prompt: str | None = None
    temperature: float = 1.0

    async def _run(self, run, problem, context=None):
        if not isinstance(problem, str) or not problem.strip():
            raise ValueError(
                "each problem must have a question, because other answers to the question "
                "are sampled"
            )
        question = problem
        if context:
            passages = json.dumps({"context": list(context)}, ensure_ascii=False)
            question += f"\n\n{passages}"

        async def sample(seed):
            with suppress(UnreadableError):
                return await self._ask(
                    run,
                    question,
                    _said,
                    n_rows=12,
                    seed=seed,
                    temperature=float(self.temperature),
                )

        texts = await asyncio.gather(*map(sample, range(1, self.n + 1)))
        return [text for text in texts if text is not None]


def _said(reply):
    """Return the text of an answer, or raise ValueError if the answer is unusable."""
    text = without_thoughts(reply.text).strip()
    # the languages in which models are used most often
    refusal = re.match(
        r"""(?ix)\W*(?:
        (?:i'?m|i\ am|we\ are)?\ ?(?:very\ )?(?:sorry|unable|afraid)\b
        | (?:i|we)\ (?:can(?:no|')t|can\ not|won't|will\ not)
          \ (?:help|assist|answer|provide|comply|do|fulfill)
        | as\ an\ ai\b
        | (?:es\ )?tut\ mir\ (?:sehr\ )?leid\b
        | ich\ kann\ .{0,40}\bnicht\ (?:helfen|beantworten)
        | (?:je\ suis\ )?désolée?\b | je\ ne\ (?:peux|suis)\ pas\b
        | lo\ siento\b | no\ puedo\ (?:ayudar|responder|proporcionar|cumplir)
        | mi\ dispiace\b | non\ posso\ (?:aiutar|rispondere|fornire)
        | desculpe\b | (?:eu\ )?(?:sinto|lamento)\ muito\b
        | não\ posso\ (?:ajudar|responder|fornecer)
        | het\ spijt\ me\b | przepraszam\b | üzgünüm\b
        | извините\b | простите\b | к\ сожалению,?\ я\ не\ могу\b
        | (?:非常|很)?抱歉 | 对不起 | 對不起 | 我(?:无法|無法|不能)
        | 申し訳 | すみません | 죄송 | عذر[اًا] | آسف
        )""",
        text,
    )
    is_refused = refusal is not None and len(text) < 400
    if not text or is_refused or reply.finish_reason in ("content_filter", "length"):
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
    prompt : str, optional
        Instructions for the model. The default is the built-in prompt
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
    _prompt_name = "frequency-3"
    _words = "contradicts", "silent", "supports"
    _reply = verdicts_of(*_words)

    def _question(self, graph, other):
        claims = number_texts(graph.claims)
        return {
            "question": graph.problem,
            "claims": claims,
            "other": other,
            **context_of(graph),
        }

    async def _run(self, run, graph):
        if graph.alternatives is None:
            raise ValueError(
                f"{graph.id or graph.problem!r} must have alternatives, because Frequency "
                "compares an answer with other answers to the same question. Sample other "
                "answers with SampleAnswers or --samples"
            )
        alternatives = graph.alternatives if graph.n_claims else ()
        vote = super()._run
        votes = await asyncio.gather(
            *(vote(run, graph, alternative) for alternative in alternatives)
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
    prompt : str, optional
        Instructions for the model. The default is the built-in prompt
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

    names = (
        "claim_index",
        "coherent_to_ancestors",
        "inference_gap_size",
        "has_missing_dependencies",
        "has_unnecessary_dependencies",
        "problem_relevance",
        "uses_problem_data",
        "is_well_formed",
    )
    _prompt_name = "semantic-1"
    _ratings = {
        name: {"type": "number", "minimum": 0, "maximum": 1} for name in names[1:]
    }
    _ratings["inference_gap_size"]["maximum"] = 5
    _reply = rows_of("ratings", claim="integer", **_ratings)

    def _read(self, rows, graph):
        rows = number_rows(rows, graph.n_claims)
        table = [
            [v, *(row[name] for name in self.names[1:])] for v, row in enumerate(rows)
        ]
        return np.array(table, dtype=float).reshape(graph.n_claims, len(self.names))


class Verify(Step):
    """Compute the verdict of a judge on each claim, and the log odds of the verdict.

    The frequency score identifies most of the doubtful claims. At strict levels, the verdicts of
    a judge are a stronger signal for the remaining doubtful claims. The step makes one call per
    claim, which asks for a reason and a verdict, given the premises of the claim. The columns are
    ``judge_verdict`` (1 true, 0 false) and ``judge_log_odds``. The log odds are the difference
    between the log-probabilities of "true" and "false" at the position of the verdict, clipped to
    the range from -14 to 14. The method `apply` accepts a list of graphs and returns an array of
    shape (n_claims, 2) for each graph.

    Parameters
    ----------
    prompt : str, optional
        Instructions for the model. The default is the built-in prompt "verify".
    model : str, optional
        Name of the judge model, which should differ from the model that wrote the answers.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    A reply without a verdict is requested again. If a claim has no verdict after three requests,
    both columns are NaN, and an extractor replaces them by the columns of a claim that is
    certainly false. If the position of a verdict is not found, or if the log-probabilities
    contradict the verdict, the log odds are +1 for "true" and -1 for "false". The same numbers are
    used if the endpoint returns no log-probabilities. Then a warning is issued, and the value of
    the provenance key ``left_out`` contains "logprobs".
    """

    names = ("judge_verdict", "judge_log_odds")
    _prompt_name = "verify-3"
    _reply = object_of(
        why="string", verdict={"type": "string", "enum": ["true", "false"]}
    )

    async def _run(self, run, graph):
        verdicts = await asyncio.gather(
            *(self._judge(run, graph, v) for v in range(graph.n_claims))
        )
        return np.array(verdicts, dtype=float).reshape(-1, 2)

    async def _judge(self, run, graph, v):
        """Return the verdict (1 true, 0 false) and the log odds of a claim."""

        def read(reply):
            verdict = read_verdict(reply, self._reply)
            return verdict == "true", log_odds(reply, verdict)

        premises = [graph.claims[u] for u, child in graph.edges if child == v]
        question = {
            "question": graph.problem,
            "premises": premises,
            "claim": graph.claims[v],
            **context_of(graph),
        }
        try:
            return await self._ask(
                run, question, read, n_rows=1, schema=self._reply, logprobs=True
            )
        except UnreadableError:
            return np.nan, np.nan


def describe_step(step):
    """Return the class, prompt and settings of a step, or the name of its function."""
    if isinstance(step, Step):
        settings = step.get_params(deep=False) | {"prompt": step.wording().name}
        return {"step": type(step).__name__, **settings}
    function = getattr(step, "func", step)
    name = getattr(function, "__qualname__", type(function).__name__)
    return {"function": name, **getattr(step, "keywords", {})}


class _Label(Step):
    """Step that labels all claims of a problem as "true", "false" or "unsure" in one call."""

    _prompt_name = "labels-3"
    _words = "unsure", "false", "true"
    _reply = verdicts_of(*_words)


def judge_labels(
    graphs: Sequence[ReasoningGraph],
    model: str,
    client: Any = None,
    *,
    prompt: str | None = None,
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
    prompt : str, optional
        Instructions for the model. The default is the built-in prompt
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
        provenance = {
            **meant,
            **(graph.provenance or {}),
            "label_source": f"model {model}",
            "label_prompt": step.wording().name,
        }
        marked.append(graph.replace(provenance=provenance))
        labels.append(np.maximum(row, 0))
    return Bunch(graphs=GraphBatch.from_graphs(marked), labels=labels)
