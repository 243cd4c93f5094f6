"""Extraction of reasoning graphs from problems and answers, as a scikit-learn transformer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin
from tqdm.auto import tqdm

from ..._parameters import Settings, StrOptions
from ...features import add_surprisal, logprobs_of_claims
from ...graphs import GraphBatch, ReasoningGraph
from ...graphs.sources import FLAGGED
from ...graphs.wordings import rows_of_claims
from . import _client as clients
from . import _steps
from ._client import ChatClient, Estimate, Step, call_step, count_tokens
from ._errors import CallError
from ._flags import flag_of_text, flagged_claims, stated_by, texts_of
from ._reply import Usage
from ._sentences import pieces_of
from ._session import MOST_ASKS, MOST_PER_LIMIT, gather_coroutines
from ._steps import (
    Decompose,
    DeducedGraph,
    DeduceGraph,
    Reword,
    SampleAnswers,
    Verify,
    describe_writer,
)

_MARKS = re.compile(r"^\s*(?:[-*\u2022#>]+\s+|\d+[.)]\s+)|[.!?\u3002\s]+$")


class Answer(NamedTuple):
    """A problem with its answer, before extraction.

    Parameters
    ----------
    problem : str or None
        The question.
    answer : str or None
        The answer. If None, `ConformalFactualityPipeline` lets the model answer.
    id : str or int or None
        Identifier for messages and files.
    alternatives : sequence of str or None
        Other answers to the same question, if there are any already.
    metadata : dict or None
        Additional data of the problem, such as the values that define the groups of a guarantee,
        and ``group``, which identifies the question.
    context : str, sequence of str or None
        Passages that must support the answer. None if they are unknown.
    logprobs : dict, list or None
        The log-probabilities of the tokens of the answer, as in the response of a chat
        completion. They become the columns of `skdcf.features.Surprisal`.
    """

    problem: str | None
    answer: str | None
    id: Any = None
    alternatives: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    context: str | Sequence[str] | None = None
    logprobs: Any = None


@dataclass(frozen=True)
class Extraction:
    """The result of extracting one answer.

    Parameters
    ----------
    graph : ReasoningGraph
    answer : Answer
    flags : tuple of str
        Anything unusual, such as a graph that had to be repaired.
    usage : Usage
        Cost of the extraction.
    flagged : tuple of int
        Positions of claims that may not say what the answer says.
    """

    graph: ReasoningGraph
    answer: Answer
    flags: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    flagged: tuple[int, ...] = ()


def read_answers(X: Iterable[Any], *, ask: bool = False) -> list[Answer]:
    """Convert the input to answers. The ValueError names the first invalid item.

    With ``ask``, answers may be missing, and an item may be a question only.
    """
    if isinstance(X, (str, bytes, Mapping)):
        raise ValueError(
            f"X must be a list of problems and answers, got a {type(X).__name__}"
        )
    answers = [_read_answer(i, item, ask) for i, item in enumerate(X)]
    without = [i for i, answer in enumerate(answers) if answer.logprobs is None]
    if without and len(without) < len(answers):
        raise ValueError(
            f"problem {without[0]} has no logprobs, but others have them. Either all answers "
            "or none of them need logprobs"
        )
    return answers


def _read_answer(i, item, ask):
    """Convert one item to an answer, so that invalid items are found before the first call."""
    names = Answer._fields
    if isinstance(item, str) and ask:
        item = {"problem": item}
    elif isinstance(item, tuple) and 2 <= len(item) <= len(names):
        item = dict(zip(names, item, strict=False))
    if not isinstance(item, Mapping):
        raise ValueError(
            f'problem {i} must be (problem, answer) or a dictionary with "problem" and '
            f'"answer", got a {type(item).__name__}'
        )
    if unknown := sorted(map(str, item.keys() - {*names, "group"})):
        raise ValueError(
            f"problem {i} has unknown keys {unknown}; the valid keys are {names}. The question is "
            'the "problem". Put other keys into "metadata"'
        )
    group = {} if item.get("group") is None else {"group": item["group"]}
    try:
        return _checked(ask, group, **{n: _whole(item.get(n)) for n in names})
    except ValueError as error:
        raise ValueError(f"problem {i}: {error}") from error


def _checked(ask, group, answer, id, context, logprobs, **others):
    """Create an answer, checking its values."""
    context = (context,) if isinstance(context, str) else context
    graph = ReasoningGraph(None, (), claims=(), context=context, **others)
    if not isinstance(id, str | int | None) or isinstance(id, bool):
        raise ValueError(f"its id must be a text or an integer, got {id!r}")
    asked = answer is None and ask and (graph.problem or "").strip()
    if not (isinstance(answer, str) or asked):
        raise ValueError(
            f"its answer must be a text, got {answer!r}. Only a pipeline accepts a question "
            "without an answer"
        )
    if logprobs is not None:
        logprobs_of_claims(logprobs, answer or "", ())
    metadata = {**(graph.metadata or {}), **group} or None
    return Answer(
        problem=graph.problem,
        answer=answer,
        id=id,
        alternatives=graph.alternatives,
        metadata=metadata,
        context=graph.context,
        logprobs=logprobs,
    )


def _whole(value):
    """Return a text in which surrogate pairs are joined and unpaired surrogates replaced."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return (
        [_whole(item) for item in value] if isinstance(value, list | tuple) else value
    )


