"""The commands on files, and how the command line answers."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from command_line import run

import skdcf
from skdcf.apps.cli._main import make_parser
from skdcf.choosing import passing_answers
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl
from skdcf.edges import chain_edges
from skdcf.evaluation import evaluate_filter
from skdcf.features import reasoning_features
from skdcf.inspection import explain


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labelled word problems in a file, new ones in another, and a fitted filter."""
    folder = tmp_path_factory.mktemp("commands")
    data = make_word_problems(240, random_state=0)
    new = make_word_problems(60, random_state=1)
    sources = [{"source": f"page {i}"} for i in range(60)]
    write_jsonl(folder / "old.jsonl", data.graphs, data.labels, groups=data.groups)
    write_jsonl(folder / "new.jsonl", new.graphs, new.labels, metadata=sources)
    old = folder / "old.jsonl"
    fit = ("fit", old, "-o", folder / "m.skops", "--scorer", "logistic")
    assert run(*fit, "--show", 1) == 0
    numbers = [skdcf.ReasoningGraph([[i]], [], problem=str(i)) for i in range(9)]
    cf = skdcf.HardCF(0, alpha=0.2).fit(numbers, [[i > 2] for i in range(9)])
    skdcf.save(cf, folder / "numbers.skops")
    return folder


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# --- fit and calibrate


@pytest.mark.parametrize("show", ["0.5", "auto", "1"])
def test_fit_prints_the_guarantee_and_a_table(files, tmp_path, capsys, show):
    fit = ("fit", files / "old.jsonl", "--scorer", "logistic", "--show", show)
    assert run(*fit, "--alpha", 0.2, "-o", tmp_path / "m") == 0
    text = capsys.readouterr().err
    cf = skdcf.load(tmp_path / "m")
    assert cf.describe() in text and "240 answers" in text
    assert cf.calibration_.guarantee.show == {"0.5": 0.5, "1": 1}.get(show, cf.share_)
    is_average = cf.calibration_.guarantee.show == 1
    assert ("average over all answers" in text) == is_average
    rows = {
        float(row[0]): row[1:]
        for row in map(str.split, text.splitlines())
        if len(row) == 5 and row[0][0].isdigit()
    }
    assert sorted(rows) == [0.02, 0.05, 0.1, 0.2, 0.3]
    for level, (passing, shown, _, wrong) in rows.items():
        assert passing == f"{cf.calibration_.passing:.0%}"
        assert shown == f"{cf.calibration_.shown(level):.0%}"
        assert float(wrong[:-1]) <= 100 * level
    needed = re.search(r"alpha = (\S+) needs labels for (\d+) more", text)
    level = float(needed[1]) if needed else 0.02
    more = cf.calibration_.guarantee.problems_needed(level) - cf.n_calibration_
    assert more == int(needed[2]) > 0 if needed else more <= 0
    assert text.splitlines()[-1].startswith(f"next: skdcf filter {tmp_path / 'm'}")


def test_options_of_fit(files, tmp_path):
    fit = ("fit", files / "new.jsonl", "--scorer", "logistic", "-o", tmp_path / "m")
    assert run(*fit, "--online", "--no-edges", "--seed", 3, "--alpha", 0.3) == 0
    cf = skdcf.load(tmp_path / "m")
    assert (cf.online, cf.edges, cf.random_state, cf.alpha) == (True, "none", 3, 0.3)
    graphs = reasoning_features().fit_transform(read_jsonl(files / "new.jsonl").graphs)
    write_jsonl(tmp_path / "p", graphs, read_jsonl(files / "new.jsonl").labels)
    fit = ("fit", tmp_path / "p", "--scorer", "logistic", "-o", tmp_path / "m")
    widths = {}
    for features in ("given", "built-in", "both"):
        assert run(*fit, "--features", features, "--show", 1, "--alpha", 0.3) == 0
        widths[features] = len(skdcf.load(tmp_path / "m").feature_names_in_)
    assert widths["given"] <= widths["built-in"] <= widths["both"]


