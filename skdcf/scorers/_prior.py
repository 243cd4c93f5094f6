"""Scorer with hazards fitted on public labels, for users with few labels."""

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

# Also increase the version if the meaning of a column changes.
FORMAT = "skdcf public prior 3"
# number of claims per block, chosen so that the positions of the claims in all trees fit into the
# cache
BLOCK = 128
# The weight of the user's log odds is shrunk towards the first value, and the sum of the source
# weights is shrunk towards the second value. The sum of the two values exceeds 1, because the
# average of several uncertain classifiers is underconfident.
PULL = 0.6, 1.0
# strength of the shrinkage; 100 claims from the user change the weights only slightly
STRENGTH = 30.0


@settings
class PublicPrior(Scorer):
    """Scorer with hazards that were fitted on public labels and are not trained any further.

    The default prior contains a logistic regression and boosted trees for each of five sources of
    mathematical problems. The classifiers of the default prior were trained on about 34,000
    claims with first-error and step labels, and use the columns of
    `skdcf.features.reasoning_features`. The hazard is a weighted mean over the five sources. A
    source has a larger weight if it is better at predicting errors in the other sources. No
    training takes place on your problems, so all of them can be used for calibration. A filter
    uses a public prior only if you request one. Either pass the prior as the filter's scorer, or
    blend it with hazards fitted on your labels by passing it as ``public_prior`` to
    `NeymanPearsonScorer` or `StackingScorer`.

    Parameters
    ----------
    file : "mathematics", "agreement" or path-like, default="mathematics"
        Name of the prior, or path of its file. The package contains two priors, "mathematics" and
        "agreement". The prior "agreement" uses eleven columns of
        `skdcf.features.AgreementFeatures`. The columns used by "agreement" measure how well an
        answer agrees with alternative answers, so this prior is not limited to mathematics. A
        path must point to a file written by ``benchmarks/retention/make_prior.py``.

    Attributes
    ----------
    card_ : dict
        Description of the prior, which includes its sources and their licences, evaluation data,
        and known failures.
    columns_ : tuple of str
        Names of the columns that the prior uses.
    table_ : HazardTable
        The trees of all sources, with one forest per source. The inputs of the trees are the
        columns, scaled separately for each source.
    linear_ : ndarray of shape (n_sources, n_columns + 1)
        Weights of the logistic regressions. The last weight is the log odds at the centre of the
        source's columns.
    units_ : Standardizer
        Centre and scale of each column for each source.
    weights_ : ndarray of shape (n_sources,)
        Source weights, which sum to 1 up to rounding.
    questions_ : ndarray of int64
        Hashes of the questions in the source data.
    true_after_error_ : float
        Proportion of true claims among the source claims that depend on a false claim.

    Warnings
    --------
    The prior was trained on the questions of its sources. A filter rejects problems with these
    questions. Use `seen` to find the problems to leave out.

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
        """Read the file and check that the prior can be used for the problems.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : object, optional
            Ignored.
        task : FitTask, optional
            Settings for fitting, passed by the filter.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        ValueError
            If a column is missing, if the file has an unknown format, or if the file was
            modified.
        """
        self.validate()
        self.__dict__.update(self.read_file())
        self._pick(batch)
        return self

    def read_file(self) -> dict[str, Any]:
        """Read the fitted attributes from the file, and raise ValueError if the file is invalid.

        Returns
        -------
        attributes : dict
            Attribute values, keyed by attribute name.
        """
        shipped = files(__package__) / f"{self.file}_prior.json"
        path = shipped if self.file in self._ships else self.file
        path = Path(str(path)).resolve()
        return read(path, path.stat().st_mtime_ns)

    def _pick(self, batch):
        """Return the problems with only the columns that the prior uses."""
        names = list(batch.feature_names or ())
        missing = [name for name in self.columns_ if name not in names]
        if missing:
            raise ValueError(
                f"the problems must have the {len(self.columns_)} columns of the public "
                f"prior, but {len(missing)} are missing, for example {missing[0]!r}. Compute "
                "the missing columns with skdcf.features"
            )
        at = [names.index(name) for name in self.columns_]
        return batch.replace_features(batch.features[:, at], self.columns_)

    @property
    def card_(self) -> dict[str, Any]:
        """Description of the prior's training data, evaluation data and known failures."""
        return json.loads(self._card)

    def columns_read(self) -> tuple[str, ...] | None:
        return self.columns_

    @property
    def priors(self) -> tuple[PublicPrior, ...]:  # type: ignore[override]
        """Tuple that contains only this prior."""
        return (self,)

    def seen(self, X: Problems) -> NDArray[np.bool_]:
        """Return which problems have a question that was used to train the prior.

        Parameters
        ----------
        X : sequence of ReasoningGraph or GraphBatch
            The problems. Questions are compared by hashes of their texts.

        Returns
        -------
        is_seen : ndarray of bool of shape (n_problems,)
            True for problems whose question was used to train the prior, and False for problems
            without a question.
        """
        return self.knows(question_hashes(pack_graphs(X)))

    def knows(self, questions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which hashes belong to questions that were used to train the prior.

        Parameters
        ----------
        questions : ndarray of int64 of shape (n_problems,)
            Hashes returned by `skdcf.graphs.hashes.question_hashes`.

        Returns
        -------
        is_known : ndarray of bool of shape (n_problems,)
            Whether each question was used to train the prior.
        """
        is_known = vars(self).get("questions_")
        if is_known is None:
            is_known = self.read_file()["questions_"]
        return np.isin(questions, is_known)

    def hazard(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Compute the log odds that each claim is false given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        log_odds : ndarray of shape (n_claims,)
            The log odds of each claim.
        """
        return self.weights_ @ self.hazards(batch)

    def hazards(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Compute the log odds of each source, of which `hazard` returns the weighted mean.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        log_odds : ndarray of shape (n_sources, n_claims)
            The log odds, with one row per source in the order of ``card_["sources"]``.
        """
        return self.log_odds(design(self._pick(batch)))

    def log_odds(self, X: NDArray) -> NDArray[np.float64]:
        """Compute the log odds of each source from the rows returned by `design`.

        Parameters
        ----------
        X : ndarray of shape (n_claims, 2 * n_columns + 1)
            Columns of the claims, column means over the problem, and logarithm of the number of
            claims.

        Returns
        -------
        log_odds : ndarray of shape (n_sources, n_claims)
            The log odds of each source, averaged over its classifiers.
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
        """Compute the probability that at least one kept claim of each answer is false.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        kept : ndarray of bool of shape (n_claims,)
            Mask of the kept claims, which must include all ancestors of each kept claim.

        Returns
        -------
        probabilities : ndarray of float of shape (n_problems,)
            Probabilities between 0 and 1, which are 0 for problems without kept claims.
        """
        return chance_of_error(self.hazard(batch), kept, batch)


@cache
def read(path: Path, changed: int) -> dict[str, Any]:
    """Read the attributes of a prior, and raise ValueError if its file is invalid.

    The argument ``changed`` is the time at which the file was last modified. It identifies the
    content.
    """
    try:
        return attributes_of(json.loads(path.read_bytes()))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a valid public prior: {error}") from error


def attributes_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of `PublicPrior` from the content of a file."""
    if record["format"] != FORMAT:
        raise ValueError(f"the format must be {FORMAT!r}, got {record['format']!r}")
    if record["sha256"] != digest(record):
        raise ValueError(
            "the file was modified after benchmarks/retention/make_prior.py wrote it"
        )
    linear = _array(record["linear"])
    trees = _arrays(record["trees"])
    n_sources = len(linear)
    n = 2 * len(record["columns"]) + 1
    table = object.__new__(HazardTable)
    bare = {"weights": np.zeros(n * n_sources), "doubt": np.zeros(n_sources)}
    # offset of the left child's index, or 0 for a leaf
    to_left = np.array(trees["down"])
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
        "_card": json.dumps(
            record["card"]
        ),  # A single string can be saved faster than an array.
    }


def digest(record: dict[str, Any]) -> str:
    """Return the SHA-256 digest of a file's content, excluding the stored digest."""
    content = {key: value for key, value in record.items() if key != "sha256"}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _arrays(record):
    return {name: _array(values) for name, values in record.items()}


def _array(values):
    """Read an array from the content of a file, in which null stands for infinity."""
    array = np.array(values)
    if array.dtype.kind != "i" or not array.size:
        array = np.nan_to_num(array.astype(np.float64), nan=np.inf)
    elif np.abs(array).max() < 2**31:
        # 32-bit integers require half the memory, so more of the array fits into the cache.
        array = array.astype(np.int32)
    array.setflags(
        write=False
    )  # Priors that were loaded from the same file share their arrays.
    return array


def blend(own, public, false, shares):
    """Fit ``b + w1 own + w2 public[0] + ...`` to the labels ``false``, and return the weights.

    The argument ``own`` contains out-of-fold predictions. The weights minimise the log loss. All
    weights except b are non-negative and shrunk towards ``PULL``, which is distributed to the
    sources in proportion to their shares. A source whose predictions of errors in the training
    problems are poor therefore has a smaller weight. After fitting, all weights except b are
    scaled to sum to ``PULL``. Out-of-fold predictions are based on only two thirds of the
    problems, so they are less accurate than the predictions of the final fit. In experiments,
    shrinking the log odds reduced the number of kept claims.
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
