"""From problems and answers to reasoning graphs, as a scikit-learn transformer."""

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
    """An answer to a problem, before anything is known about it.

    Parameters
    ----------
    problem : str or None
        The question.
    answer : str or None
        None where the model is to be asked, which `ConformalFactualityPipeline` does.
    id : str or int or None
        A name for messages and files.
    alternatives : sequence of str or None
        Other answers, where there are some already.
    metadata : dict or None
        Whatever else belongs to the problem, such as what a guarantee groups by, and
        ``group``, which names the question.
    context : str, sequence of str or None
        Passages that the answer has to be supported by; None where they are not known.
    """

    problem: str | None
    answer: str | None
    id: Any = None
    alternatives: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    context: str | Sequence[str] | None = None


@dataclass(frozen=True)
class Extraction:
    """The extraction of one answer, and how it went.

    Parameters
    ----------
    graph : ReasoningGraph
    answer : Answer
    flags : tuple of str
        What was not as it should be, such as a graph that had to be repaired.
    usage : Usage
        What it cost.
    flagged : tuple of int
        The claims that may not say what the answer says.
    """

    graph: ReasoningGraph
    answer: Answer
    flags: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    flagged: tuple[int, ...] = ()


def read_answers(X: Iterable[Any], *, ask: bool = False) -> list[Answer]:
    """Read what the caller passed as answers; ValueError names an item that is none.

    With ``ask``, an answer may be missing, and an item may be a question alone.
    """
    if isinstance(X, (str, bytes, Mapping)):
        raise ValueError(f"a {type(X).__name__} is no list of problems and answers")
    return [_read_answer(i, item, ask) for i, item in enumerate(X)]


def _read_answer(i, item, ask):
    """Read the items, so that all that could be wrong is found before the first call."""
    names = Answer._fields
    if isinstance(item, str) and ask:
        item = {"problem": item}
    elif isinstance(item, tuple) and 2 <= len(item) <= len(names):
        item = dict(zip(names, item, strict=False))
    if not isinstance(item, Mapping):
        raise ValueError(
            f"problem {i} is a {type(item).__name__}, but must be (problem, answer), or a "
            'dictionary with "problem" and "answer"'
        )
    if unknown := sorted(map(str, item.keys() - {*names, "group"})):
        raise ValueError(
            f"problem {i}: unknown keys {unknown}, not {names}. The question is the "
            '"problem", and all others go into "metadata"'
        )
    group = {} if item.get("group") is None else {"group": item["group"]}
    try:
        return _checked(ask, group, **{n: _whole(item.get(n)) for n in names})
    except ValueError as error:
        raise ValueError(f"problem {i}: {error}") from error


def _checked(ask, group, answer, id, context, **others):
    """Make an answer, of which every value is what it has to be."""
    context = (context,) if isinstance(context, str) else context
    graph = ReasoningGraph(None, (), claims=(), context=context, **others)
    if not isinstance(id, str | int | None) or isinstance(id, bool):
        raise ValueError(f"its id is {id!r}, but must be a text or whole number")
    asked = answer is None and ask and (graph.problem or "").strip()
    if not (isinstance(answer, str) or asked):
        raise ValueError(
            f"its answer is {answer!r}, but must be a text, unless a pipeline has a "
            "question to ask"
        )
    metadata = {**(graph.metadata or {}), **group} or None
    return Answer(
        problem=graph.problem,
        answer=answer,
        id=id,
        alternatives=graph.alternatives,
        metadata=metadata,
        context=graph.context,
    )


