"""Where labels come from, and how far two people, or a model and people, agree.

Formulas of a text become trees that a page can build without reading any HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from .._checks import check_choice
from ..graphs import GraphBatch, Labels, ReasoningGraph, as_batch, pack_labels
from ..graphs.sources import KINDS, SOURCES, iterate_sources, read_sources
from ..metrics import coverage_interval

_LEVEL = 0.95


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa with its interval.

    Parameters
    ----------
    kappa : float
        1 where all labels agree, 0 where they agree as often as by chance. NaN where
        that is not defined, as all claims have the same label for both.
    low, high : float
        95 % interval, which takes claims of one problem for dependent. NaN where there
        are fewer than two problems.
    agreement : float
        Share of the claims with the same label.
    n_claims, n_problems : int
        Claims that both have judged, and the problems that they belong to.
    n_unknown : int
        Claims that at least one of them has not judged; they are left out.
    """

    kappa: float
    low: float
    high: float
    agreement: float
    n_claims: int
    n_problems: int
    n_unknown: int

    def __str__(self):
        return (
            f"kappa {self.kappa:.2f} (95 %: {self.low:.2f} to {self.high:.2f}), "
            f"{self.agreement:.0%} of {self.n_claims} claims in {self.n_problems} problems "
            f"agree, {self.n_unknown} not judged by both"
        )


def cohen_kappa(first: Labels, second: Labels) -> Kappa:
    """Agreement of two annotators beyond chance, for true and false.

    Parameters
    ----------
    first, second : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown, of the same claims.

    Returns
    -------
    Kappa

    Raises
    ------
    ValueError
        If the labels do not belong to the same claims, or none is judged by both.

    Notes
    -----
    Cohen (1960). The interval is that of the jackknife over problems, with the quantile
    of Student's t: claims of one answer are judged together and err together, so that a
    formula for independent claims would be too narrow.

    Examples
    --------
    >>> from skdcf.labelling import cohen_kappa
    >>> ann = [[1, 1, 0], [1, 0], [1, 1], [0]]
    >>> bob = [[1, 1, 0], [1, 1], [1, -1], [0]]
    >>> round(cohen_kappa(ann, bob).kappa, 2)
    0.7
    """
    a, b, problem = _side_by_side(first, second)
    both = (a >= 0) & (b >= 0)
    if not both.any():
        raise ValueError("no claim was judged by both")
    codes, problem = np.unique(problem[both], return_inverse=True)
    tables = np.zeros((len(codes), 2, 2))
    np.add.at(tables, (problem, a[both], b[both]), 1)
    total = tables.sum(axis=0)
    kappa = float(_kappa(total))
    low, high = _jackknife(kappa, _kappa(total - tables))
    agree, n = float(np.trace(total) / total.sum()), int(total.sum())
    return Kappa(kappa, low, high, agree, n, len(codes), int((~both).sum()))


def _kappa(tables):
    """Kappa of one or several 2 x 2 tables; NaN where chance explains everything."""
    tables = tables / np.maximum(tables.sum(axis=(-2, -1), keepdims=True), 1)
    observed = np.trace(tables, axis1=-2, axis2=-1)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.round((observed - chance) / (1 - chance), 12)


def _jackknife(kappa, without):
    """95 % interval from the values without each of the problems."""
    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return np.nan, np.nan
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    half = student.ppf((1 + _LEVEL) / 2, n - 1) * error
    return float(max(kappa - half, -1.0)), float(min(kappa + half, 1.0))


def list_disagreements(
    graphs: Any, first: Labels, second: Labels
) -> list[tuple[Any, int, Any, int, int]]:
    """Claims that one annotator calls true and the other false, to talk about.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph, or GraphBatch
    first, second : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.

    Returns
    -------
    list of (problem, claim, text, label, other label)
        Id or position of the problem, position of the claim, its text if known.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.labelling import list_disagreements
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4", "so it is odd"], id="q1")
    >>> list_disagreements([graph], [[1, 0]], [[1, 1]])
    [('q1', 1, 'so it is odd', 0, 1)]
    """
    batch = as_batch(graphs)
    a, b = pack_labels(first, batch), pack_labels(second, batch)
    found = []
    for row in np.flatnonzero((a >= 0) & (b >= 0) & (a != b)).tolist():
        i = int(batch.problem_of[row])
        v, graph = row - int(batch.offsets[i]), batch[i]
        name, text = (
            i if graph.id is None else graph.id,
            graph.claims and graph.claims[v],
        )
        found.append((name, v, text, int(a[row]), int(b[row])))
    return found


