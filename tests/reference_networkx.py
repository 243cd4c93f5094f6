"""The metrics of one graph as networkx has them; imports nothing of the maths."""

import networkx as nx
import numpy as np


def by_networkx(graph):
    """All metrics of a ReasoningGraph, shape (n_claims, 11), in the order of METRICS."""
    g = nx.DiGraph()
    g.add_nodes_from(range(graph.n_claims))
    g.add_edges_from(map(tuple, graph.edges.tolist()))
    if not graph.n_claims:
        return np.empty((0, 11))  # networkx has no metrics of nothing
    depth = {
        v: level for level, row in enumerate(nx.topological_generations(g)) for v in row
    }
    columns = [
        dict(g.in_degree()),
        dict(g.out_degree()),
        nx.pagerank(g),
        nx.betweenness_centrality(g),
        nx.closeness_centrality(g),
        nx.clustering(g),
        {v: g.in_degree(v) == 0 for v in g},
        {v: g.out_degree(v) == 0 for v in g},
        {v: len(nx.descendants(g, v)) for v in g},
        depth,
        {v: len(nx.ancestors(g, v)) for v in g},
    ]
    return np.array([[float(column[v]) for column in columns] for v in g])
