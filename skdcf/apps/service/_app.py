"""The service as an ASGI application: what it serves, and how it is put together."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from numpy.typing import NDArray
from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from ..._checks import is_loopback
from ..._version import __version__
from ...graphs import ReasoningGraph
from ..llm import ChatClient
from ..web.guard import GONE, Guard
from ..web.refusal import RefusedError, fault_of
from ._answers import Answers
from ._journal import Journal
from ._metrics import Metrics
from ._questions import read_key
from ._routes import content_types, router
from ._runs import Runs
from ._served import Served

# Routes that answer everybody, since they say nothing about what is served.
_OPEN = "/health", "/ready", "/docs", "/openapi.json"
_LOG = logging.getLogger("skdcf.apps.service")


def create_app(
    filter: Any,
    *,
    token: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    client: ChatClient | None = None,
    model: str | None = None,
    answer_seconds: float = 300.0,
    budget: float | None = None,
    cors: Sequence[str] = (),
) -> Service:
    """Make an ASGI application that filters answers.

    Parameters
    ----------
    filter : fitted filter, or dict of them
        Decides about the claims; with ``online=True`` also as they come in. Of several,
        by name, a request says by ``"filter"`` which one it means.
    token : str, optional
        Secret that each request has to send as ``Authorization: Bearer TOKEN``. Without
        one, only requests to this machine's own names are answered.
    folder : path-like, optional
        Where the journal stands, which holds ids, masks, labels and keyed hashes of the
        questions, and no text but that of open runs. None keeps the newest 10,000 answers
        until the process ends, and no runs.
    client : ChatClient, optional
        Where the models are that extract claims and judge them, for ``POST /v1/answer``.
        Its ``max_calls`` and ``confirm_above`` bound each answer. None calls no model.
    model : str, optional
        Name of the model. None is that of calibration.
    answer_seconds : float, default=300.0
        Longest time for an answer; after it the reply is 504.
    budget : float, optional
        Cost of a day (UTC), or tokens where the client knows no prices, after which no
        answer is begun (429). It counts from the start of the process.
    cors : sequence of str, default=()
        Origins of web pages that may call the service, such as ``https://app.example``.

    Returns
    -------
    Service
        An ASGI application, which needs no lifespan.

    Raises
    ------
    ValueError
        If the token is empty, or holds characters that no header can; if there is no
        filter, or one that does not know what extracted its claims beside a client; or if
        what is about models is set without a client.

    Notes
    -----
    ``GET /openapi.json`` describes all routes with what they take and give, and
    ``GET /docs`` shows it as a page. The user guide has examples.

    Processes that serve the same folder share its answers, labels, monitors and runs.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a text of printable ASCII characters")
    filters = filter if isinstance(filter, Mapping) else {"default": filter}
    answers = None
    if client is not None:
        answers = Answers(client, model, seconds=answer_seconds, budget=budget)
    elif model is not None or budget is not None:
        raise ValueError(
            "model and budget are about models that are asked, but there is no client: pass "
            "one, or leave them out"
        )
    return Service(filters, token, folder, answers=answers, cors=list(cors))