def make_graph(answer: Answer, claims: Sequence[Any], edges: Any) -> ReasoningGraph:
    """Create the graph of an answer, with the words that state each claim in its metadata.

    Words that equal the text of the claim are left out. The log-probabilities of the answer
    become columns.
    """
    spans = {str(c): c.span for c in claims if getattr(c, "span", c) not in ("", c)}
    metadata = {**(answer.metadata or {}), "answer": answer.answer}
    metadata |= {"spans": spans} if spans else {}
    shared = answer._asdict() | {"metadata": metadata}
    del shared["answer"], shared["logprobs"]
    texts = [str(claim) for claim in claims]
    graph = ReasoningGraph(None, edges, claims=texts, **shared)
    if answer.logprobs is None:
        return graph
    words = [spans.get(text, text) for text in texts]
    of_claims = logprobs_of_claims(answer.logprobs, answer.answer or "", words)
    return add_surprisal(graph, of_claims)


def cut_answer(graph: ReasoningGraph, kept: Sequence[bool]) -> str:
    """Return the answer without sentences that are not entirely in words of kept claims.

    If the words of a kept claim are not found verbatim in the answer, they keep nothing. If the
    words of a dropped claim are not found, the whole answer is removed, since the claim may be
    stated anywhere.
    """
    mask = np.asarray(kept, dtype=bool)
    if graph.wordings is not None:  # the answer contains the most specific wordings
        mask = mask[[rows[0] for rows in rows_of_claims(graph)]]
        graph = graph.shown()
    answer, stated = stated_by(graph)
    if not stated[~mask].any(axis=1).all():
        return ""
    good = stated[mask].any(axis=0) & ~stated[~mask].any(axis=0)
    text = ""
    end = 0
    for sentence in pieces_of(answer):
        stated_by_kept = good[end : end + len(sentence)]
        end += len(sentence)
        is_letter = np.array([not c.isspace() for c in sentence], dtype=bool)
        for match in _MARKS.finditer(sentence):  # bullets and punctuation at the end
            is_letter[slice(*match.span())] = False
        if is_letter.any() and stated_by_kept[is_letter].all():
            text += sentence
    return text.strip()


_FIRST = 20  # number of first answers from which the cost of the others is estimated
_FEW = 5  # number of first answers before a run that needs confirmation
_UNDERRATED = 20  # factor by which an estimate may be too low before it is corrected
_TOKENS_OF_ANSWER = 300  # expected length of an answer written by the model


