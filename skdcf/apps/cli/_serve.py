"""The command ``serve``, which filters answers over HTTP until the process is stopped."""

from __future__ import annotations

import os
from typing import Any

import uvicorn

from ... import load
from ..._checks import is_loopback
from ..service import create_app
from ._files import inform


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
    app = create_app(load(options.model), token=token, folder=options.folder)
    inform(
        f"the service is running at http://{options.host}:{options.port}/v1/filter (stop it "
        "with Ctrl-C)"
    )
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=30,
    )
