"""From problems and answers to reasoning graphs, as a scikit-learn transformer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin

from .._parameters import Settings, StrOptions
from ..graphs import GraphBatch, ReasoningGraph
from ._answers import (
    EXTRACTION,
    FLAGS,
    Answer,
    Extraction,
    failed_extraction,
    flags_of_text,
    make_graph,
    read_answers,
)
from ._calls import CallError, Usage
from ._claims import Decompose, DeducedGraph, DeduceGraph, SampleAnswers
from ._client import ChatClient, adrive, as_client, drive
from ._judges import JudgeStep, Verify
from ._session import Chat, gather_all
from ._step import (
    Estimate,
    Expense,
    Size,
    Step,
    call_step,
    check_model,
    count_tokens,
    describe_step,
    gather_steps,
    raise_first,
    rebuild_step,
)

_FIRST = 20  # answers from which the cost of the others is learnt
_UNDERRATED = 20  # times that an estimate may be too low without being looked at again


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
    features : sequence, optional
        Steps that add columns: `Frequency`, `SemanticJudge`, `DomainFlags`, `Verify`, or
        pairs ``(name, callable)``, where ``callable(graph)`` gives an array of shape
        (n_claims,). None adds none. Columns that need no model, such as those of
        `skdcf.features.reasoning_features`, belong to the filter: ``features=`` there.
    on_failure : {"raise", "abstain"}
        What to do where a model gives no usable reply: raise an error when everything
        else is done, or give a graph without claims, of which nothing can be kept.
    confirm : callable, optional
        ``confirm(estimate)`` says whether a run above the client's limit may begin. None
        asks at the terminal, and says no where there is none.
    verbose : bool, default=False
        Whether to show progress.

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

    The metadata of a graph say how it was made: ``answer``, the text; ``extraction``, the
    model and the steps, which filters compare; ``spans``, the words of the answer that
    state a claim; ``flags``, what was not as it should be; and ``no_verdict``, the claims
    on which a judge gave no verdict, of which filters keep none.

    Texts of answers are data. They reach a model as JSON, apart from the instructions;
    of a reply only the expected fields are read; and labels never come from it.

    Examples
    --------
    >>> from skdcf.edges import chain_edges
    >>> from skdcf.llm import ClaimExtractor
    >>> def complete(messages):
    ...     return '{"claims": ["2 + 2 = 4", "so it is even"]}'
    >>> extractor = ClaimExtractor("any", complete, graph=chain_edges)
    >>> batch = extractor.fit_transform([("Is 2 + 2 even?", "2 + 2 = 4, so it is even.")])
    >>> batch[0].claims, batch[0].edges.tolist()
    (('2 + 2 = 4', 'so it is even'), [[0, 1]])
    """

    usage_: Any

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "model": [str, None],
        "client": [ChatClient, callable, None],
        "decompose": [Step, callable, None],
        "graph": [Step, callable, None],
        "sample": [Step, callable, None],
        "features": ["array-like", None],
        "on_failure": [StrOptions({"raise", "abstain"})],
        "confirm": [callable, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model: str | None = None,
        client: Any = None,
        *,
        decompose: Decompose | Callable | None = None,
        graph: DeduceGraph | Callable | None = None,
        sample: SampleAnswers | Callable | None = None,
        features: Sequence | None = None,
        on_failure: str = "raise",
        confirm: Callable[[Estimate], bool] | None = None,
        verbose: bool = False,
    ):
        self.model = model
        self.client = client
        self.decompose = decompose
        self.graph = graph
        self.sample = sample
        self.features = features
        self.on_failure = on_failure
        self.confirm = confirm
        self.verbose = verbose

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
        made = {name: rebuild_step(s) for name, s in description["steps"].items()}
        columns = [
            made.pop(name) for name in sorted(made) if name.startswith("features")
        ]
        return cls(
            description["model"], client, **made, features=columns or None, **settings
        )

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        as_client(self.client).validate()
        for name, step in self.steps().items():
            if isinstance(step, type) or not (isinstance(step, Step) or callable(step)):
                raise ValueError(
                    f"{name} is {step!r}, but must be a step or a function"
                )
            if isinstance(step, Step):
                step.validate()
                check_model(name, step, self.model)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Look at the parameters; nothing is learned and nothing is called.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
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
        return GraphBatch.pack([e.graph for e in self.extract(X)])

    def extract(self, X: Iterable[Any]) -> list[Extraction]:
        """Extract the graphs, and say what was not as it should be.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        list of Extraction
        """
        self.validate()
        client = as_client(self.client)
        return drive(client, self.extracting(client, read_answers(X), self.on_failure))

    async def aextract(self, X: Iterable[Any]) -> list[Extraction]:
        """Extract the graphs from within a loop; as `extract`.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        list of Extraction
        """
        self.validate()
        client, answers = as_client(self.client), read_answers(X)
        return await adrive(client, self.extracting(client, answers, self.on_failure))

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
        """
        self.validate()
        graphs = [graph.replace(features=None, feature_names=None) for graph in graphs]
        client = as_client(self.client)
        results, self.usage_ = client.run(self._work(graphs, self._enrich))
        raise_first(results)
        return GraphBatch.pack(results)

    def estimate(self, X: Iterable[Any]) -> Estimate:
        """About what a run will cost; nothing is called.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        Estimate
        """
        self.validate()
        client = as_client(self.client)
        return drive(client, self._estimating(client, read_answers(X)))

    def feature_names(self) -> list[str]:
        """Names of the columns that are made.

        Returns
        -------
        list of str
        """
        return [name for names, _ in self._columns() for name in names]

    def steps(self) -> dict[str, Any]:
        """All steps by name, defaults spelt out.

        Returns
        -------
        dict
        """
        named = {
            "decompose": Decompose() if self.decompose is None else self.decompose,
            "graph": DeduceGraph() if self.graph is None else self.graph,
            "sample": self.sample,
        }
        named |= {f"features[{i}]": s for i, (_, s) in enumerate(self._columns())}
        return {name: step for name, step in named.items() if step is not None}

    def describe(self) -> dict[str, Any]:
        """With which models and prompts graphs are made, and no address.

        Returns
        -------
        dict
            ``model``, ``samples``, the number of other answers that are drawn, and in
            ``steps`` for each step its settings and the name of its prompt, or the name
            of its function.
        """
        described = {name: describe_step(step) for name, step in self.steps().items()}
        for i, (columns, step) in enumerate(self._columns()):
            if not isinstance(step, Step):
                described[f"features[{i}]"]["column"] = columns[0]
        n = getattr(self.sample, "n", None)
        return {"model": self.model, "samples": n, "steps": described}

    def _columns(self):
        """Column names and step of each member of ``features``."""
        out = []
        for i, step in enumerate(() if self.features is None else self.features):
            if isinstance(step, JudgeStep):
                out.append((step.names, step))
            elif (
                isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)
            ):
                out.append(((step[0],), step[1]))
            else:
                raise ValueError(
                    f"features[{i}] is {step!r}, but must be a step such as Frequency(), "
                    "or a pair (name, function of a graph)"
                )
        return out

    def _work(self, items, work):
        """A function of a session that does work for each item."""

        async def main(session):
            title = "extract" if self.verbose else None
            results = await gather_all(session, items, work, self.model, title)
            return results, session.usage

        return main

    async def _extract(self, chat: Chat, answer: Answer) -> Extraction:
        """All steps for one answer."""
        steps, spent = self.steps(), Usage()
        claims = await call_step(
            steps["decompose"], chat, answer.answer, answer.problem
        )
        if not claims and answer.answer.strip():
            chat.flag("no claim was found in the answer")
        edges = await call_step(steps["graph"], chat, claims, answer.problem)
        if isinstance(edges, DeducedGraph):
            if edges.flag is not None:
                chat.flag(edges.flag)
            edges = edges.edges
        graph = await self._enrich(chat, make_graph(answer, claims, edges))
        for flag in flags_of_text(graph):
            chat.flag(flag)
        spent += chat.usage
        return Extraction(
            self._told(graph, chat.flags), answer, tuple(chat.flags), spent
        )

    async def _enrich(self, chat: Chat, graph: ReasoningGraph) -> ReasoningGraph:
        """The graph with other answers and feature columns."""
        if graph.alternatives is None and self.sample is not None:
            others = await call_step(self.sample, chat, graph.problem)
            graph = graph.replace(alternatives=others)
        columns = self._columns()
        if not columns:
            return graph
        calls = (call_step(step, chat, graph) for _, step in columns)
        tables = await gather_steps(*calls)
        pairs = zip(tables, columns, strict=True)
        table = np.hstack([_as_columns(t, names, graph) for t, (names, _) in pairs])
        judged = [isinstance(step, Verify) for names, step in columns for _ in names]
        missing = np.isnan(table[:, judged]).any(axis=1)
        table[:, judged] = np.nan_to_num(table[:, judged])
        metadata = {
            k: v for k, v in (graph.metadata or {}).items() if k != "no_verdict"
        }
        if missing.any():
            metadata["no_verdict"] = np.flatnonzero(missing).tolist()
        return graph.replace(
            features=table, feature_names=self.feature_names(), metadata=metadata
        )

    def _told(self, graph, flags):
        """The graph with metadata that say how it was made."""
        told = {EXTRACTION: self.describe()} | ({FLAGS: list(flags)} if flags else {})
        return graph.replace(metadata={**(graph.metadata or {}), **told})

    def extracting(self, client, answers, on_failure):
        """The work of `extract`, step by step, for a program that runs it itself.

        Parameters
        ----------
        client : Client
            What calls the models.
        answers : list of Answer
            What to extract from.
        on_failure : {"raise", "abstain"}
            As in `extract`.

        Returns
        -------
        generator
            It yields the runs to be done, and returns what `extract` returns.
        """
        agreed = check_budget(
            client, (yield from self._estimating(client, answers)), self.confirm
        )
        spent, done = Usage(), []
        parts = [answers]
        if agreed is None and len(answers) > _FIRST:
            parts = [answers[:_FIRST], answers[_FIRST:]]
        for part in parts:
            if done:  # what the first ones needed says what the others will
                learnt = _learnt(done, answers, self._expect)
                estimate = self._estimated(client, part, part, learnt)
                check_budget(client, estimate, self.confirm, len(done))
            some, usage = yield self._work(part, self._extract), False
            done += some
            spent += usage
        self.usage_ = spent
        if on_failure == "raise":
            raise_first(done)
        pairs = zip(answers, done, strict=True)
        return [self._failed(a, r) if isinstance(r, CallError) else r for a, r in pairs]

    def _estimating(self, client, answers):
        todo, learnt = answers, (1.0, 1.0, 1.0)
        if client.cache is not None:
            found, _ = yield self._work(answers, self._extract), True
            pairs = list(zip(answers, found, strict=True))
            todo = [answer for answer, e in pairs if isinstance(e, CallError)]
            learnt = _learnt(found, answers, self._expect)
        return self._estimated(client, answers, todo, learnt)

    def _estimated(self, client, answers, todo, learnt):
        total = sum(map(self._expect, todo), Expense()).times(learnt)
        return Estimate.of(len(answers), len(answers) - len(todo), total, client.prices)

    def _expect(self, answer):
        """About what one answer will cost."""
        tokens = count_tokens(answer.answer)
        n = getattr(self.sample, "n", 1) if self.sample is not None else 0
        others = n if answer.alternatives is None else len(answer.alternatives)
        context = sum(map(count_tokens, answer.context or ()))
        size = Size(
            count_tokens(answer.problem), tokens, context, tokens // 15 + 1, others
        )
        total = Expense()
        for name, step in self.steps().items():
            given = name == "sample" and answer.alternatives is not None
            if isinstance(step, Step) and not given:
                total += step._expect(size)
        return total

    def _failed(self, answer, error):
        samples, flag = self.sample is not None, f"extraction failed: {error}"
        graph = failed_extraction(answer, error, self.feature_names(), samples)
        return Extraction(self._told(graph, [flag]), answer, (flag,))


def _learnt(done, answers, expect):
    """How many times as much as expected the first answers needed that are done."""
    pairs = [
        (e, a) for e, a in zip(done, answers, strict=False) if isinstance(e, Extraction)
    ]
    needed, expected = np.zeros(3), np.zeros(3)
    for extraction, answer in pairs[:_FIRST]:
        u = extraction.usage
        needed += u.calls, u.prompt_tokens, u.completion_tokens
        needed += u.cached, u.cached_prompt_tokens, u.cached_completion_tokens
        expected += expect(answer)
    known = (needed > 0) & (expected > 0)  # endpoints need not count tokens
    return np.where(known, needed / np.where(known, expected, 1), 1.0).tolist()


def _as_columns(table, names, graph):
    table, n = np.asarray(table, dtype=float), graph.n_claims
    if table.shape not in ((n,), (n, len(names))):
        raise ValueError(
            f"the step for {names[0]!r} gives an array of shape {table.shape} for "
            f"{n} claims"
        )
    return table.reshape(n, len(names))


def check_budget(
    client: ChatClient,
    estimate: Estimate,
    confirm: Callable[[Estimate], bool] | None,
    n_done: int = 0,
) -> bool | None:
    """ValueError if the estimate is above the client's limit and nobody agrees to it.

    Returns
    -------
    bool or None
        True if somebody agreed, False if the run is far below the limit, and None if it
        is below, but might exceed it should the estimate be too low.
    """
    limit, unit = client.limit()
    amount = getattr(estimate, unit)
    if amount <= limit:
        return None if amount * _UNDERRATED > limit else False
    if not (confirm or _ask)(estimate):
        begun = f"{n_done} answers are done" if n_done else "nothing was called"
        raise ValueError(
            f"{begun}: {estimate}. That is above confirm_above={limit:g} ({unit}) and was "
            "not agreed to. Raise confirm_above of the ChatClient, or pass "
            "confirm=lambda estimate: True"
        )
    return True


def _ask(estimate):
    """Ask whoever sits at the terminal; without one the answer is no."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    return input(f"{estimate}. Go on? [y/N] ").strip().lower() in ("y", "yes")