def test_if_calibration_needs_all_answers_a_column_scores(tmp_path, capsys):
    data = make_word_problems(20, random_state=0)
    graphs = [g.replace(context=[" ".join(g.claims)]) for g in data.graphs]
    write_jsonl(tmp_path / "p", graphs, data.labels)
    fit = ("fit", tmp_path / "p", "-o", tmp_path / "m", "--alpha", 0.05)
    assert run(*fit, "--features", "built-in") == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert "0.05" in first and "19 of these 20" in first
    cf = skdcf.load(tmp_path / "m")
    assert cf.scorer_.feature == "context_trigrams" and cf.n_calibration_ == 19


def test_all_labels(files, tmp_path, capsys):
    data = make_word_problems(25, random_state=0)
    chains = [chain_edges(g.claims) for g in data.graphs]
    graphs = [g.replace(edges=e) for g, e in zip(data.graphs, chains, strict=True)]
    write_jsonl(tmp_path / "p", graphs, data.labels)
    fit = ("fit", tmp_path / "p", "-o", tmp_path / "m", "--all-labels")
    assert run(*fit, "--alpha", 0.05) == 0
    text = capsys.readouterr().err
    assert "--show 1" in text and "alpha   answers that pass" not in text
    cf = skdcf.load(tmp_path / "m")
    assert cf.calibration_size == "all" and cf.n_calibration_ == 19
    assert run("filter", tmp_path / "m", tmp_path / "p", "-o", tmp_path / "out") == 0
    assert run(*fit, "--calibration", 0.5) == 2


def test_too_few_labels_end_with_1(files, tmp_path, capsys):
    few = read_jsonl(files / "old.jsonl")
    write_jsonl(tmp_path / "few", few.graphs[:20], few.labels[:20])
    fit = ("fit", tmp_path / "few", "-o", tmp_path / "m", "--alpha", 0.01)
    assert run(*fit, "--scorer", "logistic") == 1
    assert not (tmp_path / "m").exists()
    text = capsys.readouterr().err
    assert "warning: " in text and "not saved" in text and "next:" not in text
    new = read_jsonl(files / "new.jsonl")
    write_jsonl(tmp_path / "few", new.graphs[:20], new.labels[:20])
    again = ("calibrate", files / "m.skops", tmp_path / "few", "-o", tmp_path / "n")
    assert run(*again, "--alpha", 0.02) == 1 and not (tmp_path / "n").exists()


def test_calibrate_moves_the_threshold_and_nothing_else(files, tmp_path, capsys):
    again = ("calibrate", files / "m.skops", files / "new.jsonl", "-o", tmp_path / "c")
    assert run(*again, "--alpha", 0.2, "--show", 0.8) == 0
    old, new = skdcf.load(files / "m.skops"), skdcf.load(tmp_path / "c")
    assert new.alpha == 0.2 and new.calibration_.guarantee.show == 0.8
    graphs = read_jsonl(files / "new.jsonl").graphs
    assert new.path_risk(graphs)[0].tolist() == old.path_risk(graphs)[0].tolist()
    assert run(*again, "--show", "auto") == 2
    assert "--show" in capsys.readouterr().err


def test_a_filter_is_trained_on_a_model_and_calibrated_on_people(tmp_path, capsys):
    data = make_word_problems(160, random_state=0)
    for name, rows in (("model m", range(80)), ("person", range(80, 160))):
        made = {"label_source": name}
        graphs = [data.graphs[i].replace(provenance=made) for i in rows]
        write_jsonl(tmp_path / name, graphs, [data.labels[i] for i in rows])
    fit = ("fit", tmp_path / "model m", "-o", tmp_path / "m", "--scorer", "logistic")
    assert run(*fit, "--show", 1, "--calibration", 0) == 0
    assert "judged by model m" in capsys.readouterr().err
    filter = ("filter", tmp_path / "m", tmp_path / "person", "-o", tmp_path / "kept")
    assert run(*filter) == 2
    assert "calibrate" in capsys.readouterr().err
    again = ("calibrate", tmp_path / "m", tmp_path / "person", "-o", tmp_path / "m")
    assert run(*again) == 0
    assert run(*filter) == 0


