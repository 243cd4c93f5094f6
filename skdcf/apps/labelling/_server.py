"""The labelling page: a small server on loopback, for one person at this machine.

It shows text that a model wrote, and takes labels that a guarantee rests on. So it
listens on 127.0.0.1 only, wants a secret token with every request, refuses requests that
pages of other origins send, and its page may load and run nothing but what is in it.
"""

import secrets
import socket
import threading
from typing import Any, Self

from ..._checks import check_choice
from ...graphs.wordings import rows_of_claims
from ._judging import Order
from .sources import LabelStore

#: The question on the page, for each meaning of a label.
MEANINGS = {
    "true": "Is the claim true, given the question and the claims that it builds on? What "
    "follows rightly from a false claim is true, and is dropped with it.",
    "supported": "Does the passage support the claim? What is true but stands nowhere in the "
    "passage, and does not follow from it, is false here.",
}


class LabelServer:
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
    port : int
        Its port.

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
        self.store = store
        self.annotator = annotator
        self.show_known = show_known
        self.order = order
        self.guideline = guideline
        self.others = others
        # Whether a passage supports a claim is asked of answers that have one.
        self.question = MEANINGS["true"]
        self.question_with_passage = MEANINGS[meaning]
        self.token = secrets.token_urlsafe(24)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        # Only who shows the page waits for a web server to be imported.
        from ..web.server import server_of
        from ._pages import make_app

        self._server = server_of(make_app(self), lifespan="off")
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        # What is on its way is finished; afterwards no open connection of a browser can
        # send a judgement that the caller does not see.
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

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
            k: getattr(self, k)
            for k in ("annotator", "question", "question_with_passage", "guideline")
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

    def changed(self, problem: int | None = None) -> dict[str, Any]:
        """Return what the page is told once a change is saved.

        Parameters
        ----------
        problem : int, optional
            The one of which a claim was judged just now.

        Returns
        -------
        dict
            ``version``, and what `asked` says.
        """
        return {"version": self.store.version, **self.asked(problem)}

    def _shown(self, i, graph):
        from ._formulas import split_formulas

        store = self.store
        by = self.annotator
        known_labels = store.known if self.show_known else None
        labels = [-1] * graph.n_claims if store.known is None else store.known[i]
        return {
            "id": graph.id,
            "has_label": [int(label) >= 0 for label in labels],
            "problem": graph.problem,
            "answer": (graph.metadata or {}).get("answer"),
            "claims": list(graph.claims),
            "reworded": _about_wordings(graph),
            "context": list(graph.context or ()),
            "math": list(map(split_formulas, (graph.problem, *graph.claims))),
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


def _about_wordings(graph):
    """What the page says of each claim that has other wordings; empty of all others."""
    about = [""] * graph.n_claims
    for rows in rows_of_claims(graph):
        for v in rows:
            if v + 1 in rows:
                about[v] = (
                    f"claim {v + 2} says less: judge that first. If it is false, so is this"
                )
            elif len(rows) > 1:
                about[v] = f"the vaguest wording of claim {rows[0] + 1}: judge it first"
    return about
