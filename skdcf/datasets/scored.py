"""Problems as the authors of the two published sets with scores store them."""

from .._checks import check_choice
from ..graphs import ReasoningGraph

#: Scores of both sets, of which higher means more confident.
SCORES = ("frequency-score", "gpt-score")
MATRICES = ("dep_graph", "gold_graph")
ANNOTATIONS = ("manual_annotation", "annotation")
#: Values of ``annotation`` that the authors count as true and as false.
_VERDICTS = {"Y": 1, "S": 1, "N": 0, "U": 0}


def parse_scored(record, scores, label, graph=None):
    """A problem as the authors of the two sets with scores store it.

    Parameters
    ----------
    record : dict
    scores : sequence of str or None
        Fields of the claims that become features.
    label : {"manual_annotation", "annotation"} or None
    graph : {"dep_graph", "gold_graph"}, optional
        Which 0/1 matrix becomes edges; row = child, column = parent.
    """
    claims = record["claims"]
    texts = [claim["subclaim"] for claim in claims]
    out = {"problem": record["prompt"], "claims": texts}
    if graph is not None:
        made = ReasoningGraph.from_adjacency(record[graph], claims=texts)
        out["edges"] = made.edges
    if scores is not None:
        out["features"] = [[float(claim[name]) for name in scores] for claim in claims]
        out["feature_names"] = list(scores)
    if label is not None:
        one = _verdict if label == "annotation" else _binary
        out["labels"] = [one(claim[label], v) for v, claim in enumerate(claims)]
    return out


def _verdict(text, v):
    """Y, S, N or U; one of the published files pads a Y with hundreds of blanks."""
    verdict = str(text).strip()
    check_choice(f"claim {v}: annotation", verdict, _VERDICTS)
    return _VERDICTS[verdict]


def _binary(text, v):
    """'1.0', '0.0', '1' or '0'; another number is a slip of the annotator."""
    try:
        value = float(text)
    except ValueError:
        value = None
    if value not in (0.0, 1.0):
        raise ValueError(
            f"claim {v}: manual_annotation is {text!r}, but must be 0 or 1"
        )
    return int(value)
