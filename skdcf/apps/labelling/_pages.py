"""ASGI application of the labelling page, with its routes and access checks."""

from __future__ import annotations

import secrets
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from ..web.guard import Guard
from ..web.refusal import RefusedError, fault_of

if TYPE_CHECKING:
    from ._server import LabelServer

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _Message(BaseModel):
    model_config = ConfigDict(strict=True)


class Judgement(_Message):
    """Request to save a verdict on a claim. A label of None withdraws the previous verdict."""

    problem: int
    claim: int
    label: str | None
    seconds: float | None = None


class Note(_Message):
    """Request to save a note on a claim."""

    problem: int
    claim: int
    note: str


class Edges(_Message):
    """Request to save the edges between the claims of a problem."""

    problem: int
    edges: list[list[int]]


class EdgesKnown(_Message):
    """Request to save whether the edges of all claims are known."""

    known: bool


router = APIRouter()


@router.get("/")
def show_page() -> HTMLResponse:
    """Return the labelling page, with a content security policy that blocks external resources."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    text = files("skdcf.apps.labelling").joinpath("page.html").read_text("utf-8")
    headers = {"Content-Security-Policy": policy}
    return HTMLResponse(text.replace("__NONCE__", nonce), headers=headers)


@router.get("/problems")
def show_problems(request: Request) -> JSONResponse:
    """Return the problems and the verdicts on their claims."""
    return JSONResponse(request.app.state.server.problems())


@router.get("/version")
def show_version(request: Request) -> dict[str, int]:
    """Return the number of events in the journal, including events recorded by other programs."""
    store = request.app.state.server.store
    store.follow()
    return {"version": store.version}


@router.post("/label")
def label(said: Judgement, request: Request) -> dict[str, Any]:
    """Save a verdict on a claim."""
    server = request.app.state.server
    by = server.annotator
    server.store.label(
        said.problem, said.claim, said.label, by=by, seconds=said.seconds
    )
    return server.changed(said.problem)


@router.post("/note")
def note(said: Note, request: Request) -> dict[str, Any]:
    """Save a note on a claim."""
    server = request.app.state.server
    server.store.note(said.problem, said.claim, said.note, by=server.annotator)
    return server.changed(said.problem)


@router.post("/edges")
def edges(said: Edges, request: Request) -> dict[str, Any]:
    """Save the edges between the claims of a problem."""
    server = request.app.state.server
    server.store.correct_edges(said.problem, said.edges, by=server.annotator)
    return server.changed(said.problem)


@router.post("/edges-known")
def edges_known(said: EdgesKnown, request: Request) -> dict[str, Any]:
    """Save whether the edges of all claims are known."""
    server = request.app.state.server
    server.store.state_edges_known(said.known, by=server.annotator)
    return server.changed()


def make_app(server: LabelServer) -> Guard:
    """Create the ASGI application of a labelling page.

    Parameters
    ----------
    server : LabelServer
        The server whose problems are shown and whose store saves the verdicts.

    Returns
    -------
    app : Guard
        The ASGI application, wrapped in a `Guard`.
    """
    handlers: dict[Any, Any] = dict.fromkeys(
        (HTTPException, RequestValidationError, ValueError, Exception), _refuse
    )
    api = FastAPI(openapi_url=None, exception_handlers=handlers)
    api.state.server = server
    api.include_router(router)
    kinds: dict[str, str | None] = dict.fromkeys(("/", "/problems", "/version"))
    kinds |= dict.fromkeys(
        ("/label", "/note", "/edges", "/edges-known"), "application/json"
    )
    return Guard(api, kinds, partial(_admit, server), headers=_HEADERS)


def _admit(server: LabelServer, request: Request, _: str) -> None:
    """Raise RefusedError if the request does not come from the labelling page."""
    headers = request.headers
    hosts = f"127.0.0.1:{server.port}", f"localhost:{server.port}"
    host = headers.get("host", "")
    token = headers.get("x-token")
    # GET requests do not change anything.
    if token is None and request.method == "GET":
        token = request.query_params.get("token")
    token_sent = (token or "").encode()
    expected = {
        "the Host header must name this server": host in hosts,
        "requests from other origins are not accepted": headers.get(
            "origin", f"http://{host}"
        )
        in [f"http://{name}" for name in hosts],
        "requests from other sites are not accepted": headers.get(
            "sec-fetch-site", "none"
        )
        in ("none", "same-origin"),
        "the token is missing or wrong": secrets.compare_digest(
            token_sent, server.token.encode()
        ),
    }
    for reason, is_so in expected.items():
        if not is_so:
            raise RefusedError(403, reason)


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """Return the response to a failed request."""
    status, message = fault_of(request.url.path, error)
    return JSONResponse({"error": message}, status, getattr(error, "headers", None))
