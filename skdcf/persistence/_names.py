"""Under which public name a class of this package is stored, and what may be loaded.

A saved file names classes by where users import them. Where their code stands may then
change without breaking a file.
"""

import inspect
import pkgutil
from functools import cache
from importlib import import_module

PACKAGE = __name__.partition(".")[0]
_INSIDE = ("cli", "estimators", "graphs", "ops")  # what users take from elsewhere

#: Classes of other packages, beside what skops trusts by itself (less in its older
#: versions), and functions of this one that are harmless whatever they are given. The
#: numbers inside trees are checked in `_trees`; xgboost reads its own.
KNOWN = frozenset(
    {
        "pathlib.PosixPath",
        "pathlib.WindowsPath",
        "skdcf.edges.chain_edges",
        "skdcf.edges.cited_edges",
        "skdcf.edges.no_edges",
        "skdcf.edges.number_flow_edges",
        "skdcf.llm.join_claims",
        "skdcf.llm.split_sentences",
        "sklearn._loss.link.Interval",
        "sklearn._loss.link.LogitLink",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.GroupKFold",
        "sklearn.model_selection._split.GroupShuffleSplit",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.RepeatedKFold",
        "sklearn.model_selection._split.ShuffleSplit",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
    }
)
#: Where versions of Python keep what they all give from elsewhere.
_MOVED = {"pathlib._local": "pathlib"}


@cache
def public_modules():
    """Dotted names of the modules that users import from."""
    found = (m.name for m in pkgutil.iter_modules(import_module(PACKAGE).__path__))
    inside = (m for m in found if not m.startswith("_") and m not in _INSIDE)
    return PACKAGE, *(f"{PACKAGE}.{name}" for name in sorted(inside))


def public_name(thing):
    """(module, name) by which users import a class of this package, or ValueError."""
    name = thing.__name__
    for module in public_modules():
        if _public(module, name) is thing:
            return module, name
    raise ValueError(
        f"{thing.__module__}.{name} is private to {PACKAGE} and cannot be saved"
    )


def is_public_class(dotted):
    """Whether a dotted name is that of a public class of this package."""
    module, _, name = dotted.rpartition(".")
    return module in public_modules() and inspect.isclass(_public(module, name))


def with_public_names(schema):
    """The schema of skops, a tree of dicts and lists, with public names, in place."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("__module__") in _MOVED:
                node["__module__"] = _MOVED[node["__module__"]]
            if _is_ours(node.get("__module__")):
                thing = getattr(import_module(node["__module__"]), node["__class__"])
                node["__module__"], node["__class__"] = public_name(thing)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return schema


def _is_ours(module):
    return isinstance(module, str) and module.partition(".")[0] == PACKAGE


def _public(module, name):
    loaded = import_module(module)
    return getattr(loaded, name, None) if name in _exported(loaded) else None


def _exported(module):
    return getattr(module, "__all__", ())
