"""No source runs what stands in data: the files are read, not what they seem to do."""

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("skdcf", "examples", "benchmarks", "docs", ".ci")
FILES = sorted(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))

RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve", "yaml", "_pickle"}
#: Functions of other packages that unpickle or evaluate, by their last name.
FUNCTIONS = {"literal_eval", "read_pickle", "to_pickle", "sympify", "parse_expr"}
LOADERS = {"joblib", "torch", "yaml", "pickle"}  # whose ``load`` unpickles
WRITES = {"dumps", "Pickler", "PicklingError"}  # make bytes, and read none
SHELL = {"system", "popen", "getoutput", "getstatusoutput"}


def faults(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if root(a.name) in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if root(node.module or "") in MODULES and not names <= WRITES:
                yield node.module
            yield from names & (FUNCTIONS | RUNS_TEXT)
            if node.module in LOADERS:
                yield from names & {"load"}
        elif isinstance(node, ast.Call):
            yield from called(node)


def called(node):
    name, owner = dotted(node.func)
    if name in FUNCTIONS | SHELL or (name in RUNS_TEXT and owner is None):
        yield name
    if name == "load" and owner in LOADERS:
        yield f"{owner}.load"
    for option in node.keywords:
        risky = option.arg in ("allow_pickle", "shell")
        if risky and not (
            isinstance(option.value, ast.Constant) and option.value.value is False
        ):
            yield f"{option.arg}="
    if name == "eval" and owner is not None and node.args:  # of a table, not of torch
        yield f"{owner}.eval"


def dotted(function):
    """(last name, the name before it or None) of what is called."""
    if isinstance(function, ast.Name):
        return function.id, None
    if isinstance(function, ast.Attribute):
        value = function.value
        owner = getattr(value, "id", getattr(value, "attr", "?"))
        return function.attr, owner
    return None, None


def root(module):
    return module.partition(".")[0]


@pytest.mark.parametrize(
    "path", FILES, ids=lambda p: p.relative_to(CHECKOUT).as_posix()
)
def test_nothing_is_evaluated_or_unpickled(path):
    assert sorted(faults(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "exec(text)",
        "import pickle",
        "from pickle import loads",
        "from pickle import dumps, loads",
        "from pickle import Pickler, Unpickler",
        "import yaml",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "joblib.load(path)",
        "from joblib import load",
        "torch.load(path)",
        "pandas.read_pickle(path)",
        "sympy.sympify(text)",
        "frame.eval(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "from ast import literal_eval",
    ],
)
def test_the_checker_sees(source):
    assert list(faults(source))


@pytest.mark.parametrize(
    "source",
    [
        "np.load(p, allow_pickle=False)",
        "skdcf.load(path)",
        "from pickle import dumps",
        "model.eval()",
        "re.compile(t)",
    ],
)
def test_the_checker_lets_pass(source):
    assert list(faults(source)) == []
