"""The labelling page: a small server on loopback, for one person at this machine.

It shows text that a model wrote, and takes labels that a guarantee rests on. So it
listens on 127.0.0.1 only, wants a secret token with every request, refuses requests that
pages of other origins send, and its page may load and run nothing but what is in it.
"""

import hmac
import json
import re
import secrets
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

from ..._checks import check_choice
from ._judging import Order
from .sources import LabelStore

_LONGEST = 2**20  # bytes of a request
_PATIENCE = 20.0  # seconds that a connection may take from beginning to end
_MOST = 64  # connections at a time; one more ends the oldest
#: The question on the page, for each meaning of a label.
MEANINGS = {
    "true": "Is the claim true, given the question and the claims that it builds on? What "
    "follows rightly from a false claim is true, and is dropped with it.",
    "supported": "Does the passage support the claim? What is true but stands nowhere in the "
    "passage, and does not follow from it, is false here.",
}
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class LabelServer(ThreadingHTTPServer):
    """Serves the labelling page for one annotator, until it is closed.

    Parameters
    ----------
    store : LabelStore
        The problems, and where judgements are saved.
    annotator : str
        Who judges.
    port : int, default=0
        0 is any that is free.
    show_known : bool, default=False
        Whether the page shows labels that the problems came with, such as a model's.
        They make people faster and less independent.
    order : Order, optional
        What is asked for, and in what order, as `RandomOrder`, `FilterOrder`,
        `Disagreements`, `BudgetOrder` and `AuditOrder`; None is the order of the problems.
    meaning : {"true", "supported"}, default="true"
        What a label says: that the claim is true, or that its context supports it.
    guideline : str, default=""
        Text that the page shows to whoever judges.
    others : tuple of str, default=()
        Annotators whose judgements the page shows beside one's own.

    Attributes
    ----------
    url : str
        Address of the page, with the token.

    Raises
    ------
    OSError
        If the port is taken.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import LabelServer, LabelStore
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 4"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LabelStore([graph], f"{folder}/labels.journal")
    ...     with LabelServer(store, "ann") as server:
    ...         print(server.url.partition("token=")[0])
    http://127.0.0.1:.../?
    """

    daemon_threads, request_queue_size = True, 128
    # On Windows two servers could have one port, and requests would reach either.
    allow_reuse_address = not hasattr(socket, "SO_EXCLUSIVEADDRUSE")

    def __init__(
        self,
        store: LabelStore,
        annotator: str,
        port: int = 0,
        *,
        show_known: bool = False,
        order: Order | None = None,
        meaning: str = "true",
        guideline: str = "",
        others: tuple[str, ...] = (),
    ):
        check_choice("meaning", meaning, tuple(MEANINGS))
        super().__init__(("127.0.0.1", port), _Handler)
        self.store = store
        self.annotator = annotator
        self.show_known = show_known
        self.order = order
        self.guideline = guideline
        self.others = others
        self.question = MEANINGS[meaning]
        self.open: dict[Any, float] = {}
        self.token = secrets.token_urlsafe(24)
        number = self.server_address[1]
        self.hosts = {f"127.0.0.1:{number}", f"localhost:{number}"}
        self.url = f"http://127.0.0.1:{number}/?token={self.token}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()
        # Browsers open connections in advance. Left open, one would still take a judgement
        # after the caller has read what was judged.
        for request in list(self.open):
            self._end(request)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, and end the oldest of too many connections.

        Parameters
        ----------
        request : socket
            As for `socketserver.BaseServer`.
        client_address : tuple
            Likewise.
        """
        self.open[request] = time.monotonic()
        for oldest in list(self.open)[:-_MOST]:
            self._end(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection.

        Parameters
        ----------
        request : socket
            As for `socketserver.BaseServer`.
        """
        self.open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that have not sent their request for too long."""
        late = time.monotonic() - _PATIENCE
        for request, since in list(self.open.items()):
            if since < late:
                self._end(request)

    def _end(self, request):
        self.open.pop(request, None)
        with suppress(OSError):  # its thread has closed it meanwhile
            request.shutdown(socket.SHUT_RDWR)  # whoever reads from it goes on

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that closes a connection is no error.

        Parameters
        ----------
        request : socket
            As for `socketserver.BaseServer`.
        client_address : tuple
            Likewise.
        """

    def problems(self) -> dict[str, Any]:
        """Return what the page shows: problems, judgements, and the version of these.

        Returns
        -------
        dict
            Values that JSON has, as the page reads them.
        """
        version = self.store.version
        rows = [self._shown(i, graph) for i, graph in enumerate(self.store.graphs)]
        page_settings = {
            k: getattr(self, k) for k in ("annotator", "question", "guideline")
        }
        page_settings["purpose"] = self.store.purpose
        if self.order:
            page_settings |= {"done": self.order.done} | self.asked()
            page_settings["one_false_ends"] = self.order.one_false_ends
            masks = self.order.masks(self.store)
            for row, mask in zip(rows, masks or (), strict=bool(masks)):
                row["kept"] = mask
        return {**page_settings, "version": version, "problems": rows}

    def asked(self, problem: int | None = None) -> dict[str, Any]:
        """Return what to judge next, if there is an order that says so.

        Parameters
        ----------
        problem : int, optional
            The one of which a claim was judged just now.

        Returns
        -------
        dict
            Empty, or with ``ask``, pairs of a problem and its claims; ``progress``, a
            sentence or None; and ``kept``, what is kept of ``problem`` now, if the page is
            about that.
        """
        if not self.order:
            return {}
        asked: dict[str, Any] = {"ask": self.order(self.store, self.annotator)}
        asked["progress"] = self.order.progress(self.store)
        masks = self.order.masks(self.store)
        if masks and problem is not None:
            asked["kept"] = masks[problem]
        return asked

    def _shown(self, i, graph):
        store = self.store
        by = self.annotator
        known_labels = store.known if self.show_known else None
        return {
            "id": graph.id,
            "problem": graph.problem,
            "answer": (graph.metadata or {}).get("answer"),
            "claims": list(graph.claims),
            "context": list(graph.context or ()),
            "math": list(map(_split_formulas, (graph.problem, *graph.claims))),
            "known": None
            if known_labels is None
            else [int(k) for k in known_labels[i]],
            "said": store.said(i, by),
            "notes": store.notes(i, by),
            "edges": store.edges(i, by),
            "edges_read": graph.edges_known or graph.n_claims < 2,
            "edges_known": store.edges_known(i, by) or graph.n_claims < 2,
            "others": {name: store.said(i, name) for name in self.others},
        }


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    protocol_version = "HTTP/1.0"  # no connection outlives the server
    server_version, sys_version = "skdcf", ""
    timeout = _PATIENCE

    def log_message(self, *args):
        """Nothing: the token stands in addresses."""

    def send_error(self, code, message=None, explain=None):
        """A line of text in the place of the page of the standard library."""
        self._send(code, "text/plain", f"{message or 'not possible here'}".encode())

    def do_GET(self):
        if not self._admitted():
            return
        route = urlsplit(self.path).path
        routes = {
            "/": self._page,
            "/problems": lambda: self._json(self.server.problems()),
            "/version": self._version,
        }
        routes.get(route, lambda: self._send(404, "text/plain", b"not found"))()

    def do_POST(self):
        if not self._admitted(changes=True):
            return
        store = self.server.store
        by = self.server.annotator
        try:
            message = self._body()
            route = urlsplit(self.path).path
            if route == "/edges-known":
                store.state_edges_known(message["known"], by=by)
            elif route == "/edges":
                store.correct_edges(message["problem"], message["edges"], by=by)
            elif route == "/note":
                store.note(message["problem"], message["claim"], message["note"], by=by)
            else:
                store.label(
                    message["problem"],
                    message["claim"],
                    message["label"],
                    by=by,
                    seconds=message.get("seconds"),
                )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._send(400, "text/plain", f"{error}".encode())
            return
        problem = message.get("problem")
        self._json({"version": store.version, **self.server.asked(problem)})

    def do_OPTIONS(self):
        """No other origin may send anything."""
        self._send(403, "text/plain", b"no other origin is accepted")

    def _admitted(self, changes=False):
        """Tell whether the request comes from our own page; answer it where it does not."""
        hosts = self.server.hosts
        headers = self.headers
        host = headers.get("Host", "")
        token = headers.get("X-Token")
        if token is None and not changes:  # in the address, where nothing is changed
            token = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        token_sent = (token or "").encode()
        server_token = self.server.token.encode()
        kind = headers.get("Content-Type", "").partition(";")[0]
        origin = headers.get("Origin", host)
        site = headers.get("Sec-Fetch-Site", "none")
        expected = {
            "the host is none of this server": host in hosts,
            "no other origin is accepted": origin.removeprefix("http://") in hosts,
            "no other site is accepted": site in ("none", "same-origin"),
            "the token is missing or wrong": hmac.compare_digest(
                token_sent, server_token
            ),
            "only JSON is accepted": not changes or kind == "application/json",
        }
        reason = next((text for text, is_so in expected.items() if not is_so), None)
        if reason:
            self._send(403, "text/plain", reason.encode())
        return not reason

    def _body(self):
        length = int(self.headers.get("Content-Length", 0))
        if not 0 <= length <= _LONGEST:
            raise ValueError("the request is too long")
        message = json.loads(self.rfile.read(length))
        if not isinstance(message, dict):
            raise ValueError("an object is expected")
        return message

    def _page(self):
        nonce = secrets.token_urlsafe(16)
        text = files("skdcf.apps.labelling").joinpath("page.html").read_text("utf-8")
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        body = text.replace("__NONCE__", nonce).encode()
        self._send(200, "text/html; charset=utf-8", body, policy)

    def _version(self):
        self.server.store.follow()
        self._json({"version": self.server.store.version})

    def _json(self, value):
        self._send(200, "application/json", json.dumps(value).encode())

    def _send(self, status, kind, body, policy="default-src 'none'"):
        self.send_response(status)
        headers = {**_HEADERS, "Content-Security-Policy": policy, "Content-Type": kind}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


