"""Decide which claims of an answer to keep while the answer is being written.

The risk of a claim is computed only from this claim and earlier claims, in calibration and in
`predict` alike, so the decision about the last claim of an incomplete answer is final.
"""

import numpy as np

from .graphs import ReasoningGraph


def refuse_late_parents(batch, setting):
    """Raise ValueError if a claim precedes one of its parents."""
    late = np.flatnonzero(batch.edges[:, 0] > batch.edges[:, 1])
    if len(late):
        raise ValueError(
            f"parents must come before their children if {setting}, but "
            f"{batch.locate(batch.edges[late[0], 1])} comes before one of its "
            "parents. Reorder the claims"
        )


def on_prefixes(values_of, batch, block_size=2**19):
    """Return the value or row of values of each claim, computed without the later claims.

    Raise ValueError if a claim precedes one of its parents.
    """
    refuse_late_parents(batch, "online=True")
    if not batch.n_claims:
        return np.zeros(0)
    # The prefixes of an answer with 10,000 claims contain 50 million claims in total, so the
    # values are computed for blocks of prefixes.
    block = np.cumsum(batch.position + 1) // block_size
    values = []
    # Columns that were computed for whole answers are left out.
    batch = batch.replace()
    for last in np.split(np.arange(batch.n_claims), np.flatnonzero(np.diff(block)) + 1):
        rows = batch.problem_of[last]
        n_edges = (
            batch.edges[:, 1].searchsorted(last, "right") - batch.edge_offsets[rows]
        )
        prefixes = batch._take(rows, batch.position[last] + 1, n_edges)
        values.append(values_of(prefixes)[prefixes.offsets[1:] - 1])
    return np.concatenate(values)


def decisions(fitted, claims, alpha, stop, about):
    """Decide on each claim before the next claim is read."""
    texts = []
    features = []
    edges = []
    for v, claim in enumerate(claims):
        texts.append(claim.get("text"))
        features.append(claim.get("features"))
        edges += [(parent, v) for parent in claim.get("parents") or ()]
        prefix = ReasoningGraph(
            None if features[0] is None else np.array(features, float),
            edges if "parents" in claim or v == 0 else None,
            claims=None if texts[0] is None else texts,
            **about,
        )
        is_kept = bool(fitted.predict([prefix], alpha)[0][-1])
        yield is_kept
        if stop and not is_kept:
            return
