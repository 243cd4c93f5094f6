"""Every experiment, and the results page from what they saved.

    python benchmarks/run_all.py [--jobs N] [--splits N] [--output DIR] [--resume]

With another output folder the page of the documentation stays as it is, and one is
written there.
"""

import subprocess
import sys
from pathlib import Path

import ablation
import main_results
import perl_results
import report
from saving import RESULTS, options

HERE = Path(__file__).resolve().parent


def main(chosen):
    """Run, save and report."""
    chosen.output.mkdir(parents=True, exist_ok=True)
    for experiment in (perl_results, main_results, ablation):
        experiment.main(chosen)
    for name in report.PRINTED:
        printed = subprocess.run(
            [sys.executable, HERE / f"{name}.py"],
            capture_output=True,
            text=True,
            check=True,
        )
        text = chosen.output / f"{name}.txt"
        text.write_text(printed.stdout, encoding="utf-8")
    folder = (
        HERE.parent / "docs" / "guide" if chosen.output == RESULTS else chosen.output
    )
    report.main(chosen.output, folder / "results.rst")


if __name__ == "__main__":
    main(options(__doc__))
