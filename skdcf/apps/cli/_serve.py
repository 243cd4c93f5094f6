"""The command ``serve``, which filters answers over HTTP until the process is stopped."""

import os

import uvicorn

from ... import load
from .. import is_loopback
from ..service import create_app
from ._files import inform


def serve(options):
    """Answer requests until the process is stopped, and complete open requests before stopping."""
    token = os.environ.get(options.token_variable or "", "").strip() or None
    if token is None and (options.token_variable or not is_loopback(options.host)):
        raise ValueError(
            "--token-variable must name an environment variable that contains a token, and is "
            "required if other machines may send requests, got "
            f"{options.token_variable!r} and --host {options.host}"
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
