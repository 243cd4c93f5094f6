"""Measure the false alarms and the delays of the monitors.

    python -m benchmarks.guarantees.monitoring [--streams 10000]

A stream consists of nonconformity scores. An error is a score below the threshold (alpha = 0.1), as
in every filter. delta = 0.05.
"""

import argparse
import warnings

import numpy as np

from skdcf import HardCF
from skdcf.evaluation import coverage_interval
from skdcf.monitoring import CoverageMonitor, ExchangeabilityTest

ALPHA, DELTA, LENGTH = 0.1, 0.05, 1000
SHIFT = 0.4399  # of normal scores: 0.9 of them lie above z before, 0.8 after it


def scores(rng, n, length, change=None, decimals=None):
    """Calibration scores and those of a stream, which become smaller at the change."""
    out = rng.normal(size=n + length)
    if change is not None:
        out[n + change :] -= SHIFT
    out = out if decimals is None else out.round(decimals)
    return out[:n], out[n:]


def watch(rng, n, **more):
    """Where the coverage monitor gives its alarm, None where it does not."""
    calibration, stream = scores(rng, n, **more)
    cf = HardCF(0, alpha=ALPHA).fit(-calibration[:, None], np.zeros(n, dtype=int))
    monitor = CoverageMonitor(delta=DELTA).fit(cf)
    return monitor.update_losses(stream < cf.threshold_).alarm_at


def test(rng, n, **more):
    calibration, stream = scores(rng, n, **more)
    cf = HardCF(0, alpha=ALPHA).fit(-calibration[:, None], np.zeros(n, dtype=int))
    found = ExchangeabilityTest(delta=DELTA, random_state=rng.integers(2**31))
    return found.fit(cf).update(-stream[:, None]).alarm_at


def show_false_alarms(n_streams):
    print(f"False alarms in {n_streams:,} exchangeable streams of {LENGTH:,}")
    print("monitor                 calibration  scores      alarms  95 % interval")
    for name, run, n, decimals in (
        ("CoverageMonitor", watch, 50, None),
        ("CoverageMonitor", watch, 50, 1),
        ("CoverageMonitor", watch, 500, None),
        ("ExchangeabilityTest", test, 200, None),
        ("ExchangeabilityTest", test, 200, 1),
    ):
        rng, alarms = np.random.default_rng(n), 0
        for _ in range(n_streams):
            alarms += run(rng, n, length=LENGTH, decimals=decimals) is not None
        low, high = interval(alarms, n_streams)
        kind, share = "continuous" if decimals is None else "tied", alarms / n_streams
        print(f"{name:23} {n:11}  {kind:10}  {share:.4f}  {low:.4f} to {high:.4f}")


def interval(count, n):
    found = coverage_interval(count, n)
    return float(found[0]), float(found[1])


def show_delays(n_streams):
    print(
        f"\n{n_streams} streams each: problems until the alarm, coverage .90 before "
        "and .80 after the change"
    )
    print(
        "monitor                 calibration  change at  median   10 %   90 %   missed"
    )
    length = 4000
    for n in (200, 500, 2000):
        for change in (0, 500):
            rng = np.random.default_rng(n)
            more = {"length": length, "change": change}
            for name, run in (
                ("CoverageMonitor", watch),
                ("ExchangeabilityTest", test),
            ):
                found = [run(rng, n, **more) for _ in range(n_streams)]
                found = [at for at in found if at is None or at > change]
                missed = np.mean([at is None for at in found])
                late = [(length if at is None else at) - change for at in found]
                low, half, high = np.quantile(late, [0.1, 0.5, 0.9])
                print(
                    f"{name:23} {n:11}  {change:9}  {half:6.0f} {low:6.0f} {high:6.0f}"
                    f"   {missed:.3f}"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=10_000)
    n_streams = parser.parse_args().streams
    warnings.simplefilter("ignore")
    show_false_alarms(n_streams)
    show_delays(max(n_streams // 40, 10))


if __name__ == "__main__":
    main()
