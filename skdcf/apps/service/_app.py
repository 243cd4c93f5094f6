"""The ASGI application of the service."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from ..llm import AnswerReader, ChatClient, NoClaimList, no_claim_list
from ..web.guard import GONE, Guard
from ..web.refusal import RefusedError, fault_of
from ._answers import Answers
from ._journal import Journal
from ._metrics import Metrics
from ._questions import read_key
from ._routes import content_types, router
from ._runs import Runs
from ._served import Served

# Routes that do not require a token, because they do not reveal anything about the filters.
_OPEN = "/", "/health", "/ready", "/docs", "/openapi.json"
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
    rename: Mapping[str, str] | None = None,
    own: Collection[str] = (),
    no_claim: str | os.PathLike[str] | None = None,
) -> Service:
    """Create an ASGI application that filters answers.

    Parameters
    ----------
    filter : fitted filter, or dict of them
        The filters to serve. A filter fitted with ``online=True`` can also filter answers claim
        by claim. If there are several filters, each request must name one in the field
        ``"filter"``.
    token : str, optional
        Secret that each request must send as a bearer token, in the header ``Authorization``. If
        None, only requests to loopback host names are answered.
    folder : path-like, optional
        Folder of the journal. The journal contains ids, masks, labels and keyed hashes of
        questions, but no texts except those of open runs. If None, the latest 10,000 answers are
        stored in memory, and runs are not available.
    client : ChatClient, optional
        Client for the models that ``POST /v1/answer`` calls to extract and judge claims. The limits
        ``max_calls`` and ``confirm_above`` of the client apply to each answer. If None, no model
        is called.
    model : str, optional
        Model name. The default is the model used for calibration.
    answer_seconds : float, default=300.0
        Maximum time in seconds for an answer. If the time is exceeded, the reply has status 504.
    budget : float, optional
        Maximum cost per day (UTC), or maximum number of tokens per day if the client has no
        prices. Each process counts the cost since its start. Once the budget is spent, replies
        have status 429.
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
        If the token is empty or contains characters that are invalid in a header, if there is no
        filter, or if ``model`` or ``budget`` is set without ``client``. ValueError is also
        raised if ``client`` is set but a filter does not store the description of its extractor.

    Notes
    -----
    ``GET /openapi.json`` describes the requests and replies of all routes, and ``GET /docs``
    shows this description as a web page. The user guide contains examples.

    Processes that serve the same folder share answers, labels, monitors and runs.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token):
        raise ValueError("the token must be a string of printable ASCII characters")
    filters = filter if isinstance(filter, Mapping) else {"default": filter}
    answers = None
    if client is not None:
        answers = Answers(client, model, seconds=answer_seconds, budget=budget)
    elif model is not None or budget is not None:
        raise ValueError(
            "model and budget require a client that calls the model, but client is None. "
            "Pass a client, or omit model and budget"
        )
    return Service(
        filters,
        token,
        folder,
        answers=answers,
        cors=list(cors),
        reader=AnswerReader(rename or {}, own),
        no_claim=None if no_claim is None else no_claim_list(no_claim),
    )


