"""Of what kind a problem is: a lexicon of topics, or what the caller knows."""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._checks import is_missing, warn
from .._parameters import StrOptions
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch, as_batch
from ..ops.texts import clean
from ._base import Graphs, GraphTransformer, list_columns

# One regular expression per domain, searched in the clean question. They rather say
# no, but for word_problems, which is what everyday nouns betray.
LEXICON = {
    "linear_equations": r"linear|system of equations|solve for [a-z]\b|\b\d?[a-z] [-+] "
    r"\d+ = |\bslope",
    "quadratic_equations": r"quadratic|discriminant|vieta|\b[a-z]\^\{?2\b|parabola",
    "polynomial_algebra": r"polynomial|\bfactor|\bexpand|coefficient|degree of|"
    r"\b[a-z]\^\{?[3-9]\b|remainder when",
    "rational_expressions": r"rational|\\[dt]?frac\{[^{}]*[a-z]|partial fraction|"
    r"denominator|asymptote",
    "exponents_logarithms": r"\blog|\bln\b|exponent|\bpower of|\^\{?[a-z]\b|\d\^\{?\d",
    "inequalities": r"inequalit|at least|at most|[<>≤≥]|\\[lg]eq?\b|\\[lg]t\b|"
    r"maximum|minimum|greatest|smallest|largest|least",
    "sequences_series": r"sequence|series|\bterms?\b|progression|consecutive|\\sum|"
    r"arithmetic mean|fibonacci|recursi",
    "functions": r"function|\b[fgh]\(|domain of|range of|inverse|composition",
    "word_problems": r"how many|how much|how long|how far|how old|\bcosts?\b|\bprice|"
    r"\bspend|\bsells?\b|\bsold\b|\bbuys?\b|\bbought\b|hours?\b|miles?\b|dollars?\b|"
    r"\beach\b|percent",
    "coordinate_geometry": r"coordinate|\bslope|\bmidpoint|\bpoints? \(|\\?overline|"
    r"x-axis|y-axis|intercept|distance between|plane\b",
    "abstract_algebra": r"\bgroup of order|\bring\b|\bfield\b|modul|\bmod\b|congruen|"
    r"operation|\\star|\boplus|divisib|multiplicative inverse",
    "complex_numbers": r"complex|imaginary|\b\d*i\b(?! (?:have|am|want|wish|will))|"
    r"real part|conjugate|\\omega",
    "domain_math": r"calculat|equation|solve|\bsum\b|how many|how much|\\frac|integer",
    "domain_reasoning": r"^(?>.*?\bif\b).*\bthen\b|premise|conclu|logic|deduce|true or false|"
    r"reason|step by step|what can be inferred",
    "domain_science": r"physic|chemi|biolog|\bcells?\b|energy|molecul|atom|species|"
    r"scien|gravity|temperature|electr|planet|disease|protein",
    "domain_wk": r"\bwho\b|\bwhere\b|\bwhen\b|\bwhich (?:country|city|year|person)|"
    r"histor|president|author|born|capital of|famous|world",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in LEXICON.items()}
_LONGEST = 20_000  # characters of a question that are searched


class DomainIndicators(GraphTransformer):
    """Flags for the topic of the problem, the same for all of its claims.

    Parameters
    ----------
    domains : sequence of str, optional
        Columns to add. By default the twelve mathematical topics:
        ``linear_equations``, ``quadratic_equations``, ``polynomial_algebra``,
        ``rational_expressions``, ``exponents_logarithms``, ``inequalities``,
        ``sequences_series``, ``functions``, ``word_problems``, ``coordinate_geometry``,
        ``abstract_algebra``, ``complex_numbers``. The lexicon also knows FELM's
        ``domain_math``, ``domain_reasoning``, ``domain_science``, ``domain_wk``.
    metadata : mapping, optional
        From the id of a problem to its domain, or to several. Any names may then serve
        as domains.

    Attributes
    ----------
    lexicon : dict
        The regular expression of each domain that can be recognised from text.
    topics : tuple of str
        The twelve mathematical ones of them.

    Raises
    ------
    ValueError
        If a domain is unknown, the metadata miss a problem or name an unknown domain,
        or there is neither question nor metadata.

    Notes
    -----
    In this order: the metadata where they are given; else the columns of these names
    where the data bring them all; else the lexicon, searched in the clean question.

    Topics of Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix "Feature
    Descriptions", which does not say how a topic is recognised.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import DomainIndicators
    >>> question = "Solve x^2 = 4."
    >>> graph = ReasoningGraph(None, [], claims=["x = 2"], problem=question, id=7)
    >>> topics = ["quadratic_equations", "complex_numbers"]
    >>> DomainIndicators(topics).fit_transform([graph]).features
    array([[1., 0.]])
    >>> known = DomainIndicators(["algebra"], metadata={7: "algebra"})
    >>> known.fit_transform([graph]).features
    array([[1.]])
    """

    lexicon: ClassVar[dict[str, str]] = LEXICON
    topics: ClassVar[tuple[str, ...]] = tuple(LEXICON)[:12]

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "domains": ["array-like", None],
        "metadata": [Mapping, None],
    }
    reads_edges = False

    def __init__(
        self,
        domains: Sequence[str] | None = None,
        *,
        metadata: Mapping[Hashable, str | Sequence[str]] | None = None,
    ):
        self.domains = domains
        self.metadata = metadata

    def _own_names(self) -> tuple[str, ...]:
        return self.topics if self.domains is None else tuple(self.domains)

    def _check(self, batch: GraphBatch) -> None:
        if self.metadata is not None:
            self._check_metadata(batch)
        elif not self._is_given(batch):
            self._check_texts(batch)

    def _is_given(self, batch):
        return set(self._own_names()) <= set(list_columns(batch))

    def _check_texts(self, batch):
        unknown = [name for name in self._own_names() if name not in LEXICON]
        if unknown:
            raise ValueError(
                f"the lexicon has no domain {', '.join(map(repr, unknown))}; it has "
                f"{list(LEXICON)}. For others, pass metadata={{id: domain}}"
            )
        for i in range(len(batch)):
            if batch.problems is None or not isinstance(batch.problems[i], str):
                raise ValueError(
                    f"{batch.name_of(i)} has no question text: pass problem=... or "
                    "metadata={id: domain}"
                )

    def _check_metadata(self, batch):
        names = self._own_names()
        for i in range(len(batch)):
            given = self._given(batch, i)
            unknown = [name for name in given if name not in names]
            if unknown:
                raise ValueError(
                    f"{batch.name_of(i)}: metadata name the domain {unknown[0]!r}, "
                    f"which is none of {list(names)}"
                )

    def _given(self, batch, i):
        key = None if batch.ids is None else batch.ids[i]
        if key not in self.metadata:
            raise ValueError(
                f"{batch.name_of(i)}: its id {key!r} is not in the metadata"
            )
        value = self.metadata[key]
        return (value,) if isinstance(value, str) else tuple(value)

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        names = self._own_names()
        if self.metadata is None and self._is_given(batch):
            there = list_columns(batch)
            return batch.features[:, [there.index(name) for name in names]]
        flags = np.zeros((len(batch), len(names)))
        for i in range(len(batch)):
            if self.metadata is not None:
                flags[i] = np.isin(names, self._given(batch, i))
            else:
                text = clean(batch.problems[i])[:_LONGEST]
                flags[i] = [bool(_PATTERNS[name].search(text)) for name in names]
        return flags[batch.problem_of]


