"""From problems and answers to reasoning graphs, as a scikit-learn transformer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from itertools import compress
from types import FunctionType
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin

from .._parameters import Settings, StrOptions
from ..graphs import GraphBatch, ReasoningGraph
from . import _calls as calls
from . import _client as clients
from ._calls import CallError, Extraction, Usage
from ._claims import Decompose, DeducedGraph, DeduceGraph, SampleAnswers
from ._client import ChatClient, Estimate, Step, call_step, count_tokens
from ._judges import Verify
from ._session import gather_steps

_FIRST = 20  # answers from which the cost of the others is learnt
_OF_FUNCTIONS = "skdcf.edges", "skdcf.llm"  # a description may name their functions
_UNDERRATED = 20  # times that an estimate may be too low without being looked at again


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
    features : sequence, optional
        Steps that add columns: `Frequency`, `SemanticJudge`, `Verify`, or
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

    _parameter_constraints = {
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

    model: str | None = None
    client: Any = None
    _: KW_ONLY
    decompose: Decompose | Callable | None = None
    graph: DeduceGraph | Callable | None = None
    sample: SampleAnswers | Callable | None = None
    features: Sequence | None = None
    on_failure: str = "raise"
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
        made = {name: rebuild_step(s) for name, s in description["steps"].items()}
        names = sorted(made, key=lambda name: (len(name), name))  # [2] before [10]
        names = [name for name in names if name.startswith("features")]
        columns = [made.pop(name) for name in names] or None
        return cls(description["model"], client, features=columns, **made, **settings)

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        clients.as_client(self.client).validate()
        for name, step in self.steps().items():
            if isinstance(step, type) or not isinstance(step, Step | Callable):
                raise ValueError(f"{name} is {step!r}, no step and no function")
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
            One per answer, in their order.
        """
        return clients.finish(self._extracting(ChatClient._now, X, self.on_failure))

    async def aextract(self, X: Iterable[Any]) -> list[Extraction]:
        """Extract the graphs from within a loop; as `extract`.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        list of Extraction
            One per answer, in their order.
        """
        return await self._extracting(ChatClient._later, X, self.on_failure)

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
        work = self._enrich, self.model
        found, usage = clients.run_all(self.client, bare, *work, show=self.verbose)
        self.usage_ = usage
        return GraphBatch.pack(found)

    def estimate(self, X: Iterable[Any]) -> Estimate:
        """About what a run will cost; nothing is called.

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
        client, answers = clients.as_client(self.client), calls.read_answers(X)
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
        """All steps by name, defaults spelt out.

        Returns
        -------
        dict
            From the name of each step to the step.
        """
        named = {
            "decompose": Decompose() if self.decompose is None else self.decompose,
            "graph": DeduceGraph() if self.graph is None else self.graph,
            "sample": self.sample,
        }
        named |= {f"features[{i}]": s for i, (_, s) in enumerate(self._columns())}
        return {name: step for name, step in named.items() if step is not None}

    def describe(self) -> dict[str, Any]:
        """Describe the models and prompts that make graphs, without any address.

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
            match step:
                case Step(names=names):
                    out.append((names, step))
                case (str() as name, function):
                    out.append(((name,), function))
                case _:
                    said = "a step such as Frequency(), or (name, function of a graph)"
                    raise ValueError(f"features[{i}] is {step!r}, but must be {said}")
        return out

    async def _extract(self, chat, answer):
        """All steps for one answer."""
        steps, text, problem = self.steps(), answer.answer, answer.problem
        claims = await call_step(steps["decompose"], chat, text, problem)
        if not claims and text.strip():
            chat.flag("no claim was found in the answer")
        edges = await call_step(steps["graph"], chat, claims, problem)
        if isinstance(edges, DeducedGraph):
            chat.flag(edges.flag)
            edges = edges.edges
        graph = await self._enrich(chat, calls.make_graph(answer, claims, edges))
        chat.flag(calls.flag_of_text(graph))
        return self._annotate(graph, answer, chat.flags, chat.usage)

    async def _enrich(self, chat, graph):
        """The graph with other answers and feature columns."""
        if graph.alternatives is None and self.sample is not None:
            others = await call_step(self.sample, chat, graph.problem)
            graph = graph.replace(alternatives=others)
        columns = self._columns()
        if not columns:
            return graph
        tables = await gather_steps(*(call_step(s, chat, graph) for _, s in columns))
        pairs = zip(tables, columns, strict=True)
        table = np.hstack([_as_columns(t, names, graph) for t, (names, _) in pairs])
        judged = [isinstance(step, Verify) for names, step in columns for _ in names]
        missing = np.flatnonzero(np.isnan(table[:, judged]).any(axis=1)).tolist()
        table[:, judged] = np.nan_to_num(table[:, judged])
        metadata = {**(graph.metadata or {}), "no_verdict": missing}
        if not missing:
            del metadata["no_verdict"]
        names = self.feature_names()
        return graph.replace(features=table, feature_names=names, metadata=metadata)

    def _annotate(self, graph, answer, flags, usage):
        """The graph with metadata that say how it was made, and what became of it."""
        metadata = {**(graph.metadata or {}), "extraction": self.describe()}
        metadata |= {"flags": list(flags)} if flags else {}
        graph = graph.replace(metadata=metadata)
        return Extraction(graph, answer, tuple(flags), usage)

    async def _extracting(self, run, X, on_failure):
        """Make what `extract` returns; ``run`` is one of a client's ways to do work."""
        self.validate()
        client, answers = clients.as_client(self.client), calls.read_answers(X)
        estimate = await self._estimating(run, client, answers)
        unsure = check_budget(client, estimate, self.confirm)
        spent, done = Usage(), []
        first = _FIRST if unsure else len(answers)
        for part in filter(None, (answers[:first], answers[first:])):
            if done:  # the others will need as much as the first ones
                estimate = self._estimated(client, part, part, self._learnt(done))
                check_budget(client, estimate, self.confirm, len(done))
            asked = client, part, self._extract, self.model
            some, usage = await run(*asked, show=self.verbose)
            done += some
            spent += usage
        self.usage_ = spent
        if on_failure == "raise":
            clients.raise_first(done)
        pairs = zip(answers, done, strict=True)
        return [self._failed(a, r) if isinstance(r, CallError) else r for a, r in pairs]

    async def _estimating(self, run, client, answers):
        todo, learnt = answers, 1.0
        if client.cache is not None:
            found, _ = await run(client, answers, self._extract, self.model, dry=True)
            failed = [isinstance(e, CallError) for e in found]
            todo, learnt = list(compress(answers, failed)), self._learnt(found)
        return self._estimated(client, answers, todo, learnt)

    def _estimated(self, client, answers, todo, learnt):
        total = sum(map(self._expect, todo), np.zeros(3)) * learnt
        cost = None if client.prices is None else total[1:] @ client.prices / 1e6
        n = len(answers)
        return Estimate(n, n - len(todo), *map(round, total.tolist()), cost)

    def _expect(self, answer):
        """About what one answer will cost."""
        others, n = answer.alternatives, count_tokens(answer.answer)
        shared = sum(map(count_tokens, (answer.problem, *(answer.context or ()))))
        drawn = getattr(self.sample, "n", int(self.sample is not None))
        sizes = shared, n, n // 15 + 1, drawn if others is None else len(others)
        steps = self.steps() | ({} if others is None else {"sample": None})
        asking = (step for step in steps.values() if isinstance(step, Step))
        return sum((step._expect(*sizes) for step in asking), np.zeros(3))

    def _learnt(self, done):
        """How many times as much as expected the first answers needed that are done."""
        known = [e for e in done if isinstance(e, Extraction)][:_FIRST]
        needed = sum((e.usage.needed() for e in known), np.zeros(3))
        expected = sum((self._expect(e.answer) for e in known), np.zeros(3))
        known = (needed > 0) & (expected > 0)  # endpoints need not count tokens
        return np.divide(needed, expected, out=np.ones(3), where=known)

    def _failed(self, answer, error):
        """A graph without claims, of which nothing can be kept, and why there are none."""
        if self.sample is not None and not answer.alternatives:
            answer = answer._replace(alternatives=())
        graph = calls.make_graph(answer, [], ())
        if names := self.feature_names():
            table = np.zeros((0, len(names)))
            graph = graph.replace(features=table, feature_names=names)
        return self._annotate(graph, answer, [f"extraction failed: {error}"], Usage())


