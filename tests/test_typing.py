"""The programs that type checkers accept are programs that run."""

import ast
import re
import runpy

import skdcf


def test_a_program_that_uses_every_module_runs(checkout, tmp_path, capsys):
    path = checkout / "tests" / "typing" / "whole_package.py"
    runpy.run_path(str(path))["main"](tmp_path)
    page = (checkout / "docs" / "api.rst").read_text(encoding="utf-8")
    modules = set(re.findall(r"^   (skdcf\.\w+)$", page, re.MULTILINE)) - {
        "skdcf.exceptions"
    }
    assert modules <= set(
        re.findall(r"^from (skdcf\.\w+)", path.read_text("utf-8"), re.M)
    )
    assert "n_calibration" in capsys.readouterr().out


def test_the_program_of_a_user_runs(checkout, tmp_path, capsys):
    path = checkout / "tests" / "typing" / "user_program.py"
    runpy.run_path(str(path))["main"](tmp_path)
    assert "ReasoningGraph(n_claims=2, n_edges=1)" in capsys.readouterr().out


def test_the_stub_names_what_the_lazy_imports_find(checkout):
    """Editors read ``__init__.pyi``, and programs get what ``__init__.py`` finds."""
    tree = ast.parse((checkout / "skdcf" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    named = {alias.name for node in imports for alias in node.names}
    page = (checkout / "docs" / "api.rst").read_text(encoding="utf-8")
    public = set(re.findall(r"^   skdcf\.(\w+)$", page, re.MULTILINE)) | {"graphs"}
    assert named == {*skdcf.__all__, "__version__", "apps"} | public
    for name in named:
        assert getattr(skdcf, name) is not None
    [stated] = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(stated) == skdcf.__all__