@dataclass(eq=False, repr=False)
class ClaimExtractor(TransformerMixin, Settings):
    """Turn problems and answers into reasoning graphs, with a language model.

    Each answer is split into claims. Then the dependencies of the claims are deduced, other
    answers to the problem are sampled, and features of the claims are computed. Each of these
    steps is an object with its own settings, and any callable can be used instead.

    Parameters
    ----------
    model : str, optional
        Name of the model at the endpoint. Only needed if a step calls a model and does not set
        another one.
    client : ChatClient or callable, optional
        Client for the model. A callable gets the messages and returns a text. If None, use
        ``ChatClient()``: OpenAI's endpoint, or the address in ``OPENAI_BASE_URL``.
    decompose : Decompose or callable, optional
        ``decompose(answer, problem)`` returns the claims, in order. If None, use `Decompose`.
    graph : DeduceGraph or callable, optional
        ``graph(claims, problem)`` returns the edges, as the functions of `skdcf.edges` do. If
        None, use `DeduceGraph`.
    sample : SampleAnswers or callable, optional
        ``sample(problem)`` returns other answers, for problems that have none yet. If None, none
        are sampled.
    reword : Reword or callable, optional
        ``reword(claims, problem)`` returns the wordings of each claim, from the claim itself to
        the vaguest wording. If None, claims have a single wording.
    features : sequence, optional
        Steps that compute feature columns: `Frequency`, `SemanticJudge`, `Verify`, or pairs
        ``(name, callable)``, where ``callable(graph)`` returns an array of shape (n_claims,). If
        None, there are no feature columns. Pass features that need no model, such as
        `skdcf.features.reasoning_features`, to the filter instead (``features=``).
    on_failure : {"raise", "abstain"}
        What to do if a model gives no usable reply: raise an error after the other problems are
        done, or return a graph without claims, of which nothing can be kept.
    keep_flagged : bool, default=False
        Whether filters may keep flagged claims: claims whose words are not in the answer, claims
        with a number that is neither in the answer nor in the question, and repeated claims. The
        setting holds both in calibration and in use, and is part of the description that filters
        compare.
    confirm : callable, optional
        ``confirm(estimate)`` returns whether a run above the limit of the client may start. If
        None, ask at the terminal. Without a terminal, the run does not start.
    verbose : bool, default=False
        Whether to print the estimated cost of a run, and its progress.

    Attributes
    ----------
    usage_ : Usage
        Cost of the last run.

    Raises
    ------
    ValueError
        If a parameter or the input is invalid, or if a run above the limit was not confirmed.
    CallError
        If calls failed. The replies to the other calls are in the cache of the client.

    Notes
    -----
    Nothing is learned: `fit` only validates the parameters. Each answer is extracted independently
    of the others. Calibration and use must extract with the same models, prompts and numbers of
    alternative answers.

    The metadata of a graph record how it was made:

    * ``answer``: text of the answer
    * ``written_by``: model and prompt, if the model wrote the answer
    * ``extraction``: the model, the steps and the parameters that the endpoint does not accept
      (``left_out``). Filters compare ``written_by`` and ``extraction``.
    * ``spans``: words of the answer that state a claim
    * ``flags``: anything unusual
    * ``flagged_claims``: claims that may not say what the answer says
    * ``no_verdict``: claims without a verdict of the judge. Filters drop these and the flagged
      claims, together with the claims that depend on them.
    * ``log_odds_missing``: share of verdicts without log odds. The column is then 0, and the
      description says "missing".

    Texts of answers are treated as data. They are passed to a model as JSON, separate from the
    instructions. Only the expected fields of a reply are read, and labels never come from a reply.

    Examples
    --------
    >>> from skdcf.edges import chain_edges
    >>> from skdcf.apps.llm import ClaimExtractor
    >>> def complete(messages):
    ...     return '{"claims": ["2 + 2 = 4", "so it is even"]}'
    >>> extractor = ClaimExtractor("any", complete, graph=chain_edges)
    >>> batch = extractor.fit_transform([("Is 2 + 2 even?", "2 + 2 = 4, so it is even.")])
    >>> batch[0].claims, batch[0].edges.tolist()
    (('2 + 2 = 4', 'so it is even'), [[0, 1]])
    """

    _parameter_constraints = {
        "model": [str, None],
        "client": [ChatClient, callable, None],
        **{
            key: [Step, callable, None]
            for key in ("decompose", "graph", "sample", "reword")
        },
        "features": ["array-like", None],
        "on_failure": [StrOptions({"raise", "abstain"})],
        "keep_flagged": ["boolean"],
        "confirm": [callable, None],
        "verbose": ["verbose"],
    }

    model: str | None = None
    client: Any = None
    _: KW_ONLY
    decompose: Decompose | Callable | None = None
    graph: DeduceGraph | Callable | None = None
    sample: SampleAnswers | Callable | None = None
    reword: Reword | Callable | None = None
    features: Sequence | None = None
    on_failure: str = "raise"
    keep_flagged: bool = False
    confirm: Callable[[Estimate], bool] | None = None
    verbose: bool = False

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], client: Any = None, **settings: Any
    ) -> Self:
        """Rebuild the extractor of the problems in a file, without its address.

        Parameters
        ----------
        description : dict
            Result of `describe`: the field ``extraction`` in the metadata of a graph.
        client : ChatClient or callable, optional
            See the constructor.
        **settings
            ``on_failure``, ``confirm`` or ``verbose``.

        Returns
        -------
        ClaimExtractor

        Raises
        ------
        ValueError
            If a step used a prompt or a function that is not part of this package.
        """
        steps = {name: _steps.rebuild(s) for name, s in description["steps"].items()}
        # A file may have sorted the names as text, with [10] before [2].
        names = sorted((n for n in steps if n.startswith("features")), key=len)
        columns = [steps.pop(name) for name in names] or None
        settings = {"keep_flagged": description.get("keep_flagged", False)} | settings
        return cls(description["model"], client, features=columns, **steps, **settings)

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or cannot be used."""
        super().validate()
        clients.as_client(self.client).validate()
        for name, step in self.steps().items():
            if isinstance(step, type) or not isinstance(step, Step | Callable):
                raise ValueError(f"{name} must be a step or a function, got {step!r}")
            clients.check_step(name, step, self.model)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Validate the parameters. Nothing is learned and no model is called.

        Parameters
        ----------
        X, y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self
            The extractor.
        """
        self.validate()
        return self

    def transform(self, X: Iterable[Any]) -> GraphBatch:
        """Extract the graphs.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            Dictionaries must have the key ``answer``, and may have ``problem``, ``id``, ``group``,
            ``alternatives``, ``context``, ``logprobs`` and ``metadata``.

        Returns
        -------
        GraphBatch
            One problem per answer, in order.
        """
        return GraphBatch.from_graphs([e.graph for e in self.extract(X)])

    def extract(self, X: Iterable[Any], *, write: bool = False) -> list[Extraction]:
        """Extract the graphs, and report anything unusual.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            See `transform`.
        write : bool, default=False
            Whether the model writes missing answers, in the same manner as in
            `ConformalFactualityPipeline`.

        Returns
        -------
        list of Extraction
            One per answer, in order.
        """
        return clients.finish(
            self._extracting(ChatClient._now, X, self.on_failure, write=write)
        )

    async def aextract(
        self, X: Iterable[Any], *, write: bool = False
    ) -> list[Extraction]:
        """Extract the graphs in a running event loop, see `extract`.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            See `transform`.
        write : bool, default=False
            See `extract`.

        Returns
        -------
        list of Extraction
            One per answer, in order.
        """
        return await self._extracting(
            ChatClient._later, X, self.on_failure, write=write
        )

    def add_features(self, graphs: Iterable[ReasoningGraph]) -> GraphBatch:
        """Sample other answers and compute feature columns for existing graphs.

        Use this method after people have corrected claims or edges, because earlier verdicts of a
        judge no longer apply.

        Parameters
        ----------
        graphs : sequence of ReasoningGraph
            Graphs with claims. Existing feature columns are dropped.

        Returns
        -------
        GraphBatch
            The graphs with the new columns.
        """
        self.validate()
        bare = [graph.replace(features=None, feature_names=None) for graph in graphs]
        enriched, self.usage_ = clients.run_all(
            self.client, bare, self._enrich, self.model, show=self.verbose
        )
        return GraphBatch.from_graphs(enriched)

    def estimate(self, X: Iterable[Any]) -> Estimate:
        """Estimate the cost of a run, without calling a model.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            See `transform`.

        Returns
        -------
        Estimate
            Numbers of calls and tokens, and the cost if prices are known.
        """
        self.validate()
        client = clients.as_client(self.client)
        answers = read_answers(X)
        return clients.finish(self._estimating(ChatClient._now, client, answers))

    def feature_names(self) -> list[str]:
        """Return the names of the feature columns.

        Returns
        -------
        list of str
            The names, in the order of the columns.
        """
        return [name for names, _ in self._columns() for name in names]

    def steps(self) -> dict[str, Any]:
        """Return all steps by name, including the default steps.

        Returns
        -------
        dict
            Steps, keyed by name.
        """
        named: dict[str, Any] = {"decompose": self.decompose or Decompose()}
        named |= {"graph": self.graph or DeduceGraph(), "sample": self.sample}
        named |= {"reword": self.reword}
        named |= {f"features[{i}]": s for i, (_, s) in enumerate(self._columns())}
        return {name: step for name, step in named.items() if step is not None}

    def describe(self) -> dict[str, Any]:
        """Describe the models and prompts that make the graphs, without addresses.

        Returns
        -------
        dict
            ``model``; ``samples``, the number of other answers sampled; ``keep_flagged``, if set;
            and ``steps``, with the settings and the prompt name, or the function name, of each
            step.
        """
        described = {name: _steps.describe(step) for name, step in self.steps().items()}
        for i, (names, _) in enumerate(self._columns()):
            if "function" in (description := described[f"features[{i}]"]):
                description["column"] = names[0]
        n = getattr(self.sample, "n", None)
        flagged = {"keep_flagged": True} if self.keep_flagged else {}
        return {"model": self.model, "samples": n, "steps": described, **flagged}

    def _columns(self):
        """Return the column names and the step of each element of ``features``."""
        out = []
        for i, step in enumerate(() if self.features is None else self.features):
            match step:
                case Step(names=names):
                    out.append((names, step))
                case (str() as name, function):
                    out.append(((name,), function))
                case _:
                    raise ValueError(
                        f"features[{i}] must be a step such as Frequency() or a pair (name, "
                        f"function), got {step!r}"
                    )
        return out

    async def _extract(self, chat, answer):
        """Run all steps for one answer, which the model writes if it is missing."""
        if answer.answer is None:
            answer = await self._write(chat, answer)
        steps = self.steps()
        text = answer.answer
        problem = answer.problem
        claims = await call_step(steps["decompose"], chat, text, problem)
        if not claims and text.strip():
            chat.flag("no claim was found in the answer")
        edges = await call_step(steps["graph"], chat, claims, problem)
        if isinstance(edges, DeducedGraph):
            chat.flag(edges.flag)
            edges = edges.edges
        plain = make_graph(answer, claims, edges)
        found = flagged_claims(plain)
        graph = await self._enrich(chat, await self._reworded(chat, plain))
        chat.flag(flag_of_text(plain))
        for text in texts_of(found):
            chat.flag(text)
        # A claim that the answer does not state is dropped in all its wordings.
        positions = rows_of_claims(graph)
        doubtful = sorted({v for rows in found.values() for v in rows})
        flagged = tuple(row for v in doubtful for row in positions[v])
        if flagged and not self.keep_flagged:
            metadata = {**(graph.metadata or {}), FLAGGED: list(flagged)}
            graph = graph.replace(metadata=metadata)
        extraction = self._told(
            graph, answer, chat.flags, usage=chat.usage, left_out=chat.left_out
        )
        return replace(extraction, flagged=flagged)

    async def _reworded(self, chat, graph):
        """Add the wordings of the claims to a graph, if requested."""
        if self.reword is None:
            return graph
        claims = list(graph.claims)
        wordings = await call_step(self.reword, chat, claims, graph.problem)
        return graph.replace(wordings=wordings)

    def _writer(self):
        sample = self.sample
        return sample if isinstance(sample, SampleAnswers) else SampleAnswers(1)

    async def _write(self, chat, question):
        """Let the model answer a question, and record in the metadata that it did."""
        writer = self._writer()
        text = await writer._answer(chat, question.problem, question.context)
        return self._written(question, text)

    def _written(self, question, text):
        writer = describe_writer(self._writer(), self.model)
        metadata = {**(question.metadata or {}), "written_by": writer}
        return question._replace(answer=text, metadata=metadata)

    async def _draw(self, chat, graph):
        """Sample other answers. Only `SampleAnswers` gets the passages as well."""
        if isinstance(self.sample, SampleAnswers):
            return await call_step(self.sample, chat, graph.problem, graph.context)
        return await call_step(self.sample, chat, graph.problem)

    async def _enrich(self, chat, graph):
        """Add other answers and feature columns to a graph."""
        if graph.alternatives is None and self.sample is not None:
            alternatives = await self._draw(chat, graph)
            graph = graph.replace(alternatives=alternatives)
        if not (columns := self._columns()):
            return graph
        tables = await gather_coroutines(
            *(call_step(s, chat, graph) for _, s in columns)
        )
        arrays = []
        no_verdict = np.zeros(graph.n_claims, dtype=bool)
        no_odds = np.zeros(graph.n_claims, dtype=bool)
        for table, (names, step) in zip(tables, columns, strict=True):
            array = _as_columns(table, names, graph)
            if isinstance(step, Verify):
                is_missing = np.isnan(array)
                no_verdict |= is_missing[:, 0]
                no_odds |= is_missing[:, -1] & ~is_missing[:, 0]
                array = np.nan_to_num(array)
            arrays.append(array)
        metadata = dict(graph.metadata or {})
        metadata.pop("log_odds_missing", None)
        metadata.pop("no_verdict", None)
        if no_verdict.any():
            metadata["no_verdict"] = np.flatnonzero(no_verdict).tolist()
        if no_odds.any():
            metadata["log_odds_missing"] = float(no_odds.mean())
            extraction = metadata.get("extraction")
            metadata["extraction"] = with_log_odds(extraction, "missing")
        names = self.feature_names()
        if graph.features is not None:
            arrays.insert(0, graph.features)
            names = [*graph.feature_names, *names]
        return graph.replace(
            features=np.hstack(arrays), feature_names=names, metadata=metadata
        )

    def _told(self, graph, answer, flags, *, usage, left_out=()):
        """Return the extraction, with metadata that record how the graph was made."""
        metadata = dict(graph.metadata or {})
        odds = "missing" if metadata.get("log_odds_missing") else True
        extraction = with_log_odds(self.describe(), odds)
        metadata["extraction"] = with_left_out(extraction, left_out)
        metadata |= {"flags": list(flags)} if flags else {}
        return Extraction(graph.replace(metadata=metadata), answer, tuple(flags), usage)

    async def _extracting(self, run, X, on_failure, *, write=False, agreed=False):
        """Return the result of `extract`. ``run`` is a method of the client that runs work.

        With ``agreed``, no confirmation is needed.
        """
        self.validate()
        client = clients.as_client(self.client)
        answers = read_answers(X, ask=write)
        estimate = await self._estimating(run, client, answers)
        spent = Usage()
        done = []
        share = clients.share_of_limit(client, estimate)
        first = self._count_first(client, answers, share)
        asks_later = share > 1 and first < len(answers)
        for some_answers in filter(None, (answers[:first], answers[first:])):
            if done:  # estimate the remaining cost from the first answers
                estimate = self._estimated(client, some_answers, some_answers, done)
            if self.verbose:
                tqdm.write(str(estimate), file=sys.stderr)
            if not agreed and (done or not asks_later):
                clients.check_budget(client, estimate, self.confirm, len(done))
            results, usage = await run(
                client, some_answers, self._extract, self.model, show=self.verbose
            )
            done += results
            spent += usage
        self.usage_ = spent
        if on_failure == "raise":
            clients.raise_first(done)
        pairs = zip(answers, done, strict=True)
        done = [self._failed(a, r) if isinstance(r, CallError) else r for a, r in pairs]
        return _agreeing(done)

    def _count_first(self, client, answers, share):
        """Return the number of answers to extract first, from which the other costs are estimated.

        If the estimate is above the limit, this is a small number, unless these answers alone
        exceed the limit. If it is below the limit but might be much too low, the number is larger.
        """
        few = self._estimated(client, answers[:_FEW], answers[:_FEW], [])
        if (
            share > 1
            and len(answers) > _FEW
            and clients.share_of_limit(client, few) <= 1
        ):
            return _FEW
        return _FIRST if 1 / _UNDERRATED < share <= 1 else len(answers)

    async def _estimating(self, run, client, answers):
        todo = answers
        estimates = []
        if client.cache is not None:
            estimates, _ = await run(
                client, answers, self._extract, self.model, dry=True
            )
            pairs = zip(answers, estimates, strict=True)
            todo = [answer for answer, e in pairs if isinstance(e, CallError)]
        return self._estimated(client, answers, todo, estimates)

    def _estimated(self, client, answers, todo, done):
        total = sum(map(self._expect, todo), np.zeros(4))
        total[:3] *= self._learnt(done)
        cost = None if client.prices is None else total[1:3] @ client.prices / 1e6
        n_calls, n_sent, n_received, most = map(round, total)
        if client.max_tokens is not None:
            most = MOST_ASKS * n_calls * client.max_tokens
        return Estimate(
            n_problems=len(answers),
            n_done=len(answers) - len(todo),
            calls=n_calls,
            prompt_tokens=n_sent,
            completion_tokens=n_received,
            cost=cost,
            most_completion_tokens=most,
        )

    def _expect(self, answer):
        """Estimate the cost of one answer."""
        alternatives = answer.alternatives
        is_written = answer.answer is None
        n = _TOKENS_OF_ANSWER if is_written else count_tokens(answer.answer)
        shared = sum(map(count_tokens, (answer.problem, *(answer.context or ()))))
        drawn = getattr(self.sample, "n", int(self.sample is not None))
        n_alternatives = drawn if alternatives is None else len(alternatives)
        steps = self.steps() | ({} if alternatives is None else {"sample": None})
        n_claims = n // clients.TOKENS_OF_CLAIM + 1
        expected = np.zeros(4)
        for step in steps.values():
            if isinstance(step, Step):
                expected += step._expect(shared, n, n_claims, n_alternatives)
        if is_written:
            prompt = count_tokens(self._writer().wording().text)
            expected += [1, prompt + shared, n, MOST_PER_LIMIT * _steps.LIMIT]
        return expected

    def _learnt(self, done):
        """Return the actual cost of the first answers relative to their estimate."""
        extractions = [e for e in done if isinstance(e, Extraction)][:_FIRST]
        needed = sum((e.usage.needed() for e in extractions), np.zeros(3))
        expected = sum((self._expect(e.answer)[:3] for e in extractions), np.zeros(3))
        is_counted = (needed > 0) & (expected > 0)  # endpoints may not count tokens
        return np.divide(needed, expected, out=np.ones(3), where=is_counted)

    def _failed(self, answer, error):
        """Return a graph without claims for a failed extraction, flagged with the reason."""
        if self.sample is not None and not answer.alternatives:
            answer = answer._replace(alternatives=())
        if answer.answer is None:
            answer = self._written(answer, None)
        graph = make_graph(answer, [], ())
        if names := [*(graph.feature_names or ()), *self.feature_names()]:
            table = np.zeros((0, len(names)))
            graph = graph.replace(features=table, feature_names=names)
        if self.reword is not None:
            graph = graph.replace(wordings=())
        flags = [f"extraction failed: {error}"]
        return self._told(graph, answer, flags, usage=Usage())