class MetadataIndicators(GraphTransformer):
    """Flags for what the metadata of a problem say, such as which model wrote the answer.

    Parameters
    ----------
    keys : sequence of str, or mapping
        Keys of the metadata. A mapping gives the values of each key that get a column,
        ``{"model": ["a", "b"]}``, and nothing is learned; else those seen in `fit` do.
    unseen : {"other", "raise"}
        What happens to a value without a column: all columns of its key are 0, with a
        warning that names it, or a ValueError.

    Attributes
    ----------
    values_ : dict
        The values of each key, in the order of their columns.

    Raises
    ------
    ValueError
        If a problem lacks a key, or, where ``unseen="raise"``, has a value without a
        column.

    Notes
    -----
    How often a model is wrong is no evidence about a single claim, but strong: with the
    model's name a filter keeps 17 to 30 % more at strict levels where answers of many
    models are mixed. It has to be known in use, and what calibrates must be drawn as what
    is filtered: a model that calibration has not seen gets no promise.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import MetadataIndicators
    >>> graphs = [
    ...     ReasoningGraph(None, claims=["a"], metadata={"model": name}) for name in "xyx"
    ... ]
    >>> batch = MetadataIndicators(["model"]).fit([graphs[0], graphs[1]]).transform(graphs)
    >>> batch.feature_names
    ('model=x', 'model=y')
    >>> batch.features[:, 0]
    array([1., 0., 1.])
    """

    reads_edges = False
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "keys": [Mapping, list, tuple],
        "unseen": [StrOptions({"other", "raise"})],
    }

    def __init__(
        self,
        keys: Sequence[str] | Mapping[str, Sequence[Any]] = ("model",),
        *,
        unseen: Literal["other", "raise"] = "other",
    ):
        self.keys = keys
        self.unseen = unseen

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether the values are taken from the problems of `fit`."""
        return not isinstance(self.keys, Mapping)

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """List the values, where they are not given.

        Parameters
        ----------
        X : GraphBatch or sequence of ReasoningGraph
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a problem lacks a key.
        """
        self.validate()
        batch = as_batch(X)
        self.values_ = {
            key: sorted(set(self._read(batch, key)), key=str)
            if self.learns
            else list(self.keys[key])  # type: ignore[call-overload]
            for key in self.keys
        }
        return super().fit(batch)

    def _own_names(self) -> tuple[str, ...]:
        return tuple(f"{key}={v}" for key, some in self.values_.items() for v in some)

    def _read(self, batch, key):
        """The value of each problem, or a ValueError."""
        given = [None] * len(batch) if batch.metadata is None else batch.metadata
        for i, metadata in enumerate(given):
            if is_missing((metadata or {}).get(key)):
                raise ValueError(
                    f"{batch.name_of(i)} has no metadata {key!r}, from which a column is "
                    f"made: pass metadata={{{key!r}: ...}}"
                )
        return [metadata[key] for metadata in given]

    def _check(self, batch: GraphBatch) -> None:
        for key, known in self.values_.items():
            unseen = {v for v in self._read(batch, key) if v not in known}
            if unseen:
                message = (
                    f"metadata {key!r} has the values {sorted(unseen, key=str)}, which are "
                    f"none of {known}"
                )
                if self.unseen == "raise":
                    raise ValueError(f"{message}, those with a column")
                warn(
                    f"{message}: such problems count as others, and nothing is promised "
                    "for them unless some of them calibrated",
                    GuaranteeWarning,
                )

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        flags = [
            [value == one for value in self._read(batch, key)]
            for key, known in self.values_.items()
            for one in known
        ]
        table = np.array(flags, dtype=float).reshape(-1, len(batch)).T
        return table[batch.problem_of]
