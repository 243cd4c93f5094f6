"""A golden set is judged again, and a changed judge is noticed."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdcf.apps.cli import main
from skdcf.apps.cli._judge import upper_tail
from skdcf.datasets import read_jsonl


@given(st.lists(st.integers(-4, 4), max_size=8), st.integers(-8, 8))
def test_signs_are_enumerated(differences, total):
    """Brute force over all signs of the differences that are not zero."""
    sizes = [abs(d) for d in differences if d]
    total = min(max(total, -sum(sizes)), sum(sizes))
    sums = [np.dot(signs, sizes) for signs in product((-1, 1), repeat=len(sizes))]
    expected = np.mean(np.array(sums) >= total)
    assert upper_tail(np.array(differences, int), total) == pytest.approx(expected)


def write(path, verdicts, **more):
    """One answer of two claims for each question, or more of the same with ``more``."""
    rows = [
        {"claims": [f"{i} a", f"{i} b"], "problem": f"q {i}"}
        | {key: values[i] for key, values in ({"judge_a": verdicts} | more).items()}
        for i in range(len(verdicts))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def compare(golden, today, *options):
    return main(["judge", str(golden), "--with", str(today), *options])


def changed(verdicts, n):
    return [[1 - a, b] for a, b in verdicts[:n]] + verdicts[n:]


ALL = [[i % 2, 1] for i in range(12)]


@pytest.mark.parametrize(("n", "code"), [(0, 0), (6, 0), (7, 1)])
def test_seven_flipped_questions_are_an_alarm(tmp_path, capsys, n, code):
    golden = write(tmp_path / "golden", ALL, judge_b=ALL)
    today = write(tmp_path / "today", changed(ALL, n))
    assert compare(golden, today) == code
    said = capsys.readouterr().err
    assert said.count("claim 1: now") == n
    assert ("Calibrate again" in said) == bool(code)


def test_later_runs_need_smaller_p_values(tmp_path):
    golden = write(tmp_path / "golden", ALL, judge_b=ALL)
    other = write(tmp_path / "today", changed(ALL, 7))
    codes = [compare(golden, path) for path in (golden, other, other)]
    assert codes == [0, 0, 0]
    lines = golden.with_name("golden.runs").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert [len(run["p"]) for run in runs] == [2, 2, 2]
    assert runs[1]["p"][1] == 2**-7
    assert compare(golden, other, "--delta", ".9") == 1


def test_one_flip_of_a_judge_that_repeats_itself(tmp_path):
    golden = write(tmp_path / "golden", ALL, judge_b=ALL)
    today = write(tmp_path / "today", changed(ALL, 1))
    assert compare(golden, today, "--deterministic") == 1
    assert compare(golden, golden, "--deterministic") == 0


def test_two_people(tmp_path):
    """Only the direction is tested: both may flip, but one must not be more lenient."""
    first = [[0, 1]] * 12
    paths = [tmp_path / name for name in ("ann", "bob", "eve")]
    for path, verdicts in zip(
        paths, (first, [[1, 0]] * 12, [[1, 1]] * 12), strict=True
    ):
        write(path, [None] * 12, labels=verdicts)
    ann, bob, eve = paths
    assert [compare(ann, other) for other in (bob, eve)] == [0, 1]


def test_a_question_counts_once(tmp_path):
    """All answers to one question flip, which is a single sign."""
    same = ["one question"] * 12
    golden = write(tmp_path / "golden", ALL, judge_b=ALL, problem=same)
    today = write(tmp_path / "today", [[1, 1]] * 12, problem=same)
    assert compare(golden, today) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["--model", "--with"]),
        (["--model", "m", "--with", "FILE"], ["--model", "--with"]),
        (["-o", "FILE", "--with", "FILE"], ["--output"]),
        (["--with", "FILE", "--delta", "0"], ["--delta", "0.0"]),
        (["--with", "OTHER"], ["OTHER", "claims"]),
        (["--with", "BAD"], ["BAD", "problem 3", "judge_a", "2"]),
        (["--with", "NONE"], ["NONE", "problem 1", "labels"]),
    ],
)
def test_bad_input(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    golden = write(tmp_path / "FILE", ALL)
    write(tmp_path / "OTHER", ALL[:-1])
    write(tmp_path / "BAD", [*ALL[:2], [1, 2], *ALL[3:]])
    write(tmp_path / "NONE", [None] * 12)
    assert main(["judge", str(golden), *options]) == 2
    said = capsys.readouterr().err
    assert [word for word in words if word not in said] == []


def test_a_model_judges_twice_and_again(tmp_path, model, capsys):
    """The replies of the first two runs differ on one claim, and then it accepts everything."""

    def script(request, n):
        claim = json.loads(request["messages"][-1]["content"])["claim"]
        is_true = n >= 2 or int(claim.split()[0]) % 2 or (n == 1 and claim == "0 a")
        return json.dumps({"why": "", "verdict": "true" if is_true else "false"})

    server, _ = model(script)
    answers = write(tmp_path / "answers", [None] * 20, labels=[[1, 0]] * 20)
    golden = tmp_path / "golden"
    options = ["--model", "m", "--base-url", server.url]
    assert main(["judge", str(answers), "-o", str(golden), *options]) == 0
    data = read_jsonl(golden)
    usual = [[i % 2] * 2 for i in range(20)]
    assert [row["judge_a"] for row in data.metadata] == usual
    assert [row["judge_b"] for row in data.metadata] == [[1, 0], *usual[1:]]
    assert data.labels[0].tolist() == [1, 0]
    assert main(["judge", str(golden), *options]) == 1
    assert "20 verdicts of 40" in capsys.readouterr().err