def with_log_odds(extraction: Any, odds: bool | str) -> Any:
    """Set in the description of an extraction whether log odds are present or "missing"."""
    if not isinstance(extraction, Mapping):
        return extraction
    steps = {
        name: {**step, "log_odds": odds} if step.get("log_odds") else step
        for name, step in extraction["steps"].items()
    }
    return {**extraction, "steps": steps}


def with_left_out(extraction: Any, left_out: Iterable[str]) -> Any:
    """Set in the description of an extraction which parameters the endpoint does not accept.

    Log-probabilities are not listed, since `with_log_odds` records whether they are missing.
    """
    if not isinstance(extraction, Mapping):
        return extraction
    rest = {key: value for key, value in extraction.items() if key != "left_out"}
    names = sorted(set(left_out) - {"logprobs"})
    return rest | ({"left_out": names} if names else {})


def as_asked(extraction: Any) -> Any:
    """Return the description of an extraction as requested, ignoring limits of the endpoint."""
    return with_left_out(with_log_odds(extraction, True), ())


def made_as(graph: ReasoningGraph, extraction: Any) -> ReasoningGraph:
    """Give a graph without claims the description of the others, since it needed fewer calls."""
    if graph.n_claims:
        return graph
    return graph.replace(metadata={**(graph.metadata or {}), "extraction": extraction})


def _agreeing(done):
    """Record for all extractions of a run what the endpoint does not return or accept.

    An answer may not need every call, and an answer without claims needs hardly any.
    """
    extractions = [e.graph.metadata["extraction"] for e in done]
    left_out = {name for each in extractions for name in each.get("left_out", ())}
    missing = [e.graph for e in done if e.graph.metadata.get("log_odds_missing")]
    out = []
    for e, extraction in zip(done, extractions, strict=True):
        graph = e.graph
        if missing and not graph.n_claims:
            extraction = missing[0].metadata["extraction"]
        metadata = graph.metadata | {"extraction": with_left_out(extraction, left_out)}
        out.append(replace(e, graph=graph.replace(metadata=metadata)))
    return out


def _as_columns(table, names, graph):
    table = np.asarray(table, dtype=float)
    n = graph.n_claims
    if table.shape not in ((n,), (n, len(names))):
        raise ValueError(
            f"step {names[0]!r} returned shape {table.shape} for {n} claims"
        )
    return table.reshape(n, len(names))
