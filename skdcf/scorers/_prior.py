"""Hazards learnt on public labels, for those who have few labels of their own."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from .._parameters import settings
from ..graphs.problems import question_hashes
from ..ops.price import log_price
from ..training.standardize import Standardizer
from ._scorer import Scorer, Task
from ._tables import HazardTable, design

if TYPE_CHECKING:
    from ..graphs import GraphBatch

FORMAT = "skdcf public prior 2"
# The weights of own and public log odds are pulled here. The public ones are the mean of
# several classifiers, and a mean of unsure ones is less sure than it could be.
PULL = np.array([0.5, 1.0])
STRENGTH = 30.0  # of the pull: some 100 claims of one's own move the weights little


@settings
class PublicPrior(Scorer):
    """Hazards that were learnt on public labels of mathematics, as they are.

    A logistic regression and boosted trees for each of five sources, which have learnt
    from some 34,000 claims in first-error and step labels, read the columns of
    `skdcf.features.reasoning_features`. Their mean is the prior. They learn nothing from
    your problems, so that all of these calibrate. ``scorer="auto"`` blends them with
    hazards of your own, which keeps more from some fifty labels on, and leaves it out
    where the columns say that the problems are far from mathematics: see `MixtureScorer`.

    Parameters
    ----------
    file : path-like, optional
        What ``benchmarks/make_prior.py`` wrote. None is the file of the package.

    Attributes
    ----------
    card_ : dict
        Sources with their licences, what it was tried on, and where it fails.
    columns_ : tuple of str
        The columns that it reads.
    tables_ : tuple of HazardTable
        One for each source, with its own centre and scale in the standardizer.
    centre_ : Standardizer
        With the means of the sources' centres and scales.
    questions_ : ndarray of int64
        Hashes of the source questions.
    farthest_ : float
        Distance of the farthest source, beyond which ``"auto"`` leaves the prior out.
    true_after_error_ : float
        Share of true claims among those below a false one, in the sources.

    Warnings
    --------
    It has seen its source questions, and is refused for problems among them.

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

    learns = False
    _parameter_constraints = {"file": [None, str, os.PathLike]}
    _opens = ("file",)

    file: str | os.PathLike | None = None

    def fit(
        self, batch: GraphBatch, labels: NDArray | None = None, task: Task | None = None
    ) -> Self:
        """Read the file, and check that it may be used for these problems.

        Parameters
        ----------
        batch : GraphBatch
        labels : ignored
        task : Task, optional

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a column is missing, the file is damaged, or a question of the problems is
            among those that it was learnt from.
        """
        self.validate()
        shipped = files(__package__) / "public_prior.json"
        self.__dict__.update(read(Path(str(self.file or shipped))))
        self._pick(batch)
        questions = None if task is None else task.questions
        known = self._knows(question_hashes(batch) if questions is None else questions)
        if known.any():
            raise ValueError(
                f"the public prior was learnt from the questions of {known.sum()} of the "
                f"{len(known)} problems, so that these can neither calibrate it nor show "
                "what it is worth: use other problems, or another prior (benchmarks/"
                "make_prior.py --without)"
            )
        return self

    def _knows(self, questions):
        return np.isin(questions, self.questions_)

    def _pick(self, batch):
        """The problems with the columns of the prior, in its order, or ValueError."""
        names = list(batch.feature_names or ())
        missing = [name for name in self.columns_ if name not in names]
        if missing:
            raise ValueError(
                f"the public prior reads {len(self.columns_)} columns of "
                f"reasoning_features(), and {len(missing)} of them are missing, such as "
                f"{missing[0]!r}"
            )
        at = [names.index(name) for name in self.columns_]
        return batch.replace_features(batch.features[:, at], self.columns_)

    def columns_read(self) -> tuple[str, ...] | None:
        """Names of the columns that the hazards read.

        Returns
        -------
        tuple of str
        """
        return self.columns_

    def saw(self, batch: GraphBatch) -> NDArray[np.bool_]:
        """Which problems have a question that the prior was learnt from.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return self._knows(question_hashes(batch))

    def distance(self, batch: GraphBatch) -> float:
        """How far the problems are from those that the prior was learnt from.

        Mean over the columns of the distance between their mean and the centre of the
        sources, in deviations.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        float
        """
        centre, n = self.centre_, len(self.columns_)
        mean = self._pick(batch).features.mean(axis=0)
        return float(np.abs((mean - centre.mean[:n]) / centre.scale[:n]).mean())

    def hazard(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Log odds that a claim is false, given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return mean_log_odds(self.tables_, design(self._pick(batch)))

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        q = 0.5 * self.true_after_error_
        return -log_price(self.hazard(batch), batch, q)


@cache
def read(path: Path) -> dict[str, Any]:
    """What a file of a prior holds, as attributes, or ValueError with the reason."""
    try:
        return attributes_of(json.loads(path.read_bytes()))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no public prior: {error}") from error


def attributes_of(record: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `PublicPrior` from what stands in a file."""
    if record["format"] != FORMAT:
        raise ValueError(f"its format is {record['format']!r}, not {FORMAT!r}")
    return {
        "columns_": tuple(record["columns"]),
        "tables_": tuple(_table(one) for one in record["tables"]),
        "centre_": _scale(record["scale"]),
        "questions_": np.array(record["questions"], dtype=np.int64),
        "farthest_": float(record["farthest"]),
        "true_after_error_": float(record["true_after_error"]),
        "card_": record["card"],
    }


def mean_log_odds(tables: tuple[HazardTable, ...], X: NDArray) -> NDArray[np.float64]:
    """What the classifiers of all sources say of rows of columns, on average."""
    total = np.sum([table.read(X)[0] for table in tables], axis=0)
    return total / sum(table.n_hazards for table in tables)


def _table(record):
    arrays = {k: _array(v) for k, v in record.items() if k != "scale"}
    arrays |= {k: arrays[k].item() for k in ("offset", "n_hazards")}
    table = object.__new__(HazardTable)
    table.__setstate__(arrays | {"standardizer": _scale(record["scale"])})
    return table


def _scale(record):
    return Standardizer(**{k: _array(v) for k, v in record.items()})


def _array(values):
    """Numbers of a file, where null is infinity, which JSON has no number for."""
    found = np.array(values)
    if found.dtype.kind == "i" and found.size:
        return found
    found = found.astype(np.float64)
    return np.where(np.isnan(found), np.inf, found)


def blend(own, public, false):
    """Weights (b, w1, w2) of ``b + w1 own + w2 public`` as log odds of ``false``.

    They minimise the log loss, ``own`` being out of fold, with a pull of the weights
    towards ``PULL``, and neither is negative. Then w1 and w2 are scaled to the sum of
    ``PULL``: what is known of a claim from two thirds of the problems is less than from
    all, and prices from log odds that are drawn together keep less (measured).
    """
    columns = np.column_stack([np.ones(len(own)), own, public])

    def loss(weights):
        odds, pull = columns @ weights, weights[1:] - PULL
        value = np.logaddexp(0, odds).sum() - odds[false].sum()
        slope = columns.T @ (expit(odds) - false)
        slope[1:] += 2 * STRENGTH * pull
        return value + STRENGTH * pull @ pull, slope

    bounds = [(None, None), (0, None), (0, None)]
    start = np.array([0.0, *PULL])
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    found[1:] *= PULL.sum() / max(found[1:].sum(), 1e-3)
    return found
