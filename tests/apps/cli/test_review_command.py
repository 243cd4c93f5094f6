"""``skdcf label --review``: by keyboard, with kills, and what is refused."""

import json
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from browser import Browser

import skdcf
from skdcf.apps.cli import main
from skdcf.apps.labelling import LabelServer, LabelStore, ReviewOrder
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl

N_NEW = 60


def run(*arguments):
    return main([str(a) for a in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A strict filter, 60 new answers without labels, and what is true of them."""
    folder = tmp_path_factory.mktemp("review")
    data = make_word_problems(360, random_state=0)
    graphs = [
        graph.replace(metadata={**(graph.metadata or {}), "own": i})
        for i, graph in enumerate(data.graphs)
    ]
    write_jsonl(folder / "train.jsonl", graphs[:300], data.labels[:300])
    write_jsonl(folder / "new.jsonl", graphs[300:])
    fit = ("fit", folder / "train.jsonl", "-o", folder / "m", "--alpha", 0.05)
    assert run(*fit, "--show", 1) == 0
    return folder


@pytest.fixture(scope="module")
def truth():
    return make_word_problems(360, random_state=0).labels[300:]


@pytest.fixture
def filter(folder):
    return skdcf.load(folder / "m")


def is_wrong(masks, truth):
    pairs = zip(masks, truth, strict=True)
    return [bool((row[np.asarray(mask, bool)] != 1).any()) for mask, row in pairs]


def word(label):
    return "true" if label == 1 else "false"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Program:
    """``skdcf label`` in a process of its own, with its page."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "skdcf", "label", "--no-browser"]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._address()

    def _address(self):
        for line in self.process.stderr:
            if "http://" in line:
                return line[line.index("http://") :].strip()
        raise AssertionError("the program ended without a page")

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self):
        """As Ctrl-C does; what it printed."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return out + err


HERE = "document.querySelector('.claim.here:not([hidden]) .number').textContent"
QUESTION = "document.querySelector('#question').textContent"
SHOWN = "document.querySelectorAll('li:not([hidden]) > .claim').length"
DONE = "document.querySelector('#done').className"


def ready(tab):
    tab.wait("document.querySelector('#saved').textContent === 'all saved'")


def check_by_keyboard(tab, n, problems, truth):
    """Answer what the page asks about as a person who knows the truth; what was asked."""
    asked = []
    for _ in range(n):
        ready(tab)
        i = problems.index(tab.run(QUESTION))
        v = int(tab.run(HERE)) - 1
        tab.press("t" if truth[i][v] == 1 else "f")
        asked.append((i, v))
        ready(tab)
    return asked


@pytest.mark.long
def test_a_review_by_keyboard_with_the_program_and_the_browser_killed(
    folder, filter, truth, tmp_path
):
    new, out = folder / "new.jsonl", tmp_path / "kept.jsonl"
    graphs = read_jsonl(new).graphs
    problems = [graph.problem for graph in graphs]
    assert len(set(problems)) == N_NEW
    command = [new, "--review", folder / "m", "-o", out]
    command += ["--journal", tmp_path / "j", "--annotator", "ann"]
    asked = []
    for n, is_killed in ((15, True), (25, False)):
        # The browser comes first: without one the test is skipped, and no program is left.
        with Browser(tmp_path / f"profile {n}") as browser:
            program = Program(*command)
            tab = browser.open(program.url)
            ready(tab)
            before = tab.run(SHOWN)
            assert f"{len(asked)} claims checked" in tab.run("document.body.innerText")
            asked += check_by_keyboard(tab, 1, problems, truth)
            # The answer has grown by what was found true, or the next one is shown.
            if (
                tab.run(QUESTION) == problems[asked[-1][0]]
                and truth[asked[-1][0]][asked[-1][1]]
            ):
                assert tab.run(SHOWN) >= before
            asked += check_by_keyboard(tab, n - 1, problems, truth)
            if is_killed:
                program.kill()
                browser.kill()
                assert not out.exists()
            else:
                printed = program.end()

    # The same claims in the same order as without a page.
    review = ReviewOrder(filter, graphs)
    for i, v in asked:
        check = review.next()
        assert (check.problem, check.claim) == (i, v)
        review.told(i, v, word(truth[i][v]))
    lines = lines_of(out)
    masks = [line["mask"] for line in lines]
    assert masks == [mask.tolist() for mask in review.masks()]

    # Nothing false is kept that was not kept before, answer by answer.
    plain = filter.predict(graphs)
    assert is_wrong(masks, truth) == is_wrong(plain, truth)
    n_true = sum(truth[i][v] == 1 for i, v in asked)
    assert n_true > 10
    assert sum(map(sum, masks)) == sum(int(mask.sum()) for mask in plain) + n_true
    assert "40 claims were checked by a person" in printed

    # Who checked what, and what is kept because of it.
    for i, line in enumerate(lines):
        checked = [v for j, v in asked if j == i]
        assert [v for v, y in enumerate(line["labels"]) if y >= 0] == sorted(checked)
        expected = sorted(v for v in checked if truth[i][v] == 1)
        assert line["metadata"]["filtered"]["checked"] == expected
        assert line["provenance"]["label_order"] == "review"
        assert line["metadata"]["own"] == 300 + i


@pytest.mark.long
def test_the_page_grows_and_verdicts_are_taken_back(folder, filter, truth, tmp_path):
    graphs = read_jsonl(folder / "new.jsonl").graphs
    review = ReviewOrder(filter, graphs)
    before = [mask.tolist() for mask in review.masks()]
    store = LabelStore(graphs, tmp_path / "j", purpose="review")
    check = review.next()
    i, v = check.problem, check.claim
    with (
        LabelServer(store, "ann", order=review) as server,
        Browser(tmp_path / "profile") as browser,
    ):
        tab = browser.open(server.url)
        ready(tab)
        # Kept claims and the one that is asked about; no other.
        assert tab.run(SHOWN) == sum(before[i]) + 1
        assert tab.run(HERE) == str(v + 1)
        verdicts = (
            "[...document.querySelectorAll('li:not([hidden]) > .claim .verdict')]"
        )
        texts = tab.run(f"{verdicts}.map(e => e.textContent)")
        assert sorted(texts) == sorted(["kept"] * sum(before[i]) + [""])
        tab.press("t")
        ready(tab)
        assert review.masks()[i][v]
        tab.press("p")  # back to it, and take it back
        assert tab.run(HERE) == str(v + 1)
        tab.press("Backspace")
        ready(tab)
        assert [mask.tolist() for mask in review.masks()] == before
        tab.press("u")
        ready(tab)
        assert [
            mask.tolist() for mask in review.masks()
        ] == before and review.n_checks == 1
        # An error in what the filter kept goes out with all that builds on it.
        j, _ = tab.run("[i, v]")
        top = next(w for w, is_kept in enumerate(before[j]) if is_kept)
        tab.press(*"k" * 9, "f")
        ready(tab)
        gone = review.masks()[j]
        assert not gone[top] and review.n_checks == 1
        # Keys that would change what the filter decided by do nothing.
        tab.press("e", "x")
        ready(tab)
        assert tab.run("document.querySelectorAll('.claim input').length") == 0
        with pytest.raises(ValueError, match=r"edges.*'review'"):
            store.correct_edges(i, [], by="ann")


def test_a_review_counts_the_verdicts_of_one_person(folder, filter, tmp_path):
    graphs = read_jsonl(folder / "new.jsonl").graphs
    store = LabelStore(graphs, tmp_path / "j", purpose="review")
    review = ReviewOrder(filter, graphs)
    [(i, [v])] = first = review(store, "ann")
    store.label(i, v, "true", by="bob")
    assert review(store, "ann") == first and not review.masks()[i][v]
    store.label(i, v, "true", by="ann")
    assert review(store, "ann") != first and review.masks()[i][v]
    store.label(i, v, None, by="ann")
    assert review(store, "ann") == first and not review.masks()[i][v]


def test_a_thousand_keys_of_two_people_at_once_are_all_there(folder, tmp_path):
    graphs = read_jsonl(folder / "new.jsonl").graphs
    stores = [LabelStore(graphs, tmp_path / "j", purpose="review") for _ in range(2)]

    def judge(store, by):
        for n in range(300):
            i = n % N_NEW
            store.label(i, 0, ("true", "false")[n // N_NEW % 2], by=by)

    threads = [
        threading.Thread(target=judge, args=pair)
        for pair in zip(stores, ("ann", "bob"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.follow()
        assert store.version == 600
    again = LabelStore(graphs, tmp_path / "j", purpose="review")
    assert again.version == 600 and again.events == stores[0].events


def review_without_page(folder, tmp_path, truth, n=30):
    """A journal of so many checks, and the arguments of a command that writes what is kept."""
    new = folder / "new.jsonl"
    graphs = read_jsonl(new).graphs
    store = LabelStore(graphs, tmp_path / "j", purpose="review")
    review = ReviewOrder(skdcf.load(folder / "m"), graphs)
    for _ in range(n):
        [(i, [v])] = review(store, "ann")
        store.label(i, v, word(truth[i][v]), by="ann")
    review(store, "ann")
    command = ["label", new, "--review", folder / "m", "--no-page"]
    command += ["--journal", tmp_path / "j", "--annotator", "ann"]
    return command, [mask.tolist() for mask in review.masks()]


def test_texts_show_what_was_checked_if_that_is_wanted(folder, truth, tmp_path, capsys):
    command, masks = review_without_page(folder, tmp_path, truth)
    out = tmp_path / "out"
    assert run(*command, "-o", out, "--error-rate", 0.1) == 0
    printed = capsys.readouterr().err
    assert re.search(r"calls a false claim true with .* at most 0\.1", printed)
    lines = lines_of(out)
    assert [line["mask"] for line in lines] == masks
    for line in lines:
        kept = [c for c, m in zip(line["claims"], line["mask"], strict=True) if m]
        assert line["metadata"]["filtered"]["text"] == " ".join(kept)
    assert run(*command, "-o", out, "--text", "--mark-checked", "--empty", "-") == 0
    texts = out.read_text().splitlines()
    n_checked = sum(len(line["metadata"]["filtered"]["checked"]) for line in lines)
    assert n_checked > 5
    assert sum(text.count("[checked] ") for text in texts) == n_checked
    for text, line in zip(texts, lines, strict=True):
        plain = text.replace("[checked] ", "")
        assert plain == (line["metadata"]["filtered"]["text"] or "-")


@pytest.mark.parametrize(
    ("claim", "marked"),
    [
        ("## {}", "## [checked] {}"),
        ("| {} | 1 |", "| [checked] {} | 1 |"),
        ("```\n{}\n```", "[checked]\n```\n{}\n```"),
    ],
)
def test_marks_leave_the_layout_as_it_is(folder, truth, tmp_path, claim, marked):
    graphs = []
    for graph in read_jsonl(folder / "new.jsonl").graphs:
        between = ["", *["\n\n"] * (graph.n_claims - 1), ""]
        layout = {"between": between, "without_claim": []}
        claims = [claim.format(text) for text in graph.claims]
        metadata = (graph.metadata or {}) | {"layout": layout}
        graphs.append(graph.replace(claims=claims, metadata=metadata))
    write_jsonl(tmp_path / "new.jsonl", graphs)
    skdcf.save(skdcf.load(folder / "m"), tmp_path / "m")
    command, _ = review_without_page(tmp_path, tmp_path, truth)
    assert run(*command, "-o", tmp_path / "out", "--mark-checked") == 0
    originals = read_jsonl(folder / "new.jsonl").graphs
    n_checked = 0
    for line, graph in zip(lines_of(tmp_path / "out"), originals, strict=True):
        filtered = line["metadata"]["filtered"]
        n_checked += len(filtered["checked"])
        texts = [
            (marked if v in filtered["checked"] else claim).format(text)
            for v, text in enumerate(graph.claims)
            if line["mask"][v]
        ]
        assert filtered["text"] == "\n\n".join(texts)
    assert n_checked > 5


def test_a_review_does_not_calibrate(folder, truth, tmp_path, capsys):
    command, _ = review_without_page(folder, tmp_path, truth)
    out = tmp_path / "out.jsonl"
    assert run(*command, "-o", out) == 0
    capsys.readouterr()
    again = tmp_path / "m2"
    assert run("calibrate", folder / "m", out, "-o", again) == 2
    assert "label_order 'review'" in capsys.readouterr().err
    assert not again.exists()


def test_a_journal_holds_one_kind_of_judgements(folder, truth, tmp_path, capsys):
    """Else labels for a review would be exported, unmarked, by another start."""
    review_without_page(folder, tmp_path, truth)
    new = folder / "new.jsonl"
    command = ["label", new, "--no-page", "--journal", tmp_path / "j"]
    assert run(*command, "-o", tmp_path / "out") == 2
    assert "got 'review'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text"], "--text has no effect without --review"),
        (["--review", "m", "--filter", "m"], "--filter has no effect with --review"),
        (["--review", "m", "--error-rate", 1], "error rate must be"),
        (["--review", "m", "--meaning", "supported"], "got 'supported'"),
        (["--review", "m", "-o", "none/x"], "the folder"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_written(
    folder, tmp_path, capsys, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    path = {"m": folder / "meant"}
    if not (folder / "meant").exists():
        data = read_jsonl(folder / "train.jsonl")
        marked = [
            graph.replace(provenance={"label_meaning": "true"}) for graph in data.graphs
        ]
        write_jsonl(folder / "meant.jsonl", marked, data.labels)
        assert run("fit", folder / "meant.jsonl", "-o", folder / "meant") == 0
        capsys.readouterr()
    arguments = [path.get(argument, argument) for argument in arguments]
    journal = tmp_path / "j"
    command = ["label", folder / "new.jsonl", "--no-page", "--journal", journal]
    assert run(*command, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not journal.exists() or not journal.read_text()
