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
from ._extract import make_client, read_config
from ._files import inform, own_keys, renamed

_LOG = logging.getLogger("skdcf.apps.service")


def serve(options: Any) -> None:
    """Answer requests until the process is stopped, and complete open requests before stopping."""
    read_config(options)
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
    paths = _names_of(options.models)
    filters, calibrated = _load_all(paths)
    if options.folder:
        Path(options.folder).mkdir(parents=True, exist_ok=True)
    app = create_app(
        filters,
        token=token,
        folder=options.folder,
        client=_client(options),
        model=options.model,
        answer_seconds=options.answer_seconds,
        budget=options.budget,
        cors=options.cors or (),
        rename=renamed(options, also=["answer"]),
        own=own_keys(options),
        no_claim=options.no_claim,
    )
    app.replace(filters, calibrated)
    _raise_limit_of_connections()
    if options.json_logs:
        _log_as_json()
    path = "/v1/filter" if options.base_url is None else "/v1/answer"
    inform(
        f"the service is running at http://{options.host}:{options.port}{path} (stop it "
        "with Ctrl-C)"
    )
    server = server_of(
        app,
        host=options.host,
        port=options.port,
        log_config=None if options.json_logs else LOGGING_CONFIG,
    )
    with _reloading(app, paths):
        server.run()


def _client(options: Any) -> Any:
    """Return the client that calls models, or None if ``--base-url`` is missing."""
    if options.base_url is not None:
        import openai  # noqa: F401  to fail here rather than at the first request

        return make_client(options, options.cache)
    for name in ("model", "cache", "extra", "prices", "confirm_above", "budget"):
        if getattr(options, name) is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} has no effect without --base-url, because no "
                "model is called. Pass the address of the endpoint with --base-url, or omit "
                "this option"
            )
    return None


def _names_of(models: list[str]) -> dict[str, Path]:
    """Return the path of each filter, keyed by the file name without its extension."""
    paths: dict[str, Path] = {}
    for model in models:
        name = Path(model).stem
        if name in paths:
            raise ValueError(
                f"{paths[name]} and {model} must not both have the name {name!r}. Rename one "
                "of these files"
            )
        paths[name] = Path(model)
    return paths


def _load_all(paths: dict[str, Path]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the filters, and the modification times of their files, both keyed by name."""
    filters = {name: load(path) for name, path in paths.items()}
    calibrated = {}
    for name, path in paths.items():
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        calibrated[name] = when.isoformat(timespec="seconds")
    return filters, calibrated


@contextmanager
def _reloading(app: Service, paths: dict[str, Path]) -> Iterator[None]:
    """Reload the filters on SIGHUP, but keep the previous filters if a file cannot be loaded."""

    def reload() -> None:
        try:
            app.replace(*_load_all(paths))
            _LOG.warning("the filters were reloaded")
        except Exception as error:
            reason = reworded(error, "program")
            _LOG.error(
                "the filters were not reloaded, and the previous filters stay in use: %s",
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
