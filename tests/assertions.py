"""Properties that every filter has, as sentences."""

import numpy as np


def assert_coherent(masks, graphs):
    """No claim is kept without its parents."""
    for mask, graph in zip(masks, graphs, strict=True):
        parent, child = graph.edges.T
        assert not (mask[child] & ~mask[parent]).any()


def assert_permutation_equivariant(filter, graphs, rng):
    """Reordering problems reorders the result, and nothing else."""
    order = rng.permutation(len(graphs))
    plain = filter.predict(graphs)
    mixed = filter.predict([graphs[i] for i in order])
    for i, mask in zip(order, mixed, strict=True):
        np.testing.assert_array_equal(plain[i], mask)


def reorder_claims(graph, order):
    """The same problem with claim ``order[i]`` in position i."""
    position = np.argsort(order)
    return graph.replace(
        features=graph.features[order],
        edges=position[graph.edges],
        claims=graph.claims and [graph.claims[v] for v in order],
    )
