"""Routes of the service."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from ..web.guard import LINES
from ..web.refusal import RefusedError, fault_of, read_object
from ._models import (
    Decided,
    Filtered,
    FilterRequest,
    Health,
    Labelled,
    LabelRequest,
    Refusal,
    Status,
    StepDecided,
)
from ._served import Writing


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Parse the body as a JSON object."""
        return read_object(await self.body())


class _StrictRoute(APIRoute):
    """Route that parses the request body strictly as a JSON object."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the function that answers a request.

        Returns
        -------
        handler : callable
            The function, which is called with the request.
        """
        answer = super().get_route_handler()

        async def answer_strictly(request: Request) -> Response:
            return await answer(_StrictRequest(request.scope, request.receive))

        return answer_strictly


_REFUSED: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "model": Refusal,
        "description": "The request is refused. 400: the request is invalid. 401: the token "
        "is missing or wrong. 403: the host or origin is not allowed. 404: there is no answer "
        "with this id. 408: the request did not arrive in time. 409: the request "
        "conflicts with the current state. 413: the request is too long. 415: the content "
        "type is not supported.",
    },
    "5XX": {
        "model": Refusal,
        "description": "The request failed. 500: the service failed. 503: the service is "
        "overloaded.",
    },
}
router = APIRouter(
    route_class=_StrictRoute,
    responses=_REFUSED,
    generate_unique_id_function=lambda route: route.name,
)


def content_types(api: FastAPI) -> dict[str, str | None]:
    """Return the request content type for each path.

    Parameters
    ----------
    api : FastAPI
        The application with the routes.

    Returns
    -------
    content_types : dict
        Content types, keyed by path. The value is None for a path without a request body.
    """
    kinds: dict[str, str | None] = {}
    for path, methods in api.openapi()["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        kinds[path] = None if body is None else next(iter(body["content"]))
    return kinds | {"/": None, "/docs": None, "/openapi.json": None}


@router.get("/", include_in_schema=False)
async def show_routes() -> RedirectResponse:
    """Redirect to the page that shows all routes."""
    return RedirectResponse("docs")


@router.post("/v1/filter")
async def filter_answer(asked: FilterRequest, request: Request) -> Filtered:
    """Filter an answer, which is sent as claims or as a whole answer to be split."""
    service = request.app.state.service
    served = service.served
    decided = await asyncio.to_thread(served.decide, asked.given())
    reply = service.save(served, decided.graph, decided.kept, decided.level)
    reasons = {str(claim): reason for claim, reason in decided.reasons.items()}
    return Filtered(**reply | decided.filtered_line(), reasons=reasons)


_IN_LINES = {
    "requestBody": {
        "required": True,
        "content": {
            LINES: {
                "schema": {
                    "type": "string",
                    "description": "The first line is an object with data that is known "
                    "before the answer (question, context, feature_names, alpha, stop). "
                    "Each other line is a claim (text, parents, features).",
                }
            }
        },
    }
}


@router.post(
    "/v1/stream",
    openapi_extra=_IN_LINES,
    response_class=Response,
    responses={
        200: {
            "content": {
                LINES: {
                    "schema": {
                        "type": "string",
                        "description": 'One line per claim, {"claim": 0, "keep": true}, is '
                        "sent before the next claim is read. The last line describes the "
                        'filtered answer, or is an object with "error".',
                    }
                }
            }
        }
    },
)
async def stream_answer(request: Request) -> Response:
    """Filter an answer claim by claim while it is written.

    The filter must have been fitted with online=True.
    """
    lines = _decide_lines(request)
    return _Lines(await anext(lines), lines)


async def _decide_lines(request: Request) -> AsyncIterator[str]:
    """Yield the decision on each claim, then the filtered answer."""
    service = request.app.state.service
    lines = _read_lines(request)
    head = await anext(lines, None)
    if head is None:
        raise RefusedError(
            400,
            "the request is empty. Send an object as the first line, for example "
            '{"question": "..."}',
        )
    writing = Writing(service.served, head)
    async for claim in lines:
        keep = await asyncio.to_thread(writing.add, claim)
        yield StepDecided(claim=len(writing.mask) - 1, keep=keep).model_dump_json()
        if writing.has_stopped:
            break
    name = secrets.token_hex(12)
    service.journal.add(writing.entry(name))
    yield Decided(**writing.reply(name)).model_dump_json()


async def _read_lines(request: Request) -> AsyncIterator[dict[str, Any]]:
    """Yield the object of each line as soon as the line is complete."""
    rest = b""
    async for chunk in request.stream():
        # The last chunk is empty, so it is treated as the end of the last line.
        *lines, rest = (rest + (chunk or b"\n")).split(b"\n")
        for line in lines:
            if line.strip():
                yield read_object(line)


class _Lines(Response):
    """Streamed reply, whose lines are sent as soon as they are available.

    Parameters
    ----------
    first : str
        The first line. If an error occurs before the first line, the reply has the HTTP status of
        the error.
    lines : async iterator of str
        The other lines.
    """

    media_type = LINES

    def __init__(self, first: str, lines: AsyncIterator[str]) -> None:
        super().__init__()
        self._first = first
        self._lines = lines

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the reply.

        Parameters
        ----------
        scope : dict
            The ASGI scope.
        receive, send : callable
            The ASGI callables.
        """

        async def send_line(line: str) -> None:
            body = line.encode() + b"\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        headers = [(b"content-type", LINES.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send_line(self._first)
        try:
            async for line in self._lines:
                await send_line(line)
        except ClientDisconnect:
            return
        except Exception as error:
            _, message = fault_of(scope["path"], error)
            await send_line(Refusal(error=message).model_dump_json())
        await send({"type": "http.response.body", "body": b""})


@router.post("/v1/labels")
async def label_answer(said: LabelRequest, request: Request) -> Labelled:
    """Store an answer's claim labels, and update the monitor."""
    service = request.app.state.service
    labels = [int(label) for label in said.labels]
    # An answer without claims cannot be judged, but it is counted if it was drawn at random.
    drawn = bool(said.sampling) if labels else said.sampling == "reached"

    def save() -> Labelled:
        is_new = service.journal.label(said.id, labels, drawn)
        return Labelled(
            said="saved" if is_new else "these labels were known already",
            alarm=service.watched().monitor.alarm,
        )

    return await asyncio.to_thread(save)


@router.get("/v1/status")
async def show_status(request: Request) -> Status:
    """Return the guarantee, the counts and the state of the monitor."""
    service = request.app.state.service
    served = await asyncio.to_thread(service.watched)
    return Status(**served.describe(service.journal))


@router.get("/health")
async def health() -> Health:
    """Return whether the service is running."""
    return Health(status="ok")
