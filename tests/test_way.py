"""A reader who follows one call passes through few files, and changes between them seldom.

The bounds are not today's numbers: five moves or more are left of each.
"""

import os
import sys

import pytest

import skdcf
from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs

ROOT = os.path.dirname(skdcf.__file__) + os.sep


def way_of(act):
    """The files of the package that a call enters, each time that it changes to one."""
    stack, way = [], []

    def look(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call":
            outside = stack[-1] if stack else None
            stack.append(file[len(ROOT) :] if file.startswith(ROOT) else outside)
        elif event == "return" and stack:
            stack.pop()
        changed = stack and stack[-1] and way[-1:] != stack[-1:]
        if event in ("call", "return") and changed:
            way.append(stack[-1])

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(before)
    return way


@pytest.mark.parametrize(
    ("name", "files", "moves"), [("fit", 19, 165), ("predict", 13, 56)]
)
def test_one_call_passes_through_few_files(name, files, moves):
    graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score").fit(graphs, y)
    cf.predict(graphs)
    act = {"fit": lambda: cf.fit(graphs, y), "predict": lambda: cf.predict(graphs)}
    way = way_of(act[name])
    assert len(set(way)) <= files, sorted(set(way))
    assert len(way) <= moves, way
