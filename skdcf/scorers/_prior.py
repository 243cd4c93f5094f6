"""Hazards learnt on public labels, for those who have few labels of their own."""

from __future__ import annotations

import json
import os
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from .._checks import warn
from .._parameters import settings
from ..exceptions import GuaranteeWarning, ParameterWarning
from ..graphs import GraphBatch
from ..graphs.hashes import question_hashes
from ..ops.chance import chance_of_error
from ..ops.neyman_pearson import log_price
from ..training.splitting import Standardizer
from ._scorer import FitTask, Scorer
from ._tree_tables import HazardTable, design

FORMAT = "skdcf public prior 3"  # also raised when a column changes its meaning
BLOCK = 128  # claims at once, whose places in all trees stay in the cache
TELL = 10  # fewest problems that can say how far they are from the sources
# The weight of one's own log odds is pulled to the first, those of all sources together to
# the second. A mean of unsure classifiers is less sure than it could be: the sum is above 1.
PULL = 0.6, 1.0
STRENGTH = 30.0  # of this pull: some 100 claims of one's own move the weights little


@settings
class PublicPrior(Scorer):
    """Hazards that were learnt on public labels of mathematics, as they are.

    A logistic regression and boosted trees for each of five sources, which have learnt
    from some 34,000 claims in first-error and step labels, read the columns of
    `skdcf.features.reasoning_features`. The prior is their mean, in which a source weighs
    the more the better it tells errors of the others. They learn nothing from your
    problems, so that all of these calibrate. ``scorer="auto"`` blends them with hazards of
    your own, which keeps more from some fifty labels on, and leaves it out where the
    columns say that the problems are far from mathematics: see `MixtureScorer`.

    Parameters
    ----------
    file : path-like, "agreement" or None, default=None
        What ``benchmarks/make_prior.py`` wrote. None is the prior of mathematics that
        the package holds. "agreement" is the other one, which reads eleven columns of
        `skdcf.features.AgreementFeatures`: how far other answers to the question agree
        tells errors in other domains, too. It is taken only where it is asked for.

    Attributes
    ----------
    card_ : dict
        Sources with their licences, what it was tried on, and where it fails.
    columns_ : tuple of str
        The columns that it reads.
    table_ : HazardTable
        The trees of all sources, each a forest, which read the columns in units of each
        source one after the other.
    linear_ : ndarray of shape (n_sources, n_columns + 1)
        Weights of the logistic regressions, the last one being the log odds where all
        columns are at the centre of the source.
    units_ : Standardizer
        With the centre and scale of each source.
    weights_ : ndarray of shape (n_sources,)
        Of the sources, of sum 1 but for rounding.
    centre_ : Standardizer
        With the means of the sources' centres and scales.
    questions_ : ndarray of int64
        Hashes of the source questions.
    farthest_ : float
        Distance beyond which ``"auto"`` leaves the prior out.
    true_after_error_ : float
        Share of true claims among those below a false one, in the sources.

    Warnings
    --------
    It has seen its source questions. Problems among them are set aside by a filter: they
    neither train nor calibrate. Where they are more than a fifth, the prior is refused.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import reasoning_features
    >>> from skdcf.scorers import PublicPrior
    >>> claims = ["There are 3 * 4 = 12 eggs", "Half of them are 12 / 2 = 8"]
    >>> graph = ReasoningGraph.from_parents(
    ...     [[], [0]], claims=claims, problem="Of 3 boxes with 4 eggs, half are used."
    ... )
    >>> X = reasoning_features().fit_transform([graph])
    >>> right, wrong = PublicPrior().fit(X, [1, 0]).confidence(X)
    >>> bool(right > wrong)
    True
    """

    requires_fit = False
    _parameter_constraints = {"file": [None, str, os.PathLike]}
    _opens, _ships = ("file",), "agreement"

    file: str | os.PathLike | None = None

    def fit(
        self,
        batch: GraphBatch,
        labels: NDArray | None = None,
        task: FitTask | None = None,
    ) -> Self:
        """Read the file, and check that it may be used for these problems.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : object, optional
            Not looked at.
        task : FitTask, optional
            What the filter says about the fit.

        Returns
        -------
        self
            The scorer itself, fitted.

        Raises
        ------
        ValueError
            If a column is missing, the file is of another format or was changed, or a
            question of the problems is among those that it was learnt from: a filter has
            set these aside before, unless they are more than a fifth.
        """
        self.validate()
        self.__dict__.update(self.read_file())
        self._pick(batch)
        asked = None if task is None else task.questions
        if asked is None:
            asked = question_hashes(batch)
            _warn_of_unasked(asked)
        seen = np.isin(asked, self.questions_)
        if seen.any():
            raise ValueError(
                f"the public prior was learnt from the questions of {seen.sum()} of the "
                f"{len(seen)} problems, more than the fifth up to which they are set aside. "
                "They can neither calibrate it nor show its worth: use others, or another "
                "prior (benchmarks/make_prior.py --without)"
            )
        return self

    def read_file(self) -> dict[str, Any]:
        """Read the attributes that stand in the file, or raise ValueError with the reason.

        Returns
        -------
        dict
            A value for each attribute.
        """
        shipped = files(__package__) / f"{self.file or 'public'}_prior.json"
        path = shipped if self.file in (None, self._ships) else self.file
        path = Path(str(path)).resolve()
        return read(path, path.stat().st_mtime_ns)

    def _pick(self, batch):
        """The problems with the columns of the prior, in its order, or ValueError."""
        names = list(batch.feature_names or ())
        missing = [name for name in self.columns_ if name not in names]
        if missing:
            raise ValueError(
                f"{len(missing)} of the {len(self.columns_)} columns of reasoning_features() "
                f"that the public prior reads are missing, such as {missing[0]!r}"
            )
        at = [names.index(name) for name in self.columns_]
        return batch.replace_features(batch.features[:, at], self.columns_)

    @property
    def card_(self) -> dict[str, Any]:
        """Say what the prior was learnt from and tried on, and where it fails."""
        return json.loads(self._card)

    def columns_read(self) -> tuple[str, ...] | None:
        return self.columns_

    @property
    def priors(self) -> tuple[PublicPrior, ...]:  # type: ignore[override]
        """The prior itself."""
        return (self,)

    def saw(
        self, batch: GraphBatch, asked: NDArray[np.int64] | None = None
    ) -> NDArray[np.bool_]:
        """Find the problems with a question that the prior was learnt from.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        asked : ndarray of int64, shape (n_problems,), optional
            Hashes of their questions' texts, where these are known already.

        Returns
        -------
        ndarray of bool, shape (n_problems,)
            Whether each problem was seen. Before `fit`, none of them where a column is
            missing that the prior reads: it cannot be used then.

        Warns
        -----
        GuaranteeWarning
            After `fit`, if problems have no question, by which they would be known.
        """
        asked = question_hashes(batch) if asked is None else asked
        if hasattr(self, "questions_"):
            _warn_of_unasked(asked)
            return np.isin(asked, self.questions_)
        record = self.read_file()
        usable = set(record["columns_"]).issubset(batch.feature_names or ())
        return np.isin(asked, record["questions_"]) & usable

    def distance(self, batch: GraphBatch) -> float:
        """Measure how far the problems are from those that the prior was learnt from.

        Mean over the columns of the distance between their mean and the centre of the
        sources, in deviations.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        float
            The mean distance, in deviations.
        """
        centre = self.centre_
        n = len(self.columns_)
        mean = self._pick(batch).features.mean(axis=0)
        return float(np.abs((mean - centre.mean[:n]) / centre.scale[:n]).mean())

    def reason_against(self, batch: GraphBatch) -> str:
        """Say why problems are too far from those that the prior was learnt from.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        str
            Empty where they are not.
        """
        if (distance := self.distance(batch)) <= self.farthest_:
            return ""
        bound = f"more than the {self.farthest_:.3f} up to which it may help"
        return f"the problems are {distance:.3f} deviations from its sources, {bound}"

    def warn_of(self, apart: GraphBatch, questions: NDArray | None) -> None:
        """Warn of problems that are too far away, or that the prior may have been learnt from.

        Parameters
        ----------
        apart : GraphBatch
            Problems that do not calibrate; where they are enough, they tell how far.
        questions : ndarray of int64, optional
            Hashes of the questions of all problems, -1 where there is none.
        """
        _warn_of_unasked(questions)
        if len(apart) >= TELL and (reason := self.reason_against(apart)):
            warn(f"the public prior may keep few claims: {reason}", ParameterWarning)

    def hazard(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Log odds that a claim is false, given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        ndarray of shape (n_claims,)
            The log odds of each claim.
        """
        return self.weights_ @ self.hazards(batch)

    def hazards(self, batch: GraphBatch) -> NDArray[np.float64]:
        """The log odds that each source gives; `hazard` is their weighted mean.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        ndarray of shape (n_sources, n_claims)
            A row for each source, in the order of ``card_["sources"]``.
        """
        return self.log_odds(design(self._pick(batch)))

    def log_odds(self, X: NDArray) -> NDArray[np.float64]:
        """The log odds that each source gives to rows of `design`.

        Parameters
        ----------
        X : ndarray of shape (n_claims, 2 * n_columns + 1)
            Columns, their means over the problem, and the log of its number of claims.

        Returns
        -------
        ndarray of shape (n_sources, n_claims)
            The mean over the classifiers of each source.
        """
        out = np.empty((len(self.linear_), len(X)))
        for start in range(0, len(X), BLOCK):
            block = slice(start, start + BLOCK)
            units = self.units_(X[block, None])
            _, trees = self.table_.read(units.reshape(len(units), -1))
            linear = np.einsum("isj,sj->si", units, self.linear_[:, :-1])
            out[:, block] = (linear + self.linear_[:, -1:] + trees) / 2
        return out

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        q = 0.5 * self.true_after_error_
        return -log_price(self.hazard(batch), batch, q)

    def error_probability(
        self, batch: GraphBatch, kept: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Chance that something false is kept, for each answer.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        kept : ndarray of bool, shape (n_claims,)
            What is kept, closed under ancestors.

        Returns
        -------
        ndarray of float, shape (n_problems,)
            Between 0 and 1, and 0 where nothing is kept.
        """
        return chance_of_error(self.hazard(batch), kept, batch)


@cache
def read(path: Path, changed: int) -> dict[str, Any]:
    """Read the attributes of a prior from its file, or raise ValueError with the reason.

    The time at which the file was changed tells a file from another at its place.
    """
    try:
        return attributes_of(json.loads(path.read_bytes()))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no public prior: {error}") from error


def attributes_of(record: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `PublicPrior` from what stands in a file."""
    if record["format"] != FORMAT:
        raise ValueError(f"its format is {record['format']!r}, not {FORMAT!r}")
    if record["sha256"] != digest(record):
        raise ValueError("it was changed since benchmarks/make_prior.py wrote it")
    linear = _array(record["linear"])
    trees = _arrays(record["trees"])
    n_sources = len(linear)
    n = 2 * len(record["columns"]) + 1
    table = object.__new__(HazardTable)
    bare = {"weights": np.zeros(n * n_sources), "doubt": np.zeros(n_sources)}
    to_left = np.array(trees["down"])  # to the left child, 0 at a leaf
    trees["down"] = _array(to_left + np.arange(len(to_left)))
    table.__setstate__(trees | bare | {"offset": 0.0, "n_hazards": n_sources})
    return {
        "columns_": tuple(record["columns"]),
        "table_": table,
        "linear_": linear,
        "units_": Standardizer(**_arrays(record["units"])),
        "weights_": _array(record["weights"]),
        "centre_": Standardizer(**_arrays(record["scale"])),
        "questions_": _array(record["questions"]),
        "farthest_": float(record["farthest"]),
        "true_after_error_": float(record["true_after_error"]),
        "_card": json.dumps(record["card"]),  # in one piece, so that saving is fast
    }


def digest(record: dict[str, Any]) -> str:
    """SHA-256 of all that stands in a file except the digest itself."""
    content = {key: value for key, value in record.items() if key != "sha256"}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _arrays(record):
    return {name: _array(values) for name, values in record.items()}


def _array(values):
    """Numbers of a file, where null stands for infinity, for which JSON has no number."""
    array = np.array(values)
    if array.dtype.kind != "i" or not array.size:
        array = np.nan_to_num(array.astype(np.float64), nan=np.inf)
    elif np.abs(array).max() < 2**31:
        # Half the size, so that more of it fits into the cache.
        array = array.astype(np.int32)
    array.setflags(write=False)  # all that read the file share these arrays
    return array


def unasked(questions: NDArray | None) -> str:
    """Say how many problems have no question by which a prior would know them, if any."""
    if questions is None or not (n := np.sum(questions < 0)):
        return ""
    whether = "so that nothing tells whether the public prior was learnt from them"
    return f"{n} of {len(questions)} problems have no question, {whether}"


def _warn_of_unasked(questions):
    if reason := unasked(questions):
        what = "if it was, the promise does not hold. Pass their questions as problem="
        warn(f"{reason}: {what}", GuaranteeWarning)


def blend(own, public, false, shares):
    """Weights (b, w1, ...) of ``b + w1 own + w2 public[0] + ...`` as log odds of ``false``.

    They minimise the log loss, ``own`` being out of fold, with a pull towards ``PULL``, of
    which the sources have ``shares``, and none but b is negative. So a source that tells
    little of these problems comes to weigh less. Then all but b are scaled to the sum of
    ``PULL``: what is known of a claim from two thirds of the problems is less than from
    all, and prices from log odds that are drawn together keep less (measured).
    """
    columns = np.vstack([np.ones(len(own)), own, public])
    pull = np.r_[PULL[0], PULL[1] * shares]

    def loss(weights):
        odds = weights @ columns
        away = weights[1:] - pull
        value = np.logaddexp(0, odds).sum() - odds[false].sum()
        slope = columns @ (expit(odds) - false)
        slope[1:] += 2 * STRENGTH * away
        return value + STRENGTH * away @ away, slope

    bounds = [(None, None), *[(0, None)] * len(pull)]
    start = np.r_[0.0, pull]
    solution = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    solution[1:] *= sum(PULL) / max(solution[1:].sum(), 1e-3)
    return solution
