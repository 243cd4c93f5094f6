"""Parallel execution of independent jobs, such as folds, levels and splits."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from ._checks import warn


def as_finished(
    jobs: Mapping[Any, Callable[[], Any]],
    n_jobs: int | None = None,
    *,
    verbose: int = 0,
    name: str = "",
    unit: str = "job",
) -> Iterator[tuple[Any, Any]]:
    """Run jobs, and yield the key and result of each job as soon as the job is finished.

    A job may run in another process, so it must not have side effects. Warnings issued by a job
    are issued again in the caller's process. If there are several jobs, each job uses one BLAS
    thread, because the last bits of a matrix product can depend on the number of threads. Results
    therefore do not depend on ``n_jobs``.

    Parameters
    ----------
    jobs : dict of callable without arguments
        The jobs. The keys of the jobs can be any hashable objects.
    n_jobs : int, optional
        Number of parallel jobs, as in scikit-learn. If there is only one job, it runs in the
        current process.
    verbose : int, default=0
        Whether to show a progress bar.
    name : str
        Title of the progress bar.
    unit : str
        Unit of the progress bar.

    Yields
    ------
    key : hashable
        The key of a finished job.
    result : object
        The value that the job returned.
    """
    results: Iterator[tuple[Any, Any]]
    if len(jobs) == 1:
        results = ((key, job()) for key, job in jobs.items())
    else:
        results = _in_parallel(jobs, n_jobs)
    if verbose:
        from tqdm.auto import tqdm

        results = tqdm(results, total=len(jobs), desc=name, unit=unit)
    yield from results


def all_finished(
    jobs: Sequence[Callable[[], Any]], n_jobs: int | None, **bar
) -> list[Any]:
    """Run jobs with `as_finished`, and return their results in job order."""
    results = dict(as_finished(dict(enumerate(jobs)), n_jobs, **bar))
    return [results[i] for i in range(len(jobs))]


def _in_parallel(jobs, n_jobs):
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for key, returned, caught in pool(delayed(_run)(*job) for job in jobs.items()):
        for warning in caught:
            warn(warning.message, warning.category)
        yield key, returned


@cache  # Finding the BLAS and OpenMP libraries takes 3 ms, so the result is cached.
def _libraries():
    return ThreadpoolController()


def _run(key, job):
    one_thread = _libraries().limit(limits=1, user_api="blas")
    with warnings.catch_warnings(record=True) as caught, one_thread:
        return key, job(), caught