def _whole(value):
    """Texts whose half characters are joined, or replaced where the other one is lost."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return (
        [_whole(item) for item in value] if isinstance(value, list | tuple) else value
    )


def make_graph(answer: Answer, claims: Sequence[Any], edges: Any) -> ReasoningGraph:
    """The graph of an answer, and in its metadata the words that state each claim.

    Words that are the claim's own are left out.
    """
    spans = {str(c): c.span for c in claims if getattr(c, "span", c) not in ("", c)}
    metadata = {**(answer.metadata or {}), "answer": answer.answer}
    metadata |= {"spans": spans} if spans else {}
    shared = answer._asdict() | {"metadata": metadata}
    del shared["answer"]
    return ReasoningGraph(None, edges, claims=[str(c) for c in claims], **shared)


def cut_answer(graph: ReasoningGraph, kept: Sequence[bool]) -> str:
    """The answer itself, without the sentences that are not all in words of kept claims.

    Words of a claim that are not found word for word in the answer keep nothing; and
    where those of a dropped claim are not found, nothing is kept, since it may be stated
    anywhere.
    """
    mask = np.asarray(kept, dtype=bool)
    if graph.wordings is not None:  # the answer has the most specific wordings
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
        for match in _MARKS.finditer(sentence):  # bullets and what ends a sentence
            is_letter[slice(*match.span())] = False
        if is_letter.any() and stated_by_kept[is_letter].all():
            text += sentence
    return text.strip()


_FIRST = 20  # answers that tell what the others cost
_FEW = 5  # answers that tell it before somebody is asked to agree
_UNDERRATED = 20  # times that an estimate may be too low before it is made again
_TOKENS_OF_ANSWER = 300  # a guess, where the model writes the answer


@dataclass(eq=False, repr=False)
class ClaimExtractor(TransformerMixin, Settings):
    """Turn problems and answers into reasoning graphs, with a language model.

    Each answer is cut into claims, the claims get their dependencies, the problem other
    answers, and every claim its feature columns. Each of these steps is a value with
    settings of its own, and any callable can take its place.

    Parameters
    ----------
    model : str, optional
        Name of the model, as the endpoint knows it. Only needed where a step calls one
        and has none of its own.
    client : ChatClient or callable, optional
        Where the model is; a callable gets the messages and returns a text. None is
        ``ChatClient()``: OpenAI's endpoint, or that of ``OPENAI_BASE_URL``.
    decompose : Decompose or callable, optional
        ``decompose(answer, problem)`` gives the claims, in order. None is `Decompose`.
    graph : DeduceGraph or callable, optional
        ``graph(claims, problem)`` gives the edges, as the functions of `skdcf.edges` do.
        None is `DeduceGraph`.
    sample : SampleAnswers or callable, optional
        ``sample(problem)`` gives other answers, where a problem has none yet. None draws
        none.
    reword : Reword or callable, optional
        ``reword(claims, problem)`` gives for each claim its wordings, the claim itself first
        and the vaguest one last. None leaves every claim as it is.
    features : sequence, optional
        Steps that add columns: `Frequency`, `SemanticJudge`, `Verify`, or
        pairs ``(name, callable)``, where ``callable(graph)`` gives an array of shape
        (n_claims,). None adds none. Columns that need no model, such as those of
        `skdcf.features.reasoning_features`, belong to the filter: ``features=`` there.
    on_failure : {"raise", "abstain"}
        What to do where a model gives no usable reply: raise an error when everything
        else is done, or give a graph without claims, of which nothing can be kept.
    keep_flagged : bool, default=False
        Whether filters may keep claims that are flagged: those whose words are not in the
        answer, that have a number which neither the answer nor the question has, or that
        equal an earlier one. It holds in calibration and in use alike, and is part of the
        description that filters compare.
    confirm : callable, optional
        ``confirm(estimate)`` says whether a run above the client's limit may begin. None
        asks at the terminal, and says no where there is none.
    verbose : bool, default=False
        Whether to show what a run will cost, and its progress.

    Attributes
    ----------
    usage_ : Usage
        What the last run cost.

    Raises
    ------
    ValueError
        On a wrong parameter or input, or a run above the limit that nobody agreed to.
    CallError
        If calls failed; replies to the others are in the client's cache.

    Notes
    -----
    Nothing is learned: `fit` only looks at the parameters. What is extracted depends on
    one answer at a time. Calibration and use must extract in the same way, with the same
    models, prompts and numbers of other answers.

    The metadata of a graph say how it was made: ``answer``, the text; ``written_by``, the
    model and the prompt where the model wrote it; ``extraction``, the model, the steps and
    the parameters that the endpoint does not take (``left_out``), both of which filters
    compare; ``spans``, the words of the answer that
    state a claim; ``flags``, what was not as it should be; ``flagged_claims``, those that
    may not say what the answer says, and ``no_verdict``, those on which a judge gave no
    verdict, of both of which filters keep none, nor what builds on them; and ``log_odds_missing``,
    the share of verdicts for which no log odds came (0 stands in the column, and "missing"
    in the description).

    Texts of answers are data. They reach a model as JSON, apart from the instructions;
    of a reply only the expected fields are read; and labels never come from it.

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
        """The extractor that made the problems of a file, without its address.

        Parameters
        ----------
        description : dict
            What `describe` gave: ``extraction`` in the metadata of a graph.
        client : ChatClient or callable, optional
            As in the constructor.
        **settings
            ``on_failure``, ``confirm`` or ``verbose``.

        Returns
        -------
        ClaimExtractor

        Raises
        ------
        ValueError
            If a step used a prompt or a function that is not in this package.
        """
        steps = {name: _steps.rebuild(s) for name, s in description["steps"].items()}
        # A file may have sorted them: [2] comes before [10].
        names = sorted((n for n in steps if n.startswith("features")), key=len)
        columns = [steps.pop(name) for name in names] or None
        settings = {"keep_flagged": description.get("keep_flagged", False)} | settings
        return cls(description["model"], client, features=columns, **steps, **settings)

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        clients.as_client(self.client).validate()
        for name, step in self.steps().items():
            if isinstance(step, type) or not isinstance(step, Step | Callable):
                raise ValueError(
                    f"{name} is {step!r}, but must be a step or a function"
                )
            clients.check_step(name, step, self.model)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Look at the parameters; nothing is learned and nothing is called.

        Parameters
        ----------
        X, y : ignored
            There for scikit-learn.

        Returns
        -------
        self
            The extractor itself.
        """
        self.validate()
        return self

    def transform(self, X: Iterable[Any]) -> GraphBatch:
        """Extract the graphs.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            Dictionaries have ``answer`` and may have ``problem``, ``id``, ``group``,
            ``alternatives``, ``context`` and ``metadata``.

        Returns
        -------
        GraphBatch
            One problem per answer, in their order.
        """
        return GraphBatch.from_graphs([e.graph for e in self.extract(X)])

    def extract(self, X: Iterable[Any], *, write: bool = False) -> list[Extraction]:
        """Extract the graphs, and say what was not as it should be.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.
        write : bool, default=False
            Whether the model writes answers that are missing, in the same way in which
            `ConformalFactualityPipeline` lets it write them.

        Returns
        -------
        list of Extraction
            One per answer, in their order.
        """
        return clients.finish(
            self._extracting(ChatClient._now, X, self.on_failure, write=write)
        )

    async def aextract(
        self, X: Iterable[Any], *, write: bool = False
    ) -> list[Extraction]:
        """Extract the graphs from within a loop; as `extract`.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.
        write : bool, default=False
            As for `extract`.

        Returns
        -------
        list of Extraction
            One per answer, in their order.
        """
        return await self._extracting(
            ChatClient._later, X, self.on_failure, write=write
        )

    def add_features(self, graphs: Iterable[ReasoningGraph]) -> GraphBatch:
        """Draw other answers and make feature columns for graphs that are there.

        For graphs whose claims or edges people have corrected: what a judge said before
        no longer belongs to them.

        Parameters
        ----------
        graphs : sequence of ReasoningGraph
            With claims. Feature columns that they have are dropped.

        Returns
        -------
        GraphBatch
            The graphs with their new columns.
        """
        self.validate()
        bare = [graph.replace(features=None, feature_names=None) for graph in graphs]
        enriched, self.usage_ = clients.run_all(
            self.client, bare, self._enrich, self.model, show=self.verbose
        )
        return GraphBatch.from_graphs(enriched)

    def estimate(self, X: Iterable[Any]) -> Estimate:
        """Estimate what a run will cost; nothing is called.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        Estimate
            Calls, tokens and, where prices are known, the cost.
        """
        self.validate()
        client = clients.as_client(self.client)
        answers = read_answers(X)
        return clients.finish(self._estimating(ChatClient._now, client, answers))

    def feature_names(self) -> list[str]:
        """Names of the columns that are made.

        Returns
        -------
        list of str
            In the order of the columns.
        """
        return [name for names, _ in self._columns() for name in names]

    def steps(self) -> dict[str, Any]:
        """List all steps by name, also those that are defaults.

        Returns
        -------
        dict
            From the name of each step to the step.
        """
        named: dict[str, Any] = {"decompose": self.decompose or Decompose()}
        named |= {"graph": self.graph or DeduceGraph(), "sample": self.sample}
        named |= {"reword": self.reword}
        named |= {f"features[{i}]": s for i, (_, s) in enumerate(self._columns())}
        return {name: step for name, step in named.items() if step is not None}

    def describe(self) -> dict[str, Any]:
        """Describe the models and prompts with which graphs are made, without addresses.

        Returns
        -------
        dict
            ``model``, ``samples``, the number of other answers that are drawn,
            ``keep_flagged`` if it is set, and in ``steps`` for each step its settings and
            the name of its prompt, or the name of its function.
        """
        described = {name: _steps.describe(step) for name, step in self.steps().items()}
        for i, (names, _) in enumerate(self._columns()):
            if "function" in (description := described[f"features[{i}]"]):
                description["column"] = names[0]
        n = getattr(self.sample, "n", None)
        flagged = {"keep_flagged": True} if self.keep_flagged else {}
        return {"model": self.model, "samples": n, "steps": described, **flagged}

    def _columns(self):
        """Column names and step of each member of ``features``."""
        out = []
        for i, step in enumerate(() if self.features is None else self.features):
            match step:
                case Step(names=names):
                    out.append((names, step))
                case (str() as name, function):
                    out.append(((name,), function))
                case _:
                    raise ValueError(
                        f"features[{i}] is {step!r}, but must be a step such as Frequency(), "
                        "or a pair (name, function)"
                    )
        return out

    async def _extract(self, chat, answer):
        """All steps for one answer, which the model writes where it is missing."""
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
        # A claim that the answer does not state is kept in no wording.
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
        """The graph with the wordings of its claims, if they are asked for."""
        if self.reword is None:
            return graph
        claims = list(graph.claims)
        wordings = await call_step(self.reword, chat, claims, graph.problem)
        return graph.replace(wordings=wordings)

    def _writer(self):
        sample = self.sample
        return sample if isinstance(sample, SampleAnswers) else SampleAnswers(1)

    async def _write(self, chat, question):
        """The question with an answer of the model, marked as written by it."""
        writer = self._writer()
        text = await writer._answer(chat, question.problem, question.context)
        return self._written(question, text)

    def _written(self, question, text):
        writer = describe_writer(self._writer(), self.model)
        metadata = {**(question.metadata or {}), "written_by": writer}
        return question._replace(answer=text, metadata=metadata)

    async def _draw(self, chat, graph):
        """Other answers, for which the package's own step sees the passages, too."""
        if isinstance(self.sample, SampleAnswers):
            return await call_step(self.sample, chat, graph.problem, graph.context)
        return await call_step(self.sample, chat, graph.problem)

    async def _enrich(self, chat, graph):
        """The graph with other answers and feature columns."""
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
        return graph.replace(
            features=np.hstack(arrays),
            feature_names=self.feature_names(),
            metadata=metadata,
        )

    def _told(self, graph, answer, flags, *, usage, left_out=()):
        """The graph with metadata that say how it was made, and what became of it."""
        metadata = dict(graph.metadata or {})
        odds = "missing" if metadata.get("log_odds_missing") else True
        extraction = with_log_odds(self.describe(), odds)
        metadata["extraction"] = with_left_out(extraction, left_out)
        metadata |= {"flags": list(flags)} if flags else {}
        return Extraction(graph.replace(metadata=metadata), answer, tuple(flags), usage)

    async def _extracting(self, run, X, on_failure, *, write=False, agreed=False):
        """What `extract` returns; ``run`` is one of a client's ways to do work.

        Where its cost is ``agreed`` to, nobody is asked.
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
            if done:  # what the first ones needed says what the others will
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
        """How many answers come first, to learn from them what the others cost.

        Above the limit these are a few, unless they alone are above it; below it some more,
        where the estimate might be much too low.
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
        """About what one answer will cost."""
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
        """How many times as much as expected the first answers needed that are done."""
        extractions = [e for e in done if isinstance(e, Extraction)][:_FIRST]
        needed = sum((e.usage.needed() for e in extractions), np.zeros(3))
        expected = sum((self._expect(e.answer)[:3] for e in extractions), np.zeros(3))
        is_counted = (needed > 0) & (expected > 0)  # endpoints need not count tokens
        return np.divide(needed, expected, out=np.ones(3), where=is_counted)

    def _failed(self, answer, error):
        """A graph without claims, of which nothing can be kept, and why there are none."""
        if self.sample is not None and not answer.alternatives:
            answer = answer._replace(alternatives=())
        if answer.answer is None:
            answer = self._written(answer, None)
        names = self.feature_names() or None
        table = None if names is None else np.zeros((0, len(names)))
        graph = make_graph(answer, [], ()).replace(features=table, feature_names=names)
        if self.reword is not None:
            graph = graph.replace(wordings=())
        flags = [f"extraction failed: {error}"]
        return self._told(graph, answer, flags, usage=Usage())


