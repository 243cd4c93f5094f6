"""The program that type checkers accept runs, and the stub says what the package has."""

import ast
import runpy

import skdcf


def test_the_program_of_a_user_runs(checkout, tmp_path, capsys):
    program = checkout / "tests/typing/whole_package.py"
    runpy.run_path(str(program))["main"](tmp_path)
    assert "claims kept at alpha" in capsys.readouterr().out


def test_the_stub_names_what_the_lazy_imports_find(checkout):
    tree = ast.parse((checkout / "skdcf/__init__.pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    named = {alias.name for node in imports for alias in node.names}
    assert {*skdcf.__all__, "__version__", "apps"} <= named
    for name in named:
        assert getattr(skdcf, name) is not None
    [stated] = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(stated) == skdcf.__all__