@dataclass(frozen=True)
class ModelAgreement:
    """How far a model's labels can be trusted, measured on claims that people judged.

    Parameters
    ----------
    kappa : Kappa
        Agreement beyond chance.
    found : float
        Share of the false claims that the model calls false.
    found_interval : (float, float)
        Clopper-Pearson, 95 %.
    alarms : float
        Share of the true claims that the model calls false.
    alarms_interval : (float, float)
    n_false, n_true : int
        Claims that people call false, and true.
    overlooked : float
        Share of the problems in which the model calls a claim true that is false.
    overlooked_interval : (float, float)
        A filter that calibrates on the model's labels keeps a false claim in at most
        alpha plus this share of problems.
    n_problems : int
    """

    kappa: Kappa
    found: float
    found_interval: tuple[float, float]
    alarms: float
    alarms_interval: tuple[float, float]
    n_false: int
    n_true: int
    overlooked: float
    overlooked_interval: tuple[float, float]
    n_problems: int

    def __str__(self):
        (a, b), (c, d) = self.found_interval, self.alarms_interval
        e, f = self.overlooked_interval
        return (
            f"{self.kappa}\n"
            f"false claims that the model finds: {self.found:.0%} of {self.n_false} "
            f"({a:.0%} to {b:.0%})\n"
            f"true claims that it calls false:   {self.alarms:.0%} of {self.n_true} "
            f"({c:.0%} to {d:.0%})\n"
            f"problems with an error that it overlooks: {self.overlooked:.1%} of "
            f"{self.n_problems} ({e:.1%} to {f:.1%}); calibrated on its labels, a filter "
            f"may keep a false claim in up to {f:.1%} more of the problems than alpha says"
        )


def agreement(model: Labels, human: Labels) -> ModelAgreement:
    """Compare labels of a model with those of people.

    Parameters
    ----------
    model, human : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown, of the same claims. A claim of which the model is
        unsure counts as not called true, as in calibration. Claims that no person
        judged are left out.

    Returns
    -------
    ModelAgreement

    Raises
    ------
    ValueError
        If the labels do not belong to the same claims, or none is judged by both.

    Examples
    --------
    >>> from skdcf.labelling import agreement
    >>> human = [[1, 1, 0], [1, 0], [1, 1], [0]]
    >>> model = [[1, 1, 0], [1, 1], [1, -1], [0]]
    >>> result = agreement(model, human)
    >>> result.overlooked, result.n_problems
    (0.25, 4)
    """
    m, h, problem = _side_by_side(model, human)
    judged = h >= 0
    problems = np.unique(problem[judged])
    missed = np.unique(problem[(h == 0) & (m == 1)])
    false, true = int((h == 0).sum()), int((h == 1).sum())
    found, alarms = int(((h == 0) & (m != 1)).sum()), int(((h == 1) & (m == 0)).sum())
    return ModelAgreement(  # type: ignore[call-arg]
        cohen_kappa(model, human),
        *_share(found, false),
        *_share(alarms, true),
        false,
        true,
        *_share(len(missed), len(problems)),
        len(problems),
    )


def _share(k, n):
    """A share with its interval."""
    if not n:
        return float("nan"), (0.0, 1.0)
    return k / n, tuple(map(float, coverage_interval(k, n)))


def _side_by_side(first, second):
    """Two sets of labels as flat arrays, and the problem of each claim."""
    first, second = list(first), list(second)
    sizes, others = list(map(len, first)), list(map(len, second))
    if sizes != others:
        raise ValueError(
            f"labels of {len(sizes)} problems with {sum(sizes)} claims, but of "
            f"{len(others)} with {sum(others)}: they must belong to the same claims"
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 1)), offsets, ())
    return pack_labels(first, batch), pack_labels(second, batch), batch.problem_of


_FORMULA = re.compile(
    r"\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\]|\\\((.{1,2000}?)\\\)|"
    r"(?<![\\$])\$(?=\S)([^$\n]{1,500}?)(?<=[^\s\\])\$(?!\d)",
    re.DOTALL,
)
#: A formula with any other element or attribute is shown as it was written: claims are
#: written by a model, and ``\\text{<script>}`` is one of the things that LaTeX can say.
_TAG = re.compile(
    "math|mrow|mi|mn|mo|mtext|mspace|msup|msub|msubsup|mfrac|msqrt|mroot|mover|munder|"
    "munderover|mtable|mtr|mtd|mstyle|mpadded|mphantom|menclose|mfenced"
)
_ATTRIBUTE = re.compile("display|mathvariant|stretchy|fence|accent|linethickness|width")


def split_formulas(text: str | None) -> list | None:
    """Cut a text into strings and trees (tag, attributes, children) of MathML.

    Parameters
    ----------
    text : str or None

    Returns
    -------
    list or None
        None where there is no formula, or where ``latex2mathml`` is not installed.
    """
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return None
    parts, end = [], 0
    for match in _FORMULA.finditer(text or ""):
        try:
            root = ElementTree.fromstring(convert(next(filter(None, match.groups()))))
            tree = _tree(root)
        except Exception:  # whatever a model wrote: it is shown as it stands
            continue
        parts += [text[end : match.start()], tree]
        end = match.end()
    return [*parts, text[end:]] if parts else None


