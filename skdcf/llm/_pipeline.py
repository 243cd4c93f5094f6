"""From a question to the text of what can be trusted of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha
from .._parameters import HasMethods, Settings
from ..graphs import GraphBatch, Labels, ReasoningGraph
from ..inspection import explain
from ._calls import EXTRACTION, Usage, cut_answer, read_answers
from ._claims import SampleAnswers
from ._client import Step, adrive, as_client, call_step, check_model, drive, raise_first
from ._extractor import ClaimExtractor
from ._judges import ABSTENTION, Merge, MergedText, join_claims
from ._session import gather_all


@dataclass(frozen=True)
class FilteredAnswer:
    """What can be trusted of one answer, and what happened to the rest.

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

    _parameter_constraints: ClassVar[dict[str, list]] = {
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
        if isinstance(self.merge, Step):
            self.merge.validate()
            check_model("merge", self.merge, self.extractor.model)

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
        made = [(graph.metadata or {}).get(EXTRACTION) for graph in graphs]
        other = [m for m in made if m is not None and m != own]
        if other and accept_origin is None:
            raise ValueError(
                f"{len(other)} of {len(graphs)} problems were extracted with other models, "
                f"prompts or settings, {other[0]}, than new ones will be, {own}: the "
                "promise may not hold for these. If it does, say why: accept_origin=..."
            )
        if wanted and all(graph.features is None for graph in graphs):
            return self.extractor.add_features(graphs)
        found = list(graphs[0].feature_names or ())
        if found != wanted:
            raise ValueError(
                f"the problems have the columns {found}, but the extractor makes {wanted}:"
                " what calibrates has to be measured as what is filtered later"
            )
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
        return drive(*self._begun(problems, answers, alpha, accept_origin))

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
        return await adrive(*self._begun(problems, answers, alpha, accept_origin))

    def _begun(self, problems, answers, alpha, accept_origin):
        """All that could be wrong is found before the first call."""
        check_is_fitted(self, "filter_")
        self.extractor.validate()
        if alpha is not None:
            check_alpha(alpha)
        if isinstance(problems, str):
            raise ValueError("problems must be a list of texts, or of answers")
        items = problems
        if answers is not None:
            pairs = _texts("problems", problems), _texts("answers", answers)
            if len(pairs[0]) != len(pairs[1]):
                raise ValueError(
                    f"{len(pairs[1])} answers but {len(pairs[0])} problems"
                )
            items = list(zip(*pairs, strict=True))
        items = read_answers(items, ask=answers is None)
        client = as_client(self.extractor.client)
        return client, self._answering(client, items, alpha, accept_origin)

    def _answering(self, client, items, alpha, accept_origin):
        if not items:
            return []
        asked, chats = yield self._asking(items), False
        found = yield from self.extractor.extracting(client, asked, "abstain")
        graphs = [one.graph for one in found]
        batch = GraphBatch.pack(graphs)
        told = explain(self.filter_, batch, alpha=alpha, accept_origin=accept_origin)
        texts, usages = yield self._writing(graphs, told), False
        parts = zip(found, told, texts, usages, chats, strict=True)
        return [self._finished(*part) for part in parts]

    def _asking(self, items):
        """Ask for the answers that are missing; the items with them, and their flags."""
        sample = self.extractor.sample
        step = sample if isinstance(sample, SampleAnswers) else SampleAnswers(1)

        async def ask(chat, item):
            if item.answer is not None:
                return item, chat
            text = await step.answer(chat.of(step.model), item.problem)
            return item._replace(answer=text), chat

        return self._each(items, ask)

    def _writing(self, graphs, told):
        """Write the text of what is kept of each answer."""
        merge = join_claims if self.merge is None else self.merge

        async def write(chat, item):
            graph, mask = item
            claims, dropped = (list(compress(graph.claims, m)) for m in (mask, ~mask))
            more = [dropped] if isinstance(merge, Merge) else []
            text = ABSTENTION
            if claims or more:
                text = await call_step(merge, chat, claims, graph.problem, *more)
            made = text if isinstance(text, MergedText) else MergedText(text)
            return made, chat.usage

        items = [(g, e.kept) for g, e in zip(graphs, told, strict=True)]
        return self._each(items, write)

    def _each(self, items, work):
        """A function of a session that does work for each item, which gives pairs."""

        async def main(session):
            done = await gather_all(session, items, work, self.extractor.model)
            raise_first(done)
            return zip(*done, strict=True)

        return main

    def _finished(self, one, told, text, usage, asked):
        graph, mask = one.graph, told.kept
        kept = graph.subgraph(mask)
        usage += one.usage
        usage += asked.usage
        plain = text.text == join_claims(kept.claims) or not mask.any()
        refused = [f"refused: {sentence}" for sentence in text.refused]
        flags = [*asked.flags, *one.flags, *filter(None, [text.flag]), *refused]
        return FilteredAnswer(
            text=text.text,
            graph=kept,
            original=graph,
            kept=mask,
            claim_alpha=told.smallest_alpha,
            alpha=told.alpha,
            dropped=tuple((graph.claims[v], why) for v, why in told.reasons.items()),
            flags=tuple(flags),
            text_promise="claims" if plain else "none",
            excerpt=cut_answer(graph, mask),
            usage=usage,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "filter_")


def _texts(name, values):
    if isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise ValueError(f"{name} must be a list of texts")
    return list(values)
