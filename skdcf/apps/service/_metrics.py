"""Prometheus metrics and a JSON log formatter."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

#: Upper edges of the histogram bins, in seconds.
_BIN_ENDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0]
_BIN_ENDS += [10.0, 30.0, 60.0, 120.0, 300.0, 600.0]


class Metrics:
    """Prometheus metrics for the requests and the current state of the service.

    Each process counts its requests. If the environment variable
    ``PROMETHEUS_MULTIPROC_DIR`` is set, prometheus_client sums the counts of all processes
    in that folder.

    Parameters
    ----------
    read_state : callable
        Function that computes metrics of the current state of the service.
    """

    def __init__(self, read_state: Callable[[], Iterable[Metric]]) -> None:
        self._registry = CollectorRegistry()
        self._state = _State(read_state)
        self._requests = Counter(
            "skdcf_requests",
            "Answered requests.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "skdcf_request_seconds",
            "Time from the headers of a request to the end of its reply.",
            ["route"],
            buckets=_BIN_ENDS,
            registry=self._registry,
        )

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request, and record its duration.

        Parameters
        ----------
        route : str
            Route of the request.
        status : int
            HTTP status code of the reply.
        seconds : float
            Duration of the request.
        """
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def format(self) -> bytes:
        """Return all metrics in the Prometheus text format.

        Returns
        -------
        metrics : bytes
            The metrics as text.
        """
        requests = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            requests = CollectorRegistry()
            MultiProcessCollector(requests)
        state = CollectorRegistry()
        state.register(self._state)
        return generate_latest(requests) + generate_latest(state)


class _State(Collector):
    """Collector of metrics that are computed at each scrape."""

    def __init__(self, read_state: Callable[[], Iterable[Metric]]) -> None:
        self._read_state = read_state

    def describe(self) -> Iterable[Metric]:
        """Return an empty list, so registration does not compute the metrics."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Compute the metrics."""
        return self._read_state()


class JsonFormatter(logging.Formatter):
    """Log formatter that writes each record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record.

        Parameters
        ----------
        record : LogRecord
            The record. If the only argument of a log record is a dictionary, the items of the
            dictionary are added to the JSON object.

        Returns
        -------
        line : str
            The record as a JSON object on one line.
        """
        when = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": when.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if isinstance(record.args, Mapping):
            line |= record.args
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
