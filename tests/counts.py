"""What a data set consists of."""

from skdcf.labels import pack_labels


def counts_of(data):
    """Problems, claims, edges, false claims, unknown claims, questions."""
    flat = pack_labels(data.labels, data.graphs)
    sizes = len(data.graphs), data.graphs.n_claims, len(data.graphs.edges)
    judged = int((flat == 0).sum()), int((flat == -1).sum())
    return *sizes, *judged, len(set(data.groups.tolist()))
