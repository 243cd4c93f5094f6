"""Serve the labelling page to one annotator on this machine.

The page shows untrusted model output, and the guarantee depends on the labels that people enter
on the page. Therefore, the server listens only on 127.0.0.1, requires a secret token with every
request, and rejects requests from other origins. The content security policy of the labelling
page blocks external resources.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from typing import Any, Self

from ..._checks import check_choice
from ..text import LAYOUT, kept_text
from ._orders import RandomOrder
from ._store import LabelStore

#: Question that the page asks for each meaning of a label.
MEANINGS = {
    "true": "Is the claim true, given the question and the claims that it depends on? A "
    "claim that follows correctly from a false claim is true. It is dropped together with the "
    "false claim.",
    "supported": "Does the passage support the claim? A true claim counts as false here if the "
    "passage does not state it and it does not follow from the passage.",
}


class LabelServer:
    """Server of the labelling page for one annotator, used as a context manager.

    Parameters
    ----------
    store : LabelStore
        Store that contains the problems and saves the verdicts in a journal.
    annotator : str
        Annotator name.
    port : int, default=0
        Port of the server. If the port is 0, any free port is used.
    order : RandomOrder, FilterOrder or ReviewOrder, optional
        Object that selects and sorts the claims to label. If None, the problems are shown in
        random order.
    meaning : {"true", "supported"}, default="true"
        Meaning of label 1: the claim is true, or the context supports the claim.

    Attributes
    ----------
    url : str
        URL of the page, including the token.
    port : int
        Port on which the server listens.

    Raises
    ------
    OSError
        If the port is already in use.

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

    def __init__(
        self,
        store: LabelStore,
        annotator: str,
        port: int = 0,
        *,
        order: RandomOrder | None = None,
        meaning: str = "true",
    ):
        check_choice("meaning", meaning, tuple(MEANINGS))
        self.store = store
        self.annotator = annotator
        self.order = order or RandomOrder()
        self.meaning = meaning
        self.token = secrets.token_urlsafe(24)
        #: The problem that each tab shows, and when the tab sent its last request.
        self._tabs: dict[str, tuple[int, float]] = {}
        self._left: dict[str, int] = {}  # the problem from which each tab went on
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        # The server is imported here because loading it is slow.
        import uvicorn

        from ._pages import make_app

        self._server = uvicorn.Server(
            uvicorn.Config(
                make_app(self),
                lifespan="off",
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=30,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        # Finish the pending requests. An open browser connection could otherwise send another
        # verdict, which the caller would never receive.
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def problems(self, tab: str, at: int) -> dict[str, Any]:
        """Return the settings, problems and verdicts that the page shows.

        Parameters
        ----------
        tab : str
            Name of the tab that sends the request.
        at : int
            Position of the problem that the tab shows.

        Returns
        -------
        page : dict
            JSON-serializable values in the format that the page expects, including the fields
            that are returned by `asked`.
        """
        rows = [self._shown(i, graph) for i, graph in enumerate(self.store.graphs)]
        asked = self.asked(tab, at)
        masks = self.order.masks()
        if masks is not None:
            for row, mask in zip(rows, masks, strict=True):
                row["kept"] = mask.tolist()
        return {
            **asked,
            "annotator": self.annotator,
            "purpose": self.store.purpose,
            # The question about support is only shown for answers with a passage.
            "question": MEANINGS["true"],
            "question_with_passage": MEANINGS[self.meaning],
            "order": self.order.order(self.store),
            "one_false_ends": self.order.one_false_ends,
            "judged": self.store.in_order(self.annotator),
            "problems": rows,
        }

    def asked(self, tab: str, at: int, changed: int | None = None) -> dict[str, Any]:
        """Return the claims to judge next in a tab, and reserve their problem for this tab.

        Parameters
        ----------
        tab : str
            Name of the tab that sends the request.
        at : int
            Position of the problem that the tab shows.
        changed : int, optional
            Position of the problem whose claim was just judged.

        Returns
        -------
        fields : dict
            ``ask`` contains pairs of a problem and its claims, without the problems that other
            tabs show. ``progress`` contains a sentence or None, ``done`` the text for an empty
            list, and ``version`` the number of events. In a review, ``kept`` contains the mask
            of the kept claims of ``changed``.
        """
        self._left.pop(tab, None)
        others = self.keep(tab, at)
        everything = self.order(self.store, self.annotator)
        ask = [row for row in everything if row[0] not in others]
        if self.store.purpose == "review":
            ask = ask[:1]
        if ask and at not in [i for i, _ in ask]:
            self.keep(tab, ask[0][0])
            self._left[tab] = at
        fields: dict[str, Any] = {"ask": ask, "progress": self.order.progress()}
        fields["done"] = self.order.done
        if everything:
            fields["done"] = "The remaining answers are open in another tab."
        fields["version"] = self.store.version
        masks = self.order.masks()
        if masks is not None and changed is not None:
            fields["kept"] = masks[changed].tolist()
        return fields

    def keep(self, tab: str, at: int) -> set[int]:
        """Reserve a problem for a tab, unless another tab has reserved it.

        Parameters
        ----------
        tab : str
            Name of the tab.
        at : int
            Position of the problem that the tab shows, or -1 if the tab is closed.

        Returns
        -------
        others : set of int
            Problems that other tabs have reserved.
        """
        now = time.monotonic()
        kept, _ = self._tabs.pop(tab, (at, now))
        if at == self._left.get(tab):
            at = (
                kept  # The request was sent before the tab went on to the next problem.
            )
        for name, (_, last_seen) in list(self._tabs.items()):
            # Hidden tabs send a request once a minute. If none comes, the answer is released.
            if now - last_seen > 150:
                del self._tabs[name]
        others = {i for i, _ in self._tabs.values()}
        if at >= 0 and at not in others:
            self._tabs[tab] = at, now
        return others

    def _shown(self, i, graph):
        from ._formulas import split_formulas

        store = self.store
        by = self.annotator
        metadata = graph.metadata or {}
        answer = metadata.get("answer")
        if isinstance(metadata.get(LAYOUT), list):
            answer = kept_text(graph, [True] * graph.n_claims)
        return {
            "problem": graph.problem,
            "answer": answer if isinstance(answer, str) else None,
            "claims": list(graph.claims),
            "context": list(graph.context or ()),
            "math": list(map(split_formulas, (graph.problem, *graph.claims))),
            "said": store.said(i, by),
            "notes": store.said(i, by, "note"),
            "edges": store.edges(i, by),
            "edges_known": graph.edges_known or graph.n_claims < 2,
        }