class Service:
    """ASGI application created by `create_app`.

    Parameters
    ----------
    filters : dict
        Fitted filters, keyed by name.
    token : str or None
        Parameter of `create_app`.
    folder : path-like or None
        Parameter of `create_app`.
    answers : Answers, optional
        Object that calls the models, or None if no client was passed.
    cors : list of str, optional
        Parameter of `create_app`.
    reader : AnswerReader, optional
        Object that reads answers that were not split into claims.
    no_claim : NoClaimList, optional
        List of patterns that match sentences without a claim.
    """

    def __init__(
        self,
        filters: Mapping[str, Any],
        token: str | None,
        folder: str | os.PathLike[str] | None,
        answers: Answers | None = None,
        cors: list[str] | None = None,
        reader: AnswerReader | None = None,
        no_claim: NoClaimList | None = None,
    ) -> None:
        self._of_answers: dict[str, Any] = {"reader": reader, "no_claim": no_claim}
        self.is_public = token is None
        self.answers = answers
        self._key = read_key(token, folder)
        self.journal = Journal(folder)
        self.runs = Runs(self.journal)
        self.metrics = Metrics(self._state)
        self._lock = threading.Lock()  # The lock is held while labels are counted.
        self.served: dict[str, Served] = {}
        self.replace(filters)
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
        """Count a finished request, and log it."""
        self.metrics.count(route, status, seconds)
        line = {"route": route, "status": status, "seconds": round(seconds, 6)}
        _LOG.info("request", line | {"request": request})

    def replace(
        self, filters: Mapping[str, Any], calibrated: Mapping[str, str] | None = None
    ) -> None:
        """Replace the served filters. Requests in progress continue to use the old filters.

        Parameters
        ----------
        filters : dict
            Fitted filters, keyed by name.
        calibrated : dict, optional
            Time at which each filter was calibrated, which is returned by ``GET /health``.

        Raises
        ------
        ValueError
            If there is no filter, or if models are called but a filter does not store the
            description of its extractor. If an error is raised, the service continues to use the
            old filters.
        """
        if not filters:
            raise ValueError(
                "filters must contain at least one filter to serve, got none"
            )
        served = {}
        for name, filter in filters.items():
            when = (calibrated or {}).get(name)
            new = Served(filter, self._key, when, **self._of_answers)
            if self.answers is not None:
                new.pipeline = self.answers.pipeline(name, filter)
            old = self.served.get(name)
            if old is not None and old.digest == new.digest:
                # The filter has not changed, so its monitor retains the labels counted so far.
                old.calibrated = new.calibrated
                new = old
            elif new.not_watched:
                _LOG.warning(
                    "the filter %r is not monitored: %s", name, new.not_watched
                )
            served[name] = new
        self.served = served

    def named(self, name: str | None) -> Served:
        """Return the served filter with the given name.

        Parameters
        ----------
        name : str or None
            Name of the filter, or None if only one filter is served.

        Returns
        -------
        served : Served
            The filter with its monitor.

        Raises
        ------
        ValueError
            If no filter has this name.
        """
        served = self.served
        if name is None and len(served) == 1:
            [name] = served
        if name not in served:
            raise ValueError(
                f'"filter" must be one of {", ".join(sorted(served))}, got {name!r}'
            )
        return served[name]

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

    def watched(self) -> dict[str, Served]:
        """Update the monitors of all filters with new labels, and return the filters.

        Returns
        -------
        served : dict
            The filters, keyed by name.
        """
        served = self.served
        with self._lock:
            for served_filter in served.values():
                served_filter.catch_up(self.journal)
        return served

    def _state(self) -> Iterable[Metric]:
        """Yield Prometheus metrics for the current state of the service."""
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
        for filter, served_filter in served.items():
            counts = self.journal.count_claims(served_filter.digest)
            for was, count in zip(("kept", "dropped"), counts, strict=True):
                claims.add_metric([filter, was], count)
            for name, value in served_filter.numbers().items():
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
    "waiting": "Requests in progress in this process.",
    "streams": "Streamed answers in progress in this process.",
    "runs": "Open runs of agents.",
    "answers_being_made": "Answers in progress that call a model, in this process.",
    "calls": "Calls of the model by this process.",
    "prompt_tokens": "Tokens that this process sent to the model.",
    "completion_tokens": "Tokens that the model sent to this process.",
    "claims": "Claims of all answers, by whether they were kept or dropped.",
    "alpha": "Default level of the filter.",
    "answers_judged_total": "Judged answers that the monitor has counted.",
    "answers_with_error_total": "Judged answers with a kept false claim.",
    "monitor_wealth": "Wealth of the monitor; large values are evidence of a violation.",
    "monitor_alarm": "1 if the monitor has raised an alarm.",
    "shown_share": "Share of the judged answers with at least one kept claim.",
    "shown_share_error": "Standard error of shown_share.",
    "false_among_shown_share": "Share of the shown answers with a false claim.",
    "false_among_shown_share_error": "Standard error of false_among_shown_share.",
}


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
