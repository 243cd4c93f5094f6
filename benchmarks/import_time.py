"""Import time of skdcf, as a ratio to that of sklearn.model_selection in one run.

Seconds are those of the processor, so that other processes hardly disturb. Seen: .97 to
1.02 in separate processes. Without the import of scikit-learn at the top of the package it
was 1.13 to 1.17: the deeper in the call stack scipy is imported, the more often CPython
allocates and frees one piece of that stack.
"""

import os
import statistics
import subprocess
import sys

CODE = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
# An installed package has its modules compiled; a checkout after the first import, if
# Python may write.
ENV = {
    key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
}
HEAVY = ("autograd", "matplotlib", "networkx", "pandas", "xgboost")


def seconds(module):
    """Seconds that one fresh interpreter takes."""
    run = [sys.executable, "-c", CODE.format(module)]
    return float(subprocess.run(run, env=ENV, capture_output=True, check=True).stdout)


def main(repeats=15):
    """Print the ratio of medians of alternating runs."""
    names = ("sklearn.model_selection", "skdcf")
    times = {name: [] for name in names}
    for name in names * (repeats + 1):
        times[name].append(seconds(name))
    medians = {name: statistics.median(rows[1:]) for name, rows in times.items()}
    for name, median in medians.items():
        print(f"{name:26s} {median:.3f} s")
    ratio = medians["skdcf"] / medians["sklearn.model_selection"]
    print(f"ratio {ratio:.2f} (bound 1.1)")
    both = [seconds(f"{names[0]}, skdcf") for _ in range(repeats)]
    print(f"both, one after the other {statistics.median(both):.3f} s")
    code = (
        "import sys, sklearn.model_selection; before = set(sys.modules); import skdcf; "
        f"print([m for m in {HEAVY} if m in set(sys.modules) - before])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True
    )
    print(
        "heavy modules imported beyond scikit-learn's:", found.stdout.decode().strip()
    )


if __name__ == "__main__":
    main()
