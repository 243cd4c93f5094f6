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

from .._parameters import settings
from ..graphs import GraphBatch
from ..graphs.hashes import question_hashes
from ..graphs.problems import Problems, pack_graphs
from ..ops.chance import chance_of_error
from ..ops.neyman_pearson import log_price
from ..training.splitting import Standardizer
from ._scorer import FitTask, Scorer
from ._tree_tables import HazardTable, design

FORMAT = "skdcf public prior 3"  # also raised when a column changes its meaning
BLOCK = 128  # claims at once, whose places in all trees stay in the cache
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
    problems, so all of these can be used for calibration. A filter uses a prior only if it
    is asked for: as its scorer, or blended with hazards of your own as ``public_prior=`` of
    `NeymanPearsonScorer` or of `StackingScorer`.

    Parameters
    ----------
    file : "mathematics", "agreement" or path-like, default="mathematics"
        "mathematics" and "agreement" are the two priors that the package holds. The second
        reads eleven columns of `skdcf.features.AgreementFeatures`: how far other answers
        to the question agree tells errors in other domains, too. A path is that of a file
        that ``benchmarks/retention/make_prior.py`` wrote.

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
    questions_ : ndarray of int64
        Hashes of the source questions.
    true_after_error_ : float
        Share of true claims among those below a false one, in the sources.

    Warnings
    --------
    The prior has seen the questions of its sources. A filter refuses problems with these
    questions; `seen` tells which to leave out.

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
    _parameter_constraints = {"file": [str, os.PathLike]}
    _opens, _ships = ("file",), ("mathematics", "agreement")

    file: str | os.PathLike = "mathematics"

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
            If a column is missing, the file is of another format or was changed.
        """
        self.validate()
        self.__dict__.update(self.read_file())
        self._pick(batch)
        return self

    def read_file(self) -> dict[str, Any]:
        """Read the attributes that stand in the file, or raise ValueError with the reason.

        Returns
        -------
        dict
            A value for each attribute.
        """
        shipped = files(__package__) / f"{self.file}_prior.json"
        path = shipped if self.file in self._ships else self.file
        path = Path(str(path)).resolve()
        return read(path, path.stat().st_mtime_ns)

    def _pick(self, batch):
        """The problems with the columns of the prior, in its order, or ValueError."""
        names = list(batch.feature_names or ())
        missing = [name for name in self.columns_ if name not in names]
        if missing:
            raise ValueError(
                f"{len(missing)} of the {len(self.columns_)} built-in columns "
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

    def seen(self, X: Problems) -> NDArray[np.bool_]:
        """Tell which problems have a question that the prior was learnt from.

        Parameters
        ----------
        X : sequence of ReasoningGraph or GraphBatch
            The problems. Questions are compared by hashes of their texts.

        Returns
        -------
        ndarray of bool, shape (n_problems,)
            True for a problem to leave out. A problem without a question counts as new.
        """
        return self.knows(question_hashes(pack_graphs(X)))

    def knows(self, questions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which hashes of texts are those of questions that the prior was learnt from.

        Parameters
        ----------
        questions : ndarray of int64, shape (n_problems,)
            From `skdcf.graphs.hashes.question_hashes`.

        Returns
        -------
        ndarray of bool, shape (n_problems,)
            Whether each question is one of them.
        """
        is_known = vars(self).get("questions_")
        if is_known is None:
            is_known = self.read_file()["questions_"]
        return np.isin(questions, is_known)

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
        raise ValueError(
            "it was changed since benchmarks/retention/make_prior.py wrote it"
        )
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
        "questions_": _array(record["questions"]),
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
