"""Which names a file may hold, and under which public name a class is stored.

A saved file names classes by where users import them. Where their code stands may then
change without breaking a file.
"""

import inspect
import json
import pkgutil
from functools import cache
from importlib import import_module

PACKAGE = __name__.partition(".")[0]
_INSIDE = ("cli", "estimators", "graphs", "ops")  # what users take from elsewhere
_OUTWARD = ("skdcf.labelling.", "skdcf.llm.")  # what opens connections and paths

#: Classes and harmless functions, beside what skops trusts by itself.
_KNOWN = (
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "skdcf.llm.join_claims",
    "skdcf.llm.split_sentences",
    "sklearn.metrics._scorer._PassthroughScorer",
    "xgboost.sklearn.XGBClassifier",
)
#: Where everything is known.
_KNOWN_INSIDE = (
    "skdcf.edges.",
    "sklearn.model_selection._split.",
    "sklearn.utils._metadata_requests.",
)
#: Trees that their libraries follow without looking, so that a made-up one ends the
#: process. Some versions of skops trust them.
_UNCHECKED = (
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
)
#: Where versions of Python keep what they all give from elsewhere.
_MOVED = {"pathlib._local": "pathlib"}


@cache
def public_modules():
    """Dotted names of the modules that users import from."""
    found = (m.name for m in pkgutil.iter_modules(import_module(PACKAGE).__path__))
    inside = (m for m in found if not m.startswith("_") and m not in _INSIDE)
    return PACKAGE, *(f"{PACKAGE}.{name}" for name in sorted(inside))


@cache
def _public_name(thing):
    for module in public_modules():
        if _exported(module, thing.__name__) is thing:
            return module, thing.__name__
    raise ValueError(
        f"{thing.__module__}.{thing.__name__} is private to {PACKAGE} and cannot be saved"
    )


def _exported(module, name):
    loaded = import_module(module) if module in public_modules() else None
    names = [*getattr(loaded, "__all__", ()), *getattr(loaded, "__saved__", ())]
    return getattr(loaded, name, None) if name in names else None


def _class_of(name):
    """A public class of this package by its dotted name, or None."""
    module, _, last = name.rpartition(".")
    found = _exported(module, last)
    return found if inspect.isclass(found) else None


def nodes_of(schema):
    """All things in the schema of skops, a tree of dicts and lists, with their names."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("__module__"), str) and "__class__" in node:
                yield f"{node['__module__']}.{node['__class__']}", node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def with_public_names(schema):
    """The schema with the names that users know, in place."""
    for _, node in nodes_of(schema):
        module = node["__module__"] = _MOVED.get(node["__module__"], node["__module__"])
        if module.partition(".")[0] == PACKAGE:
            thing = getattr(import_module(module), node["__class__"])
            node["__module__"], node["__class__"] = _public_name(thing)
    return schema


def check_names(schema, unknown, trusted):
    """Raise ValueError for names that are neither known nor trusted.

    ``unknown`` are the names that skops does not trust by itself.
    """
    names = set(unknown) | {name for name, _ in nodes_of(schema) if name in _UNCHECKED}
    openings = [(name, text) for name, _, text in _openings(schema)]
    outward = {name for name, _ in openings}
    others = sorted(
        name
        for name in (names | outward) - set(trusted)
        if name in outward or not _is_known(name)
    )
    if others:
        opened = [text for _, text in openings]
        raise ValueError(
            f"it names {', '.join(others)}, which skdcf does not know to be harmless"
            + (f"; it would open {', '.join(opened)}" if opened else "")
            + f". If you know that they are, pass trusted={others}"
        )


def close_openings(schema):
    """Take out addresses, paths and names of keys, in place; return them as texts."""
    found = list(_openings(schema))
    for _, node, _ in found:
        node.update(
            __class__="str",
            __module__="builtins",
            __loader__="JsonNode",
            content="null",
        )
        node.update(is_json=True, __id__=-id(node))
    return [text for _, _, text in found]


def _is_known(name):
    if name in _KNOWN or name.startswith(_KNOWN_INSIDE):
        return True
    return _class_of(name) is not None and not name.startswith(_OUTWARD)


def _openings(schema):
    """Parameters that would open a connection or a file: (class, node, text) of each."""
    for name, node in nodes_of(schema):
        for parameter in getattr(_class_of(name), "_opens", ()):
            state = node.get("content")
            if not isinstance(state, dict) or not isinstance(
                state.get("content"), dict
            ):
                raise ValueError(f"its {name} is damaged")
            value = state["content"].get(parameter)
            if value is not None and value.get("content") != "null":
                text = value.get("content")
                readable = json.loads(text) if isinstance(text, str) else "a path"
                yield name, value, f"{parameter}={readable!r}"
