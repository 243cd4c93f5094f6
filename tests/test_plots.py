"""What a picture of a problem shows, and what it refuses to show."""

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.plots import DROPPED, FALSE, KEPT, ReasoningGraphDisplay

plt = pytest.importorskip("matplotlib.pyplot")
GRAPH = ReasoningGraph(np.zeros((3, 1)), [(0, 1), (0, 2)])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_colours_say_what_is_kept_and_what_is_false():
    from matplotlib.colors import to_rgba

    display = ReasoningGraphDisplay.from_graph(
        GRAPH, kept=[True, True, False], labels=[1, 0, 1]
    )
    (dots,) = display.ax_.collections
    assert [tuple(c) for c in dots.get_facecolors()] == [
        to_rgba(c) for c in (KEPT, KEPT, DROPPED)
    ]
    assert [tuple(c) for c in dots.get_edgecolors()] == [
        to_rgba(c) for c in ("white", FALSE, "white")
    ]
    heights = dots.get_offsets()[:, 1]
    assert heights[0] > heights[1] == heights[2]  # premises are on top


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kept": ["False"] * 3}, "kept holds <U5: booleans expected"),
        ({"kept": [1, 0, 1]}, "kept holds int64: booleans expected"),
        ({"kept": [True]}, "kept has shape"),
        ({"labels": [True, None, False]}, "claim 1: the label is None"),
        ({"labels": ["true", "false", "true"]}, "claim 0: the label is 'true'"),
        ({"labels": [1, 0]}, "labels has shape"),
    ],
)
def test_what_is_no_mask_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ReasoningGraphDisplay.from_graph(GRAPH, **values)
