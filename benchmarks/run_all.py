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
from benchmarks.retention import evidence, real_results, small_samples
from benchmarks.saving import RESULTS, options, wanted
from skdcf.exceptions import CalibrationWarning


def printed(name, program):
    """What a program prints; the text of the program is there to be told apart by."""
    out = subprocess.run(
        [sys.executable, ROOT / report.program_of(name)],
        capture_output=True,
        text=True,
        check=True,
    )
    return out.stdout


def print_programs(names, chosen, n_jobs):
    """Save what programs print."""
    cells = {}
    for name in names:
        program = (ROOT / report.program_of(name)).read_text(encoding="utf-8")
        cells[name] = printed, (name, program)
    for name, text in compute(chosen.output, "printed", cells, n_jobs).items():
        (chosen.output / f"{name}.txt").write_text(text, encoding="utf-8")


def main(chosen):
    """Run, save and report."""
    start = time.perf_counter()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for experiment in (real_results, evidence, small_samples):
        experiment.main(chosen)
    names = [name for name in report.PRINTED if wanted(name, chosen)]
    timed = [
        name for name in names if name.endswith("_speed") or name == "large_problems"
    ]
    print_programs([name for name in names if name not in timed], chosen, chosen.jobs)
    print_programs(timed, chosen, n_jobs=1)  # one after the other
    if not chosen.only or chosen.output == RESULTS:  # the pages need all results
        report.main(
            chosen.output, REFEREES if chosen.output == RESULTS else chosen.output
        )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore", CalibrationWarning)
    main(options(__doc__))
