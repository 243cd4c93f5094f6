"""What a text with wordings says at a threshold, claim by claim; shares no code with skdcf."""

import math

import numpy as np

from skdcf import ReasoningGraph


class Worded:
    """A problem with wordings, as lists: for each claim a list, most specific wording first."""

    def __init__(self, risks, labels, parents):
        self.risks, self.labels, self.parents = risks, labels, parents

    def states(self, c, t):
        """Position of the most specific wording of claim c that is kept at t, or None."""
        if not all(self.states(p, t) == 0 for p in self.parents[c]):
            return None
        shown = None
        for k in reversed(range(len(self.risks[c]))):
            if not self.risks[c][k] < t:
                break
            shown = k
        return shown

    def truth(self, c):
        """Labels of claim c, judged from the vaguest wording up to the first that is not true."""
        out, good = [], True
        for label in reversed(self.labels[c]):
            good = good and label == 1
            out.append(good)
        return out[::-1]

    def text(self, t):
        """For each claim that is shown, (claim, position of its wording, whether it is true)."""
        said = []
        for c in range(len(self.risks)):
            k = self.states(c, t)
            if k is not None:
                said.append((c, k, self.truth(c)[k]))
        return said

    def says(self, kept):
        """Whether each claim that is shown is true, if these wordings are kept."""
        rows = iter(kept)
        masks = [[bool(next(rows)) for _ in row] for row in self.risks]
        return [
            self.truth(c)[mask.index(True)] for c, mask in enumerate(masks) if any(mask)
        ]

    def thresholds(self):
        return [*sorted({r for row in self.risks for r in row}), math.inf]

    def n_false(self, t):
        return sum(not true for *_, true in self.text(t))

    def graph(self, **fields):
        wordings = [
            [f"claim {c}, wording {k}" for k in range(len(row))]
            for c, row in enumerate(self.risks)
        ]
        edges = [(p, c) for c, some in enumerate(self.parents) for p in some]
        table = [[-r] for row in self.risks for r in row]
        return ReasoningGraph(table, edges, wordings=wordings, **fields)

    @property
    def flat_labels(self):
        return np.array([y for row in self.labels for y in row], dtype=int)


def draw(rng, levels=None, unknown=0.1):
    """A problem of some claims with up to three wordings, of which labels may contradict."""
    n = rng.integers(1, 5)
    counts = rng.integers(1, 4, n)
    if levels:
        risks = [rng.integers(levels, size=m).astype(float).tolist() for m in counts]
    else:
        risks = [rng.uniform(size=m).tolist() for m in counts]
    labels = [
        rng.choice([1, 0, -1], size=m, p=[0.9 - unknown, 0.1, unknown]).tolist()
        for m in counts
    ]
    parents = [[p for p in range(c) if rng.uniform() < 0.3] for c in range(n)]
    return Worded(risks, labels, parents)


def draw_answers(rng, n, wordings=True):
    """Answers whose vaguer wordings are surer; a tenth of these are false by themselves."""
    answers = []
    for _ in range(n):
        risks, labels = [], []
        for _ in range(3):
            risk = rng.uniform()
            true = int(rng.uniform() > 0.6 * risk**2)
            vaguer = int((true or rng.uniform() < 0.5) and rng.uniform() > 0.1)
            risks.append([risk, risk * rng.uniform(0.3, 0.9)][: 1 + wordings])
            labels.append([true, vaguer][: 1 + wordings])
        answers.append(Worded(risks, labels, [[], [], [1]]))
    return answers
