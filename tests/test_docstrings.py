"""Returned values have names in docstrings, and the package works without docstrings."""

import ast
import re
import subprocess
import sys

RETURNS = re.compile(r"^(?:Returns|Yields)\n-+\n((?:.+\n?)+)", re.MULTILINE)


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


def test_python_without_docstrings_can_import_and_fit():
    program = (
        "from skdcf import HardCF; from skdcf.datasets import make_reasoning_graphs as make;"
        "X, y = make(30, random_state=0, return_X_y=True);"
        "print(HardCF.fit.__doc__, HardCF(alpha=0.3).fit(X, y).n_calibration_)"
    )
    run = [sys.executable, "-OO", "-c", program]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert ended.stdout == "None 29\n", ended.stderr
