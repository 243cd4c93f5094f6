"""Count the false alarms of the test of exchangeability on streams without a change.

New questions are drawn like the calibration questions, but each has several answers, or the
columns were computed in float32. If only path risks are passed, each answer is counted, and
alarms occur in far more than 5 % of the streams. Problems contain their question, so the test
can count each question once.

    python -m benchmarks.guarantees.false_alarms --streams 400
"""

import argparse
import warnings

import numpy as np
from scipy.stats import norm

from skdcf import GraphBatch, HardCF
from skdcf.monitoring import ExchangeabilityTest

N_CALIBRATION = 200
N_QUESTIONS = 100


def answers(rng, n_questions, n_answers, spread, prefix, single=False):
    """Answers of two claims each, those to one question one after the other.

    ``spread`` is how far these differ.
    """
    question = np.repeat(np.arange(n_questions), n_answers)
    hard = rng.normal(size=n_questions)[question]
    risk = hard[:, None] + spread * rng.normal(size=(len(question), 2))
    table = -risk.reshape(-1, 1)
    if single:  # few values, as of agreement among five samples
        table = np.round(norm.cdf(table) * 5) / 5
        table = table.astype(np.float32).astype(float)
    return GraphBatch.from_arrays(
        table,
        np.arange(len(question) + 1) * 2,
        np.empty((0, 2), dtype=int),
        problems=[f"{prefix} {i}?" for i in question],
    )


def cases():
    """For each case its name, answers to a question, their spread, and float32 or not."""
    yield "one answer to a question", 1, 0.5, False
    for n_copies in (2, 3, 5):
        yield f"{n_copies} near copies", n_copies, 1e-3, False
    yield "5 correlated answers", 5, 0.5, False
    yield "float32 columns, equal risks", 1, 0.5, True


def alarms(n_streams, n_answers, spread, single):
    """Share of the streams with an alarm: from path risks, and from problems."""
    n_alarms = np.zeros(2)
    for seed in range(n_streams):
        rng = np.random.default_rng(seed)
        old = answers(rng, N_CALIBRATION, 1, spread, "old", single)
        new = answers(rng, N_QUESTIONS, n_answers, spread, "new", single)
        labels = [[1, 0]] * N_CALIBRATION
        cf = HardCF(0, alpha=0.2).fit(old, labels)
        by_risks = ExchangeabilityTest(random_state=seed).fit(cf)
        by_risks.update(cf.path_risk(new))
        by_problems = ExchangeabilityTest(random_state=seed).fit(cf).update(new)
        n_alarms += [by_risks.alarm, by_problems.alarm]
    return n_alarms / n_streams


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=400)
    n_streams = parser.parse_args().streams
    warnings.simplefilter("ignore")
    print(f"alarms for delta = 0.05 in {n_streams} streams without any change")
    print(f"{'case':<30} {'path risks':>10} {'problems':>10}")
    for name, n_answers, spread, single in cases():
        by_risks, by_problems = alarms(n_streams, n_answers, spread, single)
        print(f"{name:<30} {by_risks:>10.3f} {by_problems:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
