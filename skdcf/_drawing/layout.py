"""Where the claims of one problem stand in a drawing, and how its edges run.

A layered drawing: every claim stands in a row below all its parents, and no row is too
wide. An edge that passes a row gets a place of its own there, as if it were a claim, so
that it never runs behind one. All long edges of a parent share one such trunk. Rows are
ordered by the mean place of their neighbours, which leaves few crossings. Edges are
vertical beside claims and turn only between two rows.
"""

from itertools import pairwise

import numpy as np

RADIUS = 12
STEP = 40  # between two claims of a row
MARGIN = 20
TALL, LOW = 50, 37  # between two rows: in small drawings, and at least
HEIGHT = 950  # that large drawings try to keep to
CLEAR = 4  # between a claim and where edges may turn
WIDEST = 8  # claims in one row
SWEEPS = 12
CLAIM, TRUNK = 0.5, 0.22  # half of the width that each needs


class Layout:
    """Places of the claims and courses of the edges.

    Parameters
    ----------
    x : ndarray of shape (n_claims,)
        In units of the distance between two claims side by side, from 0 on.
    row : ndarray of int, shape (n_claims,)
        From 0, the uppermost, on.
    courses : tuple of ndarray of shape (k, 2)
        One per edge: (x, row) where it starts, passes rows, and ends. An edge runs
        vertically past the claims of a row, and turns between two rows.

    Attributes
    ----------
    places : ndarray of shape (n_claims, 2)
        In points of the drawing, from the upper left on.
    width, height : float
        Of the drawing, in points.
    """

    def __init__(self, x, row, courses):
        self.x, self.row, self.courses = x, row, courses
        self.n_rows = int(row.max(initial=-1)) + 1
        self.unit = STEP, min(TALL, max(LOW, HEIGHT / max(self.n_rows, 1)))
        self.places = self._points(np.column_stack([x, row]))
        last = max([x.max(initial=0.0), *(course[:, 0].max() for course in courses)])
        self.width, self.height = self._points([last, max(self.n_rows - 1, 0)]) + MARGIN

    def _points(self, at):
        return MARGIN + np.multiply(at, self.unit)

    def curves(self):
        """One list of (letter, points) per edge, letters as in SVG; the last is its tip."""
        return [self._curve(self._points(course).tolist()) for course in self.courses]

    def _curve(self, points):
        band, out = RADIUS + CLEAR, [("M", [points[0]])]
        for (x0, y0), (x1, y1) in pairwise(points):
            top, bottom = y0 + band, y1 - band
            middle = (top + bottom) / 2
            out.append(("L", [[x0, top]]))
            out.append(("C", [[x0, middle], [x1, middle], [x1, bottom]]))
        x, y = points[-1]
        return [*out, ("L", [[x, y - RADIUS - 1]])]


def layered_layout(n_claims, edges, widest=WIDEST):
    """The layout of a directed graph without cycles.

    Parameters
    ----------
    n_claims : int
    edges : sequence of (parent, child)
    widest : int
        Most claims in one row.

    Returns
    -------
    Layout
    """
    edges = [(int(parent), int(child)) for parent, child in edges]
    row = _rows(n_claims, edges, widest)
    items, links, passed = _with_trunks(row, edges)
    rows = [np.flatnonzero(items == r) for r in range(items.max(initial=-1) + 1)]
    half = np.where(np.arange(len(items)) < n_claims, CLAIM, TRUNK)
    x = _places(_ordered(rows, links, len(items)), links, half)
    at = np.column_stack([x, items])
    return Layout(x[:n_claims], row, tuple(at[course] for course in passed))