def _tree(element):
    tag = element.tag.rpartition("}")[2]
    if not _TAG.fullmatch(tag) or not all(map(_ATTRIBUTE.fullmatch, element.attrib)):
        raise ValueError(f"{tag} with {sorted(element.attrib)} is not shown")
    children = [element.text or ""]
    for child in element:
        children += [_tree(child), child.tail or ""]
    return [tag, element.attrib, [c for c in children if c]]


_WORDS = {"human": "by people", "model": "by models", "derived": "derived"}


class LabelSource(NamedTuple):
    """Who judged a claim, and when.

    Parameters
    ----------
    kind : {"human", "model", "derived"}
        A person, a language model, or a rule that made the label from something else.
    by : str
        Name of the person, the model or the rule.
    when : str or None
        Time in ISO 8601.
    version : str or None
        Of the prompt, or of the rule.
    seconds : float or None
        For how long a person looked at the claim.
    note : str or None
        What the person noted.
    """

    kind: str
    by: str
    when: str | None = None
    version: str | None = None
    seconds: float | None = None
    note: str | None = None

    @classmethod
    def now(cls, kind: str, by: str, version: str | None = None) -> LabelSource:
        """A source with the present time.

        Parameters
        ----------
        kind : {"human", "model", "derived"}
        by : str
        version : str, optional

        Returns
        -------
        LabelSource
        """
        when = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(kind, by, when, version)


def set_label_sources(
    graph: ReasoningGraph, sources: LabelSource | Sequence[LabelSource | None]
) -> ReasoningGraph:
    """The graph with the sources of its labels in its metadata, where they travel along.

    Parameters
    ----------
    graph : ReasoningGraph
    sources : LabelSource, or sequence of (LabelSource or None)
        One for all claims, or one for each; None where nobody judged the claim.

    Returns
    -------
    ReasoningGraph

    Raises
    ------
    ValueError
        If there are as many sources as claims no more, or a kind is unknown.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.labelling import LabelSource, get_label_sources, set_label_sources
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4", "so it is odd"])
    >>> graph = set_label_sources(graph, [LabelSource("human", "ann"), None])
    >>> get_label_sources(graph)
    [LabelSource(kind='human', by='ann', when=None, version=None, seconds=None, note=None), None]
    """
    if isinstance(sources, LabelSource):
        sources = [sources] * graph.n_claims
    if len(sources) != graph.n_claims:
        raise ValueError(f"{len(sources)} sources but {graph.n_claims} claims")
    for source in sources:
        if source is not None:
            check_choice("kind", source.kind, KINDS)
    rows = [None if source is None else _row(source) for source in sources]
    return graph.replace(metadata={**(graph.metadata or {}), SOURCES: rows})


def _row(source):
    """What is written: the first four always, seconds and note where there are any."""
    names = LabelSource._fields
    given = zip(names, source, strict=True)
    return {k: v for k, v in given if k in names[:4] or v is not None}


def get_label_sources(graph: ReasoningGraph) -> list[LabelSource | None]:
    """Where the labels of a graph come from.

    Parameters
    ----------
    graph : ReasoningGraph

    Returns
    -------
    list of (LabelSource or None)
        One for each claim; None where it is not known.
    """
    rows = read_sources(graph.metadata, graph.n_claims)
    return [None if row is None else _source(row) for row in rows]


def _source(row):
    return LabelSource(*(row.get(name) for name in LabelSource._fields))


def describe_labels(X: Any, y: Labels | ArrayLike) -> str:
    """How many labels there are and who gave them, in one sentence, for reports.

    Parameters
    ----------
    X : sequence of ReasoningGraph, or GraphBatch
        With sources in their metadata, where these are known.
    y : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.labelling import LabelSource, describe_labels, set_label_sources
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4", "so it is odd"])
    >>> graph = set_label_sources(graph, LabelSource("human", "ann"))
    >>> describe_labels([graph], [[1, -1]])
    '2 claims: 1 judged by people (ann 1), 1 not judged'
    """
    batch = as_batch(X)
    labels = pack_labels(y, batch)
    found = Counter()
    for label, row in zip(labels.tolist(), iterate_sources(batch), strict=True):
        if label >= 0:
            found[(row["kind"], str(row.get("by"))) if row else ("unknown", "")] += 1
    parts = [part for kind in (*KINDS, "unknown") if (part := _count(kind, found))]
    if unknown := int(np.sum(labels < 0)):
        parts.append(f"{unknown} not judged")
    return f"{len(labels)} claims: {', '.join(parts)}"


def _count(kind, found):
    names = {by: n for (k, by), n in found.items() if k == kind}
    if not names:
        return None
    total = sum(names.values())
    if kind == "unknown":
        return f"{total} judged, the data do not say by whom"
    listed = ", ".join(f"{by} {n}" for by, n in sorted(names.items()))
    judged = "" if kind == "derived" else "judged "
    return f"{total} {judged}{_WORDS[kind]} ({listed})"
