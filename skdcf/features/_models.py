"""Features computed by an entailment model or a process reward model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, Literal, Self
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
from numpy.typing import ArrayLike

from .._checks import printable
from .._parameters import StrOptions, positive, settings
from ..graphs import GraphBatch
from ._cleaning import check_claim_texts
from ._transformers import GraphTransformer, check_known

WEB = ("http://", "https://")
_N_PROBED = 8  # number of pairs that are scored twice in different orders
_TOLERANCE = 1e-3  # maximum difference between two scores that padding may cause
_LONGEST = 2**24  # maximum number of bytes to read from a server's reply


class _NoRedirects(HTTPRedirectHandler):
    """Handler that refuses redirects, so texts are only sent to the host given by the caller."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(address: str, body: dict[str, Any], timeout: float, whose: str) -> bytes:
    """Send JSON to a model server and return its reply.

    Parameters
    ----------
    address : str
        URL of the server.
    body : dict
        Request body.
    timeout : float
        Time limit for the request, in seconds.
    whose : str
        Text that names the problem and the model, for error messages.

    Returns
    -------
    reply : bytes
        The reply, truncated at a maximum size.

    Raises
    ------
    ConnectionError
        If the server cannot be reached or refuses the request.
    """
    request = Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with build_opener(_NoRedirects).open(request, None, timeout) as reply:
            return reply.read(_LONGEST)
    except OSError as error:
        reply_body = error.read(200) if isinstance(error, HTTPError) else b""
        raise ConnectionError(
            f"{whose} at {address} failed ({error} "
            f"{printable(reply_body.decode(errors='replace'))}). All earlier replies are "
            "stored. Repeat the call to request the remaining replies"
        ) from error


class ModelColumns(GraphTransformer):
    """Base class for features that are computed by a model. Results are cached.

    Copies made by scikit-learn's ``clone`` share the model and the cache.
    """

    requires_fit = False
    # The scores of a user's model may depend on other problems, so the default is False.
    per_problem: ClassVar[bool] = False

    def __sklearn_clone__(self) -> Self:
        copy = type(self)(**self.get_params(deep=False))
        copy._kept = self._known()
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_kept"}

    def _known(self) -> dict[Any, Any]:
        return self.__dict__.setdefault("_kept", {})

    def _check(self, batch: GraphBatch) -> None:
        self.validate()
        check_claim_texts(batch)


