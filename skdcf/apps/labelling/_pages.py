"""ASGI application of the labelling page, with its routes and access checks."""

from __future__ import annotations

import secrets
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from ._server import LabelServer


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    problem: int


class Judgement(_Strict):
    """A verdict on a claim. A word of None withdraws the previous verdict."""

    claim: int
    word: str | None


class Note(_Strict):
    """A note on a claim."""

    claim: int
    text: Annotated[str, Field(max_length=10_000)]


class Edges(_Strict):
    """The edges between the claims of a problem."""

    edges: list[list[int]]


def make_app(server: LabelServer) -> FastAPI:
    """Create the ASGI application of a labelling page.

    Parameters
    ----------
    server : LabelServer
        The server whose problems are shown and whose store saves the verdicts.

    Returns
    -------
    app : fastapi.FastAPI
        The ASGI application. Its routes run one at a time, so no verdict overtakes another.
    """
    app = FastAPI(openapi_url=None, exception_handlers={ValueError: _refuse})
    store = server.store

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Any:
        """Refuse requests that do not come from the labelling page."""
        host = request.headers.get("host")
        token = request.headers.get("x-token", "")
        # The address of the page contains the token, but GET requests do not change anything.
        if request.method == "GET":
            token = token or request.query_params.get("token", "")
        if (
            host not in (f"127.0.0.1:{server.port}", f"localhost:{server.port}")
            or request.headers.get("origin", f"http://{host}") != f"http://{host}"
            or not secrets.compare_digest(token.encode(), server.token.encode())
        ):
            detail = "only the labelling page may send requests, with its token"
            return JSONResponse({"detail": detail}, 403)
        response = await call_next(request)
        response.headers.update(
            {
                "Cache-Control": "no-store",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
            }
        )
        return response

    @app.get("/")
    async def show_page() -> HTMLResponse:
        """Return the page, with a content security policy that blocks external resources."""
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        text = files("skdcf.apps.labelling").joinpath("page.html").read_text("utf-8")
        headers = {"Content-Security-Policy": policy}
        return HTMLResponse(text.replace("__NONCE__", nonce), headers=headers)

    @app.get("/problems")
    async def show_problems(tab: str, at: int) -> JSONResponse:
        """Return the problems and the verdicts on their claims."""
        store.follow()
        return JSONResponse(server.problems(tab, at))

    @app.get("/version")
    async def show_version(tab: str, at: int) -> dict[str, int]:
        """Return the number of events in the journal, including those of other programs."""
        server.keep(tab, at)
        store.follow()
        return {"version": store.version}

    @app.post("/save")
    async def save(sent: Judgement | Note | Edges, tab: str, at: int) -> dict[str, Any]:
        """Save a change, and return the claims to judge next."""
        changes: Any = {
            Judgement: store.label,
            Note: store.note,
            Edges: store.correct_edges,
        }
        changes[type(sent)](**sent.model_dump(), by=server.annotator)
        return server.asked(tab, at, sent.problem)

    return app


async def _refuse(_, error):
    status, detail = 422, str(error)
    if isinstance(error, UnicodeError):
        status = 400
        detail = "the text contains an unpaired surrogate. Remove this character"
    return JSONResponse({"detail": detail}, status)
