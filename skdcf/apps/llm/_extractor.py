"""Scikit-learn transformer that extracts reasoning graphs from problems and answers."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin

from ..._parameters import Settings, StrOptions
from ...features import SURPRISAL, surprisal
from ...graphs import GraphBatch, ReasoningGraph
from ._model import (
    CallError,
    ChatClient,
    as_client,
    finish,
    gather_coroutines,
    raise_first,
)
from ._replies import CERTAIN, Usage, visible
from ._steps import (
    Decompose,
    DeducedGraph,
    DeduceGraph,
    SampleAnswers,
    Step,
    Verify,
    call_step,
    check_step,
    describe_step,
)

# maximum proportion of an answer that may be outside all claims before the answer is flagged
_MOST_OUTSIDE = 0.2
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PLURAL = {"contains": "contain", "is": "are", "has": "have", "equals": "equal"}


def flagged_claims(graph: ReasoningGraph) -> dict[str, list[int]]:
    """Find the claims that may misstate the answer.

    Parameters
    ----------
    graph : ReasoningGraph
        A graph whose metadata contain the answer and the words that state each claim.

    Returns
    -------
    positions : dict
        Positions of the doubtful claims, keyed by the reason, such as "is not stated in the
        answer".
    """
    claims = graph.claims or ()
    metadata = graph.metadata or {}
    answer = metadata.get("answer") or ""
    spans = metadata.get("spans") or {}
    words = _words(answer)
    numbers_known = _numbers(f"{answer}\n{graph.problem or ''}")
    seen: set[str] = set()
    outside = []
    altered = []
    repeated = []
    for v, claim in enumerate(claims):
        if not any(_states(words, text) for text in (spans.get(claim, claim), claim)):
            outside.append(v)
        if _numbers(claim) - numbers_known:
            altered.append(v)
        if (normalised := " ".join(visible(claim).casefold().split())) in seen:
            repeated.append(v)
        seen.add(normalised)
    return {
        "is not stated in the answer": outside,
        "contains a number that occurs neither in the answer nor in the question": altered,
        "equals an earlier one": repeated,
    }


def texts_of(flagged: dict[str, list[int]]) -> list[str]:
    """Return one description per type of fault, with the number of affected claims."""
    texts = []
    for wrong, rows in flagged.items():
        if len(rows) == 1:
            texts.append(f"1 claim {wrong}")
        elif rows:
            verb, _, rest = wrong.partition(" ")
            texts.append(f"{len(rows)} claims {_PLURAL[verb]} {rest}")
    return texts


def _words(text):
    """Return the words and numbers of a text, separated by single spaces."""
    plain = unicodedata.normalize("NFKC", visible(text)).casefold()
    return f" {' '.join(_WORD.findall(plain))} "


def _states(words, text):
    """Return whether the words of a text occur consecutively in an answer."""
    words_of_text = _words(text)
    return bool(words_of_text.strip()) and words_of_text in words


def _numbers(text):
    """Return the numbers in a text, without thousands separators."""
    plain = unicodedata.normalize("NFKC", text)
    return {number.replace(",", "") for number in _NUMBER.findall(plain)}


def flag_of_text(graph: ReasoningGraph) -> str | None:
    """Return a flag if a large part of the answer is not covered by any claim."""
    metadata = graph.metadata or {}
    answer = metadata.get("answer") or ""
    spans = metadata.get("spans") or {}
    stated = np.zeros(len(answer), dtype=bool)
    for claim in graph.claims or ():
        words = map(re.escape, str(spans.get(claim, claim)).split())
        for match in re.finditer(r"\s+".join(words), answer):
            stated[slice(*match.span())] = True
    letters = np.array([c.isalnum() for c in answer], dtype=bool)
    share = (letters & ~stated).sum() / max(letters.sum(), 1)
    few = share <= _MOST_OUTSIDE
    return None if few else f"{share:.0%} of the answer's text is outside all claims"


# Name of the column that marks claims that repeat another claim, or contain words or numbers that
# do not occur in the answer.
_FLAGGED = "flagged"
_CERTAINLY_FALSE = (0.0, -CERTAIN)  # the columns of `Verify`


class Answer(NamedTuple):
    """A problem with its answer, before extraction.

    Parameters
    ----------
    problem : str or None
        The question.
    answer : str
        The answer.
    id : str or int or None
        Identifier of the problem in messages and files.
    alternatives : sequence of str or None
        Other answers to the same question, if they exist.
    metadata : dict or None
        Additional data about the problem, such as values that define the groups of a guarantee.
        The key ``group`` identifies the question.
    context : str, sequence of str or None
        Passages that must support the answer, or None if the passages are unknown.
    logprobs : dict, list or None
        Log-probabilities of the tokens of the answer, in the format of a chat-completions
        response. The columns of `skdcf.features.surprisal` are computed from these
        log-probabilities.
    """

    problem: str | None
    answer: str
    id: Any = None
    alternatives: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    context: str | Sequence[str] | None = None
    logprobs: Any = None


@dataclass(frozen=True)
class Extraction:
    """Result of the extraction for one answer.

    Parameters
    ----------
    graph : ReasoningGraph
        The extracted graph.
    answer : Answer
        The answer from which the graph was extracted.
    flags : tuple of str
        Descriptions of anomalies, such as a graph that had to be repaired.
    usage : Usage
        Cost of the extraction.
    flagged : tuple of int
        Positions of claims that may misstate the answer.
    """

    graph: ReasoningGraph
    answer: Answer
    flags: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    flagged: tuple[int, ...] = ()


def read_answers(X: Iterable[Any]) -> list[Answer]:
    """Convert the input to answers, or raise a ValueError that names the first invalid item."""
    if isinstance(X, (str, bytes, Mapping)):
        raise ValueError(
            f"X must be a list of problems and answers, got {type(X).__name__}"
        )
    answers = [_read_answer(i, item) for i, item in enumerate(X)]
    without = [i for i, answer in enumerate(answers) if answer.logprobs is None]
    if without and len(without) < len(answers):
        raise ValueError(
            "logprobs must be passed for all problems or for none, but problem "
            f"{without[0]} has none and other problems have them"
        )
    return answers


def _read_answer(i, item):
    """Convert one item to an `Answer`, or raise a ValueError that names the item."""
    names = Answer._fields
    if isinstance(item, tuple) and 2 <= len(item) <= len(names):
        item = dict(zip(names, item, strict=False))
    if not isinstance(item, Mapping):
        raise ValueError(
            f"problem {i} must be a (problem, answer) pair or a dict with the keys "
            f'"problem" and "answer", got {type(item).__name__}'
        )
    if unknown := sorted(map(str, item.keys() - {*names, "group"})):
        raise ValueError(
            f"problem {i} has the unknown keys {unknown}. The valid keys are {names}. "
            'Store the question under the key "problem", and other data in "metadata"'
        )
    group = {} if item.get("group") is None else {"group": item["group"]}
    try:
        return _checked(group, **{n: _whole(item.get(n)) for n in names})
    except ValueError as error:
        raise ValueError(f"problem {i}: {error}") from error


def _checked(group, answer, id, context, logprobs, **others):
    """Check the values of an item, and return them as an `Answer`."""
    context = (context,) if isinstance(context, str) else context
    graph = ReasoningGraph(None, (), claims=(), context=context, **others)
    if not isinstance(id, str | int | None) or isinstance(id, bool):
        raise ValueError(f"the id must be a string or an integer, got {id!r}")
    if not isinstance(answer, str):
        raise ValueError(f"the answer must be a string, got {answer!r}")
    if logprobs is not None:
        surprisal(logprobs, answer, ())
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
    """Return a text with surrogate pairs joined and unpaired surrogates replaced."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return (
        [_whole(item) for item in value] if isinstance(value, list | tuple) else value
    )


