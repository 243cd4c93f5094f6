"""Serve the labelling page to one annotator on this machine.

The page shows untrusted model output, and the guarantee depends on the labels that people enter
on the page. Therefore, the server listens only on 127.0.0.1, requires a secret token with every
request, and rejects requests from other origins. The content security policy of the labelling
page blocks external resources.
"""

import secrets
import socket
import threading
from typing import Any, Self

from ..._checks import check_choice
from ._judging import Order
from .sources import LabelStore

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
    show_known : bool, default=False
        Whether the page shows existing labels, such as labels assigned by a model. If existing
        labels are shown, people label faster but less independently.
    order : Order, optional
        Object that selects and sorts the claims to label, such as a `RandomOrder`, `FilterOrder`
        or `ReviewOrder`. If None, the problems are shown in the order of the store.
    meaning : {"true", "supported"}, default="true"
        Meaning of label 1: the claim is true, or the context supports the claim.
    guideline : str, default=""
        Instructions for the annotator, which are shown on the page.

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
        show_known: bool = False,
        order: Order | None = None,
        meaning: str = "true",
        guideline: str = "",
    ):
        check_choice("meaning", meaning, tuple(MEANINGS))
        self.store = store
        self.annotator = annotator
        self.show_known = show_known
        self.order = order
        self.guideline = guideline
        # The question about support is only shown for answers with a passage.
        self.question = MEANINGS["true"]
        self.question_with_passage = MEANINGS[meaning]
        self.token = secrets.token_urlsafe(24)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        # The server module is imported here because loading it is slow.
        from ..web.server import server_of
        from ._pages import make_app

        self._server = server_of(make_app(self), lifespan="off")
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

    def problems(self) -> dict[str, Any]:
        """Return the settings, problems and verdicts that the page shows.

        Returns
        -------
        page : dict
            JSON-serializable values in the format that the page expects, including the version of
            the verdicts.
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
            masks = self.order.masks()
            if masks is not None:
                for row, mask in zip(rows, masks, strict=True):
                    row["kept"] = mask.tolist()
        return {**page_settings, "version": version, "problems": rows}

    def asked(self, problem: int | None = None) -> dict[str, Any]:
        """Return the claims to judge next, as selected by ``order``.

        Parameters
        ----------
        problem : int, optional
            Position of the problem whose claim was just judged.

        Returns
        -------
        fields : dict
            The dict is empty if ``order`` is None. Otherwise, ``ask`` contains pairs of a problem
            and its claims, and ``progress`` contains a sentence or None. In a review, ``kept``
            contains the mask of the kept claims of ``problem``, unless ``problem`` is None.
        """
        if not self.order:
            return {}
        asked: dict[str, Any] = {"ask": self.order(self.store, self.annotator)}
        asked["progress"] = self.order.progress()
        masks = self.order.masks()
        if masks is not None and problem is not None:
            asked["kept"] = masks[problem].tolist()
        return asked

    def changed(self, problem: int | None = None) -> dict[str, Any]:
        """Return the response to the page after a change has been saved.

        Parameters
        ----------
        problem : int, optional
            Position of the changed problem.

        Returns
        -------
        response : dict
            The ``version`` of the verdicts, and the items returned by `asked`.
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
        }
