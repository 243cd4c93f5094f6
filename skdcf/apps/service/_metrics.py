"""Numbers for Prometheus, and lines of JSON for a log."""

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

#: Upper ends of the bins of a histogram, in seconds.
_BIN_ENDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0]
_BIN_ENDS += [10.0, 30.0, 60.0, 120.0, 300.0, 600.0]


class Metrics:
    """Counts of requests, and the state of the service when it is asked for.

    Requests are counted by each process; with ``PROMETHEUS_MULTIPROC_DIR`` in the
    environment the processes add up theirs in that folder, as prometheus_client does.

    Parameters
    ----------
    read_state : callable
        Returns the metrics that are computed when they are asked for.
    """

    def __init__(self, read_state: Callable[[], Iterable[Metric]]) -> None:
        self._registry = CollectorRegistry()
        self._state = _State(read_state)
        self._requests = Counter(
            "skdcf_requests",
            "Requests that were answered.",
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
        """Count a request.

        Parameters
        ----------
        route : str
        status : int
        seconds : float
        """
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def format(self) -> bytes:
        """Return all numbers in the text format of Prometheus.

        Returns
        -------
        bytes
        """
        requests = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            requests = CollectorRegistry()
            MultiProcessCollector(requests)
        state = CollectorRegistry()
        state.register(self._state)
        return generate_latest(requests) + generate_latest(state)


class _State(Collector):
    """Metrics that a function computes when they are asked for."""

    def __init__(self, read_state: Callable[[], Iterable[Metric]]) -> None:
        self._read_state = read_state

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that a registry does not compute the numbers to learn their names."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Compute the metrics."""
        return self._read_state()


class JsonFormatter(logging.Formatter):
    """A formatter that writes each record of a log as an object of JSON, on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record.

        Parameters
        ----------
        record : LogRecord
            A dictionary as its only argument holds what is to stand beside the message.

        Returns
        -------
        str
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
