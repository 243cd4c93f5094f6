"""The ASGI application of the service."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from ..._checks import is_loopback
from ..._version import __version__
from ...graphs import ReasoningGraph
from ..llm import AnswerReader, NoClaimList, no_claim_list
from ..web.guard import GONE, Guard
from ..web.refusal import RefusedError, fault_of
from ._journal import Journal
from ._questions import read_key
from ._routes import content_types, router
from ._served import Served

# Routes that do not require a token, because they do not reveal anything about the filter.
_OPEN = "/", "/health", "/docs", "/openapi.json"
_LOG = logging.getLogger("skdcf.apps.service")


def create_app(
    filter: Any,
    *,
    token: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    cors: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    own: Collection[str] = (),
    no_claim: str | os.PathLike[str] | None = None,
) -> Service:
    """Create an ASGI application that filters answers.

    Parameters
    ----------
    filter : fitted filter
        The filter to serve. A filter fitted with ``online=True`` can also filter answers claim by
        claim.
    token : str, optional
        Secret that each request must send as a bearer token, in the header ``Authorization``. If
        None, only requests to loopback host names are answered.
    folder : path-like, optional
        Folder of the journal. The journal contains ids, masks, labels and keyed hashes of
        questions, but no texts. If None, the latest 10,000 answers are stored in memory.
    cors : sequence of str, default=()
        Origins of web pages that may call the service, for example
        ``https://app.example``.
    rename : dict, optional
        For ``POST /v1/filter``, a mapping from keys or paths in the request to keys of the JSON
        Lines format. A key that contains a whole answer is mapped to ``answer``. For example,
        ``reply.text`` may be mapped to ``answer``.
    own : collection of str, default=()
        Keys of additional data in requests to ``POST /v1/filter``.
    no_claim : path-like, optional
        File with patterns that match sentences without a claim. The file is required if the
        calibration answers were created by ``skdcf split --no-claim``.

    Returns
    -------
    app : Service
        An ASGI application that does not require lifespan events.

    Raises
    ------
    ValueError
        If the token is empty or contains characters that are invalid in a header.

    Notes
    -----
    ``GET /openapi.json`` describes the requests and replies of all routes, and ``GET /docs``
    shows this description as a web page. The user guide contains examples.

    Processes that serve the same folder share answers, labels and monitors.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a string of printable ASCII characters")
    return Service(
        filter,
        token,
        folder,
        cors=list(cors),
        reader=AnswerReader(rename or {}, own),
        no_claim=None if no_claim is None else no_claim_list(no_claim),
    )