def _rows(n_claims, edges, widest):
    """A row below all parents for each claim, with at most ``widest`` claims in each."""
    parents = [[] for _ in range(n_claims)]
    for parent, child in edges:
        parents[child].append(parent)
    row, taken = np.full(n_claims, -1), {}
    waiting = list(range(n_claims))
    while waiting:
        ready = [v for v in waiting if all(row[u] >= 0 for u in parents[v])]
        for v in ready:
            at = max((row[u] + 1 for u in parents[v]), default=0)
            while taken.get(at, 0) >= widest:
                at += 1
            row[v] = at
            taken[at] = taken.get(at, 0) + 1
        waiting = [v for v in waiting if row[v] < 0]
    return _lowered(row, taken, parents, edges, widest)


def _lowered(row, taken, parents, edges, widest):
    """Claims that build on nothing stand just above the first that needs them."""
    for u in [u for u in range(len(row)) if not parents[u]]:
        first = min((row[v] for w, v in edges if w == u), default=row[u] + 1)
        for at in range(first - 1, row[u], -1):
            if taken.get(at, 0) < widest:
                taken[at], taken[row[u]] = taken.get(at, 0) + 1, taken[row[u]] - 1
                row[u] = at
                break
    return row


def _with_trunks(row, edges):
    """Rows of claims and trunks, links between adjacent rows, and what edges pass."""
    items, links, passed, trunk = list(row), set(), [], {}
    for parent, child in edges:
        course = [parent]
        for at in range(row[parent] + 1, row[child]):
            if (parent, at) not in trunk:
                trunk[parent, at] = len(items)
                items.append(at)
            course.append(trunk[parent, at])
        course.append(child)
        links.update(pairwise(course))
        passed.append(course)
    ends = np.array(sorted(links), dtype=int).reshape(-1, 2)
    return np.array(items, dtype=int), ends, passed


def _ordered(rows, links, n_items):
    """Rows in an order with few crossings: each item at the mean of its neighbours."""
    place = np.empty(n_items)
    for row in rows:
        place[row] = np.arange(len(row)) - (len(row) - 1) / 2
    best, fewest = [row[np.argsort(place[row])] for row in rows], np.inf
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else rows[::-1]:
            wanted = _means(place, links if down else links[:, ::-1], n_items)[row]
            wanted = np.where(np.isnan(wanted), place[row], wanted)
            order = row[np.lexsort((place[row], wanted))]
            place[order] = np.arange(len(row)) - (len(row) - 1) / 2
        crossings = _crossings(place, links, rows)
        if crossings < fewest:
            fewest, best = crossings, [row[np.argsort(place[row])] for row in rows]
    return best


def _means(place, links, n_items):
    """Mean place of the neighbours at the other side; NaN where there are none."""
    here, there = links[:, 1], links[:, 0]
    count = np.bincount(here, minlength=n_items)
    total = np.bincount(here, place[there], n_items)
    with np.errstate(invalid="ignore"):
        return total / count


def _crossings(place, links, rows):
    total = 0
    for row in rows[:-1]:
        ends = place[links[np.isin(links[:, 0], row)]]
        above = np.sign(ends[:, None, 0] - ends[None, :, 0])
        below = np.sign(ends[:, None, 1] - ends[None, :, 1])
        total += int((above * below < 0).sum()) // 2
    return total


def _places(rows, links, half):
    """The x of each item: near its neighbours, in the order of its row."""
    from scipy.optimize import isotonic_regression  # half a second, for drawings only

    x = np.zeros(len(half))
    gaps = [np.cumsum([0, *(half[row][:-1] + half[row][1:])]) for row in rows]
    for row, gap in zip(rows, gaps, strict=True):
        x[row] = gap - gap[-1] / 2
    for sweep in range(SWEEPS + 1):
        down = sweep % 2 == 0
        towards = links if down else links[:, ::-1]
        for r in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            wanted = _means(x, towards, len(half))[rows[r]]
            wanted = np.where(np.isnan(wanted), x[rows[r]], wanted)
            # Trunks are held straight, claims give way.
            weight = np.where(half[rows[r]] == TRUNK, 4.0, 1.0)
            nearest = isotonic_regression(wanted - gaps[r], weights=weight)
            x[rows[r]] = nearest.x + gaps[r]
    return x - x.min(initial=np.inf) if len(x) else x
