"""From a question to the text of what can be trusted of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from .._parameters import HasMethods, Settings
from ..graphs import GraphBatch, Labels, ReasoningGraph
from ..inspection import explain
from . import _client as clients
from ._calls import Usage, cut_answer, read_answers
from ._claims import SampleAnswers
from ._client import ChatClient, Step
from ._extractor import ClaimExtractor
from ._judges import ABSTENTION, Merge, MergedText, join_claims


@dataclass(frozen=True)
class FilteredAnswer:
    """The part of one answer that can be trusted, and what happened to the rest.

    Parameters
    ----------
    text : str
        Of the kept claims; the text for abstention where none is kept.
    graph : ReasoningGraph
        The kept claims.
    original : ReasoningGraph
        All claims of the answer.
    kept : ndarray of bool, shape (n_claims,)
        Which of them are kept.
    claim_alpha : ndarray of float, shape (n_claims,)
        The smallest alpha at which each of them is kept; +inf where none is.
    alpha : float
        The level: a false claim is kept in at most this share of problems.
    dropped : tuple of (str, str)
        Text of each dropped claim, and why it was dropped.
    flags : tuple of str
        What was not as it should be on the way.
    text_promise : {"claims", "none"}
        What the promise says of the text. It is about claims as they were labelled, so it
        covers a text of just these ("claims"); a text that a model wrote of them may say
        more than they do, and nothing is promised for it ("none").
    excerpt : str
        The answer itself, without the sentences that are not all in words of kept claims.
        It reads better than the claims, and nothing is promised for it: a sentence may
        mean something else without those around it.
    usage : Usage
        What the answer cost.
    """

    text: str
    graph: ReasoningGraph
    original: ReasoningGraph
    kept: NDArray[np.bool_]
    claim_alpha: NDArray[np.float64]
    alpha: float
    dropped: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    text_promise: str = "claims"
    excerpt: str = ""
    usage: Usage = field(default_factory=Usage)

    @property
    def abstained(self) -> bool:
        """Whether nothing is kept."""
        return not self.kept.any()


@dataclass(eq=False, repr=False)
class ConformalFactualityPipeline(Settings):
    """An extractor and a filter: questions in, text that can be trusted out.

    Parameters
    ----------
    extractor : ClaimExtractor
        Turns answers into graphs; in use as in calibration.
    filter : filter of skdcf
        With ``features=`` for columns beside those of the extractor.
    merge : Merge or callable, optional
        ``merge(claims, problem)`` gives the text of the kept claims. None is
        `join_claims`, the only text for which the promise holds; `Merge` lets the
        extractor's model write one.

    Attributes
    ----------
    filter_ : the fitted filter

    Raises
    ------
    ValueError
        On a wrong parameter, or problems that were extracted with other columns, models
        or prompts.

    Notes
    -----
    The promise is the filter's: with a probability of at least ``1 - alpha``, no false
    claim is kept, for claims as they were labelled. Where a model fails on an answer,
    nothing of that answer is kept.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.edges import no_edges
    >>> from skdcf.llm import (
    ...     ClaimExtractor, ConformalFactualityPipeline, split_sentences
    ... )
    >>> def sounds_sure(graph):
    ...     return [float("maybe" not in text) for text in graph.claims]
    >>> extractor = ClaimExtractor(
    ...     decompose=split_sentences, graph=no_edges, features=[("sure", sounds_sure)]
    ... )
    >>> pipeline = ConformalFactualityPipeline(extractor, HardCF("sure", alpha=0.2))
    >>> known = [(f"q{i}", "It is 3." if i % 2 else "maybe it is 5.") for i in range(20)]
    >>> pipeline = pipeline.fit(known, [[i % 2] for i in range(20)])
    >>> [answer] = pipeline.answer(["What is it?"], ["It is 7. Then maybe 8."])
    >>> answer.text
    'It is 7.'
    """

    _parameter_constraints = {
        "extractor": [ClaimExtractor],
        "filter": [HasMethods(["fit", "predict", "predict_alpha", "set_params"])],
        "merge": [Step, callable, None],
    }

    extractor: ClaimExtractor
    filter: BaseEstimator
    merge: Merge | Callable | None = None

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        self.extractor.validate()
        clients.check_step("merge", self.merge, self.extractor.model)

    def fit(
        self,
        X: Iterable[Any],
        y: Labels,
        groups: ArrayLike | None = None,
        *,
        accept_origin: str | None = None,
    ) -> Self:
        """Fit the filter on labelled problems.

        Parameters
        ----------
        X : sequence of ReasoningGraph, or of (problem, answer)
            Problems as the extractor made them; those without features get them now.
            Answers are extracted first, which only makes sense where it always gives the
            same claims, from a cache say.
        y : sequence of arrays, one per problem
            1 for a true claim, 0 for a false one, -1 for one that nobody judged.
        groups : array-like of shape (n_problems,), optional
            Answers to the same question; see the filter's `fit`.
        accept_origin : str, optional
            The reason why problems may calibrate that were extracted with other models,
            prompts or settings than new ones will be.

        Returns
        -------
        self
            The fitted pipeline.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems.
        LabelWarning
            If a language model gave more than 5 % of the labels.
        """
        self.validate()
        batch = self._admit(X, accept_origin)
        more = {"groups": groups, "accept_origin": accept_origin}
        more = {name: value for name, value in more.items() if value is not None}
        self.filter_ = clone(self.filter).fit(batch, y, **more)
        return self

    def _admit(self, X, accept_origin):
        graphs = list(X)
        if not graphs or not isinstance(graphs[0], ReasoningGraph):
            return self.extractor.transform(graphs)
        wanted, own = self.extractor.feature_names(), self.extractor.describe()
        made = [(graph.metadata or {}).get("extraction") for graph in graphs]
        other = [m for m in made if m is not None and m != own]
        if other and accept_origin is None:
            many = f"{len(other)} of {len(graphs)} problems were extracted with other models"
            said = "the promise may not hold. If it does, say why: accept_origin=..."
            how = f"prompts or settings, {other[0]}, than new ones will be, {own}"
            raise ValueError(f"{many}, {how}: {said}")
        if wanted and all(graph.features is None for graph in graphs):
            return self.extractor.add_features(graphs)
        found = list(graphs[0].feature_names or ())
        if found != wanted:
            said = "what calibrates has to be measured as what is filtered later"
            columns = f"columns {found}, but the extractor makes {wanted}"
            raise ValueError(f"the problems have the {columns}: {said}")
        return GraphBatch.pack(graphs)

    def answer(
        self,
        problems: Iterable[Any],
        answers: Sequence[str] | None = None,
        *,
        alpha: float | None = None,
        accept_origin: str | None = None,
    ) -> list[FilteredAnswer]:
        """Keep of answers what can be trusted.

        Parameters
        ----------
        problems : sequence of str, of (problem, answer), of dict, or of Answer
            Questions, or all that `ClaimExtractor.extract` takes. Where the answer is
            missing, the model is asked.
        answers : sequence of str, optional
            An answer to each question, where ``problems`` are texts.
        alpha : float in (0, 1), optional
            None is the filter's own.
        accept_origin : str, optional
            As in the filter's `predict`.

        Returns
        -------
        list of FilteredAnswer
            One per problem, in their order.

        Raises
        ------
        ValueError
            If there are not as many answers as problems, or alpha is out of range.
        CallError
            If no model can be reached, or gives no answer.
        """
        asked = problems, answers, alpha, accept_origin
        return clients.finish(self._answering(ChatClient._now, *asked))

    async def aanswer(
        self,
        problems: Iterable[Any],
        answers: Sequence[str] | None = None,
        *,
        alpha: float | None = None,
        accept_origin: str | None = None,
    ) -> list[FilteredAnswer]:
        """Keep of answers what can be trusted, from within a loop; as `answer`.

        Parameters
        ----------
        problems : sequence
            As for `answer`.
        answers : sequence of str, optional
            As for `answer`.
        alpha : float in (0, 1), optional
            As for `answer`.
        accept_origin : str, optional
            As for `answer`.

        Returns
        -------
        list of FilteredAnswer
            One per problem, in their order.
        """
        asked = problems, answers, alpha, accept_origin
        return await self._answering(ChatClient._later, *asked)

    def _read(self, problems, answers, alpha):
        """All that could be wrong is found before the first call."""
        check_is_fitted(self, "filter_")
        self.extractor.validate()
        if alpha is not None:
            check_alpha(alpha)
        if isinstance(problems, str) or isinstance(answers, str):
            raise ValueError("a text is given in the place of a list of texts")
        items = list(problems)
        if answers is not None and len(answers) != len(items):
            raise ValueError(f"{len(answers)} answers but {len(items)} problems")
        pairs = items if answers is None else zip(items, answers, strict=True)
        return read_answers(pairs, ask=answers is None)

    async def _answering(self, run, problems, answers, alpha, accept_origin):
        items = self._read(problems, answers, alpha)
        if not items:
            return []
        client = clients.as_client(self.extractor.client)

        async def each(items, work):
            done, _ = await run(client, items, work, self.extractor.model)
            clients.raise_first(done)
            return zip(*done, strict=True)

        asked, chats = await each(items, self._ask)
        found = await self.extractor._extracting(run, asked, "abstain")
        graphs = [one.graph for one in found]
        batch = GraphBatch.pack(graphs)
        shown = explain(self.filter_, batch, alpha=alpha, accept_origin=accept_origin)
        kept = [(g, e.kept) for g, e in zip(graphs, shown, strict=True)]
        texts, usages = await each(kept, self._write)
        parts = zip(found, shown, texts, usages, chats, strict=True)
        return [self._finished(*part) for part in parts]

    async def _ask(self, chat, item):
        """The item with its answer, for which the model is asked if it is missing."""
        if item.answer is None:
            sample = self.extractor.sample
            step = sample if isinstance(sample, SampleAnswers) else SampleAnswers(1)
            item = item._replace(answer=await step._answer(chat, item.problem))
        return item, chat

    async def _write(self, chat, item):
        """The text of what is kept of an answer, and what it cost."""
        graph, mask = item
        merge = join_claims if self.merge is None else self.merge
        claims, dropped = (list(compress(graph.claims, m)) for m in (mask, ~mask))
        more = [dropped] if isinstance(merge, Merge) else []
        text = ABSTENTION
        if claims or more:
            text = await clients.call_step(merge, chat, claims, graph.problem, *more)
        made = text if isinstance(text, MergedText) else MergedText(text)
        return made, chat.usage

    def _finished(self, one, shown, text, usage, asked):
        graph, mask = one.graph, shown.kept
        kept = graph.subgraph(mask)
        usage += one.usage
        usage += asked.usage
        plain = text.text == join_claims(kept.claims) or not mask.any()
        refused = [f"refused: {sentence}" for sentence in text.refused]
        return FilteredAnswer(
            text=text.text,
            graph=kept,
            original=graph,
            kept=mask,
            claim_alpha=shown.smallest_alpha,
            alpha=shown.alpha,
            dropped=tuple((graph.claims[v], why) for v, why in shown.reasons.items()),
            flags=(*asked.flags, *one.flags, *filter(None, [text.flag]), *refused),
            text_promise="claims" if plain else "none",
            excerpt=cut_answer(graph, mask),
            usage=usage,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "filter_")
