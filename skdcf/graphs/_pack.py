"""What packing needs to know of single graphs."""

import numpy as np

from ._checks import name_problem
from ._graph import ReasoningGraph


def column(graphs, name):
    """One field of all graphs as an object array; None where no graph has it."""
    values = [getattr(g, name) for g in graphs]
    if all(v is None for v in values):
        return None
    return np.fromiter(values, dtype=object, count=len(values))


def check_graphs(graphs):
    """Raise ValueError unless these are graphs with the same features."""
    if not graphs:
        raise ValueError("no problems: X is empty, at least one is needed")
    first = graphs[0]
    for i, g in enumerate(graphs):
        if not isinstance(g, ReasoningGraph):
            raise ValueError(
                f"problem {i} is a {type(g).__name__}, not a ReasoningGraph"
            )
        if (g.features is None) != (first.features is None):
            raise ValueError(
                f"{_name(i, g)}: some problems have features and some have none"
            )
        if g.features is not None and g.features.shape[1] != first.features.shape[1]:
            raise ValueError(
                f"{_name(i, g)}: {g.features.shape[1]} features but "
                f"{first.features.shape[1]} in problem 0"
            )
        if g.feature_names is not first.feature_names and (
            g.feature_names != first.feature_names
        ):
            raise ValueError(
                f"{_name(i, g)}: feature names {g.feature_names} differ from those of "
                f"problem 0, {first.feature_names}"
            )


def _name(i, graph):
    return name_problem(i, {i: graph.id})
