"""Plot the guaranteed against the observed coverage, next to a fixed threshold.

python -m benchmarks.guarantees.guarantee

Writes docs/guide/figures/guarantee.svg and benchmarks/results/guarantee.json. Answers are drawn as
in the gallery example on fixed thresholds: six claims each, and for each claim the share of ten
sampled answers that entail it. For the second kind of question the language model is surer of
itself when it is wrong. Each kind is calibrated by itself, and both have the same fixed threshold.
"""

import json

import numpy as np

from benchmarks import GUIDE, RESULTS
from benchmarks.pages.figures import plt
from skdcf import GraphBatch, HardCF
from skdcf.evaluation import coverage_score

KINDS = {"easy to tell": 0.1, "hard to tell": 0.45}
ALPHAS = [0.02, 0.05, 0.1, 0.2, 0.3]
FIXED = 1 / 3
CALIBRATION, TEST, DRAWS = 200, 1000, 100


def draw_answers(rng, n, sureness_when_wrong):
    """Answers with one score per claim, and labels."""
    true = rng.random((n, 6)) < 0.88
    chance = np.where(true, 0.75, sureness_when_wrong)
    share = rng.binomial(10, rng.beta(8 * chance, 8 * (1 - chance))) / 10
    offsets = np.arange(0, 6 * n + 1, 6)
    batch = GraphBatch.from_arrays(
        share.reshape(-1, 1), offsets, [], feature_names=["entailment"]
    )
    return batch, list(true.astype(int))


def measure(kind, seed):
    """Coverage of the calibrated filter per alpha, and of the fixed threshold."""
    rng = np.random.default_rng(seed)
    known, y = draw_answers(rng, CALIBRATION, KINDS[kind])
    new, truth = draw_answers(rng, TEST, KINDS[kind])
    cf = HardCF("entailment", ties="jitter", random_state=seed).fit(known, y)
    masks = [cf.predict(new, alpha=alpha) for alpha in ALPHAS]
    masks.append(new.split(new.features[:, 0] > FIXED))
    return [coverage_score(truth, kept) for kept in masks]


def main():
    """Measure, save and draw."""
    values = {k: np.array([measure(k, s) for s in range(DRAWS)]) for k in KINDS}
    said = {
        kind: {
            "calibrated": dict(zip(map(str, ALPHAS), v.mean(0).round(4), strict=False)),
            "fixed": round(v[:, -1].mean(), 4),
        }
        for kind, v in values.items()
    }
    path = RESULTS / "guarantee.json"
    path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(said, indent=1))
    draw(values)


def draw(values):
    """Promised and observed, with a bar for what single calibration sets give."""
    figure, panels = plt.subplots(
        1, 2, figsize=(5.6, 2.9), sharey=True, layout="constrained"
    )
    guaranteed = 1 - np.array(ALPHAS)
    for ax, (kind, found) in zip(panels, values.items(), strict=True):
        ax.plot([0.55, 1], [0.55, 1], color="0.7", lw=1, label="as guaranteed")
        low, mean, high = np.quantile(found[:, :-1], [0.05, 0.5, 0.95], axis=0)
        mean = found[:, :-1].mean(0)
        ax.errorbar(
            guaranteed,
            mean,
            [mean - low, high - mean],
            fmt="o",
            color="#1b7f5c",
            capsize=3,
            label="skdcf",
        )
        fixed = found[:, -1].mean()
        ax.axhline(fixed, color="#c0392b", ls="--", label="score above 1/3")
        ax.annotate(
            f"{fixed:.2f}",
            (0.56, fixed),
            (0, 4),
            textcoords="offset points",
            color="#c0392b",
        )
        ax.set(title=kind, xlabel="guaranteed", xlim=(0.55, 1.01), ylim=(0.55, 1.01))
        ax.title.set_fontsize(10)
    panels[0].set_ylabel("answers without a false claim")
    panels[0].legend(frameon=False, loc="lower right", fontsize=8)
    path = GUIDE / "figures" / "guarantee.svg"
    figure.savefig(path, metadata={"Date": None})
    text = path.read_text(encoding="utf-8")
    lines = (line.rstrip() for line in text.splitlines())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
