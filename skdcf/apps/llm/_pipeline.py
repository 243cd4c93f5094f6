"""Pipeline that answers questions with texts that contain only kept claims."""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..._checks import check_alpha
from ..._messages import Advice, Message
from ..._parameters import HasMethods, Settings
from ...estimators import (
    ConformalFilter,
    chosen_answers,
    compare_provenance,
    provenance_of,
    reason_in_force,
)
from ...estimators import choose as choose_one
from ...graphs import GraphBatch, Labels, ReasoningGraph
from ...graphs.per_problem import LabelList
from ...graphs.sources import UNSURE
from ...inspection import explain
from ..labelling.sources import LabelSource, set_label_sources
from . import _calls as calls
from . import _client as clients
from ._client import ChatClient, Step, number_texts
from ._errors import CallError
from ._extractor import (
    Answer,
    ClaimExtractor,
    as_asked,
    cut_answer,
    made_as,
    read_answers,
)
from ._reply import Usage
from ._sentences import pieces_of

ABSTENTION = "I cannot make a reliable statement on this question."
_ACCEPT = Advice(
    "accept_provenance",
    "state why this difference is acceptable, with "
    'skdcf.accept_provenance("reason"): ...',
)
_ENTAILED = calls.verdicts_of("entailed", "not entailed")
_UNKNOWN_WRITERS = (
    "the authors of the calibration answers and of this answer are unknown. The "
    "guarantee holds only if all these answers were written in the same way"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
#: Pattern for capitalised words within a sentence.
_NAME = re.compile(r"(?<!^)\b[^\W\d_a-z]\w+")


class _Label(Step):
    """Step that labels all claims of a problem as "true", "false" or "unsure" in one call."""

    _prompt_name = "labels"
    _reply = calls.verdicts_of("true", "false", "unsure")


def judge_labels(
    graphs: Sequence[ReasoningGraph],
    model: str,
    client: Any = None,
    *,
    prompt: str | Path | None = None,
) -> Bunch:
    """Label claims with a model, and record the source of the labels in the metadata.

    Use these labels to assist human annotators, or as a temporary substitute for human labels. A
    filter calibrated only on such labels issues a warning, because the guarantee then refers to
    the verdicts of the model. `skdcf.apps.labelling.agreement` compares these labels with human
    labels.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        Graphs with claims. For a graph with a context, label 1 means that the context supports
        the claim, and the metadata record this meaning (``label_meaning``).
    model : str
        Name of the judge model, which should differ from the model that wrote the answers.
    client : ChatClient or callable, optional
        Client for the model. The default is ``ChatClient()``.
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "labels".

    Returns
    -------
    dataset : Bunch
        ``graphs`` is a GraphBatch with the source of each label in the metadata. ``labels`` is a
        list of int arrays, in which 1 means true and 0 means false or unsure. The metadata list
        the claims about which the model was unsure (``unsure_claims``). If the labels of these
        claims are set to -1, `~skdcf.apps.labelling.agreement` excludes the claims from kappa and
        does not count them as false alarms.

    Raises
    ------
    CallError
        If calls failed. The replies to the other calls are in the cache of the client.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.llm import judge_labels
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "false"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 5"])
    >>> judge_labels([graph], "any", complete).labels
    [array([0])]
    """
    step = _Label(prompt)
    graphs = list(graphs)
    verdicts = step.apply(graphs, model=model, client=client)
    source = LabelSource.now("model", model, step.wording().name)
    marked = []
    labels = LabelList()
    for graph, row in zip(graphs, verdicts, strict=True):
        made = {"label_meaning": "supported"} if graph.context else {}
        made |= (graph.provenance or {}) | {"label_source": f"model {model}"}
        metadata = dict(graph.metadata or {})
        # Mark the claims whose truth the model could not determine.
        unsure = np.flatnonzero(row < 0).tolist()
        metadata.pop(UNSURE, None)
        if unsure:
            metadata[UNSURE] = unsure
        graph = graph.replace(provenance=made, metadata=metadata)
        marked.append(set_label_sources(graph, source))
        labels.append(np.maximum(row, 0))
    return Bunch(graphs=GraphBatch.from_graphs(marked), labels=labels)


class MergedText(NamedTuple):
    """Text of the kept claims, either written by a model or joined from the claims.

    Parameters
    ----------
    text : str
        The text.
    refused : tuple of str
        Sentences written by the model that are not entailed by the claims. If this tuple is not
        empty, ``text`` consists of the unchanged claims.
    flag : str or None
        Reason why the requested model text was not used, or None.
    """

    text: str
    refused: tuple[str, ...] = ()
    flag: str | None = None


def join_claims(claims: Sequence[str], problem: str | None = None) -> str:
    """Join the unchanged claims into one text, without calling a model.

    A filter's guarantee covers only texts that are joined in this way.

    Parameters
    ----------
    claims : sequence of str
        Claim texts, in order.
    problem : str, optional
        Ignored.

    Returns
    -------
    text : str
        The claims as sentences on one line.

    Examples
    --------
    >>> from skdcf.apps.llm import join_claims
    >>> join_claims(["2 + 2 = 4", "So it is even."])
    '2 + 2 = 4. So it is even.'
    """
    texts = (text.strip() for text in claims)
    return " ".join(t if t.endswith((".", "!", "?")) else f"{t}." for t in texts if t)


@dataclass(eq=False, repr=False, kw_only=True)
class Merge(Step):
    """Use a model to rewrite the kept claims as fluent text, and check for added information.

    The guarantee does not cover this text, because the text is written and checked by a model.
    The kept claims must entail every sentence of the text. A sentence must not state a dropped
    claim, and must not contain a number or a name that is missing from the claims and the
    question. If a sentence fails a check, the claims are returned unchanged and the sentence is
    reported. If there are no claims, the text is ``abstention``. A single claim is returned
    unchanged. The method `apply` requires lists of claims and problems, and accepts lists of
    dropped claims. The method returns a ``MergedText`` for each problem.

    Parameters
    ----------
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "merge".
    model : str, optional
        Model name for this step. The default is the extractor's model.
    abstention : str, optional
        Text that is returned if no claim is kept.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import json
    >>> from skdcf.apps.llm import Merge
    >>> def complete(messages):
    ...     if "sentences" not in messages[1]["content"]:
    ...         return '{"text": "As 2 + 2 = 4, it is even. It is prime."}'
    ...     words = ["entailed", "not entailed"]
    ...     rows = [{"claim": i + 1, "verdict": word} for i, word in enumerate(words)]
    ...     return json.dumps({"verdicts": rows})
    >>> claims = ["2 + 2 = 4", "4 is even"]
    >>> merged = Merge().apply([claims], [None], model="any", client=complete)[0]
    >>> merged.text, merged.refused
    ('2 + 2 = 4. 4 is even.', ('It is prime.',))
    """

    _prompt_name, _written, _reply = "merge", 45, calls.Text
    _parameter_constraints = clients.COMMON | {"abstention": [str]}

    abstention: str = ABSTENTION

    def _question(self, claims, problem):
        return {"question": problem, "claims": list(claims)}

    def _schema(self, question):
        longest = 2 * len(join_claims(question["claims"])) + 200
        return calls.schema_of(self._reply, longest=longest)

    def _read(self, reply, claims, problem):
        return calls.read_texts([reply.text])[0]

    async def _run(self, chat, claims, problem, dropped=()):
        if len(claims) < 2:
            return MergedText(join_claims(claims) or self.abstention)
        try:
            text = await super()._run(chat, claims, problem)
            refused = await self._refused(
                chat, claims, problem, dropped=dropped, text=text
            )
        except CallError as error:
            return MergedText(join_claims(claims), flag=f"not merged: {error}")
        if refused:
            flag = (
                f"not merged: {len(refused)} of the merged sentences added information"
            )
            return MergedText(join_claims(claims), tuple(refused), flag)
        return MergedText(text)

    async def _refused(self, chat, claims, problem, dropped, text):
        """Return the sentences that the claims do not entail, or that add a number or name."""
        sentences = list(filter(None, map(str.strip, pieces_of(text))))
        n = len(sentences)
        allowed_text = " ".join([*claims, problem or ""])
        request = {"claims": list(claims), "sentences": number_texts(sentences)}
        request |= {"dropped": list(dropped)}

        def read(reply):
            entailed = calls.read_object(reply.text, _ENTAILED)
            rows = calls.number_rows(entailed.verdicts, n)
            pairs = zip(sentences, rows, strict=True)
            return [
                s for s, r in pairs if r.verdict != "entailed" or _adds(s, allowed_text)
            ]

        prompt = calls.load_prompt("entailment")
        schema = calls.schema_of(_ENTAILED, n_rows=n)
        limit = self._limit(n)
        return await chat.ask(prompt, request, read, schema=schema, limit=limit)


async def _at_once(function, *arguments):
    """Return the text from a function that replaces the step."""
    return function(*arguments)


def check_writer(pipeline: ConformalFactualityPipeline, answer: str | None) -> str:
    """Raise ValueError if the model must write an answer but did not write the calibration answers.

    Inside ``with skdcf.accept_provenance(reason): ...``, no error is raised. For an existing
    answer, the function returns a warning text if the writer is unknown, and an empty string
    otherwise.
    """
    calibrated = pipeline.filter_.provenance_.get("written_by") or [None]
    if answer is not None:
        return "" if any(calibrated) else _UNKNOWN_WRITERS
    writer = pipeline.extractor._written(Answer("", None), "").metadata["written_by"]
    differing = [by for by in map(_read_json, calibrated) if by != writer]
    if not differing or reason_in_force() is not None:
        return ""
    by = "an unknown writer" if differing[0] is None else _in_words(differing[0])
    raise ValueError(
        Message(
            f"the calibration answers were written by {by}, but this answer would be "
            f"written by {_in_words(writer)}. The guarantee needs answers that were "
            "written in the same way. Pass an answer, calibrate on answers that "
            "the model wrote (skdcf extract --write), or ",
            _ACCEPT,
        )
    )


def _in_words(writer):
    if not isinstance(writer, dict):
        return str(writer)
    return ", ".join(
        f"{key} {value}" for key, value in writer.items() if value is not None
    )


def _read_json(text):
    """Parse a description in JSON, and return any other value unchanged."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _adds(sentence, known):
    """Return whether a sentence contains a number or a name that is not in the known text."""
    numbers = set(_NUMBER.findall(sentence)) - set(_NUMBER.findall(known))
    words = {word.lower() for word in re.findall(r"\w+", known)}
    names = {name.lower() for name in _NAME.findall(sentence)}
    return bool(numbers or names - words)


@dataclass(frozen=True)
class FilteredAnswer:
    """Result of filtering an answer, including the kept text and the reasons for dropped claims.

    Parameters
    ----------
    text : str
        Text of the kept claims, or the abstention text if no claim is kept.
    graph : ReasoningGraph
        The kept claims.
    original : ReasoningGraph
        All claims of the answer.
    kept : ndarray of bool of shape (n_claims,)
        Mask of the kept claims.
    claim_alpha : ndarray of float of shape (n_claims,)
        Smallest alpha at which each claim is kept, or +inf for a claim that is never kept.
    alpha : float
        The level, which is an upper bound on the proportion of problems with a kept false claim.
    dropped : tuple of (str, str)
        Text of each dropped claim, and the reason why the claim was dropped. Each reason contains
        an explanation in words, followed by the numbers in parentheses.
    flags : tuple of str
        Descriptions of anomalies.
    text_guarantee : {"claims", "none"}
        The value is "claims" if the guarantee covers the text, and "none" otherwise. The
        guarantee refers to claims as they were labelled, so the guarantee covers a text that
        consists of unchanged claims. The guarantee does not cover a text that a model wrote from
        these claims, because the model may add statements.
    excerpt : str
        The sentences of the answer that consist entirely of words from kept claims. The excerpt
        is easier to read than the list of claims. The guarantee does not cover the excerpt,
        because a sentence may have a different meaning out of context.
    usage : Usage
        Usage of the answer.
    chosen : int or None
        Position of this answer among the candidate answers, if the filter chose it.
    """

    text: str
    graph: ReasoningGraph
    original: ReasoningGraph
    kept: NDArray[np.bool_]
    claim_alpha: NDArray[np.float64]
    alpha: float
    dropped: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    text_guarantee: str = "claims"
    excerpt: str = ""
    usage: Usage = field(default_factory=Usage)
    chosen: int | None = None

    @property
    def abstained(self) -> bool:
        """Return whether no claim is kept."""
        return not self.kept.any()

    @property
    def complete(self) -> bool:
        """Return whether the last claim, usually the conclusion, is kept.

        If the last claim is dropped, the text may not answer the question.
        """
        return bool(self.kept[-1:].any())


@dataclass(eq=False, repr=False)
class ConformalFactualityPipeline(Settings):
    """Answer questions with the text of the kept claims, using an extractor and a filter.

    Parameters
    ----------
    extractor : ClaimExtractor
        Extractor that converts answers to graphs, for calibration and for prediction.
    filter : filter of skdcf
        The filter. To add feature columns to those of the extractor, set the parameter
        ``features`` of the filter.
    merge : Merge or callable, optional
        Function ``merge(claims, problem)`` that returns the text of the kept claims. The default
        is `join_claims`. The guarantee covers only the text returned by this function. With
        `Merge`, the model of the extractor writes the text.

    Attributes
    ----------
    filter_ : filter
        The fitted filter.

    Raises
    ------
    ValueError
        If a parameter is invalid, or if problems were extracted with different columns, models
        or prompts.

    Notes
    -----
    The filter's guarantee holds. With a probability of at least ``1 - alpha``, no false claim
    is kept. The calibration labels define which claims are false. If a model fails on an answer,
    no claim of that answer is kept.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.edges import no_edges
    >>> from skdcf.apps.llm import (
    ...     ClaimExtractor, ConformalFactualityPipeline, split_sentences
    ... )
    >>> def sounds_sure(graph):
    ...     return [float("maybe" not in text) for text in graph.claims]
    >>> extractor = ClaimExtractor(
    ...     decompose=split_sentences, graph=no_edges, features=[("sure", sounds_sure)]
    ... )
    >>> pipeline = ConformalFactualityPipeline(extractor, HardCF("sure", alpha=0.2))
    >>> known = [(f"q{i}", "It is 3." if i % 2 else "maybe it is 5.") for i in range(20)]
    >>> pipeline = pipeline.fit(known, [[int(i % 2 or i == 2)] for i in range(20)])
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
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        self.extractor.validate()
        clients.check_step("merge", self.merge, self.extractor.model)

    @classmethod
    def from_filter(
        cls,
        filter: ConformalFilter,
        client: Any = None,
        *,
        model: str | None = None,
        confirm: Callable[[Any], bool] | None = None,
    ) -> Self:
        """Create a fitted pipeline from a filter that stores the description of its extractor.

        Parameters
        ----------
        filter : fitted filter
            A filter calibrated on problems created by a `ClaimExtractor` or by ``skdcf extract``.
        client : ChatClient or callable, optional
            Client for the model. The default is ``ChatClient()``.
        model : str, optional
            Model name. The default is the model used for calibration.
        confirm : callable, optional
            Function that confirms expensive runs, as in `ClaimExtractor`.

        Returns
        -------
        pipeline : ConformalFactualityPipeline
            A pipeline that extracts claims in the same way as during calibration.

        Raises
        ------
        ValueError
            If the filter does not store the description of its extractor, or if a step used a
            prompt or a function that is not part of this package.
        """
        origin = getattr(filter, "provenance_", None) or {}
        extractions = [text for text in origin.get("extraction", ()) if text]
        if len(extractions) != 1:
            raise ValueError(
                "it is unknown how the calibration claims of the filter were extracted. Fit "
                "the filter on a single file written by skdcf extract"
            )
        extraction = _read_json(extractions[0])
        extraction = extraction | {"model": model or extraction["model"]}
        extractor = ClaimExtractor.from_description(extraction, client, confirm=confirm)
        pipeline = cls(extractor, filter)
        pipeline.filter_ = filter
        return pipeline

    def fit(
        self,
        X: Iterable[Any],
        y: Labels,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the filter on labelled problems.

        Parameters
        ----------
        X : sequence of ReasoningGraph, or of (problem, answer)
            Problems created by the extractor, or answers from which claims are extracted first.
            Missing feature columns are computed. Pass answers only if the extraction always
            returns the same claims, for example from a cache.
        y : sequence of arrays, one per problem
            Claim labels: 1 true, 0 false, -1 unlabelled.
        groups : array-like of shape (n_problems,), optional
            Identifiers of the questions, as in the filter's `fit`.

        Returns
        -------
        self : object
            The fitted pipeline.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems.
        LabelWarning
            If more than 5 % of the labels were assigned by a language model.
        """
        self.validate()
        batch = self._admit(X)
        self.filter_ = clone(self.filter).fit(batch, y, groups)
        return self

    def _admit(self, X):
        graphs = list(X)
        if not graphs or not isinstance(graphs[0], ReasoningGraph):
            return self.extractor.transform(graphs)
        extraction = self.extractor.describe()
        extractions = [(graph.metadata or {}).get("extraction") for graph in graphs]
        asked = [as_asked(m) for m in extractions]
        differing = [m for m in asked if m is not None and m != extraction]
        if differing and reason_in_force() is None:
            raise ValueError(
                Message(
                    f"{len(differing)} of {len(graphs)} problems were extracted with "
                    f"the steps {differing[0]}, but new problems will be extracted "
                    f"with {extraction}. The guarantee needs problems that were made "
                    "in the same way. Fit or calibrate again, or ",
                    _ACCEPT,
                )
            )
        expected = self.extractor.feature_names()
        if expected and all(graph.features is None for graph in graphs):
            return self.extractor.add_features(graphs)
        names = list(graphs[0].feature_names or ())
        if names != expected:
            raise ValueError(
                f"the problems must have the columns of the extractor ({expected}), got "
                f"{names}"
            )
        return GraphBatch.from_graphs(graphs)

    def answer(
        self,
        problems: Iterable[Any],
        answers: Sequence[str] | None = None,
        *,
        alpha: float | None = None,
        choose: bool = False,
    ) -> list[FilteredAnswer]:
        """Filter answers, and return the kept text of each answer.

        Parameters
        ----------
        problems : sequence of str, of (problem, answer), of dict, or of Answer
            Questions, or any input accepted by `ClaimExtractor.extract`. Missing answers are
            written by the model.
        answers : sequence of str, optional
            Answers to the questions, if ``problems`` contains strings.
        alpha : float in (0, 1), optional
            The level. If None, the filter's level is used.
        choose : bool, default=False
            Whether the filter chooses one of several answers to each question, as in
            `skdcf.estimators.choose`. The filter must be calibrated on answers chosen in the
            same way.

        Returns
        -------
        filtered_answers : list of FilteredAnswer
            One filtered answer per problem, in order, or one per question if ``choose`` is
            True.

        Raises
        ------
        ValueError
            If the numbers of answers and problems differ, or if alpha is out of range.
        CallError
            If the model cannot be reached or does not return an answer.
        """
        items = self._read(problems, answers, alpha)
        work = self._answering(items, alpha, ChatClient._now, _at_once, choose)
        return clients.finish(work)

    async def aanswer(
        self,
        problems: Iterable[Any],
        answers: Sequence[str] | None = None,
        *,
        alpha: float | None = None,
        choose: bool = False,
    ) -> list[FilteredAnswer]:
        """Filter the claims of answers in a running event loop, as in `answer`.

        Parameters
        ----------
        problems : sequence
            Questions or other inputs, as in `answer`.
        answers : sequence of str, optional
            Answers to the questions, as in `answer`.
        alpha : float in (0, 1), optional
            The level. If None, the filter's level is used.
        choose : bool, default=False
            Whether the filter chooses one of several answers to each question.

        Returns
        -------
        filtered_answers : list of FilteredAnswer
            One filtered answer per problem, or per question if ``choose`` is True.
        """
        items = self._read(problems, answers, alpha)
        # The event loop runs other tasks while the filter decides.
        beside = asyncio.to_thread
        return await self._answering(items, alpha, ChatClient._later, beside, choose)

    def _read(self, problems, answers, alpha):
        """Convert all inputs to answers, or raise a ValueError that names an invalid item."""
        check_is_fitted(self, "filter_")
        self.extractor.validate()
        if alpha is not None:
            check_alpha(alpha)
        if isinstance(problems, str) or isinstance(answers, str):
            raise ValueError(
                "problems must be a list of strings, got a single string. Pass [problem] "
                "instead"
            )
        items = list(problems)
        if answers is not None and len(answers) != len(items):
            raise ValueError(
                f"answers must have one entry for each of the {len(items)} problems, got "
                f"{len(answers)}"
            )
        pairs = items if answers is None else zip(items, answers, strict=True)
        return read_answers(pairs, ask=answers is None)

    def _compare_origin(self, items, choose):
        """Return the description of the extraction.

        Raise ValueError if the provenance of the answers differs from that of the calibration
        problems.
        """
        filter = self.filter_
        extraction = self.extractor.describe()
        if not hasattr(filter, "provenance_"):
            return extraction
        for value in map(_read_json, filter.provenance_.get("extraction", ())):
            # The endpoint may also have refused parameters during calibration and therefore
            # returned no log odds.
            if as_asked(value) == extraction:
                extraction = value
        expected = []
        for item in items:
            if item.answer is None:
                item = self.extractor._written(item, "")
            alternatives = item.alternatives
            if alternatives is None and self.extractor.sample is not None:
                alternatives = ()
            metadata = {**(item.metadata or {}), "extraction": extraction}
            graph = ReasoningGraph(
                None, (), claims=(), problem=item.problem, metadata=metadata
            )
            expected.append(
                graph.replace(
                    context=item.context,
                    alternatives=alternatives,
                )
            )
        batch = GraphBatch.from_graphs(expected)
        with warnings.catch_warnings():
            # The same warnings are issued again once the claims are known.
            warnings.simplefilter("ignore")
            provenance = provenance_of(filter, batch, labelled=False)
            # An empty list means that any rule is accepted, because no answer is chosen yet.
            compare_provenance(
                filter, provenance | ({"chosen_by": []} if choose else {})
            )
        return extraction

    async def _answering(self, items, alpha, run, call, choose):
        """Return the result of `answer`. ``run`` uses the client, and ``call`` calls a function."""
        if not items:
            return []
        extraction = self._compare_origin(items, choose)
        client = clients.as_client(self.extractor.client)

        agreed = False
        if any(item.answer is None for item in items):
            estimate = await self.extractor._estimating(run, client, items)
            agreed = clients.check_budget(client, estimate, self.extractor.confirm)

        async def each(items, work):
            done, _ = await run(client, items, work, self.extractor.model)
            clients.raise_first(done)
            return done

        asked, chats = zip(*await each(items, self._ask), strict=True)
        extracted = await self.extractor._extracting(
            run, asked, "abstain", agreed=agreed
        )
        batch = GraphBatch.from_graphs(
            [made_as(e.graph, extraction) for e in extracted]
        )
        places = list(range(len(batch)))
        if choose:
            places = (await call(choose_one, self.filter_, batch)).tolist()
            batch = await call(chosen_answers, self.filter_, batch)
        shown = await call(partial(explain, alpha=alpha), self.filter_, batch)
        rows = [
            (chats[i], extracted[i], i if choose else None, decided)
            for i, decided in zip(places, shown, strict=True)
        ]
        return await each(rows, self._finish)

    async def _ask(self, chat, item):
        """Return an item with its answer, which the model writes if it is missing."""
        if item.answer is None:
            item = await self.extractor._write(chat, item)
        return item, chat

    async def _finish(self, chat, item):
        """Return the text of the kept claims and all other results for an answer."""
        asked, extraction, place, shown = item
        graph = extraction.graph
        mask = shown.kept
        kept = graph.subgraph(mask)
        lost = graph.subgraph(~mask)
        merge = join_claims if self.merge is None else self.merge
        dropped_claims = [list(lost.claims)] if isinstance(merge, Merge) else []
        text = ABSTENTION
        if mask.any() or dropped_claims:
            text = await clients.call_step(
                merge, chat, list(kept.claims), graph.problem, *dropped_claims
            )
        merged = text if isinstance(text, MergedText) else MergedText(text)
        refused = [f"refused: {sentence}" for sentence in merged.refused]
        flags = (
            *asked.flags,
            *extraction.flags,
            *filter(None, [merged.flag]),
            *refused,
        )
        reasons = shown.reasons
        dropped = tuple(
            (graph.claims[v], f"{cause} ({reasons[v]})")
            for v, cause in shown.causes.items()
        )
        plain = merged.text == join_claims(kept.claims) or not mask.any()
        chat.usage += extraction.usage
        chat.usage += asked.usage
        fields = {"text": merged.text, "graph": kept, "original": graph, "kept": mask}
        fields |= {"alpha": shown.alpha, "claim_alpha": shown.smallest_alpha}
        fields["chosen"] = place
        fields |= {
            "dropped": dropped,
            "flags": flags,
            "excerpt": cut_answer(graph, mask),
        }
        fields |= {"text_guarantee": "claims" if plain else "none", "usage": chat.usage}
        return FilteredAnswer(**fields)
