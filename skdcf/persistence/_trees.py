"""The numbers inside decision trees, which scikit-learn follows without looking.

A node says where the next ones stand and which feature to read. In a file that somebody
made up these numbers may lead anywhere, and the process would end.
"""

from itertools import chain

import numpy as np


def check_trees(root):
    """Raise ValueError if some tree in ``root`` leads out of its nodes or features."""
    seen, waiting = {}, [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing  # kept, so that no id is used twice
        check = _CHECKS.get(type(thing).__name__)
        if check is not None and type(thing).__module__.startswith("sklearn."):
            check(thing)
        waiting.extend(_parts(thing))


def _parts(thing):
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, (list, tuple, set)):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return thing.ravel().tolist() if thing.dtype == object else []
    return list(vars(thing).values()) if hasattr(thing, "__dict__") else []


def _need(condition, what):
    if not condition:
        raise ValueError(f"a decision tree in it is damaged: {what}")


def _check_links(left, right, count):
    """Children stand behind their parent, so that every way ends at a leaf."""
    own = np.arange(count)
    inner = left != -1
    for child in (left, right):
        good = (child[inner] > own[inner]) & (child[inner] < count)
        _need(good.all(), "a branch leads out of its nodes")
    return inner


def _check_features(features, n_features):
    good = (features >= 0) & (features < n_features)
    _need(good.all(), "it reads a feature that is not there")


def _check_tree(tree):
    _need(tree.node_count > 0, "it has no nodes")
    inner = _check_links(tree.children_left, tree.children_right, tree.node_count)
    _check_features(tree.feature[inner], tree.n_features)


def _check_owner(estimator):
    """A tree may read no more features than the estimator around it looks for."""
    tree = vars(estimator).get("tree_")
    if tree is not None:
        _need(
            tree.n_features <= estimator.n_features_in_,
            "it counts features in two ways",
        )
        _need(tree.n_outputs == estimator.n_outputs_, "it counts outputs in two ways")


def _check_ensemble(forest):
    trees = vars(forest).get("estimators_", ())
    flat = trees.ravel().tolist() if isinstance(trees, np.ndarray) else trees
    for tree in flat:
        good = tree.n_features_in_ <= forest.n_features_in_
        _need(good, "it reads more features than its forest has")


def _check_boosted(boosted):
    if "_predictors" not in vars(boosted):
        return
    n_features = boosted.n_features_in_
    known, places = boosted._bin_mapper.make_known_categories_bitsets()
    _need(len(places) >= n_features, "it counts features in two ways")
    for predictor in chain.from_iterable(boosted._predictors):
        _check_predictor(predictor, n_features, known, places)


def _check_predictor(predictor, n_features, known, places):
    nodes = predictor.nodes
    _need(nodes.ndim == 1 and len(nodes), "it has no nodes")
    inner = nodes[nodes["is_leaf"] == 0]
    left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
    left[nodes["is_leaf"] != 0] = -1
    _check_links(left, right, len(nodes))
    _check_features(inner["feature_idx"], n_features)
    by_category = inner[inner["is_categorical"] != 0]
    bitsets = predictor.raw_left_cat_bitsets
    good = (by_category["bitset_idx"] < len(bitsets)).all()
    good &= (places[by_category["feature_idx"]] < len(known)).all()
    _need(good, "a set of categories is missing")


_CHECKS = {
    "Tree": _check_tree,
    **dict.fromkeys(
        (
            "DecisionTreeClassifier",
            "DecisionTreeRegressor",
            "ExtraTreeClassifier",
            "ExtraTreeRegressor",
        ),
        _check_owner,
    ),
    **dict.fromkeys(
        (
            "ExtraTreesClassifier",
            "ExtraTreesRegressor",
            "GradientBoostingClassifier",
            "GradientBoostingRegressor",
            "RandomForestClassifier",
            "RandomForestRegressor",
        ),
        _check_ensemble,
    ),
    **dict.fromkeys(
        ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
        _check_boosted,
    ),
}
