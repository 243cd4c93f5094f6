"""A JSON log formatter."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime


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
