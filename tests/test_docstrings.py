"""Docstrings are complete: shared descriptions are inserted, and returned values have names."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import skdcf
from skdcf import HardCF
from skdcf._docs import DESCRIPTIONS, documented
from skdcf._parameters import Settings, settings

REFERENCE = re.compile(rf"\{{({'|'.join(DESCRIPTIONS)})\}}")

RETURNS = re.compile(r"^(?:Returns|Yields)\n-+\n((?:.+\n?)+)", re.MULTILINE)


def modules():
    for module in pkgutil.walk_packages(skdcf.__path__, "skdcf."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def documented_in(holder):
    """Yield each function, class, method and property that a module or class defines."""
    for name, member in vars(holder).items():
        member = getattr(member, "__func__", member)  # of class and static methods
        if isinstance(member, property) or inspect.isfunction(member):
            yield name, member
        elif inspect.isclass(member) and member.__module__ == holder.__name__:
            yield name, member
            yield from documented_in(member)


def test_every_reference_is_replaced():
    left = {
        f"{module.__name__}.{name}": found[0]
        for module in modules()
        for name, described in documented_in(module)
        if (found := REFERENCE.search(described.__doc__ or ""))
    }
    assert not left


def test_every_name_in_braces_at_these_places_is_known(checkout):
    """A misspelt name would stay in the docstring."""
    reference = re.compile(r"^ *(?:\w+ : )?\{(\w+)\}", re.MULTILINE)
    used = set()
    for path in (checkout / "skdcf").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                used.update(reference.findall(ast.get_docstring(node) or ""))
    used.update(reference.findall("\n".join(DESCRIPTIONS.values())))
    assert used == set(DESCRIPTIONS)


def test_every_returned_value_has_a_name(checkout):
    """As in scikit-learn: ``mask : ndarray``, not the type alone."""
    without_name = [
        f"{path.name}: {node.name}: {line}"
        for path in (checkout / "skdcf").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for section in RETURNS.findall(ast.get_docstring(node) or "")
        for line in section.splitlines()
        if not re.match(r" |\w+(, \w+)* : \S", line)
    ]
    assert not without_name


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (
            HardCF.predict,
            "X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)\n"
            "    The problems.\nalpha : ",
        ),
        (HardCF, "\nalpha : float, default=0.1\n    Maximum proportion of problems "),
    ],
)
def test_a_docstring_contains_the_whole_description(described, expected):
    assert expected in inspect.getdoc(described)


def test_other_words_in_braces_stay():
    @documented
    def estimate(X, theta):
        r"""Return an estimate.

        Parameters
        ----------
        X : {problems}, optional
            Where $\hat{X}$ is {X}.
        theta : {unknown}
            A number.
        """

    lines = inspect.getdoc(estimate).splitlines()
    assert lines[4] == f"X : {DESCRIPTIONS['problems']}, optional"
    assert lines[5:7] == [r"    Where $\hat{X}$ is {X}.", "theta : {unknown}"]


def test_classes_and_class_methods_are_described():
    @settings
    class Base(Settings):
        """A base class.

        {alpha}
        """

        @classmethod
        def make(cls, y):
            """Return an object.

            {y}
            """

    assert "Maximum proportion" in inspect.getdoc(Base)
    assert "Claim labels of the problems." in inspect.getdoc(Base.make)


def test_python_without_docstrings_can_import_and_fit():
    program = (
        "from skdcf import HardCF; from skdcf.datasets import make_reasoning_graphs as make;"
        "X, y = make(30, random_state=0, return_X_y=True);"
        "print(HardCF.fit.__doc__, HardCF(alpha=0.3).fit(X, y).n_calibration_)"
    )
    run = [sys.executable, "-OO", "-c", program]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert ended.stdout == "None 29\n", ended.stderr
