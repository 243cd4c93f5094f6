"""Uvicorn server that closes connections if the request headers do not arrive in time."""

from __future__ import annotations

from typing import Any

import uvicorn

_HEAD = 30.0  # maximum number of seconds for receiving the headers of a request


def server_of(app: Any, **settings: Any) -> uvicorn.Server:
    """Create a server for an ASGI application.

    Parameters
    ----------
    app : ASGI application
        The application to serve.
    **settings : object
        Additional arguments of `uvicorn.Config`.

    Returns
    -------
    server : uvicorn.Server
        The configured server, which has not been started.
    """
    config = uvicorn.Config(
        app,
        backlog=4096,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=30,
        **settings,
    )
    config.load()
    config.http_protocol_class = _impatient(config.http_protocol_class)
    return uvicorn.Server(config)


def _impatient(protocol: Any) -> Any:
    """Return a subclass of a uvicorn protocol with a deadline for the request headers.

    The deadline applies to all headers of a request as a whole. The guard has separate deadlines
    for bodies, and uvicorn has a deadline for the time between two requests.
    """

    class Impatient(protocol):  # type: ignore[misc, valid-type]
        _ending: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_watching()  # The headers have arrived.
            elif self._ending is None:
                self._ending = self.loop.call_later(_HEAD, self._end_where_silent)

        def _stop_watching(self) -> None:
            if self._ending is not None:
                self._ending.cancel()
                self._ending = None

        def _end_where_silent(self) -> None:
            self.transport.close()

    return Impatient
