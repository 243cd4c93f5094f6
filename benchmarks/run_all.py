"""Every experiment, and the results pages from what they saved.

    python benchmarks/run_all.py [--jobs N] [--splits N] [--output DIR] [--only NAME]

Cells that are done are not computed again, as long as neither the package nor the data
have changed: a run that was interrupted goes on. With another output folder the pages of
the documentation stay as they are, and others are written there. Published data that are
not there are downloaded.
"""

import subprocess
import sys
import time
import warnings
from pathlib import Path

import controls
import evidence
import real_results
import report
import small_samples
from cells import compute
from saving import RESULTS, options, wanted

from skdcf.exceptions import CalibrationWarning

HERE = Path(__file__).resolve().parent


def printed(name, program):
    """What a program prints; the text of the program is there to be told apart by."""
    out = subprocess.run(
        [sys.executable, HERE / f"{name}.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    return out.stdout


def main(chosen):
    """Run, save and report."""
    start = time.perf_counter()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for experiment in (real_results, evidence, small_samples, controls):
        experiment.main(chosen)
    for name in filter(lambda name: wanted(name, chosen), report.PRINTED):
        program = (HERE / f"{name}.py").read_text(encoding="utf-8")
        cells = {name: (printed, (name, program))}
        text = compute(chosen.output, "printed", cells, n_jobs=1)[name]
        (chosen.output / f"{name}.txt").write_text(text, encoding="utf-8")
    guide = HERE.parent / "docs" / "guide"
    if not chosen.only or chosen.output == RESULTS:  # the pages need all results
        report.main(chosen.output, guide if chosen.output == RESULTS else chosen.output)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore", CalibrationWarning)
    main(options(__doc__))