_FORMULA = re.compile(
    r"\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\]|\\\((.{1,2000}?)\\\)|"
    r"(?<![\\$])\$(?=\S)([^$\n]{1,500}?)(?<=[^\s\\])\$(?!\d)",
    re.DOTALL,
)
#: A formula with any other element or attribute is shown as it was written: claims are
#: written by a model, and ``\\text{<script>}`` is one of the things that LaTeX can say.
_TAG = re.compile(
    "math|mrow|mi|mn|mo|mtext|mspace|msup|msub|msubsup|mfrac|msqrt|mroot|mover|munder|"
    "munderover|mtable|mtr|mtd|mstyle|mpadded|mphantom|menclose|mfenced"
)
_ATTRIBUTE = re.compile("display|mathvariant|stretchy|fence|accent|linethickness|width")


def _split_formulas(text):
    """Cut a text into strings and trees (tag, attributes, children) of MathML.

    A page builds them without reading any HTML. None where there is no formula, or where
    ``latex2mathml`` is not installed.
    """
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return None
    pieces = []
    end = 0
    for match in _FORMULA.finditer(text or ""):
        try:
            root = ElementTree.fromstring(convert(next(filter(None, match.groups()))))
            tree = _tree(root)
        except Exception:  # whatever a model wrote: it is shown as it stands
            continue
        pieces += [text[end : match.start()], tree]
        end = match.end()
    return [*pieces, text[end:]] if pieces else None


def _tree(element):
    tag = element.tag.rpartition("}")[2]
    if not _TAG.fullmatch(tag) or not all(map(_ATTRIBUTE.fullmatch, element.attrib)):
        raise ValueError(f"{tag} with {sorted(element.attrib)} is not shown")
    children = [element.text or ""]
    for child in element:
        children += [_tree(child), child.tail or ""]
    return [tag, element.attrib, [c for c in children if c]]
