"""Sentences about the labels of a data set."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._checks import counted
from ...graphs import as_batch
from ...labels import Labels, pack_labels
from ...ops.hard import path_risk, segment_sum


def describe_labels(X: Any, y: Labels | ArrayLike) -> str:
    """Return a sentence with the number of labels from each source.

    The sentence also contains the number of unjudged claims in partly judged answers, which count
    as false in calibration.

    Parameters
    ----------
    X : sequence of ReasoningGraph, or GraphBatch
        The problems. The key ``label_source`` of their provenance contains the source of the
        labels, such as "person" or "model NAME".
    y : sequence of arrays, one per problem
        Claim labels: 1 true, 0 false, -1 unknown.

    Returns
    -------
    sentence : str
        The sentence.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import describe_labels
    >>> claims = ["2 + 2 = 4", "so it is odd"]
    >>> graph = ReasoningGraph(None, [], claims=claims, provenance={"label_source": "person"})
    >>> describe_labels([graph], [[1, 0]])
    '2 claims: 2 judged by people'
    """
    batch = as_batch(X)
    labels = pack_labels(y, batch)
    n_judged = segment_sum(labels >= 0, batch.offsets).astype(int)
    rows = batch.provenance_rows or [{}] * len(batch)
    counts: Counter[str] = Counter()
    for n, row in zip(n_judged.tolist(), rows, strict=True):
        source = row.get("label_source", "an unknown source")
        counts["people" if source == "person" else source] += n
    parts = [f"{n} judged by {source}" for source, n in counts.items() if n]
    if n_unknown := int(np.sum(labels < 0)):
        parts.append(f"{n_unknown} not judged")
    sentence = f"{counted(len(labels), 'claim')}: {', '.join(parts)}"
    # The label of a claim that depends on a false claim has no effect.
    is_open = (labels < 0) & (path_risk((labels == 0).astype(float), batch) == 0)
    if n_open := int(segment_sum(is_open, batch.offsets)[n_judged > 0].sum()):
        sentence += (
            f". Answers that were started have {counted(n_open, 'unjudged claim')}, which "
            "count as false. Judge them to keep more claims"
        )
    return sentence
