"""Who said that a claim is true: a person, a model or a rule, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_choice
from ..graphs import Labels, ReasoningGraph, as_batch, pack_labels
from ..graphs.sources import KINDS, SOURCES, iterate_sources, read_sources

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
            As in the class.
        by : str
            Name of the person, the model or the rule.
        version : str, optional
            Of the prompt, or of the rule.

        Returns
        -------
        LabelSource
        """
        when = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(kind, by, when, version)


_ALWAYS = LabelSource._fields[:4]  # the others are written where there are any


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
        If there are more or fewer sources than claims, or a kind is unknown.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.labelling.sources import LabelSource, get_label_sources, set_label_sources
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
    rows = [
        source
        and {k: v for k, v in source._asdict().items() if v is not None or k in _ALWAYS}
        for source in sources
    ]
    return graph.replace(metadata={**(graph.metadata or {}), SOURCES: rows})


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
    return [row and LabelSource(*map(row.get, LabelSource._fields)) for row in rows]


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
        Counts of claims, by kind of source and by name.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.labelling.sources import LabelSource, describe_labels, set_label_sources
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
