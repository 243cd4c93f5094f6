"""Scikit-learn transformer that extracts reasoning graphs from problems and answers."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin

from ..._checks import warn
from ..._parameters import Settings
from ...datasets.records import plain, read_graph
from ...datasets.thoughts import clean_texts
from ...edges import chain_edges
from ...exceptions import ParameterWarning
from ...features import SURPRISAL, surprisal
from ...graphs import GraphBatch
from ..text import clean_answer
from ._model import CallError, ChatClient, as_client, run_all
from ._replies import visible
from ._steps import (
    Decompose,
    DeduceGraph,
    SampleAnswers,
    Step,
    call_step,
    describe_step,
)


def flagged_claims(graph):
    """Return the positions of the claims that may misstate the answer, keyed by the reason.

    The metadata of the graph contain the answer and the words that state each claim.
    """
    answer = graph.metadata["answer"]
    spans = graph.metadata.get("spans", {})
    words = _words(answer)
    numbers = _numbers(f"{answer} {graph.problem or ''}")
    plain = [" ".join(claim.casefold().split()) for claim in graph.claims]
    stated = [
        {_words(claim), _words(spans.get(claim, claim))} - {"  "}
        for claim in graph.claims
    ]
    return {
        "not stated in the answer": [
            v for v, texts in enumerate(stated) if not any(t in words for t in texts)
        ],
        "with a number that is neither in the answer nor in the question": [
            v for v, claim in enumerate(graph.claims) if _numbers(claim) - numbers
        ],
        "equal to an earlier claim": [
            v for v, claim in enumerate(plain) if claim in plain[:v]
        ],
    }


def _words(text):
    """Return the words and numbers of a text, separated by single spaces."""
    plain = unicodedata.normalize("NFKC", visible(text)).casefold()
    words = " ".join(re.findall(r"[^\W_]+", plain))
    return f" {words} "


def _numbers(text):
    """Return the numbers in a text, without thousands separators."""
    numbers = re.findall(r"\d+(?:[.,]\d+)*", unicodedata.normalize("NFKC", text))
    return {number.replace(",", "") for number in numbers}


def _read_answer(i, item):
    """Return a graph without claims and the log-probabilities."""
    if isinstance(item, tuple) and len(item) == 2:
        item = dict(zip(("problem", "answer"), item, strict=True))
    if not isinstance(item, Mapping) or not isinstance(item.get("answer"), str):
        raise ValueError(
            f"problem {i} must be a (problem, answer) pair of strings, or a dict with a string "
            f'under the key "answer", got {item!r:.100}'
        )
    record = {"claims": [], **item}
    answer, removed = clean_answer(record)
    del record["answer"]
    logprobs = record.pop("logprobs", None)
    try:
        if logprobs is not None:
            surprisal(logprobs, answer, ())
        graph = read_graph(plain(record))
    except ValueError as error:
        raise ValueError(f"problem {i}: {error}") from error
    metadata = {**(graph.metadata or {}), "answer": answer} | removed
    alternatives = clean_texts(graph.alternatives)
    return graph.replace(alternatives=alternatives, metadata=metadata), logprobs


def _with_claims(graph, logprobs, claims, edges):
    """Return a graph with claims, whose metadata contain the words of each claim.

    The words are omitted if they equal the text of the claim. The log-probabilities of the answer
    are converted to feature columns.
    """
    texts = [str(claim) for claim in claims]
    spans = {
        str(claim): claim.span
        for claim in claims
        if getattr(claim, "span", "") not in ("", claim)
    }
    metadata = graph.metadata | ({"spans": spans} if spans else {})
    graph = graph.replace(claims=texts, edges=edges, metadata=metadata)
    if logprobs is None:
        return graph
    words = [spans.get(text, text) for text in texts]
    columns = surprisal(logprobs, metadata["answer"], words)
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
    features : sequence of steps, optional
        Steps that compute feature columns: `Frequency`, `SemanticJudge` and `Verify`. Pass
        features that do not require a model, such as `skdcf.features.reasoning_features`, to the
        parameter ``features`` of the filter instead.

    Attributes
    ----------
    usage_ : Counter
        Numbers of ``calls``, ``cached`` replies, ``prompt_tokens`` and ``completion_tokens`` of
        the last run.

    Raises
    ------
    ValueError
        If a parameter or the input is invalid.
    EndpointError
        If no call can succeed. The replies to earlier calls are in the cache of the client.

    Notes
    -----
    If a model returns no usable reply for an answer, a warning is issued, and the answer has a
    graph without claims and with a flag, so a filter cannot keep any claims.

    `fit` only validates the parameters. Each answer is extracted independently of other
    answers. Calibration and prediction must use the same models, prompts and numbers of alternative
    answers.

    The metadata of a graph record how the graph was created:

    * ``answer`` contains the text of the answer.
    * ``spans`` contains the words of the answer that state each claim.
    * ``flags`` contains descriptions of anomalies.
    * ``removed`` states what was removed from the answer: thoughts and control tokens, or the last
      sentence if a key such as ``finish_reason`` states that the answer was cut off.

    The provenance of a graph contains the result of `describe`, and the options that the endpoint
    does not accept (``left_out``). Filters compare the provenance with the values from
    calibration.

    The last column, ``flagged``, is 1 for claims that may misstate the answer: claims that repeat
    another claim, or whose words or numbers do not occur in the answer. A claim without
    a verdict gets the column values of a claim that is certainly false.

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
        "features": ["array-like"],
    }

    model: str | None = None
    client: Any = None
    _: KW_ONLY
    decompose: Decompose | Callable | None = None
    graph: DeduceGraph | Callable | None = None
    sample: SampleAnswers | Callable | None = None
    features: Sequence[Step] = ()

    def validate(self) -> None:
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        as_client(self.client)
        for name, step in self._steps().items():
            if name.startswith("features") and not hasattr(step, "names"):
                raise ValueError(
                    f"{name} must be a step that computes columns, such as Frequency(), got "
                    f"{step!r}"
                )
            if isinstance(step, Step):
                step.validate()
                if self.model is step.model is None:
                    raise ValueError(
                        f"{name} calls a model, so model must be set, got None. Set model, or "
                        "replace this step with a function"
                    )

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
        X : sequence of (problem, answer) or of dict
            The answers. Dictionaries must have the key ``answer``. They may have your own keys,
            which are kept in the metadata, and the keys ``problem``, ``id``, ``group`` (which
            identifies the question), ``alternatives`` (other answers to the question),
            ``context`` (the passages that must support the answer), ``logprobs``
            (log-probabilities of the tokens of the answer, in the format of a chat-completions
            response, from which the columns of `skdcf.features.surprisal` are computed) and
            ``metadata``.

        Returns
        -------
        graphs : GraphBatch
            One problem per answer, in order.
        """
        self.validate()
        answers = [_read_answer(i, item) for i, item in enumerate(X)]
        if len({logprobs is None for _, logprobs in answers}) == 2:
            raise ValueError(
                "logprobs must be passed for all problems or for none, but some problems have "
                "none"
            )
        graphs, run = run_all(self.client, answers, self._extract, self.model)
        self.usage_ = run.usage
        failed = [str(graph) for graph in graphs if isinstance(graph, CallError)]
        if failed:
            warn(
                f"{len(failed)} of {len(graphs)} answers have no claims, because calls failed. If "
                "replies are cached, running the same call again only repeats the failed calls. "
                f"The first error was: {failed[0]}",
                ParameterWarning,
            )
        graphs = [
            self._failed(empty, logprobs, graph)
            if isinstance(graph, CallError)
            else graph
            for (empty, logprobs), graph in zip(answers, graphs, strict=True)
        ]
        made = self.describe() | {"left_out": ", ".join(sorted(run.left_out))}
        return GraphBatch.from_graphs(
            [graph.replace(provenance=made) for graph in graphs]
        )

    def feature_names(self) -> list[str]:
        """Return the names of the feature columns.

        Returns
        -------
        names : list of str
            Column names, in order.
        """
        return [*(name for step in self.features for name in step.names), "flagged"]

    def describe(self) -> dict[str, str | int]:
        """Return a description of the models and prompts, without endpoint addresses.

        Returns
        -------
        description : dict
            The keys are ``model`` (unless it is None) and the names of the steps. The description
            of a step is a JSON object that contains its settings and the name of its prompt or
            function. The provenance of the extracted problems contains this description.
        """
        description: dict[str, Any] = {
            name: json.dumps(describe_step(step), sort_keys=True, default=repr)
            for name, step in self._steps().items()
        }
        if self.model is not None:
            description["model"] = self.model
        return description

    def _steps(self):
        """Return all steps, including the default steps, keyed by name."""
        steps: dict[str, Any] = {
            "decompose": self.decompose or Decompose(),
            "graph": self.graph or DeduceGraph(),
            "sample": self.sample,
        }
        steps |= {f"features[{i}]": step for i, step in enumerate(self.features)}
        return {name: step for name, step in steps.items() if step is not None}

    async def _extract(self, run, graph, logprobs):
        """Run all steps for one answer."""
        steps = self._steps()
        answer = graph.metadata["answer"]
        claims = await call_step(steps["decompose"], run, answer, graph.problem)
        edges = await call_step(steps["graph"], run, claims, graph.problem)
        flags = []
        if not claims and answer.strip():
            flags.append("no claim was found in the answer")
        if edges is None:
            edges = chain_edges(claims)
            flags.append(
                "the graph could not be read, so every claim depends on the previous one"
            )
        graph = _with_claims(graph, logprobs, claims, edges)
        if graph.alternatives is None and self.sample is not None:
            # Of all steps, only `SampleAnswers` also receives the passages.
            of_step = [graph.context] * isinstance(self.sample, SampleAnswers)
            alternatives = await call_step(self.sample, run, graph.problem, *of_step)
            if (n := getattr(self.sample, "n", 0)) > len(alternatives):
                flags.append(
                    f"only {len(alternatives)} of {n} other answers are usable"
                )
            graph = graph.replace(alternatives=alternatives)
        tables = await asyncio.gather(
            *(call_step(step, run, graph) for step in self.features)
        )
        for table in tables:
            no_verdict = np.isnan(table[:, 0])
            if no_verdict.any():
                table[no_verdict] = 0.0, -14.0  # the columns of a certainly false claim
                flags.append(
                    f"{no_verdict.sum()} of {graph.n_claims} claims have no verdict"
                )
        is_flagged = np.zeros((graph.n_claims, 1))
        for reason, rows in flagged_claims(graph).items():
            is_flagged[rows] = 1
            if rows:
                flags.append(f"claims {reason}: {', '.join(str(v + 1) for v in rows)}")
        return self._filled(graph, [*tables, is_flagged], flags)

    def _filled(self, graph, tables, flags):
        """Return a graph with its feature columns, and with flags if there are any."""
        given = [] if graph.features is None else [graph.features]
        return graph.replace(
            features=np.hstack([*given, *tables]),
            feature_names=[*(graph.feature_names or ()), *self.feature_names()],
            metadata=graph.metadata | ({"flags": flags} if flags else {}),
        )

    def _failed(self, graph, logprobs, error):
        """Return a graph without claims, flagged with the reason for the failure."""
        if self.sample is not None and graph.alternatives is None:
            graph = graph.replace(alternatives=())
        graph = _with_claims(graph, logprobs, [], ())
        return self._filled(
            graph,
            [np.zeros((0, len(self.feature_names())))],
            [f"extraction failed: {error}"],
        )
