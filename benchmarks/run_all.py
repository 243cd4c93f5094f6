"""Run all experiments, and write the results pages.

    python -m benchmarks.run_all [--jobs N] [--splits N] [--output DIR] [--only NAME]

Finished cells are not computed again unless the package or the data change, so an interrupted run
can be resumed. If a different output folder is given, the pages are written to that folder and the
documentation does not change. Missing published data are downloaded.
"""

import subprocess
import sys
import time
import warnings

from benchmarks import REFEREES, ROOT
from benchmarks.cells import compute
from benchmarks.pages import report
from benchmarks.retention import evidence
from benchmarks.saving import RESULTS, options, wanted
from skdcf.exceptions import CalibrationWarning

PRINTED = (
    "guarantees/online",
    "speed/hard_speed",
    "speed/scorer_speed",
    "speed/compare_speed",
)


def printed(path, program):
    """What a program prints; its text is an argument, so a change of it is noticed."""
    out = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=True
    )
    return out.stdout


def print_programs(chosen):
    """Save what programs print, one after the other, since most of them measure time."""
    paths = [ROOT / "benchmarks" / f"{name}.py" for name in PRINTED]
    cells = {
        path.stem: (printed, (path, path.read_text(encoding="utf-8")))
        for path in paths
        if wanted(path.stem, chosen)
    }
    for name, text in compute(chosen.output, "printed", cells, n_jobs=1).items():
        (chosen.output / f"{name}.txt").write_text(text, encoding="utf-8")


def main(chosen):
    """Run, save and report."""
    start = time.perf_counter()
    chosen.output.mkdir(parents=True, exist_ok=True)
    evidence.main(chosen)
    print_programs(chosen)
    if not chosen.only or chosen.output == RESULTS:  # the pages need all results
        report.main(
            chosen.output, REFEREES if chosen.output == RESULTS else chosen.output
        )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore", CalibrationWarning)
    main(options(__doc__))
