"""From a question to the text of what can be trusted of its answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._checks import warn
from .._parameters import HasMethods, Settings
from ..graphs import GraphBatch, Labels, ReasoningGraph
from ..metrics import filter_of, unwrap
from ._answers import Answer
from ._chat import Chat
from ._client import as_client
from ._extractor import ClaimExtractor
from ._merge import Merge, MergedText
from ._plan import EXTRACTION
from ._sample import SampleAnswers
from ._session import gather_all
from ._step import Step, call_step, raise_first


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
        The smallest alpha at which each of them is kept.
    alpha : float
        The level: a false claim is kept in at most this share of problems.
    dropped : tuple of (str, str)
        Text of each dropped claim, and why it was dropped.
    flags : tuple of str
        What was not as it should be on the way.
    """

    text: str
    graph: ReasoningGraph
    original: ReasoningGraph
    kept: NDArray[np.bool_]
    claim_alpha: NDArray[np.float64]
    alpha: float
    dropped: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def abstained(self) -> bool:
        """Whether nothing is kept."""
        return not self.kept.any()


class ConformalFactualityPipeline(Settings):
    """An extractor and a filter: questions in, text that can be trusted out.

    Parameters
    ----------
    extractor : ClaimExtractor
        Turns answers into graphs; in use as in calibration.
    filter : filter of skdcf
        Or a Pipeline that ends in one, such as
        ``make_pipeline(reasoning_features(), HardCF())``.
    merge : Merge or callable, optional
        ``merge(claims, problem)`` gives the text of the kept claims. None is `Merge`,
        which asks the extractor's model; `join_claims` asks none.

    Attributes
    ----------
    filter_ : the fitted filter

    Raises
    ------
    ValueError
        On a wrong parameter, or problems that were extracted with other columns.

    Notes
    -----
    The promise is the filter's: with a probability of at least ``1 - alpha``, no false
    claim is kept. Where a model fails on an answer, nothing of that answer is kept.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.edges import no_edges
    >>> from skdcf.llm import (
    ...     ClaimExtractor, ConformalFactualityPipeline, join_claims, split_sentences
    ... )
    >>> def sounds_sure(graph):
    ...     return [float("maybe" not in text) for text in graph.claims]
    >>> extractor = ClaimExtractor(
    ...     decompose=split_sentences, graph=no_edges, features=[("sure", sounds_sure)]
    ... )
    >>> pipeline = ConformalFactualityPipeline(
    ...     extractor, HardCF("sure", alpha=0.2), join_claims
    ... )
    >>> known = [("q", "It is 3.") if i % 2 else ("q", "maybe it is 5.") for i in range(20)]
    >>> pipeline = pipeline.fit(known, [[i % 2] for i in range(20)])
    >>> [answer] = pipeline.answer(["What is it?"], ["It is 7. Then maybe 8."])
    >>> answer.text
    'It is 7.'
    """

    filter_: Any

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "extractor": [ClaimExtractor],
        "filter": [HasMethods(["fit", "predict", "set_params"])],
        "merge": [Step, callable, None],
    }

    def __init__(
        self,
        extractor: ClaimExtractor,
        filter: BaseEstimator,
        merge: Merge | Callable | None = None,
    ):
        self.extractor = extractor
        self.filter = filter
        self.merge = merge

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        self.extractor.validate()
        merge = self._merge()
        if isinstance(merge, Step):
            merge.validate()
            if self.extractor.model is None and merge.model is None:
                raise ValueError(
                    "merge asks a model, but none is named: name one, or choose "
                    "merge=join_claims"
                )

    def _merge(self):
        return Merge() if self.merge is None else self.merge

    def fit(self, X: Iterable[Any], y: Labels, groups: ArrayLike | None = None) -> Self:
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
            Problems of one group (say, of the same question) are held out together.

        Returns
        -------
        self

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems.
        LabelWarning
            If a language model gave all the labels.
        UserWarning
            If problems were extracted with other models or prompts.
        """
        self.validate()
        batch = self._admit(X)
        named = {} if groups is None else {self._groups_name(): groups}
        self.filter_ = clone(self.filter).fit(batch, y, **named)
        return self

    def _groups_name(self):
        steps = getattr(self.filter, "steps", None)
        return "groups" if steps is None else f"{steps[-1][0]}__groups"

    def _admit(self, X):
        graphs = list(X)
        if not graphs or not isinstance(graphs[0], ReasoningGraph):
            return self.extractor.transform(graphs)
        wanted = self.extractor.feature_names()
        if wanted and all(graph.features is None for graph in graphs):
            return self.extractor.add_features(graphs)
        found = list(graphs[0].feature_names or ())
        if found != wanted:
            raise ValueError(
                f"the problems have the columns {found}, but the extractor makes {wanted}:"
                " what calibrates has to be measured as what is filtered later"
            )
        self._compare(graphs)
        return GraphBatch.pack(graphs)

    def _compare(self, graphs):
        own, other = self.extractor.describe(), 0
        for graph in graphs:
            made = (graph.metadata or {}).get(EXTRACTION)
            other += made is not None and any(made.get(k) != own[k] for k in own)
        if other:
            warn(
                f"{other} of {len(graphs)} problems were extracted with other models, "
                "prompts or settings than new ones will be, so that new ones may not be "
                "like those that calibrate: the promise may not hold"
            )

    def answer(
        self,
        problems: Sequence[str],
        answers: Sequence[str] | None = None,
        *,
        alpha: float | None = None,
    ) -> list[FilteredAnswer]:
        """Keep of answers what can be trusted.

        Parameters
        ----------
        problems : sequence of str
            Questions.
        answers : sequence of str, optional
            An answer to each. None: the model is asked.
        alpha : float in (0, 1), optional
            None is the filter's own.

        Returns
        -------
        list of FilteredAnswer

        Raises
        ------
        ValueError
            If there are not as many answers as problems, or alpha is out of range.
        CallError
            If no model can be reached, or gives no answer.
        """
        check_is_fitted(self, "filter_")
        problems = _check_texts("problems", problems)
        alpha = self._level(alpha)
        if answers is None:
            answers = self._ask(problems)
        answers = _check_texts("answers", answers)
        if len(answers) != len(problems):
            raise ValueError(f"{len(answers)} answers but {len(problems)} problems")
        if not problems:
            return []
        items = [Answer(*pair) for pair in zip(problems, answers, strict=True)]
        extractor = clone(self.extractor).set_params(on_failure="abstain")
        found = extractor.extract(items)
        return self._finish(found, alpha)

    def _level(self, alpha):
        filter = filter_of(self.filter_)
        return filter.calibration_.guarantee.level(alpha, filter.alpha)

    def _ask(self, problems):
        sample = self.extractor.sample
        step = sample if isinstance(sample, SampleAnswers) else SampleAnswers(1)
        return self._run(problems, lambda c, q: step._one(c.of(step.model), q, seed=0))

    def _finish(self, found, alpha):
        """Filter, and write the text of what is kept."""
        graphs = [one.graph for one in found]
        filter, batch = unwrap(self.filter_, GraphBatch.pack(graphs))
        masks, levels = filter.predict(batch, alpha), filter.predict_alpha(batch)
        kept = [g.subgraph(m) for g, m in zip(graphs, masks, strict=True)]
        texts = self._write(kept)
        return [
            FilteredAnswer(
                text.text,
                few,
                one.graph,
                mask,
                level,
                alpha,
                tuple(_explain(one.graph, mask, level, alpha)),
                one.flags + _flags(text),
            )
            for text, few, one, mask, level in zip(
                texts, kept, found, masks, levels, strict=True
            )
        ]

    def _write(self, kept):
        merge, items = self._merge(), [(list(g.claims), g.problem) for g in kept]
        if isinstance(merge, Step):
            return self._run(items, lambda c, item: call_step(merge, c, *item))
        empty = MergedText(Merge().abstention)
        return [MergedText(merge(*item)) if item[0] else empty for item in items]

    def _run(self, items, work):
        async def main(session):
            chat = Chat(session, self.extractor.model)
            return await gather_all(session, items, lambda item: work(chat, item))

        results = as_client(self.extractor.client).run(main)
        raise_first(results)
        return results

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "filter_")


def _check_texts(name, values):
    if isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise ValueError(f"{name} must be a list of texts")
    return list(values)


def _explain(graph, mask, levels, alpha):
    """Text of each dropped claim, and why it was dropped."""
    for v in np.flatnonzero(~mask):
        parents = graph.edges[graph.edges[:, 1] == v, 0]
        lost = [int(u) for u in parents if not mask[u]]
        if lost and levels[v] <= max(levels[u] for u in lost):
            listed = ", ".join(str(u + 1) for u in lost)
            reason = f"it builds on what was dropped: claim {listed}"
        elif levels[v] >= 1:
            reason = "it is riskier than any claim that may be kept at any level"
        else:
            reason = f"it may be kept from alpha = {levels[v]:.3g} on, not at {alpha:g}"
        yield graph.claims[v], reason


def _flags(text):
    return (() if text.flag is None else (text.flag,)) + tuple(
        f"refused: {sentence}" for sentence in text.refused
    )
