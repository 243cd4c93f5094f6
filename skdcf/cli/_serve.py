"""The command ``serve``: a filter that answers over HTTP."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from .. import load
from ..service import create_app
from ._files import inform


def serve(options):
    """Answer requests until the process is ended; what runs then is finished first."""
    import uvicorn

    token = (
        options.token_variable and os.environ.get(options.token_variable, "").strip()
    )
    if options.token_variable and not token:
        raise ValueError(f"the environment variable {options.token_variable} is empty")
    if not token and not _is_here(options.host):
        raise ValueError(
            f"without a token only this machine is answered, not {options.host}: name the "
            "environment variable that holds one with --token-variable"
        )
    if options.folder:
        Path(options.folder).mkdir(parents=True, exist_ok=True)
    app = create_app(load(options.model), token=token, folder=options.folder)
    when = datetime.fromtimestamp(Path(options.model).stat().st_mtime, UTC)
    app.state.service.calibrated = when.isoformat(timespec="seconds")
    inform(f"http://{options.host}:{options.port}/v1/filter; Ctrl-C ends it")
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        access_log=False,
        log_level="warning",
        server_header=False,
        backlog=4096,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=30,
    )


def _is_here(host):
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
