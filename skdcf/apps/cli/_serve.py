"""The command ``serve``, which filters answers over HTTP until the process is stopped."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uvicorn.config import LOGGING_CONFIG

from ... import load
from ..._checks import is_loopback
from .._messages import reworded
from ..service import JsonFormatter, Service, create_app
from ..web.server import server_of
from ._files import inform, own_keys, renamed

_LOG = logging.getLogger("skdcf.apps.service")


def serve(options: Any) -> None:
    """Answer requests until the process is stopped, and complete open requests before stopping."""
    token = os.environ.get(options.token_variable or "", "").strip() or None
    if options.token_variable and not token:
        raise ValueError(
            f"the environment variable {options.token_variable} must contain the token, "
            "but the variable is empty. Set the variable to the token"
        )
    if not token and not is_loopback(options.host):
        raise ValueError(
            f"--host {options.host} requires a token, because this address allows "
            "requests from other machines. Store a token in an environment variable, and "
            "pass its name with --token-variable"
        )
    path = Path(options.model)
    filter, calibrated = _load(path)
    if options.folder:
        Path(options.folder).mkdir(parents=True, exist_ok=True)
    app = create_app(
        filter,
        token=token,
        folder=options.folder,
        cors=options.cors or (),
        rename=renamed(options, also=["answer", "logprobs"]),
        own=own_keys(options),
        no_claim=options.no_claim,
    )
    app.replace(filter, calibrated)
    _raise_limit_of_connections()
    if options.json_logs:
        _log_as_json()
    inform(
        f"the service is running at http://{options.host}:{options.port}/v1/filter (stop "
        "it with Ctrl-C)"
    )
    server = server_of(
        app,
        host=options.host,
        port=options.port,
        log_config=None if options.json_logs else LOGGING_CONFIG,
    )
    with _reloading(app, path):
        server.run()


def _load(path: Path) -> tuple[Any, str]:
    """Return the filter, and the modification time of its file."""
    when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    filter = load(path)
    filter.check_calibrated()
    return filter, when.isoformat(timespec="seconds")


@contextmanager
def _reloading(app: Service, path: Path) -> Iterator[None]:
    """Reload the filter on SIGHUP, but keep the previous filter if the file cannot be loaded."""

    def reload() -> None:
        try:
            app.replace(*_load(path))
            _LOG.warning("the filter was reloaded")
        except Exception as error:
            reason = reworded(error, "program")
            _LOG.error(
                "the filter was not reloaded, and the previous filter stays in use: %s",
                reason,
            )

    def begin(*_: Any) -> None:
        threading.Thread(target=reload, daemon=True).start()

    if not hasattr(signal, "SIGHUP"):  # Windows has no SIGHUP.
        yield
        return
    handler_before = signal.signal(signal.SIGHUP, begin)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, handler_before)


def _raise_limit_of_connections() -> None:
    """Raise the limit on open files, and therefore on connections, to the system maximum."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _log_as_json() -> None:
    """Log every record, including Python warnings, as a line of JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    _LOG.setLevel(logging.INFO)
    logging.captureWarnings(True)
