"""Wrong turns of a newcomer: each ends with a sentence, and leaves the folder as it was."""

import runpy

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")


def test_each_wrong_turn_says_what_to_do_and_leaves_no_file(
    checkout, tmp_path, monkeypatch
):
    page = checkout / "docs/guide/wrong_turns.txt"
    script = runpy.run_path(str(checkout / "benchmarks/pages/wrong_turns.py"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("skdcf.apps.llm._pace.back_off", lambda attempt: 0.01)
    script["write_files"]()
    turns = list(script["take"]())
    assert len(turns) >= 12
    for title, _, code, out, err, changed in turns:
        assert code in (1, 2) and err and not out, title
        assert changed == [], title
        assert "Traceback" not in err and "rename=" not in err, title
        assert "No such file" not in err, title
    written = "\n".join(script["described"](turns)).replace(f"{tmp_path}/", "FOLDER/")
    assert written == page.read_text(encoding="utf-8")
