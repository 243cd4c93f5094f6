"""Edges as curves: vertical beside claims, turning only between two rows."""

from itertools import pairwise

import numpy as np

RADIUS = 12
STEP = 40  # between two claims of a row
MARGIN = 20
TALL, LOW = 50, 37  # between two rows: in small drawings, and at least
HEIGHT = 950  # that large drawings try to keep to
CLEAR = 4  # between a claim and where edges may turn
HEAD = 6.5, 3.6  # length of an arrow's head, and half of its width


class Frame:
    """From rows and units of a layout to points of a drawing, from the upper left.

    Attributes
    ----------
    x, y : ndarray of shape (n_claims,)
    width, height : float
    """

    def __init__(self, layout):
        self.layout = layout
        self.step = min(TALL, max(LOW, HEIGHT / max(layout.n_rows, 1)))
        self.x = MARGIN + STEP * layout.x
        self.y = MARGIN + self.step * layout.row
        self.width = 2 * MARGIN + STEP * layout.width
        self.height = 2 * MARGIN + self.step * max(layout.n_rows - 1, 0)

    def curves(self):
        """One list of (letter, points) per edge, letters as in SVG; the last is its tip."""
        return [self._curve(course) for course in self.layout.courses]

    def _curve(self, course):
        points = np.column_stack(
            [MARGIN + STEP * course[:, 0], MARGIN + self.step * course[:, 1]]
        ).tolist()
        band = RADIUS + CLEAR
        out = [("M", [points[0]])]
        for (x0, y0), (x1, y1) in pairwise(points):
            top, bottom = y0 + band, y1 - band
            middle = (top + bottom) / 2
            out.append(("L", [[x0, top]]))
            out.append(("C", [[x0, middle], [x1, middle], [x1, bottom]]))
        x, y = points[-1]
        return [*out, ("L", [[x, y - RADIUS - 1]])]
