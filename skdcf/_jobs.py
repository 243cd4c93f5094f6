"""Parallel execution of independent jobs, such as folds and splits."""

import warnings
from functools import cache

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from ._checks import warn

# Finding the BLAS and OpenMP libraries takes 3 ms, so the result is cached.
libraries = cache(ThreadpoolController)


def run_jobs(jobs, n_jobs=None, verbose=0):
    """Run jobs, in parallel if requested, and return their results in order.

    A job may run in another process, so it must not have side effects. Warnings issued by a job
    are issued again in the caller's process. If there are several jobs, each job uses one BLAS
    thread, because the last bits of a matrix product can depend on the number of threads. Results
    therefore do not depend on ``n_jobs``.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    results = []
    pool = Parallel(n_jobs=n_jobs, verbose=verbose)
    for result, caught in pool(map(delayed(_run), jobs)):
        for warning in caught:
            warn(warning.message, warning.category)
        results.append(result)
    return results


def _run(job):
    one_thread = libraries().limit(limits=1, user_api="blas")
    with warnings.catch_warnings(record=True) as caught, one_thread:
        return job(), caught