def with_log_odds(extraction: Any, odds: bool | str) -> Any:
    """What made a graph, where log odds that were asked for are there, or are "missing"."""
    if not isinstance(extraction, Mapping):
        return extraction
    steps = {
        name: {**step, "log_odds": odds} if step.get("log_odds") else step
        for name, step in extraction["steps"].items()
    }
    return {**extraction, "steps": steps}


def with_left_out(extraction: Any, left_out: Iterable[str]) -> Any:
    """What made a graph, with the parameters that its endpoint does not take.

    Log-probabilities are left out here, as `with_log_odds` says that they are missing.
    """
    if not isinstance(extraction, Mapping):
        return extraction
    rest = {key: value for key, value in extraction.items() if key != "left_out"}
    names = sorted(set(left_out) - {"logprobs"})
    return rest | ({"left_out": names} if names else {})


def as_asked(extraction: Any) -> Any:
    """What was to make a graph, whatever its endpoint made of that."""
    return with_left_out(with_log_odds(extraction, True), ())


def made_as(graph: ReasoningGraph, extraction: Any) -> ReasoningGraph:
    """A graph without claims, for which not all was asked, as made like the others."""
    if graph.n_claims:
        return graph
    return graph.replace(metadata={**(graph.metadata or {}), "extraction": extraction})


def _agreeing(done):
    """Extractions of one run, which say alike what their endpoint does not give or take.

    Not every answer needs every call, and one without claims needs hardly any.
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
        raise ValueError(f"step {names[0]!r} gives shape {table.shape} for {n} claims")
    return table.reshape(n, len(names))
