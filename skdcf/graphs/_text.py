"""An answer as text again."""

from ._graph import ReasoningGraph


def answer_text(graph: ReasoningGraph) -> str:
    """The claims of an answer, one a line; empty if it has none.

    Parameters
    ----------
    graph : ReasoningGraph

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the texts of the claims are not known.
    """
    if graph.claims is None and graph.n_claims:
        named = "" if graph.id is None else f" ({graph.id})"
        raise ValueError(
            f"the claims of the problem{named} have no texts: give claims= when the "
            "graphs are made"
        )
    return "\n".join(graph.claims or ())
