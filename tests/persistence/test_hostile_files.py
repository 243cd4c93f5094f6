"""Files that would run something: each is refused, and runs nothing.

The first three overwrote a file or ran a program when only the beginnings of names were
compared, because a module also holds what it imports.
"""

import json
import zipfile
from copy import copy

import pytest
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold

import skdcf
from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.persistence import TRUSTED

pytest.importorskip("skops")
FITTED = HardCF("frequency-score").fit(
    *make_reasoning_graphs(60, random_state=0, return_X_y=True)
)


def text(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def node(loader, module, name, **rest):
    return {"__class__": name, "__module__": module, "__loader__": loader, **rest}


def sequence(loader, name, items):
    return node(loader, "builtins", name, content=items)


def table(content, constructor=None):
    """A dict whose keys are made by ``constructor``, which is called with each."""
    key_type = constructor or node("TypeNode", "builtins", "str")
    key_types = sequence("ListNode", "list", [key_type] * len(content))
    return node("DictNode", "builtins", "dict", content=content, key_types=key_types)


def walk(module, *steps):
    """An attribute of an attribute of what a module imports."""
    thing = node("FunctionNode", module, steps[0])
    for step in steps[1:]:
        content = {"obj": thing, "func": step}
        thing = node("MethodNode", module, steps[0], content=content)
    return thing


def partial(function, *arguments, module="functools", name="partial"):
    content = {
        "func": function,
        "args": sequence("TupleNode", "tuple", list(arguments)),
        "kwds": table({}),
        "namespace": text(None),
    }
    return node("PartialNode", module, name, content=content)


def array(member):
    return node("NdArrayNode", "numpy", "ndarray", type="numpy", file=member)


SPLIT = "sklearn.model_selection._split"
REQUESTS = "sklearn.utils._metadata_requests"


def dumped(target, member):
    """The path as the key, so that ``numpy.ndarray.dump(array, path)`` is called."""
    dump = walk(SPLIT, "np", "ndarray", "dump")
    caller = partial(dump, array(member), module=SPLIT, name="KFold")
    return table({str(target): text(1)}, caller)


def system(target, member):
    run = walk(REQUESTS, "inspect", "os", "system")
    return table({f"touch {target}": text(1)}, run)


def through_partial(target, member):
    function = walk("skdcf.edges", "re", "enum", "bltns", "open")
    path = text(str(target))
    opened = partial(function, path, module="skdcf.edges", name="re")
    return table({"w": text(1)}, opened)


def function(name, module):
    return lambda target, member: table(
        {f"touch {target}": text(1)}, node("FunctionNode", module, name)
    )


def kind(name, module):
    return lambda target, member: table(
        {f"touch {target}": text(1)}, node("TypeNode", module, name)
    )


HOSTILE = {
    "numpy.ndarray.dump from a splitter's module": dumped,
    "os.system from metadata routing": system,
    "a partial that opens, from edges": through_partial,
    "os.system": function("system", "os"),
    "a client that sends keys to its address": kind("ChatClient", "skdcf.apps.llm"),
    "private function of the package": function("write_bytes", "skdcf._files"),
    "a constructor that runs": lambda target, member: node(
        "ConstructorFromReduceNode",
        "os",
        "system",
        content=sequence("TupleNode", "tuple", [text(f"touch {target}")]),
    ),
    "operator.methodcaller": lambda target, member: node(
        "OperatorFuncNode",
        "operator",
        "methodcaller",
        attrs=sequence("TupleNode", "tuple", [text("write_text")]),
    ),
    "a method of a filter": lambda target, member: walk("skdcf", "HardCF", "fit"),
    "a partial of a known rule": lambda target, member: partial(
        node("FunctionNode", "skdcf.edges", "chain_edges"), text(["a", "b"])
    ),
    "a partial under a known name": lambda target, member: partial(
        node("FunctionNode", "skdcf.edges", "chain_edges"),
        text("a"),
        module="skdcf.edges",
        name="chain_edges",
    ),
}


def with_evil(path, make, target):
    """The file with one more attribute."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    member = next(name for name in parts if name.endswith(".npy"))
    schema = json.loads(parts.pop("schema.json"))
    schema["content"]["content"]["evil"] = make(target, member)
    keys = schema["content"]["key_types"]["content"]
    keys.append(node("TypeNode", "builtins", "str"))
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_and_nothing_runs(name, tmp_path):
    path = skdcf.save(FITTED, tmp_path / "cf")
    target = tmp_path / "touched"
    with_evil(path, HOSTILE[name], target)
    with pytest.raises(ValueError, match=r"does.*trust"):
        skdcf.load(path)
    assert not target.exists()


def test_a_file_with_a_harmless_change_is_loaded(tmp_path):
    """So the names above are the reason for the errors."""
    path = skdcf.save(FITTED, tmp_path / "cf")
    with_evil(path, lambda target, member: table({"a": text(1)}), None)
    assert skdcf.load(path).evil == {"a": 1}
    path = skdcf.save(FITTED, tmp_path / "cf")
    with_evil(path, HOSTILE["a partial of a known rule"], None)
    loaded = skdcf.load(path, trusted=["functools.partial"])
    assert loaded.evil() == skdcf.edges.chain_edges(["a", "b"])


@pytest.mark.parametrize("name", sorted(TRUSTED))
def test_honest_attributes_open(name, tmp_path):
    """Whatever the list names can be made again, where what it is for is installed."""
    module, _, last = name.rpartition(".")
    thing = getattr(pytest.importorskip(module), last)
    cf = copy(FITTED)
    makes = {
        "KFold": lambda: KFold(3, shuffle=True, random_state=0),
        "_PassthroughScorer": lambda: check_scoring(HardCF()),
    }
    value = makes.get(last, lambda: thing)()
    cf.extra_ = value
    back = skdcf.load(skdcf.save(cf, tmp_path / "cf")).extra_
    assert back is value or type(back) is type(value)


def test_rules_of_edges_are_loaded(tmp_path):
    cf = copy(FITTED)
    cf.extra_ = [getattr(skdcf.edges, name) for name in skdcf.edges.__all__]
    assert skdcf.load(skdcf.save(cf, tmp_path / "cf")).extra_ == cf.extra_