def make_graph(answer: Answer, claims: Sequence[Any], edges: Any) -> ReasoningGraph:
    """Return the graph of an answer, with metadata that contain the words of each claim.

    The words are omitted if they equal the text of the claim. The log-probabilities of the answer
    are converted to feature columns.
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
    columns = surprisal(answer.logprobs, answer.answer, words)
    return graph.replace(features=columns, feature_names=SURPRISAL)


@dataclass(eq=False, repr=False)
class ClaimExtractor(TransformerMixin, Settings):
    """Use a language model to convert problems and answers to reasoning graphs.

    The extractor splits each answer into claims, deduces the dependencies between the claims,
    samples other answers to the problem, and computes features of the claims. Each step is an
    object with its own settings, and can be replaced by any callable.

    Parameters
    ----------
    model : str, optional
        Model name at the endpoint. The name is required only if a step calls a model and does not
        set another model.
    client : ChatClient or callable, optional
        Client for the model, or a function that returns a string for a list of messages. The
        default is ``ChatClient()``, which uses OpenAI's endpoint or the address in
        ``OPENAI_BASE_URL``.
    decompose : Decompose or callable, optional
        Step ``decompose(answer, problem)`` that returns the claims of an answer in order. The
        default is `Decompose`.
    graph : DeduceGraph or callable, optional
        Step ``graph(claims, problem)`` that returns the edges, like the functions of
        `skdcf.edges`. The default is `DeduceGraph`.
    sample : SampleAnswers or callable, optional
        Step ``sample(problem)`` that returns other answers to the question. The step is called
        for problems without alternatives. If None, no answers are sampled.
    features : sequence, optional
        Steps that compute feature columns, such as `Frequency`, `SemanticJudge` and `Verify`,
        or pairs ``(name, callable)``. The callable is called with a graph and returns an array of
        shape (n_claims,). If None, there are no feature columns. Pass features that do not
        require a model, such as `skdcf.features.reasoning_features`, to the parameter
        ``features`` of the filter instead.
    on_failure : {"raise", "abstain"}
        Behaviour if a model returns no usable reply. With "raise", an error is raised after the
        other problems have been processed. With "abstain", a graph without claims is returned, so
        the filter cannot keep any claims.
    verbose : bool, default=False
        Whether to print the progress of a run.

    Attributes
    ----------
    usage_ : Usage
        Numbers of calls and tokens used by the last run.

    Raises
    ------
    ValueError
        If a parameter or the input is invalid.
    CallError
        If calls failed. The replies to all other calls are in the cache of the client.

    Notes
    -----
    `fit` only validates the parameters. Each answer is extracted independently of other
    answers. Calibration and prediction must use the same models, prompts and numbers of alternative
    answers.

    The metadata of a graph record how the graph was created:

    * ``answer`` contains the text of the answer.
    * ``spans`` contains the words of the answer that state each claim.
    * ``flags`` contains descriptions of anomalies.

    The provenance of a graph contains the result of `describe`, the options that the endpoint
    does not accept (``left_out``), and whether log odds are "known" or "missing" (``log_odds``).
    Missing log odds are set to 0. Filters compare the provenance with the values from
    calibration.

    The last column, ``flagged``, is 1 for claims that may misstate the answer. A claim on which
    the judge returned no verdict has the columns of a claim that is certainly false.

    Answer texts are treated as data. Models receive these texts as JSON, separate from the
    instructions. Only the expected fields of a reply are used, and labels are never extracted from
    a reply.

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
        **{key: [Step, callable, None] for key in ("decompose", "graph", "sample")},
        "features": ["array-like", None],
        "on_failure": [StrOptions({"raise", "abstain"})],
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
    verbose: bool = False

    def validate(self) -> None:
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        as_client(self.client).validate()
        for name, step in self.steps().items():
            if isinstance(step, type) or not isinstance(step, Step | Callable):
                raise ValueError(f"{name} must be a step or a function, got {step!r}")
            check_step(name, step, self.model)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Validate the parameters without calling a model.

        Parameters
        ----------
        X, y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self : object
            The extractor itself.
        """
        self.validate()
        return self

    def transform(self, X: Iterable[Any]) -> GraphBatch:
        """Extract reasoning graphs from answers.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            The answers. Dictionaries must have the key ``answer``, and may have the keys
            ``problem``, ``id``, ``group``, ``alternatives``, ``context``, ``logprobs`` and
            ``metadata``.

        Returns
        -------
        graphs : GraphBatch
            One problem per answer, in order.
        """
        return GraphBatch.from_graphs([e.graph for e in self.extract(X)])

    def extract(self, X: Iterable[Any]) -> list[Extraction]:
        """Extract reasoning graphs from answers, and report anomalies.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            The answers, as in `transform`.

        Returns
        -------
        extractions : list of Extraction
            One extraction per answer, in order.
        """
        return finish(self._extracting(ChatClient._now, X))

    async def aextract(self, X: Iterable[Any]) -> list[Extraction]:
        """Extract the graphs of answers in a running event loop, as in `extract`.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            The answers, as in `transform`.

        Returns
        -------
        extractions : list of Extraction
            One extraction per answer, in order.
        """
        return await self._extracting(ChatClient._later, X)

    def feature_names(self) -> list[str]:
        """Return the names of the feature columns.

        Returns
        -------
        names : list of str
            Column names, in order.
        """
        names = [name for names, _ in self._columns() for name in names]
        return [*names, _FLAGGED] if names else []

    def steps(self) -> dict[str, Any]:
        """Return all steps, including the default steps.

        Returns
        -------
        steps : dict
            Steps, keyed by name.
        """
        named: dict[str, Any] = {"decompose": self.decompose or Decompose()}
        named |= {"graph": self.graph or DeduceGraph(), "sample": self.sample}
        named |= {f"features[{i}]": s for i, (_, s) in enumerate(self._columns())}
        return {name: step for name, step in named.items() if step is not None}

    def describe(self) -> dict[str, str | int]:
        """Return a description of the models and prompts, without endpoint addresses.

        Returns
        -------
        description : dict
            The keys are ``model`` (unless it is None), ``samples`` (number of sampled answers, 0
            without sampling), and the names of the steps. The description of a
            step is a JSON object that contains its settings and the name of its prompt or
            function. The provenance of the extracted problems contains this description.
        """
        described = {name: describe_step(step) for name, step in self.steps().items()}
        for i, (names, _) in enumerate(self._columns()):
            if "function" in (description := described[f"features[{i}]"]):
                description["column"] = names[0]
        steps = {
            name: json.dumps(row, sort_keys=True) for name, row in described.items()
        }
        n_samples = getattr(self.sample, "n", 0)
        model = {} if self.model is None else {"model": self.model}
        return {**model, "samples": n_samples, **steps}

    def _columns(self):
        """Return the column names and the step for each element of ``features``."""
        out = []
        for i, step in enumerate(() if self.features is None else self.features):
            match step:
                case Step(names=names):
                    out.append((names, step))
                case (str() as name, function):
                    out.append(((name,), function))
                case _:
                    raise ValueError(
                        f"features[{i}] must be a step such as Frequency(), or a (name, function) "
                        f"pair, got {step!r}"
                    )
        return out

    async def _extract(self, chat, answer):
        """Run all steps for one answer."""
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
        flagged = tuple(sorted({v for rows in found.values() for v in rows}))
        graph = await self._enrich(chat, plain)
        chat.flag(flag_of_text(plain))
        for text in texts_of(found):
            chat.flag(text)
        extraction = self._told(
            graph, answer, chat.flags, usage=chat.usage, left_out=chat.left_out
        )
        return replace(extraction, flagged=flagged)

    async def _draw(self, chat, graph):
        """Return sampled answers. Of all steps, only `SampleAnswers` also receives the passages."""
        if isinstance(self.sample, SampleAnswers):
            return await call_step(self.sample, chat, graph.problem, graph.context)
        return await call_step(self.sample, chat, graph.problem)

    async def _enrich(self, chat, graph):
        """Add alternative answers and feature columns to a graph."""
        if graph.alternatives is None and self.sample is not None:
            alternatives = await self._draw(chat, graph)
            graph = graph.replace(alternatives=alternatives)
        if not (columns := self._columns()):
            return graph
        tables = await gather_coroutines(
            *(call_step(s, chat, graph) for _, s in columns)
        )
        arrays = []
        no_odds = np.zeros(graph.n_claims, dtype=bool)
        for table, (names, step) in zip(tables, columns, strict=True):
            array = _as_columns(table, names, graph)
            if isinstance(step, Verify):
                no_verdict = np.isnan(array[:, 0])
                array[no_verdict] = _CERTAINLY_FALSE[: array.shape[1]]
                no_odds |= np.isnan(array[:, -1])
                array = np.nan_to_num(array)
            arrays.append(array)
        is_flagged = np.zeros((graph.n_claims, 1))
        for rows in flagged_claims(graph).values():
            is_flagged[rows] = 1
        arrays.append(is_flagged)
        if no_odds.any():
            made = (graph.provenance or {}) | {"log_odds": "missing"}
            graph = graph.replace(provenance=made)
        names = self.feature_names()
        if graph.features is not None:
            arrays.insert(0, graph.features)
            names = [*graph.feature_names, *names]
        return graph.replace(features=np.hstack(arrays), feature_names=names)

    def _told(self, graph, answer, flags, *, usage, left_out=()):
        """Return the extraction, and record how the graph was made in its provenance."""
        # Log-probabilities are not listed, because another key records whether they are missing.
        names = sorted(set(left_out) - {"logprobs"})
        made = (graph.provenance or {}) | self.describe()
        made["left_out"] = ", ".join(names)
        if any(isinstance(s, Verify) and s.log_odds for _, s in self._columns()):
            made.setdefault("log_odds", "known")
        metadata = dict(graph.metadata or {}) | (
            {"flags": list(flags)} if flags else {}
        )
        graph = graph.replace(provenance=made, metadata=metadata)
        return Extraction(graph, answer, tuple(flags), usage)

    async def _extracting(self, run, X):
        """Return the result of `extract`, where ``run`` is a method of the client."""
        self.validate()
        client = as_client(self.client)
        answers = read_answers(X)
        done, self.usage_ = await run(
            client, answers, self._extract, self.model, show=self.verbose
        )
        if self.on_failure == "raise":
            raise_first(done)
        pairs = zip(answers, done, strict=True)
        done = [self._failed(a, r) if isinstance(r, CallError) else r for a, r in pairs]
        return _agreeing(done)

    def _failed(self, answer, error):
        """Return an extraction without claims, flagged with the reason for the failure."""
        if self.sample is not None and not answer.alternatives:
            answer = answer._replace(alternatives=())
        graph = make_graph(answer, [], ())
        if names := [*(graph.feature_names or ()), *self.feature_names()]:
            table = np.zeros((0, len(names)))
            graph = graph.replace(features=table, feature_names=names)
        flags = [f"extraction failed: {error}"]
        return self._told(graph, answer, flags, usage=Usage())


def _agreeing(done):
    """In all extractions of a run, record the options that the endpoint does not support.

    An answer does not always require every call, so an unsupported option may be detected only
    for some answers.
    """
    made = [e.graph.provenance for e in done]
    left_out = {name for row in made for name in row["left_out"].split(", ")} - {""}
    odds_missing = any(row.get("log_odds") == "missing" for row in made)
    out = []
    for e, row in zip(done, made, strict=True):
        row = row | {"left_out": ", ".join(sorted(left_out))}
        if odds_missing and not e.graph.n_claims:
            row["log_odds"] = "missing"
        out.append(replace(e, graph=e.graph.replace(provenance=row)))
    return out


def _as_columns(table, names, graph):
    table = np.asarray(table, dtype=float)
    n = graph.n_claims
    if table.shape not in ((n,), (n, len(names))):
        raise ValueError(
            f"the step {names[0]!r} must return one row for each of the {n} claims, "
            f"got shape {table.shape}"
        )
    return table.reshape(n, len(names))
