"""Simulate what is reported about judges.

    python -m benchmarks.guarantees.judges [--draws 1000] [--histories 300]

First, the proportion of 95 % intervals that contain the truth, for generated claims, for published
answers with a judge that accepts 40 % of the false claims, and for runs of agents with real judges.
The claims of a generated question are false together more often than alone. The truth about
published answers is the rate in all of them; a part of the questions is labelled. Then the
proportion of golden sets with an alarm in any of 20 runs, although the judge did not change.
"""

import argparse
import contextlib
import io
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm

from benchmarks.real_data import load
from skdcf.apps.cli import main as command
from skdcf.datasets import fetch
from skdcf.evaluation import judge_report

MEASURES = ("false claims found", "true claims accepted", "false claims, corrected")
SOURCES = json.loads((Path(__file__).parent.parent / "data/judges.json").read_text())
LENIENCE = 0.4


def generated(rng, n_questions, n_claims, share, missed):
    """Truth, verdicts and questions of generated claims."""
    question = np.arange(n_questions).repeat(n_claims)
    doubt = rng.normal(size=n_questions)[question] + rng.normal(size=len(question))
    true = doubt / np.sqrt(2) > norm.ppf(share)
    accepted = np.where(
        true, rng.random(len(true)) > 0.02, rng.random(len(true)) < missed
    )
    return true, accepted, question


def covered(true, accepted, question, labelled, rates):
    """Whether the interval of each measure contains the truth."""
    labels = np.where(labelled[question], true, -1)
    rows = judge_report({"judge": accepted}, labels, question).rows
    limits = {row["measure"]: (row["low"], row["high"]) for row in rows}
    pairs = zip(MEASURES, rates, strict=True)
    return [limits[name][0] <= rate <= limits[name][1] for name, rate in pairs]


def show(name, hits):
    """Print the proportions."""
    print(f"{name:52}" + "".join(f"{share:10.3f}" for share in np.mean(hits, axis=0)))


def simulated(n_draws):
    """Print the coverage for generated claims."""
    for n_labelled in (30, 50):
        for n_claims in (1, 4):
            for share, missed in ((0.05, 0.4), (0.2, 0.4), (0.2, 0.05)):
                rng = np.random.default_rng(0)
                rates = (1 - missed, 0.98, share)
                hits = [
                    covered(
                        *generated(rng, 1000, n_claims, share, missed),
                        np.arange(1000) < n_labelled,
                        rates,
                    )
                    for _ in range(n_draws)
                ]
                name = f"{n_labelled} labelled, {n_claims} claims, {share:.0%} false, "
                show(f"{name}{missed:.0%} missed", hits)


def agent_runs(judge):
    """Truth, verdicts and runs of agents. A missing verdict does not accept a step."""

    def steps(name):
        file = f"agent_process_bench/{name}/tau2.jsonl"
        return {
            (row["query_index"], row["sample_index"], step): label
            for row in fetch.read_published(file, None, SOURCES)
            for step, label in row["step_labels"].items()
        }

    people, verdicts = steps("labels"), steps(f"judges/{judge}")
    true = np.array([label != -1 for label in people.values()])
    accepted = np.array([verdicts.get(key) in (0, 1) for key in people])
    question = np.unique([key[:2] for key in people], axis=0, return_inverse=True)[1]
    return true, accepted, question.ravel()


def published(name, rng):
    """Truth, verdicts and questions of published answers."""
    if name not in ("process-bench", "mr-ben-biology"):
        return agent_runs(name)
    data = load(name)
    labels = np.concatenate(data.labels)
    problem = np.repeat(np.arange(len(data.labels)), [len(row) for row in data.labels])
    true, problem = (labels > 0)[labels >= 0], problem[labels >= 0]
    accepted = true | (rng.random(len(true)) < LENIENCE)
    return true, accepted, np.unique(problem, return_inverse=True)[1]


def real(n_draws):
    """Print the coverage for published answers."""
    for name in ("process-bench", "mr-ben-biology", "deepseek-v3.2", "qwen3-8b"):
        rng = np.random.default_rng(0)
        true, accepted, question = published(name, rng)
        n_questions = question.max() + 1
        rates = (1 - accepted[~true].mean(), accepted[true].mean(), 1 - true.mean())
        hits = [
            covered(
                true,
                accepted,
                question,
                rng.permutation(n_questions) < min(100, n_questions // 4),
                rates,
            )
            for _ in range(n_draws)
        ]
        of_judge = f"{name}: {1 - accepted.mean():.3f} by the judge"
        show(f"{of_judge}, {rates[2]:.3f} in truth", hits)


def write(path, usual, flips):
    """Write verdicts, which differ from the usual ones where they flip, by their key."""
    runs = {key: (usual ^ flip).astype(int).tolist() for key, flip in flips.items()}
    rows = (
        {"problem": f"question {i}", "claims": ["a", "b", "c"]}
        | {key: run[i] for key, run in runs.items()}
        for i in range(len(usual))
    )
    path.write_text("\n".join(map(json.dumps, rows)))


def alarm(rng, noise, folder, n_runs=20):
    """Whether any run on a golden set raises an alarm."""
    usual = rng.random((60, 3)) < 0.8
    golden, today = Path(folder, "golden.jsonl"), Path(folder, "today.jsonl")
    flips = rng.random((n_runs + 2, *usual.shape)) < noise
    write(golden, usual, {"judge_a": flips[0], "judge_b": flips[1]})
    for flip in flips[2:]:
        write(today, usual, {"judge_a": flip})
        with contextlib.redirect_stderr(io.StringIO()):
            if command(["judge", str(golden), "--with", str(today)]):
                return True
    return False


def alarms(n_histories):
    """Print the proportion of golden sets with an alarm."""
    for noise in (0.0, 0.02, 0.1):
        rng = np.random.default_rng(0)
        raised = []
        for _ in range(n_histories):
            with tempfile.TemporaryDirectory() as folder:
                raised.append(alarm(rng, noise, folder))
        show(
            f"{noise:.0%} of the verdicts change by chance", [[each] for each in raised]
        )


def main(chosen):
    """Print three tables."""
    warnings.simplefilter("ignore")
    print(
        f"{'coverage of the intervals':52}{'found':>10}{'accepted':>10}{'corrected':>10}"
    )
    simulated(chosen.draws)
    real(chosen.draws)
    print(
        f"\ngolden sets with a false alarm in 20 runs (at most 0.05), {chosen.histories} each"
    )
    alarms(chosen.histories)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--histories", type=int, default=300)
    main(parser.parse_args())
