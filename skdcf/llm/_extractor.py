"""From problems and answers to reasoning graphs, as a scikit-learn transformer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

from sklearn.base import TransformerMixin

from .._parameters import Settings, StrOptions
from ..graphs import GraphBatch, ReasoningGraph
from ._answers import Extraction, failed_extraction, read_answers
from ._calls import CallError
from ._chat import Chat
from ._client import ChatClient, as_client
from ._decompose import Decompose
from ._deduce import DeduceGraph
from ._estimate import Estimate, check_budget, make_estimate
from ._plan import Plan
from ._sample import SampleAnswers
from ._session import gather_all
from ._step import Step, raise_first


class ClaimExtractor(TransformerMixin, Settings):
    """Turn problems and answers into reasoning graphs, with a language model.

    Each answer is cut into claims, the claims get their dependencies, the problem other
    answers, and every claim its feature columns. Each of these steps is a value with
    settings of its own, and any callable can take its place.

    Parameters
    ----------
    model : str, optional
        Name of the model, as the endpoint knows it. Only needed where a step calls one
        and has none of its own.
    client : ChatClient or callable, optional
        Where the model is; a callable gets the messages and returns a text. None is
        ``ChatClient()``: OpenAI's endpoint, or that of ``OPENAI_BASE_URL``.
    decompose : Decompose or callable, optional
        ``decompose(answer, problem)`` gives the claims, in order. None is `Decompose`.
    graph : DeduceGraph or callable, optional
        ``graph(claims, problem)`` gives the edges, as the functions of `skdcf.edges` do.
        None is `DeduceGraph`.
    sample : SampleAnswers or callable, optional
        ``sample(problem)`` gives other answers, where a problem has none yet. None draws
        none.
    features : sequence, optional
        Steps that add columns: `Frequency`, `SemanticJudge`, `DomainFlags`, `Verify`,
        `PairFeature`, or pairs ``(name, callable)``, where ``callable(graph)`` gives
        an array of shape (n_claims,). None adds none.
    on_failure : {"raise", "abstain"}
        What to do where a model gives no usable reply: raise an error when everything
        else is done, or give a graph without claims, of which nothing can be kept.
    confirm : callable, optional
        ``confirm(estimate)`` says whether a run above the client's limit may begin. None
        asks at the terminal, and says no where there is none.
    verbose : bool, default=False
        Whether to show progress.

    Attributes
    ----------
    usage_ : Usage
        What the last run cost.

    Raises
    ------
    ValueError
        On a wrong parameter or input, or a run above the limit that nobody agreed to.
    CallError
        If calls failed; replies to the others are in the client's cache.

    Notes
    -----
    Nothing is learned: `fit` only looks at the parameters. What is extracted depends on
    one answer at a time. Calibration and use must extract in the same way, with the same
    models, prompts and numbers of other answers.

    The metadata of a graph say how it was made: ``answer``, the text, and ``extraction``
    with the model, the steps and what was not as it should be.

    Texts of answers are data. They reach a model as JSON, apart from the instructions;
    of a reply only the expected fields are read; and labels never come from it.

    Examples
    --------
    >>> from skdcf.edges import chain_edges
    >>> from skdcf.llm import ClaimExtractor
    >>> def complete(messages):
    ...     return '{"claims": ["2 + 2 = 4", "so it is even"]}'
    >>> extractor = ClaimExtractor("any", complete, graph=chain_edges)
    >>> batch = extractor.fit_transform([("Is 2 + 2 even?", "It is 4, so yes.")])
    >>> batch[0].claims, batch[0].edges.tolist()
    (('2 + 2 = 4', 'so it is even'), [[0, 1]])
    """

    usage_: Any

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "model": [str, None],
        "client": [ChatClient, callable, None],
        "decompose": [Step, callable, None],
        "graph": [Step, callable, None],
        "sample": [Step, callable, None],
        "features": ["array-like", None],
        "on_failure": [StrOptions({"raise", "abstain"})],
        "confirm": [callable, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model: str | None = None,
        client: Any = None,
        *,
        decompose: Decompose | Callable | None = None,
        graph: DeduceGraph | Callable | None = None,
        sample: SampleAnswers | Callable | None = None,
        features: Sequence | None = None,
        on_failure: str = "raise",
        confirm: Callable[[Estimate], bool] | None = None,
        verbose: bool = False,
    ):
        self.model = model
        self.client = client
        self.decompose = decompose
        self.graph = graph
        self.sample = sample
        self.features = features
        self.on_failure = on_failure
        self.confirm = confirm
        self.verbose = verbose

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        as_client(self.client).validate()
        self.plan().check(self.model)

    def plan(self) -> Plan:
        """The steps, defaults spelt out.

        Returns
        -------
        object
            What does them for one answer, in a session that is open.
        """
        return Plan(
            Decompose() if self.decompose is None else self.decompose,
            DeduceGraph() if self.graph is None else self.graph,
            self.sample,
            self.features,
        )

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Look at the parameters; nothing is learned and nothing is called.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
        """
        self.validate()
        return self

    def transform(self, X: Iterable[Any]) -> GraphBatch:
        """Extract the graphs.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            Dictionaries have ``answer`` and may have ``problem``, ``id``,
            ``alternatives`` and ``metadata``.

        Returns
        -------
        GraphBatch
            One problem per answer, in their order.
        """
        return GraphBatch.pack([e.graph for e in self.extract(X)])

    def extract(self, X: Iterable[Any]) -> list[Extraction]:
        """Extract the graphs, and say what was not as it should be.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        list of Extraction
        """
        self.validate()
        answers = read_answers(X)
        check_budget(as_client(self.client), self._estimate(answers), self.confirm)
        results = self._run(answers, self.plan().extract, "extract")
        if self.on_failure == "raise":
            raise_first(results)
        pairs = zip(answers, results, strict=True)
        return [self._failed(a, r) if isinstance(r, CallError) else r for a, r in pairs]

    def add_features(self, graphs: Iterable[ReasoningGraph]) -> GraphBatch:
        """Draw other answers and make feature columns for graphs that are there.

        For graphs whose claims or edges people have corrected: what a judge said before
        no longer belongs to them.

        Parameters
        ----------
        graphs : sequence of ReasoningGraph
            With claims. Feature columns that they have are dropped.

        Returns
        -------
        GraphBatch
        """
        self.validate()
        graphs = [graph.replace(features=None, feature_names=None) for graph in graphs]
        results = self._run(graphs, self.plan().enrich, "features")
        raise_first(results)
        return GraphBatch.pack(results)

    def estimate(self, X: Iterable[Any]) -> Estimate:
        """About what a run will cost; nothing is called.

        Parameters
        ----------
        X : sequence of (problem, answer), of dict, or of Answer
            As for `transform`.

        Returns
        -------
        Estimate
        """
        self.validate()
        return self._estimate(read_answers(X))

    def _estimate(self, answers):
        client, plan, todo = as_client(self.client), self.plan(), answers
        if client.cache is not None:
            found = self._run(answers, plan.extract, None, dry=True)
            pairs = zip(answers, found, strict=True)
            todo = [answer for answer, e in pairs if isinstance(e, CallError)]
        return make_estimate(len(answers), list(map(plan.expect, todo)), client.prices)

    def _run(self, items, work, title, *, dry=False):
        """``work(chat, item)`` for each item, or the CallError that it ended with."""

        async def main(session):
            chat = Chat(session, self.model)
            shown = title if self.verbose else None
            done = await gather_all(session, items, lambda x: work(chat, x), shown)
            if not dry:
                self.usage_ = session.usage
            return done

        return as_client(self.client).run(main, dry=dry)

    def feature_names(self) -> list[str]:
        """Names of the columns that are made.

        Returns
        -------
        list of str
        """
        return self.plan().names

    def describe(self) -> dict[str, Any]:
        """With which models and prompts graphs are made, for files and reports.

        Returns
        -------
        dict
            ``model``, and in ``steps`` for each step the name of its prompt and its
            settings, or the name of its function.
        """
        return self.plan().describe(self.model)

    def _failed(self, answer, error):
        return failed_extraction(
            answer, error, self.feature_names(), self.sample is not None
        )