# --- filter and report


def test_filter_writes_what_the_library_keeps_and_why(files, tmp_path):
    model = tmp_path / "m"
    fit = ("fit", files / "old.jsonl", "-o", model, "--scorer", "logistic")
    assert run(*fit, "--show", 0.5) == 0
    filter = ("filter", model, files / "new.jsonl", "-o", tmp_path / "kept")
    assert run(*filter, "--json", "--alpha", 0.2) == 0
    cf, new = skdcf.load(model), read_jsonl(files / "new.jsonl")
    masks = cf.predict(new.graphs, 0.2)
    kept = read_jsonl(tmp_path / "kept")
    explained = explain(cf, new.graphs, alpha=0.2)
    passes = passing_answers(cf, new.graphs)
    for i, mask in enumerate(masks):
        assert kept.masks[i].tolist() == mask.tolist()
        assert kept.metadata[i]["source"] == f"page {i}"
        decision = kept.metadata[i]["filtered"]
        assert decision["alpha"] == 0.2 and decision["passes"] == passes[i]
        assert decision["text"] == "\n".join(np.array(new.graphs[i].claims)[mask])
        levels = decision["claim_alpha"]
        assert [a is not None and a <= 0.2 for a in levels] == mask.tolist()
        reasons = {int(v): reason for v, reason in decision["reasons"].items()}
        assert reasons == explained[i].reasons
        assert decision["why_empty"] in ({None} if mask.any() else {*reasons.values()})
    assert run(*filter, "--alpha", 0.2) == 0
    lines = (tmp_path / "kept").read_text("utf-8").split("\n")[:-1]
    texts = [metadata["filtered"]["text"] for metadata in kept.metadata]
    assert lines == [" ".join(text.split()) for text in texts]


def test_the_answers_of_a_log_are_replaced_under_its_own_keys(files, tmp_path, capsys):
    names = {"problem": "asked", "claims": "steps"}
    rows = [
        {names.get(k, k): v for k, v in row.items() if k != "metadata"}
        | {"reply": {"text": "as it was"}, "shift": i}
        for i, row in enumerate(lines_of(files / "new.jsonl"))
    ]
    rows[0] |= {"steps": [], "edges": [], "labels": []}
    log, out = tmp_path / "log", tmp_path / "out"
    log.write_text("\n".join(map(json.dumps, rows)))
    filter = ["filter", files / "m.skops", log, "-o", out]
    filter += ["--map", "asked=problem", "--map", "steps=claims"]
    assert run(*filter, "--text-key", "reply.text", "--alpha", 0.02) == 0
    for row, old in zip(lines_of(out), rows, strict=True):
        text = row["metadata"].pop("filtered")["text"]
        assert row.pop("reply") == {"text": text} and not row.pop("metadata")
        assert row | {"reply": old["reply"]} == old | {"mask": row["mask"]}
    capsys.readouterr()
    for key in ("sad", "shift", "mask", "filtered"):
        assert run(*filter, "--text-key", key) == 2
        assert f"--text-key {key}" in capsys.readouterr().err


def test_text_in_a_pipe_of_another_region(files, monkeypatch):
    """Windows gives a pipe its code page, which lacks most characters."""
    text = "one \u2264 two"
    line = json.dumps({"claims": [text], "edges": [], "alternatives": ["x"]})
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "cp1252"))
    filter = ("filter", files / "m.skops", "-", "-o", "-")
    assert run(*filter, "--alpha", 0.99) == 0
    sys.stdout.flush()
    assert out.getvalue().decode("utf-8").split() == text.split()


def test_report_prints_the_table_and_writes_a_page(files, tmp_path, capsys):
    report = ("report", files / "m.skops", files / "new.jsonl", "-o", tmp_path / "r")
    assert run(*report, "--alphas", 0.05, 0.2) == 0
    data = read_jsonl(files / "new.jsonl")
    cf = skdcf.load(files / "m.skops")
    table = evaluate_filter(cf, data.graphs, data.labels, [0.05, 0.1, 0.2])
    assert str(table).splitlines()[2] in capsys.readouterr().out


