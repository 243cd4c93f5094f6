"""Columns that a model makes: a verifier of pairs of texts, or a model that rewards steps."""

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
_N_PROBED = 8  # pairs that are asked for twice, in another order
_TOLERANCE = 1e-3  # padding may change numbers by this much
_LONGEST = 2**24  # bytes of a reply; what lies beyond is not read


class _NoRedirects(HTTPRedirectHandler):
    """Treat a redirect as an error: texts stay with the host that the caller named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(address: str, body: dict[str, Any], timeout: float, whose: str) -> bytes:
    """Send JSON to the server of a model, and return its reply.

    Parameters
    ----------
    address : str
        Where the server is.
    body : dict
        What is sent.
    timeout : float
        Seconds that the request may take.
    whose : str
        Problem and model, for the message of an error.

    Returns
    -------
    bytes
        The beginning of the reply, up to a limit.

    Raises
    ------
    ConnectionError
        If the server cannot be reached or refuses.
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
            f"{printable(reply_body.decode(errors='replace'))}). What it answered before is "
            "kept: call again to ask for the rest"
        ) from error


class ModelColumns(GraphTransformer):
    """Columns of a model's numbers, which are kept, so that no text is sent twice.

    Copies that scikit-learn makes share what is kept, as they share the model.
    """

    requires_fit = False
    per_problem: ClassVar[bool] = False  # the model decides what a number depends on

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
    """Columns that a model computes for one answer at a time. Equal answers are asked for once.

    A subclass defines ``_key(graph)``, what the columns depend on, and ``_measure(graph, name)``,
    the columns of an answer, shape (n_claims, n_columns).
    """

    _opens = ("source",)
    source: Any

    _key: Callable[..., Any]
    _measure: Callable[..., Any]

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared.

        Raises
        ------
        ValueError
            With the name of the parameter, its value, and what it may be.
        """
        super().validate()
        if isinstance(self.source, str) and not self.source.startswith(WEB):
            raise ValueError(
                f"source is {self.source!r}, but must be a function, or begin with http:// or "
                "https://"
            )

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        known = self._known()
        rows = [np.empty((0, len(self.own_names())))]
        for i, graph in enumerate(batch):
            if graph.n_claims:
                key = self._key(graph)
                if key not in known:
                    known[key] = self._measure(graph, batch.name_of(i))
                rows.append(known[key])
        return np.concatenate(rows)


@settings
class PairFeature(ModelColumns):
    """Columns that a model computes from pairs of a text and a claim, such as entailment.

    Parameters
    ----------
    score : callable
        ``score(texts, claims)`` takes two lists of equal length, and returns one number
        for each pair, in their order. For a cross-encoder of sentence-transformers that is
        ``lambda texts, claims: model.predict(list(zip(texts, claims)))``.
    over : {"context", "alternatives", "ancestors"}
        The texts: the passages of the context, of which the largest number counts; the
        other answers, whose mean counts; or the question with the claims that the claim
        builds on, joined by line ends.
    chunk_words : int, optional
        A longer text is cut into chunks of that many words, and the largest number counts;
        None cuts nothing.
    batch_size : int, default=256
        Largest number of pairs in one call. A claim without a text to compare it with
        gets 0 without one.
    name : str, default="pair_score"
        Name of the column.

    Raises
    ------
    ValueError
        If the context or the alternatives of a problem are unknown; if ``score`` does not
        return one finite number per pair, or other ones for the same pairs in another
        order. The message names problem and text.

    Notes
    -----
    A pair is scored once: the numbers are kept with the transformer and shared by its
    clones, also where a later call fails. Numbers are kept by content, not saved.

    Expect little of the cosines of a small sentence model: together with the columns of
    `ContextFeatures` they gained nothing on two sets of summaries. A model trained to
    verify claims against documents may.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import PairFeature
    >>> def score(texts, claims):  # a model in its place
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
        """Whether the texts are those of ancestors."""
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
        """For each claim its pairs, each of a text and the claim."""
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
        """One number for each pair, or a ValueError."""
        texts, claims = map(list, zip(*pairs, strict=True))
        numbers = np.asarray(self.score(texts, claims))
        if numbers.shape not in ((len(pairs),), (len(pairs), 1)):
            raise ValueError(
                f"score(texts, claims) gave an array of shape {numbers.shape} for "
                f"{len(pairs)} pairs: one number per pair is needed"
            )
        numbers = numbers.reshape(-1).astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            text, claim = pair = pairs[wrong[0]]
            raise ValueError(
                f"score(texts, claims) gave {numbers[wrong[0]]} for the claim "
                f"{printable(claim[:60])!r} of {batch.name_of(wanted[pair])} and the text "
                f"{printable(text[:60])!r}: a finite number is needed"
            )
        return numbers.tolist()

    def _compare_orders(self, pairs, batch, wanted):
        """ValueError where the same pairs in another order get other numbers."""
        forward = np.array(self._ask(pairs, batch, wanted))
        back = np.array(self._ask(pairs[::-1], batch, wanted))[::-1]
        if not np.allclose(forward, back, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise ValueError(
                f"score(texts, claims) gave {forward.tolist()} for {len(pairs)} pairs and "
                f"{back.tolist()} when they came in another order: it must return "
                "numbers in the order of the pairs, each a function of its pair alone"
            )


@settings
class StepReward(AnswerColumns):
    """A column of what a process-reward model says of claims, one request per answer.

    Parameters
    ----------
    source : str or callable
        The address of a server that speaks vLLM's ``/pooling``, such as
        "http://localhost:8000/pooling", or ``source(question, claims)``, which returns one
        number, or one row of numbers, per claim.
    separator : str, default="<extra_0>"
        What the model expects behind each step; it returns a number, or a row of them, for
        each separator.
    column : int, default=-1
        Which number of a row: models often return the probabilities of "wrong" and "right".
    task : str, optional
        Passed on to the server, such as "token_classify".
    model : str, optional
        Name of the model, passed on to the server.
    timeout : float, default=60.0
        Seconds that a request may take.
    name : str, default="reward"
        Name of the column.

    Raises
    ------
    ValueError
        If the numbers are not one per claim and finite, or a claim contains the separator.
    ConnectionError
        If the server cannot be reached or refuses; the message names the problem. What it
        answered before is kept, so that calling again asks for the rest only.

    Notes
    -----
    ``HardCF("reward", features=StepReward(url))`` learns nothing, so that all labelled
    problems calibrate. Beside other columns it is one more. `skdcf.load` takes the address
    out of a file; ``cf.features_.set_params(source=url)`` gives it back to such a filter.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import StepReward
    >>> def reward(question, claims):  # a model in its place
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
        """The column itself, since nothing says that a model reads steps in their order."""
        return frozenset((self.name,))

    def _key(self, graph):
        return graph.problem or "", graph.claims

    def _measure(self, graph, name):
        """The number of each claim."""
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
                f"{name}: the reward model gave {printable(str(table.tolist())[:80])}, an "
                f"array of shape {table.shape}, for {len(claims)} claims: one finite number "
                "per claim is needed. Is separator= what the model was trained with?"
            )
        return table.reshape(-1, 1)

    def _request(self, question, claims, name):
        for claim in claims:
            if self.separator in claim:
                raise ValueError(
                    f"{name}: the claim {printable(claim[:60])!r} contains the separator "
                    f"{self.separator!r}, so that rewards could not be told apart"
                )
        # A function of the caller's has no such address.
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
                f"{name}: the reward model at {self.source} replied "
                f"{printable(content[:80].decode(errors='replace'))!r}, but "
                '{"data": [{"data": [...]}]} is needed, as vLLM\'s /pooling replies'
            ) from None