def _as_columns(table, names, graph):
    table, n = np.asarray(table, dtype=float), graph.n_claims
    if table.shape not in ((n,), (n, len(names))):
        shape = f"an array of shape {table.shape} for {n} claims"
        raise ValueError(f"the step for {names[0]!r} gives {shape}")
    return table.reshape(n, len(names))


def check_budget(client, estimate, confirm, n_done=0):
    """ValueError if the estimate is above the client's limit and nobody agrees to it.

    Returns
    -------
    bool
        Whether it is below, but might exceed the limit should it be too low.
    """
    unit, limit = ("tokens", 1e6) if client.prices is None else ("cost", 1.0)
    limit = limit if client.confirm_above is None else client.confirm_above
    amount = getattr(estimate, unit)
    if amount > limit and not (confirm or _ask)(estimate):
        begun = f"{n_done} answers are done" if n_done else "nothing was called"
        said = "Raise confirm_above of the ChatClient, or pass confirm=lambda estimate: True"
        above = f"above confirm_above={limit:g} ({unit}) and was not agreed to"
        raise ValueError(f"{begun}: {estimate}. That is {above}. {said}")
    return limit / _UNDERRATED < amount <= limit


def _ask(estimate):
    """Ask whoever sits at the terminal; without one the answer is no."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    return input(f"{estimate}. Go on? [y/N] ").strip().lower() in ("y", "yes")


def describe_step(step: Any) -> dict[str, Any]:
    """Describe a step for files: its class, prompt and settings, or its function."""
    if not isinstance(step, Step):
        name = getattr(step, "__qualname__", type(step).__name__)
        module = getattr(step, "__module__", None) or ""
        module = "skdcf.llm" if module.startswith("skdcf.llm.") else module
        return {"function": f"{module}.{name}"}
    settings = step.get_params(deep=False) | {"prompt": step.wording().name}
    plain = json.loads(json.dumps(settings, default=lambda number: number.item()))
    return {"step": type(step).__name__, **plain}


def rebuild_step(described: Mapping[str, Any]) -> Any:
    """Inverse of `describe_step`, for what is in this package; ValueError otherwise."""
    settings = dict(described)
    path = settings.get("function") or f"skdcf.llm.{settings.pop('step')}"
    module, _, name = path.rpartition(".")
    known = module in _OF_FUNCTIONS
    made = getattr(import_module(module), name, None) if known else None
    if isinstance(made, FunctionType):
        return (settings["column"], made) if "column" in settings else made
    if not (isinstance(made, type) and issubclass(made, Step)):
        said = "which is not in this package: build the extractor yourself"
        raise ValueError(f"the problems were extracted with {path!r}, {said}")
    prompt = settings.pop("prompt")
    step = made(**settings)
    if step.wording().name != prompt:
        said = (
            f"{name} has {step.wording().name!r}: build the extractor with prompt=..."
        )
        raise ValueError(f"problems were extracted with the prompt {prompt!r}; {said}")
    return step
