"""People and a model judged answers that calibrate in separate parts, or in separate calls.

Before November 2026 they calibrated together: .203 +- .005 in parts for .1, and .221 +- .009 in
a sliding calibration with one answer a call. In one file people's calibrated alone.
"""

import copy

import numpy as np
from rates import HUMAN, MODEL, judged, one_claim_each, run

from skdcf import HardCF
from skdcf.monitoring import SlidingCalibration

ALPHA, FALSE = 0.1, 0.5


def world(rng, n, who, first=0):
    """The model overlooks every false claim with a score above one half."""
    score = rng.random(n)
    true = rng.random(n) >= FALSE * (1 - score / 2)
    verdict = true | (score > 0.5) if who is MODEL else true
    return judged(score, who, first=first), [[int(v)] for v in verdict]


def missed(cf):
    """The chance that a false claim is kept: of scores above the threshold."""
    low = np.clip(-cf.threshold_, 0, 1)
    return FALSE * ((1 - low) - (1 - low**2) / 4)


def start():
    rng = np.random.default_rng(0)
    plain = one_claim_each(rng.random(40))
    return HardCF(0, alpha=ALPHA).fit(plain, np.arange(40) % 2)


START = start()


def two_parts(seed):
    rng = np.random.default_rng(seed)
    parts = [world(rng, 40, HUMAN), world(rng, 80, MODEL)]
    cf = copy.deepcopy(START)
    return missed(cf.calibrate_parts([cf.calibration_part(*part) for part in parts]))


def one_file(seed):
    rng = np.random.default_rng(seed)
    (people, labels), (others, verdicts) = world(rng, 40, HUMAN), world(rng, 80, MODEL)
    cf = copy.deepcopy(START)
    return missed(cf.calibrate([*people, *others], [*labels, *verdicts]))


def sliding(seed):
    rng = np.random.default_rng(seed)
    window = SlidingCalibration(copy.deepcopy(START), window=90, smallest=30)
    for i in range(120):
        window.update(*world(rng, 1, HUMAN if rng.random() < 0.35 else MODEL, first=i))
    return missed(window.filter_)


if __name__ == "__main__":
    run(one_file, ALPHA, "people and a model, one file")
    run(two_parts, ALPHA, "people and a model, two parts")
    run(sliding, ALPHA, "people and a model, one answer a call", n=40)