# --- the command line


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["filter", "no.skops", "NEW", "-o", "x"], "no.skops"),
        (["filter", "MODEL", "BROKEN", "-o", "x"], "broken.jsonl, line 2: "),
        (["filter", "OF_NUMBERS", "NUMBERS", "-o", "x"], "line 1 .*--json"),
        (["fit", "NUMBERS", "-o", "x"], '"labels"'),
        (["fit", "OLD", "-o", "missing/x"], "missing"),
        (["fit", "OLD", "-o", "x", "--map", "steps=clams"], "steps=clams"),
        (["fit", "OLD", "-o", "x", "--map", "a=claims,b=claims"], "'b=claims'"),
        (["fit", "OLD", "-o", "x", "--group-by", "shift"], "shift"),
        (["label", "NEW", "--json"], "--json .*--review"),
        (["label", "NEW", "--review", "MODEL", "--csv", "x"], "--csv .*--review"),
        (["serve", "MODEL", "--host", "0.0.0.0"], "--token-variable"),
        (["serve", "MODEL", "--token-variable", "NOT_SET"], "NOT_SET"),
    ],
)
def test_errors_name_the_value(files, tmp_path, monkeypatch, capsys, arguments, match):
    monkeypatch.chdir(tmp_path)
    write_jsonl("numbers.jsonl", [skdcf.ReasoningGraph([[0.1]], [])])
    lines = (files / "new.jsonl").read_text().splitlines()
    (tmp_path / "broken.jsonl").write_text(f"{lines[0]}\n{lines[1][:-9]}\n")
    places = {
        "MODEL": files / "m.skops",
        "OLD": files / "old.jsonl",
        "NEW": files / "new.jsonl",
        "NUMBERS": "numbers.jsonl",
        "OF_NUMBERS": files / "numbers.skops",
        "BROKEN": "broken.jsonl",
    }
    assert run(*(places.get(a, a) for a in arguments)) == 2
    text = capsys.readouterr().err
    assert f"skdcf {arguments[0]}: " in text and re.search(match, text)
    assert "Traceback" not in text
    assert not (tmp_path / "x").exists()


def test_a_file_that_has_no_lines_is_not_standard_output(files, capsys):
    with pytest.raises(SystemExit, match="2"):
        run("fit", files / "old.jsonl", "-o", "-")
    assert "'-'" in capsys.readouterr().err


def test_each_command_has_help_and_an_example_that_is_right(capsys):
    [commands] = [a for a in make_parser()._actions if a.dest == "command"]
    assert len(commands.choices) == 10
    for name, parser in commands.choices.items():
        example = " ".join(parser.format_help().partition("Example: ")[2].split())
        program, *arguments = example.split()
        assert program == "skdcf"
        options = make_parser().parse_args(arguments)
        assert options.command == name and options.next.startswith("skdcf ")


def test_help_is_answered_at_once():
    """Without numpy and scikit-learn, which take most of the time of a start."""
    heavy = "{'sklearn', 'numpy', 'scipy'} & set(sys.modules)"
    code = "import sys; from skdcf.apps.cli import main\ntry: main(['--help'])\n"
    code += f"except SystemExit: sys.exit(len({heavy}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 0 and b"filter" in done.stdout


def test_a_closed_pipe_is_not_an_error(files, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    filter = ("filter", files / "m.skops", files / "new.jsonl", "-o", "-", "--json")
    with os.fdopen(writing, "w", buffering=1) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert run(*filter) == 0


@pytest.mark.long
def test_demo_prints_a_table_and_writes_a_report(tmp_path, capsys):
    assert run("demo", "--n-problems", 240, "--output", tmp_path) == 0
    text = capsys.readouterr().out
    for name in ("IndependentFactuality", "HardCF", "CoherentConformalFilter"):
        assert name in text
    assert "dropped  (FALSE)" in text and str(tmp_path / "report.html") in text
    assert len(text.splitlines()) <= 25
