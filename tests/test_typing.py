"""The program that mypy accepts is one that runs."""

import runpy


def test_the_program_of_a_user_runs(checkout, tmp_path, capsys):
    path = checkout / "tests" / "typing" / "user_program.py"
    runpy.run_path(str(path))["main"](tmp_path)
    assert "ReasoningGraph(n_claims=2, n_edges=1)" in capsys.readouterr().out