class AnswerColumns(ModelColumns):
    """Base class for features that a model computes for one answer at a time.

    Identical answers are sent to the model only once. A subclass defines two methods.
    ``_key(graph)`` returns a cache key, which contains everything that the columns depend on.
    ``_measure(graph, name)`` returns the columns of an answer, of shape (n_claims, n_columns).
    """

    _opens = ("source",)
    source: Any

    _key: Callable[..., Any]
    _measure: Callable[..., Any]

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid.

        Raises
        ------
        ValueError
            If a parameter is invalid.
        """
        super().validate()
        if isinstance(self.source, str) and not self.source.startswith(WEB):
            raise ValueError(
                "source must be a function or a URL that starts with http:// or "
                f"https://, got {self.source!r}"
            )

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        rows_known = self._known()
        rows = [np.empty((0, len(self.own_names())))]
        for i, graph in enumerate(batch):
            if graph.n_claims:
                key = self._key(graph)
                if key not in rows_known:
                    rows_known[key] = self._measure(graph, batch.name_of(i))
                rows.append(rows_known[key])
        return np.concatenate(rows)


@settings
class PairFeature(ModelColumns):
    """Score claims with a model for text pairs, such as an entailment model.

    Parameters
    ----------
    score : callable
        Function ``score(texts, claims)`` that returns one number per pair, given two lists of
        equal length. For a cross-encoder of sentence-transformers, pass ``lambda texts, claims:
        model.predict(list(zip(texts, claims)))``.
    over : {"context", "alternatives", "ancestors"}
        The texts that a claim is paired with. With "context", a claim is paired with each
        passage, and the maximum score is used. With "alternatives", a claim is paired with each
        alternative answer, and the mean score is used. With "ancestors", a claim is paired with a
        single text, which consists of the question and the claim's ancestors, joined by line
        breaks.
    chunk_words : int, optional
        Number of words per chunk. Longer texts are split into chunks, and the largest score among
        the chunks of a text is used. If None, texts are not split.
    batch_size : int, default=256
        Maximum number of pairs per call to ``score``. A claim that cannot be paired with any text
        is assigned 0 without a call to ``score``.
    name : str, default="pair_score"
        Column name.

    Raises
    ------
    ValueError
        If a problem's context or alternatives are unknown, if ``score`` does not return one
        finite number per pair, or if the numbers depend on the order of the pairs. The error
        message names the problem and the text.

    Notes
    -----
    Each pair is scored once. The transformer caches the scores by content and shares them with
    its clones, even if a later call fails. The cache is not saved with the transformer.

    Cosine similarity from a small sentence-embedding model is unlikely to be useful. On two data
    sets of summaries, cosine similarity did not improve on `ContextFeatures` alone. A model that
    was trained to verify claims against documents may be more useful.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import PairFeature
    >>> def score(texts, claims):  # stands in for a model
    ...     return [float(claim in text) for text, claim in zip(texts, claims)]
    >>> graph = ReasoningGraph(None, claims=["is red"], context=["The fox is red."])
    >>> PairFeature(score).fit_transform([graph]).features
    array([[1.]])
    """

    _parameter_constraints = {
        "score": [callable],
        "over": [StrOptions({"context", "alternatives", "ancestors"})],
        "chunk_words": [positive(Integral), None],
        "batch_size": [positive(Integral)],
        "name": [str],
    }

    score: Callable[[list[str], list[str]], ArrayLike]
    _: KW_ONLY
    over: Literal["context", "alternatives", "ancestors"] = "context"
    chunk_words: int | None = None
    batch_size: int = 256
    name: str = "pair_score"

    def own_names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def reads_edges(self) -> bool:  # type: ignore[override]
        """Return whether claims are compared with their ancestors."""
        return self.over == "ancestors"

    def _check(self, batch: GraphBatch) -> None:
        super()._check(batch)
        if self.over != "ancestors":
            check_known(batch, self.over)

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        asked = list(self._list_pairs(batch))
        to_ask = {}
        for i, texts in zip(batch.problem_of, asked, strict=True):
            to_ask |= dict.fromkeys(chain.from_iterable(texts), i)
        answers_known = self._known()
        pairs = [pair for pair in to_ask if pair not in answers_known]
        for k in range(0, len(pairs), self.batch_size):
            block = pairs[k : k + self.batch_size]
            numbers = self._ask(block, batch, to_ask)
            if k == 0:
                self._compare_orders(block[:_N_PROBED], batch, to_ask)
            answers_known.update(zip(block, numbers, strict=True))
        combine = np.mean if self.over == "alternatives" else np.max
        best = [
            [max(answers_known[pair] for pair in pairs) for pairs in texts]
            for texts in asked
        ]
        column = [combine(scores) if scores else 0.0 for scores in best]
        return np.array(column, dtype=float).reshape(-1, 1)

    def _list_pairs(self, batch) -> Iterator[list[list[tuple[str, str]]]]:
        """Yield, for each claim, one list of (chunk, claim) pairs per text."""
        for graph in batch:
            for v, claim in enumerate(graph.claims or ()):
                if self.over == "ancestors":
                    above = [graph.claims[u] for u in graph.ancestors(v)]
                    texts = ["\n".join([graph.problem or "", *above]).strip()]
                else:
                    texts = getattr(graph, self.over)
                yield [[(c, claim) for c in self._cut(t)] for t in texts if t.strip()]

    def _cut(self, text):
        if self.chunk_words is None:
            return [text]
        words = text.split()
        starts = range(0, len(words), self.chunk_words)
        return [" ".join(words[k : k + self.chunk_words]) for k in starts]

    def _ask(self, pairs, batch, wanted):
        """Return the score of each pair, or raise ValueError if the scores are invalid."""
        texts, claims = map(list, zip(*pairs, strict=True))
        numbers = np.asarray(self.score(texts, claims))
        if numbers.shape not in ((len(pairs),), (len(pairs), 1)):
            raise ValueError(
                "score(texts, claims) must return one number per pair, got shape "
                f"{numbers.shape} for {len(pairs)} pairs"
            )
        numbers = numbers.reshape(-1).astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            text, claim = pair = pairs[wrong[0]]
            raise ValueError(
                f"score(texts, claims) must return finite numbers, got {numbers[wrong[0]]} "
                f"for claim {printable(claim[:60])!r} of {batch.name_of(wanted[pair])} and "
                f"text {printable(text[:60])!r}"
            )
        return numbers.tolist()

    def _compare_orders(self, pairs, batch, wanted):
        """Raise ValueError if the scores depend on the order of the pairs."""
        forward = np.array(self._ask(pairs, batch, wanted))
        back = np.array(self._ask(pairs[::-1], batch, wanted))[::-1]
        if not np.allclose(forward, back, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise ValueError(
                "score(texts, claims) must return numbers that do not depend on the other "
                f"pairs or on their order, got {forward.tolist()} for {len(pairs)} pairs and "
                f"{back.tolist()} for the same pairs in reverse order"
            )


@settings
class StepReward(AnswerColumns):
    """Reward that a process reward model assigns to each claim, with one request per answer.

    Parameters
    ----------
    source : str or callable
        The URL of a server with vLLM's ``/pooling`` API, such as
        "http://localhost:8000/pooling", or a function ``source(question, claims)`` that returns
        one number, or one row of numbers, per claim.
    separator : str, default="<extra_0>"
        The separator that the model expects after each step. The model returns a number, or a
        row of numbers, for each separator.
    column : int, default=-1
        Index of the number to use if the model returns rows of numbers. Many models return the
        probabilities of "wrong" and "right", in this order.
    task : str, optional
        Task name that is sent to the server, such as "token_classify".
    model : str, optional
        Model name, which is sent to the server.
    timeout : float, default=60.0
        Time limit for a request, in seconds.
    name : str, default="reward"
        Column name.

    Raises
    ------
    ValueError
        If the model does not return one finite number per claim, or if a claim contains the
        separator.
    ConnectionError
        If the server cannot be reached or refuses the request. The error message names the
        problem. Earlier replies are cached, so a second call requests only the missing replies.

    Notes
    -----
    ``HardCF("reward", features=StepReward(url))`` has no trained scorer, so all labelled
    problems are used for calibration. The reward can also be combined with other features.
    `skdcf.load` removes the URL from a loaded filter. Set the URL again with
    ``cf.features_.set_params(source=url)``.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import StepReward
    >>> def reward(question, claims):  # stands in for a model
    ...     return [[0.25, 0.75] for claim in claims]
    >>> graph = ReasoningGraph(None, claims=["6 / 2 = 3"], problem="Half of 6?")
    >>> StepReward(reward).fit_transform([graph]).features
    array([[0.75]])
    """

    reads_edges = False
    _parameter_constraints = {
        "source": [str, callable],
        "separator": [str],
        "column": [Integral],
        "task": [str, None],
        "model": [str, None],
        "timeout": [positive()],
        "name": [str],
    }

    source: str | Callable[[str, list[str]], ArrayLike]
    _: KW_ONLY
    separator: str = "<extra_0>"
    column: int = -1
    task: str | None = None
    model: str | None = None
    timeout: float = 60.0
    name: str = "reward"

    def own_names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def looks_ahead(self) -> frozenset[str]:  # type: ignore[override]
        """Return the name of the only column, because a reward may depend on later claims."""
        return frozenset((self.name,))

    def _key(self, graph):
        return graph.problem or "", graph.claims

    def _measure(self, graph, name):
        """Return each claim's reward."""
        question, claims = self._key(graph)
        if isinstance(self.source, str):
            table = self._request(question, claims, name)
        else:
            table = self.source(question, list(claims))
        try:
            table = np.asarray(table, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.ndim == 2 and -table.shape[1] <= self.column < table.shape[1]:
            table = table[:, self.column]
        if table.shape != (len(claims),) or not np.isfinite(table).all():
            raise ValueError(
                f"{name}: the reward model must return one finite number per claim, got "
                f"{printable(str(table.tolist())[:80])} of shape {table.shape} for "
                f"{len(claims)} claims. Check that separator is the string that was used to "
                "train the model"
            )
        return table.reshape(-1, 1)

    def _request(self, question, claims, name):
        for claim in claims:
            if self.separator in claim:
                raise ValueError(
                    f"{name}: the claim {printable(claim[:60])!r} must not contain the separator "
                    f"{self.separator!r}, because its reward would otherwise be ambiguous"
                )
        # A reward model is called over HTTP only if the source is a URL.
        assert isinstance(self.source, str)
        steps = "".join(claim + self.separator for claim in claims)
        messages = (("user", question), ("assistant", steps))
        body = {
            "messages": [{"role": role, "content": text} for role, text in messages]
        }
        body |= {k: v for k in ("model", "task") if (v := getattr(self, k)) is not None}
        content = post(self.source, body, self.timeout, f"{name}: the reward model")
        try:
            return json.loads(content)["data"][0]["data"]
        except (ValueError, LookupError, TypeError):
            raise ValueError(
                f"{name}: the reward model at {self.source} must reply with "
                '{"data": [{"data": [...]}]}, as the vLLM endpoint /pooling does, got '
                f"{printable(content[:80].decode(errors='replace'))!r}"
            ) from None
