"""Returned values have names in docstrings."""

import ast
import re

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
