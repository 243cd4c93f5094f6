"""Measure the error rate for claims with vaguer wordings, a tenth of which are reworded wrongly.

    python -m benchmarks.guarantees.wordings [draws]

It prints benchmarks/results/wordings.txt. Each claim has a risk, and is false with a probability
that grows with it. The vaguer wording has a smaller risk. It is true if the claim is, and half of
the time if it is not, but it is false in any case if the model reworded falsely. What is missed is
counted here, from texts, claim by claim. "wrong way" judges a vaguer wording as true if the more
specific one is.
"""

import sys

import numpy as np

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.guarantees import ExpectedFalse, NoFalseClaim

GUARANTEES = {
    "NoFalseClaim()": (NoFalseClaim(), 0.1),
    "NoFalseClaim(max_false=1)": (NoFalseClaim(max_false=1), 0.1),
    'ExpectedFalse("share")': (ExpectedFalse("share"), 0.1),
    'ExpectedFalse("count")': (ExpectedFalse("count"), 0.3),
}
WORLDS = ("no edges", "chain", "tied risks")
N_CALIBRATION, N_NEW, N_CLAIMS, REWORDED_FALSELY = 99, 200, 4, 0.1


def draw(rng, n, world):
    """Risks and truth of both wordings of each claim, the specific one first: (n, claims, 2)."""
    risk = rng.uniform(size=(n, N_CLAIMS))
    true = rng.uniform(size=risk.shape) > 0.8 * risk**2
    risks = np.stack([risk, risk * rng.uniform(0.3, 0.9, risk.shape)], axis=2)
    follows = true | (rng.uniform(size=risk.shape) < 0.5)
    vaguer = follows & (rng.uniform(size=risk.shape) > REWORDED_FALSELY)
    if world == "tied risks":
        risks = np.ceil(10 * risks) / 10
    return risks, np.stack([true, vaguer], axis=2)


def problems(risks, world):
    """The answers with their wordings."""
    edges = [(c, c + 1) for c in range(N_CLAIMS - 1)] if world == "chain" else []
    words = [[f"claim {c}", f"claim {c}, vaguer"] for c in range(N_CLAIMS)]
    rows = (-risks).reshape(len(risks), 2 * N_CLAIMS, 1)
    return GraphBatch.from_graphs(
        ReasoningGraph(row, edges, wordings=words) for row in rows
    )


def losses(guarantee, masks, truth):
    """The loss of each answer, and specific and vaguer true statements, from its text."""
    kept = np.stack(list(masks)).reshape(truth.shape)
    specific, vaguer = kept[..., 0], kept[..., 1] & ~kept[..., 0]
    # A claim is judged from the vaguest wording upwards.
    good = np.where(specific, truth.all(axis=2), truth[..., 1])
    shown = specific | vaguer
    false = (shown & ~good).sum(axis=1)
    if isinstance(guarantee, NoFalseClaim):
        lost = false > guarantee.max_false
    else:
        n = shown.sum(axis=1) if guarantee.of == "share" else np.ones(len(false))
        lost = false / np.maximum(n, 1)
    return lost.mean(), (specific & good).sum(1).mean(), (vaguer & good).sum(1).mean()


def cell(guarantee, alpha, world, draws, wrong_way=False):
    """Mean and error of what is missed, and what is shown, over many calibrations."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(draws):
        risks, truth = draw(rng, N_CALIBRATION, world)
        labels = truth.copy()
        if wrong_way:
            labels[..., 1] |= labels[..., 0]
        else:
            labels[..., 0] &= labels[..., 1]
        y = labels.reshape(len(labels), -1).astype(int)
        cf = HardCF(0, alpha=alpha, guarantee=guarantee)
        cf.fit(problems(risks, world), list(y), groups=False)
        risks, truth = draw(rng, N_NEW, world)
        rows.append(losses(guarantee, cf.predict(problems(risks, world)), truth))
    rows = np.array(rows)
    return rows.mean(axis=0), rows[:, 0].std(ddof=1) / np.sqrt(draws)


def main(draws=300):
    """Print missed, its error, and specific and vaguer true statements for 12 cells."""
    print(
        f"{draws} calibrations with {N_CALIBRATION} answers, {N_NEW} new answers each"
    )
    print(f"{'guarantee':27s}{'world':12s}level  missed  error  specific  vaguer")
    for name, (guarantee, alpha) in GUARANTEES.items():
        for world in WORLDS:
            (missed, specific, vaguer), error = cell(guarantee, alpha, world, draws)
            print(
                f"{name:27s}{world:12s}{alpha:5.2f}  {missed:.4f}  {error:.4f}"
                f"{specific:9.2f}{vaguer:8.2f}",
                flush=True,
            )
            assert missed <= alpha + 3 * error
    (missed, *_), error = cell(NoFalseClaim(), 0.1, WORLDS[0], draws, wrong_way=True)
    print(f"judged the wrong way: {missed:.4f} is missed for 0.1 (error {error:.4f})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
