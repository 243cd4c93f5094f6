"""The command line, as users type it."""

import gc
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import skdcf
from skdcf.apps.cli import main
from skdcf.apps.reporting import write_report
from skdcf.choosing import passing_answers
from skdcf.datasets import (
    make_reasoning_graphs,
    make_word_problems,
    read_jsonl,
    write_jsonl,
)
from skdcf.evaluation import evaluate_filter
from skdcf.features import TextFeatures, reasoning_features
from skdcf.guarantees import ExpectedFalse


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labelled word problems in a file, new ones in another, and a fitted filter."""
    folder = tmp_path_factory.mktemp("cli")
    data = make_word_problems(240, random_state=0)
    new = make_word_problems(60, random_state=1)
    sources = [{"source": f"page {i}"} for i in range(60)]
    write_jsonl(folder / "old.jsonl", data.graphs, data.labels, groups=data.groups)
    write_jsonl(folder / "new.jsonl", new.graphs, new.labels, metadata=sources)
    fit = [
        "fit",
        folder / "old.jsonl",
        "-o",
        folder / "m.skops",
        "--scorer",
        "logistic",
        "--show",
        "1",
    ]
    assert main(list(map(str, fit))) == 0
    return folder


def run(*arguments):
    return main([str(a) for a in arguments])


def test_fit_says_what_it_promises(files, tmp_path, capsys):
    fit = "fit", files / "old.jsonl", "-o", tmp_path / "m", "--alpha", "0.2"
    assert run(*fit, "--show", 1) == 0
    said = capsys.readouterr().err
    assert "with a probability of at least 0.8, no false claim is kept" in said
    assert "fitted on 240 problems" in said
    model = skdcf.load(tmp_path / "m")
    assert model.alpha == 0.2
    assert f"alpha of at least {1 / (model.n_calibration_ + 1):.3g}" in said


def test_fit_with_a_share_speaks_of_answers_that_pass(files, tmp_path, capsys):
    fit = ("fit", files / "old.jsonl", "--scorer", "logistic", "--alpha", "0.2")
    assert run(*fit, "--show", "0.5", "-o", tmp_path / "half") == 0
    said = capsys.readouterr().err
    assert re.search(r"answers that pass \(about \d\d % of all\), at most 20 %", said)
    half = skdcf.load(tmp_path / "half")
    n, n_passing = half.n_calibration_, half.calibration_.n_passing
    assert f"alpha of at least {1 / (n_passing + 1):.3g}" in said
    counts = rf"{n} calibration answers( \(.*\))?, of which {n_passing} pass"
    assert n_passing < n and re.search(counts, said)
    assert run(*fit, "--show", "auto", "-o", tmp_path / "auto") == 0
    said = capsys.readouterr().err
    auto = skdcf.load(tmp_path / "auto")
    assert f"{auto.share_:.0%} of the answers may pass" in said
    new, kept = files / "new.jsonl", tmp_path / "kept"
    assert run("filter", tmp_path / "half", new, "-o", kept) == 0
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    graphs = read_jsonl(new).graphs
    decided = half.predict(graphs), passing_answers(half, graphs)
    for row, mask, passes in zip(rows, *decided, strict=True):
        result = row["metadata"]["filtered"]
        assert row["mask"] == mask.tolist() and result["passes"] == passes
        assert result["guarantee"] == "passing"
        assert passes or set(result["claim_alpha"]) == {None}
    assert run("report", tmp_path / "half", new, "-o", tmp_path / "page") == 0
    page = (tmp_path / "page").read_text("utf-8")
    assert "of the answers that pass" in page and re.search(counts, page)
    assert f"<td>{n_passing} (now)" in page
    assert "calibration answers that pass</th>" in page
    again = "calibrate", tmp_path / "half", new, "-o", tmp_path / "again"
    for show, share in (((), 0.5), (("--show", 0.8), 0.8), (("--show", 1), 1)):
        assert run(*again, *show) == 0
        assert skdcf.load(tmp_path / "again").calibration_.guarantee.show == share
    assert run(*again, "--show", "auto") == 2
    assert "--show" in capsys.readouterr().err
    for show in ("some", "1.5"):
        try:
            code = run(*fit, "--show", show, "-o", tmp_path / "none")
        except SystemExit as ended:  # of the parser
            code = ended.code
        assert code == 2 and "show" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "fit", "calibrate"])
def test_a_file_that_has_no_lines_is_not_standard_output(
    files, tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    filter = [files / "m.skops"] if command != "fit" else []
    with pytest.raises(SystemExit) as ended:
        run(command, *filter, files / "old.jsonl", "-o", "-")
    assert ended.value.code == 2
    assert re.search("output.*'-'", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_counts_are_right_for_one(files, tmp_path, capsys):
    new = read_jsonl(files / "new.jsonl").graphs
    alternatives = new[0].alternatives
    one = skdcf.ReasoningGraph(
        None, [], claims=["2 + 2 = 4"], alternatives=alternatives
    )
    write_jsonl(tmp_path / "one", [one], [[-1]])
    args = files / "m.skops", tmp_path / "one", "-o", tmp_path / "k", "--alpha", 0.02
    assert run("filter", *args) == 0
    assert "of 1 claim in 1 problem were" in capsys.readouterr().err


def test_fit_online_decides_step_by_step(files, tmp_path):
    """The saved filter streams what `predict` keeps, and one without the option refuses."""
    fit = ("fit", files / "old.jsonl", "--scorer", "logistic", "--online")
    assert run(*fit, "-o", tmp_path / "online.skops") == 0
    online = skdcf.load(tmp_path / "online.skops")
    graph = make_word_problems(1, random_state=2).graphs[0]
    steps = [
        {"text": text, "parents": [int(u) for u, child in graph.edges if child == v]}
        for v, text in enumerate(graph.claims)
    ]
    known = {"problem": graph.problem, "alternatives": graph.alternatives}
    decisions = list(online.stream(steps, **known))
    assert decisions == online.predict([graph])[0].tolist()
    with pytest.raises(ValueError, match="online=True"):
        next(skdcf.load(files / "m.skops").stream(steps, **known))


def test_columns_of_edges_need_what_calibrated(tmp_path, capsys):
    data = make_word_problems(60, random_state=0)
    bare = [g.replace(edges=None) for g in data.graphs]
    write_jsonl(tmp_path / "bare", bare, data.labels)
    write_jsonl(tmp_path / "with_edges", data.graphs)
    fit = "fit", tmp_path / "bare", "-o", tmp_path / "m", "--no-edges"
    assert run(*fit, "--scorer", "logistic", "--features", "built-in") == 0
    capsys.readouterr()
    for name, code in (("bare", 0), ("with_edges", 2)):
        done = run("filter", tmp_path / "m", tmp_path / name, "-o", tmp_path / "out")
        assert done == code
        assert ("known edges" in capsys.readouterr().err) == (code == 2)


def test_fit_says_first_that_nothing_is_trained(tmp_path, capsys):
    """If calibration takes all answers, auto gives way to what needs no training."""
    data = make_word_problems(20, random_state=0)
    write_jsonl(tmp_path / "p", data.graphs, data.labels)
    fit = "fit", tmp_path / "p", "-o", tmp_path / "model", "--alpha", 0.05
    context = [g.replace(context=[" ".join(g.claims)]) for g in data.graphs]
    write_jsonl(tmp_path / "p", context, data.labels)
    for show in ((), ("--show", 1)):
        run(*fit, "--features", "built-in", *show, "--force")
        first = capsys.readouterr().err.splitlines()[0]
        assert "0.05" in first and "19 of these 20" in first
        assert "the column context_trigrams" in first
        found = skdcf.load(tmp_path / "model")
        assert found.scorer_.feature == "context_trigrams"
        assert found.n_calibration_ == 19


def test_fit_shows_where_somebody_watches_how_long_it_takes(
    files, tmp_path, monkeypatch
):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        model = tmp_path / "m.skops"
        assert run("fit", files / "old.jsonl", "-o", model, "--scorer", "logistic") == 0
        assert ("fitting on 240 problems ... 00:" in stream.getvalue()) == shown


def test_filter_writes_what_the_library_keeps(files, tmp_path, capsys):
    assert (
        run("filter", files / "m.skops", files / "new.jsonl", "-o", tmp_path / "k") == 0
    )
    kept, new = read_jsonl(tmp_path / "k"), read_jsonl(files / "new.jsonl")
    model = skdcf.load(files / "m.skops")
    masks = model.predict(new.graphs)
    assert list(kept.graphs) == list(new.graphs)
    for i, mask in enumerate(masks):
        assert kept.masks[i].tolist() == mask.tolist()
        assert kept.labels[i].tolist() == new.labels[i].tolist()
        assert kept.metadata[i]["source"] == f"page {i}"
        result = kept.metadata[i]["filtered"]
        assert result["text"] == " ".join(np.array(new.graphs[i].claims)[mask])
        assert [level <= 0.1 for level in result["claim_alpha"]] == mask.tolist()
    n = sum(map(np.sum, masks))
    assert f"{n} of {new.graphs.n_claims} claims in" in capsys.readouterr().err


def test_filter_computes_the_columns_of_each_problem_once(files, tmp_path, monkeypatch):
    counted = []
    compute = TextFeatures.own_columns

    def counting(self, batch):
        counted.append(len(batch))
        return compute(self, batch)

    monkeypatch.setattr(TextFeatures, "own_columns", counting)
    model = files / "m.skops"
    assert run("filter", model, files / "new.jsonl", "-o", tmp_path / "k") == 0
    assert sum(counted) == 60


def test_filter_again_at_another_level(files, tmp_path):
    model = files / "m.skops"
    assert run("filter", model, files / "new.jsonl", "-o", tmp_path / "a") == 0
    assert (
        run("filter", model, tmp_path / "a", "-o", tmp_path / "b", "--alpha", 0.3) == 0
    )
    first, second = read_jsonl(tmp_path / "a"), read_jsonl(tmp_path / "b")
    assert all((a <= b).all() for a, b in zip(first.masks, second.masks, strict=True))
    assert second.metadata[0]["filtered"]["alpha"] == 0.3
    assert second.metadata[0]["source"] == "page 0"


def test_text_from_standard_input_to_standard_output(files, monkeypatch, capsys):
    content = (files / "new.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run("filter", files / "m.skops", "-", "-o", "-", "--text") == 0
    lines = capsys.readouterr().out.split("\n")
    new = read_jsonl(files / "new.jsonl").graphs
    model = skdcf.load(files / "m.skops")
    expected = [
        " ".join(np.array(graph.claims)[mask])
        for graph, mask in zip(new, model.predict(new), strict=True)
    ]
    assert lines == [*expected, ""]


def test_a_pipe_that_knows_the_letters_of_one_region_gets_all(files, monkeypatch):
    """On Windows a pipe has its code page, and one arrow ended the command."""
    line = json.loads((files / "new.jsonl").read_text().splitlines()[0])
    text = "one \u2264 two \u2192 done"
    line["claims"] = [text] * len(line["claims"])
    problem = io.BytesIO(json.dumps(line).encode())
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(problem, "cp1252"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "cp1252"))
    assert (
        run("filter", files / "m.skops", "-", "-o", "-", "--text", "--empty", text) == 0
    )
    sys.stdout.flush()
    assert text in out.getvalue().decode("utf-8")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_calibrate_at_another_level_where_the_guarantee_had_one(files, tmp_path):
    """--alpha was set next to a bound, which went on to say the level."""
    data = read_jsonl(files / "old.jsonl")
    graphs = reasoning_features().fit_transform(data.graphs)
    write_jsonl(tmp_path / "a.jsonl", graphs, data.labels)
    bound = ExpectedFalse(bound=0.3)
    cf = skdcf.HardCF("claim_index", guarantee=bound).fit(graphs, data.labels)
    skdcf.save(cf, tmp_path / "m")
    again = tmp_path / "again"
    args = (tmp_path / "m", tmp_path / "a.jsonl", "-o", again, "--alpha", 0.05)
    assert run("calibrate", *args) == 0
    assert skdcf.load(again).threshold() == cf.threshold(0.05) < cf.threshold()


def test_calibrate_moves_the_threshold_and_nothing_else(files, tmp_path):
    args = files / "m.skops", files / "new.jsonl", "-o", tmp_path / "c", "--alpha", 0.2
    assert run("calibrate", *args) == 0
    old, new = skdcf.load(files / "m.skops"), skdcf.load(tmp_path / "c")
    assert new.n_calibration_ == 59  # the fewest that reach the rank of 60
    assert new.alpha == 0.2
    assert new.threshold_ != old.threshold_
    graphs = read_jsonl(files / "new.jsonl").graphs
    assert new.path_risk(graphs)[0].tolist() == old.path_risk(graphs)[0].tolist()


def test_report_is_one_page_with_all_that_was_kept_and_missed(files, tmp_path, capsys):
    page, args = tmp_path / "r.html", (files / "m.skops", files / "new.jsonl")
    assert run("report", *args, "-o", page, "--by", "source", "--answers", 5) == 0
    assert "wrote" in capsys.readouterr().err
    text = page.read_text(encoding="utf-8")
    model, data = skdcf.load(files / "m.skops"), read_jsonl(files / "new.jsonl")
    kept = model.predict(data.graphs)
    missed = sum(
        bool((mask & (labels == 0)).any())
        for mask, labels in zip(kept, data.labels, strict=True)
    )
    assert f"kept in {missed} of 60 answers" in text
    assert "<td>page 3</td>" in text
    assert "<svg" in text
    assert "no false claim is kept" in text
    assert not re.search(r"(src|href)=[\"']?(http|//)|@import|url\(http", text)


def test_report_counts_what_nobody_judged_as_coverage_does(files, tmp_path):
    data = read_jsonl(files / "new.jsonl")
    model = skdcf.load(files / "m.skops")
    kept = model.predict(data.graphs)
    labels = [
        np.where(np.arange(len(row)) == 0, -1, row) if i % 2 else row
        for i, row in enumerate(data.labels)
    ]
    false = [(m & (y == 0)).any() for m, y in zip(kept, labels, strict=True)]
    missed = [(m & (y != 1)).any() for m, y in zip(kept, labels, strict=True)]
    assert sum(missed) > sum(false)
    page = write_report(tmp_path / "r.html", model, data.graphs, labels)
    more = sum(missed) - sum(false)
    assert re.search(
        rf"in {sum(false)} of 60 answers.* counts as false, .* in {more} other",
        page.read_text("utf-8"),
    )
    coverage = evaluate_filter(model, data.graphs, labels, [0.1]).coverage[0]
    assert coverage == pytest.approx(1 - sum(missed) / 60)


def test_features_of_the_file_are_used_where_it_has_some(tmp_path):
    graphs, labels = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    write_jsonl(tmp_path / "g.jsonl", graphs, labels)
    column = "--scorer", "frequency-score", "--show", 1
    assert run("fit", tmp_path / "g.jsonl", "-o", tmp_path / "m", *column) == 0
    model = skdcf.load(tmp_path / "m")
    assert model.predict(graphs[:5])[0].dtype == bool
    assert run("fit", tmp_path / "g.jsonl", "-o", tmp_path / "n", "--no-edges") == 0
    assert skdcf.load(tmp_path / "n").edges == "none"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["filter", "no.skops", "no.jsonl", "-o", "x"], "no.skops"),
        (["filter", "MODEL", "no.jsonl", "-o", "x"], "no.jsonl: No such file"),
        (["filter", "MODEL", "BROKEN", "-o", "x"], "line 2: "),
        (["filter", "MODEL", "NEW", "-o", "x", "--alpha", "2"], "got 2"),
        (["filter", "NEW", "NEW", "-o", "x"], "new.jsonl"),
        (["fit", "UNLABELLED", "-o", "x"], '"labels"'),
        (["fit", "OLD", "-o", "x", "--scorer", "magic"], "'magic'"),
        (["fit", "OLD", "-o", "x", "--features", "given"], "requires features"),
        (["fit", "OLD", "-o", "x", "--calibration", "300"], "300 of"),
        (["fit", "OLD", "-o", "missing/x"], "the folder"),
        (["report", "MODEL", "UNLABELLED", "-o", "x"], '"labels"'),
    ],
)
def test_errors_are_one_sentence(
    files, tmp_path, arguments, message, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    new = read_jsonl(files / "new.jsonl").graphs
    write_jsonl("unlabelled.jsonl", new)
    lines = (tmp_path / "unlabelled.jsonl").read_text().splitlines()
    (tmp_path / "broken.jsonl").write_text(f"{lines[0]}\n{lines[1][:-9]}\n")
    places = {
        "MODEL": files / "m.skops",
        "OLD": files / "old.jsonl",
        "NEW": files / "new.jsonl",
        "UNLABELLED": "unlabelled.jsonl",
        "BROKEN": "broken.jsonl",
    }
    assert run(*(places.get(a, a) for a in arguments)) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert said.startswith(f"skdcf {arguments[0]}: ")
    assert not (tmp_path / "x").exists()


def test_an_interruption_leaves_no_file(files, tmp_path, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("skdcf.apps.cli._commands.check", interrupt)
    assert (
        run("filter", files / "m.skops", files / "new.jsonl", "-o", tmp_path / "k")
        == 130
    )
    assert "interrupted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_too_few_labels_end_with_1_unless_forced(files, tmp_path, capsys):
    few = read_jsonl(files / "old.jsonl")
    write_jsonl(tmp_path / "few.jsonl", few.graphs[:20], few.labels[:20])
    args = tmp_path / "few.jsonl", "-o", tmp_path / "m", "--alpha", 0.01
    assert run("fit", *args, "--scorer", "logistic") == 1
    said = capsys.readouterr().err
    assert "skdcf: warning: " in said and "nothing can be kept" in said
    assert "was not saved" in said and "--force" in said
    assert not (tmp_path / "m").exists()
    assert run("fit", *args, "--scorer", "logistic", "--force") == 0
    kept = tmp_path / "k"
    assert run("filter", tmp_path / "m", files / "new.jsonl", "-o", kept) == 0
    assert not any(mask.any() for mask in read_jsonl(kept).masks)
    new = read_jsonl(files / "new.jsonl")
    write_jsonl(tmp_path / "new.jsonl", new.graphs[:20], new.labels[:20])
    again = tmp_path / "m", tmp_path / "new.jsonl", "-o", tmp_path / "n"
    few = [*again, "--alpha", 0.02]
    assert run("calibrate", *few) == 1
    assert not (tmp_path / "n").exists()
    assert run("calibrate", *few, "--force") == 0


def test_text_says_how_many_answers_are_empty(files, tmp_path, capsys):
    args = files / "m.skops", files / "new.jsonl", "--alpha", 0.02, "--text"
    assert run("filter", *args, "-o", tmp_path / "k", "--empty", "I do not know.") == 0
    lines = (tmp_path / "k").read_text(encoding="utf-8").splitlines()
    model, new = skdcf.load(files / "m.skops"), read_jsonl(files / "new.jsonl").graphs
    empty = sum(not mask.any() for mask in model.predict(new, alpha=0.02))
    assert lines.count("I do not know.") == empty > 0
    assert f"All claims of {empty} problems" in capsys.readouterr().err


def test_every_command_names_a_function_that_there_is():
    content = (Path(skdcf.__file__).parent / "apps/cli/commands.toml").read_text(
        "utf-8"
    )
    commands = tomllib.loads(content)["commands"]
    assert {"fit", "serve"} <= commands.keys()
    for command in commands.values():
        module, _, name = command["run"].partition(":")
        assert callable(getattr(import_module(f"skdcf.apps.cli.{module}"), name))


def test_help_of_every_command_has_an_example_that_is_right(capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--help")
    names = re.findall(r"^    ([a-z]+)\b", capsys.readouterr().out, flags=re.MULTILINE)
    assert {"fit", "calibrate", "filter", "label"} < set(names)
    for command in names:
        with pytest.raises(SystemExit, match="0"):
            run(command, "--help")
        said = capsys.readouterr().out
        if command == "fit":
            assert "default of fit: auto" in " ".join(said.split())
        example = " ".join(said.partition("Example: ")[2].split()).split()
        assert example[:2] == ["skdcf", command]
        with pytest.raises(SystemExit, match="2"):  # nothing else is wrong with it
            run(*example[1:], "--nothing-of-the-kind")
        said = capsys.readouterr().err
        assert "unrecognized arguments: --nothing-of-the-kind" in said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["--help"], 0), (["fit", "--help"], 0), (["fit"], 2)],
)
def test_the_command_line_is_answered_without_scikit_learn(arguments, code):
    program = (
        "import sys; from skdcf.apps.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: code = end.code\n"
        "heavy = {'sklearn', 'numpy', 'scipy'} & set(sys.modules)\n"
        "sys.exit(99 if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments])
    assert done.returncode == code


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as on POSIX")
def test_ctrl_c_while_modules_are_imported(files):
    """At many moments; the first line of the program says that Python has started."""
    program = "import sys, skdcf.apps.cli; print('up', flush=True); sys.exit(skdcf.apps.cli.main())"
    command = [
        sys.executable,
        "-c",
        program,
        "filter",
        str(files / "m.skops"),
        str(files / "new.jsonl"),
        "-o",
        "-",
    ]
    for wait in np.linspace(0.005, 0.6, 4):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "up\n"
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=240)
        assert process.returncode in (0, 130), said
        assert "Traceback" not in said
        assert "interrupted" in said or process.returncode == 0


@pytest.mark.parametrize(
    "flags",
    [
        ("--map", "steps=claims", "--map", "judged=labels"),
        ("--map", "steps=claims,judged=labels"),
    ],
)
def test_every_map_counts_and_none_eats_the_file(files, tmp_path, capsys, flags):
    names = {"claims": "steps", "labels": "judged"}
    rows = map(json.loads, (files / "old.jsonl").read_text().splitlines())
    lines = [json.dumps({names.get(k, k): v for k, v in row.items()}) for row in rows]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    target = "-o", tmp_path / "m", "--scorer", "logistic"
    assert run("fit", *flags, tmp_path / "own.jsonl", *target) == 0
    assert "fitted on 240 problems" in capsys.readouterr().err


@pytest.mark.parametrize(
    "pairs, message",
    [
        ("steps=clams", "'clams' is not a"),
        ("steps=claims,steps=labels", "'claims' and 'labels'"),
    ],
)
def test_a_map_that_cannot_be_is_refused(files, tmp_path, capsys, pairs, message):
    target = "-o", tmp_path / "m"
    assert run("fit", files / "old.jsonl", *target, "--map", pairs) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_saved_before_anything_is_said(files, tmp_path, monkeypatch):
    def gone(*_):
        raise BrokenPipeError

    saved = tmp_path / "m"
    monkeypatch.setattr("skdcf.apps.cli._commands.labelling.describe_labels", gone)
    monkeypatch.setattr("skdcf.apps.cli._main.os.dup2", lambda *_: None)
    assert run("fit", files / "old.jsonl", "-o", saved, "--scorer", "logistic") == 0
    assert saved.exists()


@pytest.mark.long
def test_another_provenance_is_refused(files, tmp_path, capsys):
    data = read_jsonl(files / "old.jsonl")
    for name, model in (("one", "a"), ("two", "b")):
        graphs = [g.replace(provenance={"model": model}) for g in data.graphs]
        half = slice(0, 80) if name == "one" else slice(80, 160)
        write_jsonl(tmp_path / f"{name}.jsonl", graphs[half], data.labels[half])
    model = tmp_path / "m"
    fit = (
        "fit",
        tmp_path / "one.jsonl",
        "-o",
        model,
        "--scorer",
        "logistic",
        "--show",
        1,
    )
    assert run(*fit) == 0
    capsys.readouterr()
    two = tmp_path / "two.jsonl"
    for command in (
        ["filter", model, two, "-o", tmp_path / "k"],
        ["report", model, two, "-o", tmp_path / "r.html", "--answers", "2"],
        ["label", two, "--filter", model],
    ):
        assert run(*command) == 2
        said = capsys.readouterr().err
        assert "'a'" in said and "'b'" in said
    assert run("calibrate", model, two, "-o", tmp_path / "c") == 0
    assert run("filter", tmp_path / "c", two, "-o", tmp_path / "k") == 0


def test_a_command_searches_for_cycles_less_often(monkeypatch):
    """Searching after every few hundred new objects takes longer than reading lines."""
    before = gc.get_threshold()
    found = []
    monkeypatch.setattr(
        "skdcf.apps.cli._commands.fit",
        lambda options: found.append(gc.get_threshold()),
    )
    assert run("fit", "any.jsonl", "-o", "m") == 0
    assert found == [(10_000, *before[1:])]
    assert gc.get_threshold() == before