class Service:
    """The application that `create_app` makes.

    Parameters
    ----------
    filters : dict
        Fitted filters by name.
    token : str or None
        As for `create_app`.
    folder : path-like or None
        As for `create_app`.
    answers : Answers, optional
        Asks models, where there are some.
    cors : list of str, optional
        As for `create_app`.
    """

    def __init__(
        self,
        filters: Mapping[str, Any],
        token: str | None,
        folder: str | os.PathLike[str] | None,
        answers: Answers | None = None,
        cors: list[str] | None = None,
    ) -> None:
        self.is_public = token is None
        self.answers = answers
        self._key = read_key(token, folder)
        self.journal = Journal(folder)
        self.runs = Runs(self.journal)
        self.metrics = Metrics(self._state)
        self._lock = threading.Lock()  # held while labels are counted
        self.served: dict[str, Served] = {}
        self.replace(filters)
        api = FastAPI(
            title="skdcf serve",
            version=__version__,
            description="Filters answers of language models.",
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
        """Answer one request, as any ASGI server asks for it.

        Parameters
        ----------
        scope : dict
            As ASGI has it.
        receive, send : callable
            Likewise.
        """
        await self._app(scope, receive, send)

    def _report(self, route: str, status: int, seconds: float, request: str) -> None:
        """Count a request that has ended, and write it to the log."""
        self.metrics.count(route, status, seconds)
        line = {"route": route, "status": status, "seconds": round(seconds, 6)}
        _LOG.info("request", line | {"request": request})

    def replace(
        self, filters: Mapping[str, Any], calibrated: Mapping[str, str] | None = None
    ) -> None:
        """Put other filters in the place of these; requests that run go on with the old.

        Parameters
        ----------
        filters : dict
            Fitted filters by name.
        calibrated : dict, optional
            When each was made, for ``GET /health``.

        Raises
        ------
        ValueError
            If there is none, or one that a model cannot work for; then the old ones stay.
        """
        if not filters:
            raise ValueError("there is no filter to serve: pass at least one")
        served = {}
        for name, filter in filters.items():
            new = Served(filter, self._key, (calibrated or {}).get(name))
            if self.answers is not None:
                new.pipeline = self.answers.pipeline(name, filter)
            old = self.served.get(name)
            if old is not None and old.digest == new.digest:
                # It is the same one, which has counted already.
                old.calibrated = new.calibrated
                new = old
            elif new.not_watched:
                _LOG.warning("filter %r is not watched: %s", name, new.not_watched)
            served[name] = new
        self.served = served

    def named(self, name: str | None) -> Served:
        """The filter that a request means.

        Parameters
        ----------
        name : str or None
            None is the only one that there is.

        Returns
        -------
        Served
            The filter with what is kept beside it.

        Raises
        ------
        ValueError
            If there is none of this name.
        """
        served = self.served
        if name is None and len(served) == 1:
            [name] = served
        if name not in served:
            raise ValueError(
                f'"filter" is {name!r}, but must be one of {", ".join(sorted(served))}'
            )
        return served[name]

    def save(
        self,
        served: Served,
        graph: ReasoningGraph,
        kept: NDArray[np.bool_],
        level: float,
    ) -> dict[str, Any]:
        """Write an answer to the journal, and return what a reply says of it.

        Parameters
        ----------
        served : Served
            Its filter decided.
        graph : ReasoningGraph
            The answer.
        kept : ndarray of bool
            What is kept of it.
        level : float
            At which this was decided.

        Returns
        -------
        dict
            As `_models.Decided` has it.
        """
        name = secrets.token_hex(12)
        decided: dict[str, Any] = {"level": level, "passes": served.passes(graph)}
        self.journal.add(served.entry(name, graph, kept, **decided))
        return served.reply(name, graph, kept, **decided, claims=graph.claims)

    def watched(self) -> dict[str, Served]:
        """All filters that are served, whose monitors have taken in every label.

        Returns
        -------
        dict
            By their names.
        """
        served = self.served
        with self._lock:
            for one in served.values():
                one.catch_up(self.journal)
        return served

    def _state(self) -> Iterable[Metric]:
        """The state of the service as metrics."""
        gauges: dict[str, float] = {
            "waiting": self.guard.n_waiting,
            "streams": self.guard.n_streams,
            "runs": self.runs.n_open,
        }
        if self.answers is not None:
            gauges["answers_being_made"] = self.answers.n_made
            spent = self.answers.spent()
            for name in ("calls", "prompt_tokens", "completion_tokens"):
                yield CounterMetricFamily(
                    f"skdcf_model_{name}", _HELP[name], getattr(spent, name)
                )
        for name, value in gauges.items():
            yield GaugeMetricFamily(f"skdcf_{name}", _HELP[name], value)
        served = self.watched()
        claims = CounterMetricFamily(
            "skdcf_claims", _HELP["claims"], labels=["filter", "was"]
        )
        numbers: dict[str, Any] = {}
        for filter, one in served.items():
            counts = self.journal.count_claims(one.digest)
            for was, count in zip(("kept", "dropped"), counts, strict=True):
                claims.add_metric([filter, was], count)
            for name, value in one.numbers().items():
                if name not in numbers:
                    kind: Any = GaugeMetricFamily
                    if name.endswith("_total"):
                        kind = CounterMetricFamily
                    numbers[name] = kind(
                        f"skdcf_{name}", _HELP[name], labels=["filter"]
                    )
                numbers[name].add_metric([filter], value)
        yield claims
        yield from numbers.values()


_HELP = {
    "waiting": "Requests that are being answered, in this process.",
    "streams": "Answers that are being written, in this process.",
    "runs": "Runs of agents that are open.",
    "answers_being_made": "Answers for which models are asked, in this process.",
    "calls": "Calls of the model by this process.",
    "prompt_tokens": "Tokens that this process sent to the model.",
    "completion_tokens": "Tokens that the model sent to this process.",
    "claims": "Claims of all answers that were kept or dropped.",
    "alpha": "Level at which the filter decides.",
    "answers_judged_total": "Judged answers that the monitor has counted.",
    "answers_with_error_total": "Judged answers in which something false was kept.",
    "monitor_wealth": "Wealth of the monitor; large values speak against the guarantee.",
    "monitor_alarm": "1 once the monitor has given an alarm.",
    "shown_share": "Share of the judged answers of which something was kept.",
    "shown_share_error": "Standard error of the share.",
    "false_among_shown_share": "Share with something false among those shown.",
    "false_among_shown_share_error": "Standard error of the share.",
}


class _Admission:
    """Who is answered.

    Parameters
    ----------
    token : str or None
        Secret that requests have to send; None answers this machine alone.
    origins : list of str
        Origins of pages that are answered; a page of the service itself always is.
    """

    def __init__(self, token: str | None, origins: list[str]) -> None:
        self._token = token
        self._origins = origins

    def check(self, request: Request, path: str) -> None:
        """RefusedError for whoever is not answered.

        Parameters
        ----------
        request : starlette.requests.Request
        path : str
        """
        headers = request.headers
        host = headers.get("host", "")
        name, _, port = host.rpartition(":")
        if self._token is None and not is_loopback((name or port).strip("[]")):
            raise RefusedError(403, "without a token only this machine is answered")
        origin = headers.get("origin")
        if origin not in (None, f"http://{host}", f"https://{host}", *self._origins):
            raise RefusedError(
                403, f"pages of {origin} are not answered: start with --cors {origin}"
            )
        if self._token is None or path in _OPEN:
            return
        authorization = headers.get("authorization", "").encode("utf-8")
        if not secrets.compare_digest(authorization, f"Bearer {self._token}".encode()):
            raise RefusedError(401, "the token is missing or wrong")


async def _refuse(request: Request, error: Exception) -> Response:
    """The reply to a request that fails."""
    status, message = fault_of(request.url.path, error)
    return JSONResponse({"error": message}, status, getattr(error, "headers", None))


async def _leave(*_: Any) -> Response:
    """The end of a request whose client went away, and sees no reply."""
    return Response(status_code=GONE)