class Service:
    """ASGI application created by `create_app`.

    Parameters
    ----------
    filter : fitted filter
        Parameter of `create_app`.
    token : str or None
        Parameter of `create_app`.
    folder : path-like or None
        Parameter of `create_app`.
    cors : list of str, optional
        Parameter of `create_app`.
    reader : AnswerReader, optional
        Object that reads answers that were not split into claims.
    no_claim : NoClaimList, optional
        List of patterns that match sentences without a claim.
    """

    def __init__(
        self,
        filter: Any,
        token: str | None,
        folder: str | os.PathLike[str] | None,
        cors: list[str] | None = None,
        reader: AnswerReader | None = None,
        no_claim: NoClaimList | None = None,
    ) -> None:
        self._of_answers: dict[str, Any] = {"reader": reader, "no_claim": no_claim}
        self._key = read_key(token, folder)
        self.journal = Journal(folder)
        self._lock = threading.Lock()  # The lock is held while labels are counted.
        self.served: Any = None
        self.replace(filter)
        api = FastAPI(
            title="skdcf serve",
            version=__version__,
            description="Service that filters answers of language models.",
            redoc_url=None,
            swagger_ui_oauth2_redirect_url=None,
            exception_handlers={
                HTTPException: _refuse,
                RequestValidationError: _refuse,
                ValueError: _refuse,
                Exception: _refuse,
                ClientDisconnect: _leave,
            },
        )
        api.state.service = self
        security = [] if token is None else [Security(HTTPBearer(auto_error=False))]
        api.include_router(router, dependencies=security)
        self.api = api
        admission = _Admission(token, cors or [])
        self.guard = Guard(api, content_types(api), admission.check, self._report)
        self._app: Any = self.guard
        if cors:
            self._app = CORSMiddleware(
                self.guard,
                allow_origins=cors,
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
                expose_headers=["X-Request-ID"],
            )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request according to the ASGI protocol.

        Parameters
        ----------
        scope : dict
            ASGI connection scope.
        receive, send : callable
            ASGI channels.
        """
        await self._app(scope, receive, send)

    def _report(self, route: str, status: int, seconds: float, request: str) -> None:
        """Log a finished request."""
        line = {"route": route, "status": status, "seconds": round(seconds, 6)}
        _LOG.info("request", line | {"request": request})

    def replace(self, filter: Any, calibrated: str | None = None) -> None:
        """Replace the served filter. Requests in progress continue to use the old filter.

        Parameters
        ----------
        filter : fitted filter
            The new filter.
        calibrated : str, optional
            Time at which the filter was calibrated, which is returned by ``GET /v1/status``.
        """
        new = Served(filter, self._key, calibrated, **self._of_answers)
        old = self.served
        if old is not None and old.digest == new.digest:
            # The filter has not changed, so its monitor retains the labels counted so far.
            old.calibrated = calibrated
        else:
            if new.not_watched:
                _LOG.warning("the filter is not monitored: %s", new.not_watched)
            self.served = new

    def save(
        self,
        served: Served,
        graph: ReasoningGraph,
        kept: NDArray[np.bool_],
        level: float,
    ) -> dict[str, Any]:
        """Store an answer in the journal, and return the fields of the reply.

        Parameters
        ----------
        served : Served
            The filter that made the decision.
        graph : ReasoningGraph
            The answer.
        kept : ndarray of bool
            Whether each claim is kept.
        level : float
            The level of the decision.

        Returns
        -------
        reply : dict
            The fields of `_models.Decided`.
        """
        name = secrets.token_hex(12)
        decided: dict[str, Any] = {"level": level, "passes": served.passes(graph)}
        self.journal.add(served.entry(name, graph, kept, **decided))
        return served.reply(name, graph, kept, **decided, claims=graph.claims)

    def watched(self) -> Served:
        """Update the monitor with new labels, and return the served filter.

        Returns
        -------
        served : Served
            The filter with its monitor.
        """
        served = self.served
        with self._lock:
            served.catch_up(self.journal)
        return served


class _Admission:
    """Check the host, the origin and the token of each request.

    Parameters
    ----------
    token : str or None
        Secret that requests must send. If None, only requests from this machine are answered.
    origins : list of str
        Origins of web pages whose requests are answered, in addition to the service's own
        pages.
    """

    def __init__(self, token: str | None, origins: list[str]) -> None:
        self._token = token
        self._origins = origins

    def check(self, request: Request, path: str) -> None:
        """Raise RefusedError if the request must not be answered.

        Parameters
        ----------
        request : starlette.requests.Request
            The request to check.
        path : str
            Path of the request.
        """
        headers = request.headers
        host = headers.get("host", "")
        name, _, port = host.rpartition(":")
        if self._token is None and not is_loopback((name or port).strip("[]")):
            raise RefusedError(
                403,
                "without a token, the service answers only requests from this machine",
            )
        origin = headers.get("origin")
        if origin not in (None, f"http://{host}", f"https://{host}", *self._origins):
            raise RefusedError(
                403,
                f"requests from web pages of {origin} are refused. Start the service "
                f"with --cors {origin} to allow them",
            )
        if self._token is None or path in _OPEN:
            return
        authorization = headers.get("authorization", "").encode("utf-8")
        if not secrets.compare_digest(authorization, f"Bearer {self._token}".encode()):
            raise RefusedError(401, "the token is missing or wrong")


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the reply to a failed request."""
    status, message = fault_of(request.url.path, error)
    return JSONResponse({"error": message}, status, getattr(error, "headers", None))


async def _leave(*_: Any) -> Response:
    """Return an empty reply to a request whose client has disconnected."""
    return Response(status_code=GONE)
