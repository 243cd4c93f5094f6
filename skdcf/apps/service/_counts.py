"""What happened so far, in the text format of Prometheus, and lines of JSON for a log."""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

#: Upper ends of the bins of a histogram, in seconds.
_BIN_ENDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0]
_BIN_ENDS += [10.0, 30.0, 60.0, 120.0, 300.0, 600.0]


class Counts:
    """Counts of requests by route and status, and of the seconds that they took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._bins: dict[str, Counter[int]] = {}
        self._seconds: dict[str, float] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Parameters
        ----------
        route : str
        status : int
        seconds : float
        """
        self._requests[route, status] += 1
        bins = self._bins.setdefault(route, Counter())
        bins[bisect_left(_BIN_ENDS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """Write the counts as lines for a monitor.

        Yields
        ------
        str
        """
        yield "# TYPE skdcf_requests_total counter"
        for (route, status), count in sorted(self._requests.items()):
            yield line_of("requests_total", count, route=route, status=str(status))
        yield "# TYPE skdcf_request_seconds histogram"
        for route, bins in sorted(self._bins.items()):
            count = 0
            for k, end in enumerate([*map(str, _BIN_ENDS), "+Inf"]):
                count += bins[k]
                yield line_of("request_seconds_bucket", count, route=route, le=end)
            yield line_of("request_seconds_sum", self._seconds[route], route=route)
            yield line_of("request_seconds_count", count, route=route)


def line_of(name: str, value: float, **labels: str) -> str:
    """A number as a line of the format.

    Parameters
    ----------
    name : str
    value : float
    **labels : str
        What it is the number of.

    Returns
    -------
    str
    """
    pairs = ",".join(f"{key}={json.dumps(text)}" for key, text in labels.items())
    return f"skdcf_{name}{{{pairs}}} {value}" if pairs else f"skdcf_{name} {value}"


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
