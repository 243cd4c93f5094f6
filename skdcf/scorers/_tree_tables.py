"""Fitted forests, boosted trees and logistic regressions, stored as plain arrays.

All trees are stored layer by layer in a single table of nodes, in which each right child follows
the left child. Each leaf points to itself, so ``node = down[node] + (x > threshold[node])`` moves
down one layer in all trees at once. The arrays are used for calibration and prediction, and are
saved to files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ..training.splitting import Standardizer

# number of claims per block, chosen so that the positions of the claims in all trees fit into the
# cache
BLOCK = 512


@dataclass(frozen=True, repr=False)
class HazardTable:
    """Table of several fitted classifiers, whose log odds are added.

    Parameters
    ----------
    weights : ndarray of shape (n_columns,)
        Sum of the weights of the linear classifiers.
    offset : float
        Sum of the constants of the linear and boosted classifiers.
    feature, threshold, down, value : ndarray of shape (n_nodes,)
        Column, largest value sent to the left child, and index of the left child of each node.
        For leaves, ``value`` is the contribution to the log odds or to the probability predicted
        by the forest.
    root, depth, forest : ndarray of shape (n_trees,)
        First node of each tree, number of layers below it, and index of the forest to which the
        tree belongs. The forest index is -1 for a tree that adds to the log odds. Trees are
        sorted by depth, with the deepest tree first.
    doubt : ndarray of shape (n_forests,)
        Weight of the overall error probability, which is mixed into the probability of each
        forest.
    n_hazards : int, default=1
        Number of classifiers.
    standardizer : Standardizer, optional
        Transformation applied to the columns before the classifiers.
    """

    weights: NDArray[np.float64]
    offset: float
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    down: NDArray[np.int32]
    value: NDArray[np.float64]
    root: NDArray[np.int32]
    depth: NDArray[np.int32]
    forest: NDArray[np.int32]
    doubt: NDArray[np.float64]
    n_hazards: int = 1
    standardizer: Standardizer | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state, or raise ValueError if a child is outside the table."""
        self.__dict__.update(state)
        try:
            good = all(self._checks())
        except (AttributeError, TypeError, IndexError) as error:
            raise ValueError(
                f"the trees cannot be loaded, because their table is invalid: {error}"
            ) from error
        if not good:
            raise ValueError(
                "the trees cannot be loaded, because a branch points outside the table of "
                "its tree"
            )

    def __repr__(self) -> str:
        return f"HazardTable({self.n_hazards} classifiers, {len(self.root)} trees)"

    def _checks(self):
        node_numbers = np.arange(len(self.down))
        n_trees = len(self.root)
        nodes = self.feature, self.threshold, self.down, self.value
        inner = self.down != node_numbers
        yield all(column.shape == node_numbers.shape for column in nodes)
        yield all(len(x) == n_trees for x in (self.depth, self.forest))
        for array in (self.feature, self.down, self.root, self.depth, self.forest):
            yield array.dtype.kind == "i" and array.ndim == 1
        yield (self.down >= node_numbers).all() and (
            self.down[inner] + 1 < len(node_numbers)
        ).all()
        yield (self.threshold[~inner] == np.inf).all()
        yield ((self.feature >= 0) & (self.feature < len(self.weights))).all()
        yield ((self.root >= 0) & (self.root < len(node_numbers))).all()
        yield (self.depth >= 0).all() and self.depth.max(initial=0) <= len(node_numbers)
        yield (self.depth[1:] <= self.depth[:-1]).all()
        yield ((self.forest >= -1) & (self.forest < len(self.doubt))).all()
        yield all(np.isfinite(x).all() for x in (self.value, self.weights, self.doubt))
        yield np.isfinite(self.offset) and self.n_hazards > 0

    def read(self, X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the log odds and probabilities of the classifiers for rows of features.

        Parameters
        ----------
        X : ndarray of shape (n_claims, n_columns)
            Standardised features.

        Returns
        -------
        log_odds : ndarray of shape (n_claims,)
            Sum of the log odds of the linear and boosted classifiers.
        chances : ndarray of shape (n_forests, n_claims)
            Probabilities computed by the forests.
        """
        X = X if self.standardizer is None else self.standardizer(X)
        X = np.ascontiguousarray(X, dtype=np.float64)
        out = np.zeros((1 + len(self.doubt), len(X)))
        out[0] = X @ self.weights + self.offset
        layers = np.arange(self.depth.max(initial=0))
        # Number of trees that are deeper than each layer. Trees are sorted by depth, starting
        # with the deepest tree.
        deeper = np.searchsorted(-self.depth, -layers).tolist()
        for start in range(0, len(X) * bool(len(self.root)), BLOCK):
            block = X[start : start + BLOCK]
            rows = np.arange(len(block)) * X.shape[1]
            node = np.repeat(self.root.astype(np.intp)[:, None], len(block), axis=1)
            for n in deeper:
                at = node[:n]
                x = block.ravel().take(self.feature.take(at) + rows)
                np.add(self.down.take(at), x > self.threshold.take(at), out=at)
            leaves = self.value.take(node)
            for k, total in enumerate(out[:, start : start + BLOCK], -1):
                total += leaves[self.forest == k].sum(axis=0)
        return out[0], out[1:]

    def log_odds(self, X: NDArray, chance: float) -> NDArray[np.float64]:
        """Return the sum of the log odds of all classifiers.

        Parameters
        ----------
        X : ndarray of shape (n_claims, n_columns)
            Standardised features.
        chance : float
            Overall error probability, which is used by forests with a positive ``doubt``.

        Returns
        -------
        log_odds : ndarray of shape (n_claims,)
            The sum of the log odds for each claim.
        """
        total, chances = self.read(X)
        doubt = self.doubt[:, None]
        return total + logit((1 - doubt) * chances + doubt * chance).sum(axis=0)


def design(batch):
    """Return the features, their means over the problem, and the logarithm of the problem size."""
    sizes = np.maximum(batch.sizes, 1)
    padded = np.vstack([batch.features, np.zeros(batch.n_features)])
    total = np.add.reduceat(padded, batch.offsets[:-1])
    problem = np.column_stack([total / sizes[:, None], np.log(sizes)])
    return np.hstack([batch.features, problem[batch.problem_of]])


def join(tables: list[HazardTable], n_columns: int) -> HazardTable:
    """Join several tables into one. Columns that a table does not use have a weight of 0."""
    nodes = np.cumsum([0] + [len(table.down) for table in tables])
    forests = np.cumsum([0] + [len(table.doubt) for table in tables])
    shifted = [
        replace(
            table,
            weights=np.pad(table.weights, (0, n_columns - len(table.weights))),
            down=table.down + node,
            root=table.root + node,
            forest=np.where(table.forest < 0, -1, table.forest + forest),
        )
        for table, node, forest in zip(tables, nodes[:-1], forests[:-1], strict=True)
    ]

    def stacked(name):
        columns = [getattr(table, name) for table in shifted]
        return np.concatenate(columns).astype(getattr(tables[0], name).dtype)

    names = "feature", "threshold", "down", "value", "root", "depth", "forest", "doubt"
    out = {name: stacked(name) for name in names}
    deepest = np.argsort(-out["depth"], kind="stable")
    out |= {name: out[name][deepest] for name in ("root", "depth", "forest")}
    return HazardTable(
        np.sum([table.weights for table in shifted], axis=0),
        sum(table.offset for table in tables),
        n_hazards=sum(table.n_hazards for table in tables),
        **out,
    )


def as_table(estimator: Any, doubt: float = 0.0) -> HazardTable | None:
    """Convert a fitted binary classifier to arrays.

    Parameters
    ----------
    estimator : fitted estimator
        The classifier. The classifier can be a logistic regression, a random forest, boosted
        trees from scikit-learn or xgboost, or a pipeline that consists of a StandardScaler and
        one of these classifiers. A random forest regressor fitted to the labels 0 and 1 can be
        passed instead of a random forest classifier.
    doubt : float, default=0.0
        Weight of the overall error probability, which is mixed into the probability of a forest.

    Returns
    -------
    table : HazardTable or None
        The table, or None for other estimators.
    """
    package = type(estimator).__module__.split(".")[0]
    name = type(estimator).__name__
    if package not in ("sklearn", "xgboost"):
        return None
    if name == "FrozenEstimator":
        return as_table(estimator.estimator)
    if name == "Pipeline":
        return _scaled(*estimator.steps)
    reader = _READERS.get(name)
    if reader is None or len(getattr(estimator, "classes_", [0, 1])) != 2:
        return None
    table = reader(estimator)
    return table and replace(table, doubt=np.full(len(table.doubt), float(doubt)))


def _scaled(*steps):
    scaler = steps[0][1]
    last = steps[-1][1]
    if len(steps) != 2 or type(scaler).__name__ != "StandardScaler":
        return None
    table = as_table(last)
    n_columns = scaler.n_features_in_
    mean = scaler.mean_ if scaler.with_mean else np.zeros(n_columns)
    scale = scaler.scale_ if scaler.with_std else np.ones(n_columns)
    return table and replace(table, standardizer=Standardizer(mean, scale, np.inf))


def _linear(estimator):
    bare = _trees(estimator.n_features_in_, [])
    offset = float(estimator.intercept_[0])
    return replace(bare, weights=estimator.coef_[0].astype(np.float64), offset=offset)


def _forest(estimator):
    n = len(estimator.estimators_)
    nodes = []
    for tree in (e.tree_ for e in estimator.estimators_):
        values = tree.value[:, 0]
        if hasattr(estimator, "classes_"):
            chance = values[:, 1] / values.sum(axis=1)
        else:  # The mean of regression trees trained on the targets 0 and 1 is a probability.
            chance = values[:, 0]
        nodes.append(_nodes_of(tree, chance / n))
    table = _trees(estimator.n_features_in_, nodes)
    return replace(table, forest=np.zeros_like(table.root), doubt=np.zeros(1))


def _gradient_boosted(estimator):
    if estimator.init not in (None, "zero"):
        return None
    rate = estimator.learning_rate
    trees = estimator.estimators_[:, 0]
    nodes = [_nodes_of(e.tree_, rate * e.tree_.value[:, 0, 0]) for e in trees]
    return _with_offset(estimator, nodes, estimator.decision_function)


def _nodes_of(tree, value):
    threshold = _largest_left(tree.threshold)
    return tree.children_left, tree.children_right, tree.feature, threshold, value


def _histogram_boosted(estimator):
    trees = [tree.nodes for [tree] in estimator._predictors]
    if any(tree["is_categorical"].any() for tree in trees):
        return None
    names = "right", "feature_idx", "num_threshold", "value"
    left = (np.where(t["is_leaf"], -1, t["left"].astype(np.int64)) for t in trees)
    nodes = [(a, *(t[k] for k in names)) for a, t in zip(left, trees, strict=True)]
    return _with_offset(estimator, nodes, estimator.decision_function)


def _xgboosted(estimator):
    model = json.loads(estimator.get_booster().save_raw("json"))["learner"]
    model = model["gradient_booster"]
    is_plain = estimator.early_stopping_rounds is None and np.isnan(estimator.missing)
    if model["name"] != "gbtree" or not is_plain:
        return None
    nodes = []
    for tree in model["model"]["trees"]:
        if any(tree["split_type"]):
            return None
        names = "left_children", "right_children", "split_indices"
        number = np.array(tree["split_conditions"], dtype=np.float32)
        # xgboost sends a value that equals the split value to the right, but the table would send
        # it to the left.
        threshold = _largest_left(np.nextafter(number, np.float32(-np.inf)))
        value = number.astype(np.float64)  # `value` is only used at leaves.
        nodes.append((*(np.array(tree[name]) for name in names), threshold, value))

    margin = partial(estimator.predict, output_margin=True)
    return _with_offset(estimator, nodes, margin)


def _with_offset(estimator, nodes, decide):
    """Convert a booster to a table, with the base score as the offset."""
    n = estimator.n_features_in_
    table = _trees(n, nodes)
    zero = np.zeros((1, n))
    return replace(table, offset=float(decide(zero)[0]) - table.read(zero)[0].item())


def _largest_left(threshold):
    """Return the largest double that goes to the left child if compared in single precision."""
    low = threshold.astype(np.float32)
    low = np.where(low > threshold, np.nextafter(low, np.float32(-np.inf)), low)
    high = np.nextafter(low, np.float32(np.inf)).astype(np.float64)
    middle = low + (high - low) / 2
    goes_left = middle.astype(np.float32) <= low
    return np.where(goes_left, middle, np.nextafter(middle, -np.inf))


def _trees(n_columns, trees):
    """Convert trees to a table. Each tree is a tuple (left, right, feature, threshold, value)."""
    sizes = np.array([len(tree[0]) for tree in trees], dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    tree_of = np.repeat(np.arange(len(trees)), sizes)
    shift = np.repeat(first, sizes)
    empty = np.zeros(0, dtype=np.int64)
    columns = zip(*trees, strict=True) if trees else [[empty]] * 5
    left, right, feature, threshold, value = map(np.concatenate, columns)
    inner = left >= 0
    layers = [first]
    while len(layers[-1]):
        parent = layers[-1][inner[layers[-1]]]
        children = np.stack([left[parent], right[parent]], axis=1) + shift[parent, None]
        layers.append(children.ravel())
    order = np.concatenate(layers)
    position = np.empty(len(left), dtype=np.int64)
    position[order] = np.arange(len(order))
    depth = np.zeros(len(trees), dtype=np.int32)
    for d, layer in enumerate(layers[:-1]):
        depth[tree_of[layer]] = d
    below = position[np.where(inner, left + shift, np.arange(len(left)))]
    deepest = np.argsort(-depth, kind="stable")
    return HazardTable(
        weights=np.zeros(n_columns),
        offset=0.0,
        feature=np.where(inner, feature, 0)[order].astype(np.int32),
        threshold=np.where(inner, threshold, np.inf)[order].astype(np.float64),
        down=below[order].astype(np.int32),
        value=np.where(inner, 0.0, value)[order].astype(np.float64),
        root=position[first][deepest].astype(np.int32),
        depth=depth[deepest],
        forest=np.full(len(trees), -1, dtype=np.int32),
        doubt=np.zeros(0),
    )


_READERS: dict[str, Callable] = {
    "ExtraTreesClassifier": _forest,
    "GradientBoostingClassifier": _gradient_boosted,
    "HistGradientBoostingClassifier": _histogram_boosted,
    "LogisticRegression": _linear,
    "RandomForestClassifier": _forest,
    "RandomForestRegressor": _forest,
    "XGBClassifier": _xgboosted,
}
