"""What only an extra installs: where it is missing, a sentence says how to get it."""

import re
import subprocess
import sys
from configparser import ConfigParser

import pytest

from skdcf import HardCF, XGBoostCF, plots
from skdcf.datasets import from_frame, make_reasoning_graphs

GRAPHS, LABELS = make_reasoning_graphs(40, random_state=0, return_X_y=True)


CALLS = [
    (
        "matplotlib",
        "plot",
        lambda cf: plots.ReasoningGraphDisplay.from_graph(GRAPHS[0]),
    ),
    ("xgboost", "xgboost", lambda cf: XGBoostCF(alpha=0.2).fit(GRAPHS, LABELS)),
    ("pandas", "frame", lambda cf: from_frame(None, claim="c", answer="a")),
]


@pytest.mark.parametrize(("package", "extra", "call"), CALLS)
def test_a_missing_extra_ends_in_one_sentence(
    monkeypatch, extras, package, extra, call
):
    cf = HardCF("frequency-score", alpha=0.2).fit(GRAPHS, LABELS)
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        call(cf)
    said = str(caught.value)
    assert package in said and f".[{extra}]" in said
    assert extra in extras


@pytest.fixture
def extras(checkout):
    """The packages of each extra as they are imported, without the core's own."""
    setup = ConfigParser()
    setup.read(checkout / "setup.cfg", encoding="utf-8")
    required = set(distributions(setup["options"]["install_requires"]))
    packages = {}
    for extra, lines in setup["options.extras_require"].items():
        names = set(distributions(lines)) - required
        packages[extra] = {
            name.replace("-", "_").removesuffix("_cpu") for name in names
        }
    return packages


def distributions(lines):
    return [re.match(r"[\w-]+", line)[0] for line in lines.splitlines() if line.strip()]


BARE = """
import builtins, importlib, pkgutil, sys
missing, import_module = set(sys.argv[1:]), builtins.__import__


def import_for(name, globals=None, *rest):  # scikit-learn imports some itself
    ours = (globals or {}).get("__name__", "").partition(".")[0] == "skdcf"
    if ours and name.partition(".")[0] in missing:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return import_module(name, globals, *rest)


builtins.__import__ = import_for
import skdcf
assert skdcf.HardCF and "autograd" not in sys.modules  # only training needs it
for module in pkgutil.walk_packages(skdcf.__path__, "skdcf."):
    if not module.name.startswith(("skdcf.apps", "skdcf.__main__")):
        importlib.import_module(module.name)
assert not {"networkx", "skops"} & set(sys.modules)  # slow, and seldom needed
from skdcf.datasets import make_reasoning_graphs
X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
dcf = skdcf.CoherentConformalFilter(random_state=0).fit(X[:100], y[:100])
print(len(dcf.predict(X[100:])))
"""


@pytest.mark.long
def test_a_bare_installation_never_imports_an_extra(extras):
    missing = set().union(*extras.values()) - {"skdcf", "setuptools"}
    assert {"openai", "matplotlib", "pandas", "xgboost"} <= missing
    program = [sys.executable, "-c", BARE, *sorted(missing)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout == "20\n", done.stderr
