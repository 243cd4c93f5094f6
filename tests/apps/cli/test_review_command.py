"""``skdcf label --review`` and ``--audit``: by keyboard, with kills, and what is refused."""

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
from skdcf.apps.labelling import (
    AuditOrder,
    BudgetOrder,
    LabelServer,
    LabelStore,
    ReviewOrder,
)
from skdcf.datasets import make_word_problems, read_jsonl, write_jsonl
from skdcf.metrics import error_rate_upper_bound

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
    command = [new, "--review", folder / "m", "--budget", 40, "-o", out]
    command += ["--journal", tmp_path / "j", "--annotator", "ann"]
    asked = []
    for n, is_killed in ((15, True), (25, False)):
        # The browser comes first: without one the test is skipped, and no program is left.
        with Browser(tmp_path / f"profile {n}") as browser:
            program = Program(*command)
            tab = browser.open(program.url)
            ready(tab)
            before = tab.run(SHOWN)
            assert f"{len(asked)} of 40 checks" in tab.run("document.body.innerText")
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
                assert tab.run(DONE) == "on"
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
        sources = line["metadata"]["label_sources"]
        assert [v for v, source in enumerate(sources) if source] == sorted(checked)
        assert all(sources[v]["by"] == "ann" for v in checked)
        expected = sorted(v for v in checked if truth[i][v] == 1)
        assert line["metadata"]["filtered"]["checked"] == expected
        assert line["metadata"]["sampling"] == "review"
        assert line["metadata"]["own"] == 300 + i


@pytest.mark.long
def test_the_page_grows_and_verdicts_are_taken_back(folder, filter, truth, tmp_path):
    graphs = read_jsonl(folder / "new.jsonl").graphs
    review = ReviewOrder(filter, graphs)
    before = [mask.tolist() for mask in review.masks()]
    store = LabelStore(graphs, tmp_path / "j", purpose="review")
    order = BudgetOrder(review, 10)
    check = review.next()
    i, v = check.problem, check.claim
    with (
        LabelServer(store, "ann", order=order) as server,
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
        assert order.masks(store)[i][v]
        tab.press("p")  # back to it, and take it back
        assert tab.run(HERE) == str(v + 1)
        tab.press("Backspace")
        ready(tab)
        assert order.masks(store) == before
        tab.press("u")
        ready(tab)
        assert order.masks(store) == before and review.n_checks == 1
        # An error in what the filter kept goes out with all that builds on it.
        j, _ = tab.run("[i, v]")
        top = next(w for w, is_kept in enumerate(before[j]) if is_kept)
        tab.press(*"k" * 9, "f")
        ready(tab)
        gone = order.masks(store)[j]
        assert not gone[top] and review.n_checks == 1
        # Keys that would change what the filter decided by do nothing.
        tab.press("e", "x")
        ready(tab)
        assert tab.run("document.querySelectorAll('.claim input').length") == 0
        with pytest.raises(ValueError, match=r"edges.*'review'"):
            store.correct_edges(i, [], by="ann")


@pytest.mark.long
def test_two_people_at_once_share_the_work(folder, filter, truth, tmp_path):
    """Each has a program of their own, and both write into one journal."""
    graphs = read_jsonl(folder / "new.jsonl").graphs

    def start():
        store = LabelStore(graphs, tmp_path / "j", purpose="review")
        return store, BudgetOrder(ReviewOrder(filter, graphs), 60)

    people = {"ann": start(), "bob": start()}
    asked = []
    for _ in range(30):
        for by, (store, order) in people.items():
            store.follow()
            [(i, [v])] = order(store, by)
            asked.append((i, v))
            store.label(i, v, word(truth[i][v]), by=by)
    assert len(set(asked)) == 60
    for by, (store, order) in people.items():
        store.follow()
        assert order(store, by) == [], by  # the budget is that of both together
    (_, first), (_, second) = people.values()
    assert first.masks(store) == second.masks(store)
    assert is_wrong(first.masks(store), truth) == is_wrong(
        filter.predict(graphs), truth
    )
    # Once both have looked at the journal, they are asked about different answers.
    late = asked[2:]
    assert {i for i, _ in late[::2]}.isdisjoint(i for i, _ in late[1::2])


def test_where_two_people_differ_what_lets_less_through_stands(
    folder, filter, tmp_path
):
    graphs = read_jsonl(folder / "new.jsonl").graphs
    store = LabelStore(graphs, tmp_path / "j", purpose="review")
    order = BudgetOrder(ReviewOrder(filter, graphs), 10)
    [(i, [v])] = order(store, "ann")
    for said, is_kept in (
        ({"ann": "true"}, True),
        ({"bob": "unsure"}, False),
        ({"bob": "true"}, True),
        ({"ann": "false"}, False),
        ({"ann": None}, True),
    ):
        for by, verdict in said.items():
            store.label(i, v, verdict, by=by)
        assert order.masks(store)[i][v] == is_kept


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
    order = BudgetOrder(ReviewOrder(skdcf.load(folder / "m"), graphs), n)
    while asked := order(store, "ann"):
        [(i, [v])] = asked
        store.label(i, v, word(truth[i][v]), by="ann")
    command = ["label", new, "--review", folder / "m", "--no-page"]
    return [*command, "--journal", tmp_path / "j", "--annotator", "ann"], order.masks(
        store
    )


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
        layout = ["", *["\n\n"] * (graph.n_claims - 1), ""]
        claims = [claim.format(text) for text in graph.claims]
        metadata = (graph.metadata or {}) | {"sentence_layout": layout}
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


@pytest.mark.parametrize("kind", ["review", "audit"])
def test_neither_a_review_nor_an_audit_calibrates(
    folder, truth, tmp_path, capsys, kind
):
    command, _ = review_without_page(folder, tmp_path, truth)
    out = tmp_path / "out.jsonl"
    if kind == "audit":
        command[2:4] = ["--audit", folder / "m"]
        command[command.index(tmp_path / "j")] = tmp_path / "k"
    assert run(*command, "-o", out) == 0
    capsys.readouterr()
    again = tmp_path / "m2"
    assert run("calibrate", folder / "m", out, "-o", again) == 2
    assert "labelled in a review or an audit" in capsys.readouterr().err
    assert not again.exists()


def test_a_journal_holds_one_kind_of_judgements(folder, truth, tmp_path, capsys):
    """Else labels for a review would be exported, unmarked, by another start."""
    review_without_page(folder, tmp_path, truth)
    new = folder / "new.jsonl"
    for more in ([], ["--audit", folder / "m"]):
        command = ["label", new, "--no-page", "--journal", tmp_path / "j", *more]
        assert run(*command, "-o", tmp_path / "out") == 2
        assert "got 'review'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_an_audit_by_keyboard_with_a_kill(folder, filter, truth, tmp_path):
    new, out = folder / "new.jsonl", tmp_path / "audited.jsonl"
    graphs = read_jsonl(new).graphs
    problems = [graph.problem for graph in graphs]
    masks = filter.predict(graphs)
    shown = [i for i, mask in enumerate(masks) if mask.any()]
    # One kept claim is false, as the person sees it.
    truth = [row.copy() for row in truth]
    command = [
        new,
        "--audit",
        folder / "m",
        "-n",
        12,
        "-o",
        out,
        "--journal",
        tmp_path / "j",
    ]
    command += ["--annotator", "ann"]
    wrong = None
    for n_texts in (5, 12):
        with Browser(tmp_path / f"profile {n_texts}") as browser:
            program = Program(*command)
            tab = browser.open(program.url)
            ready(tab)
            while f"{n_texts} of 12 texts judged" not in tab.run(
                "document.body.innerText"
            ):
                ready(tab)
                i = problems.index(tab.run(QUESTION))
                v = int(tab.run(HERE)) - 1
                assert i in shown and masks[i][v], "asked is about kept claims alone"
                assert tab.run(SHOWN) == masks[i].sum()
                if wrong is None:
                    wrong = i
                tab.press("f" if i == wrong else "t")
                ready(tab)
            if n_texts == 5:
                program.kill()
            else:
                assert tab.run(DONE) == "on"
                printed = program.end()
    bound = error_rate_upper_bound(1, 12)
    n_shown = len(shown)
    assert f"at most {bound:.1%} of the {n_shown} nonempty texts" in printed
    assert "1 of the 12 " in printed
    assert f"at most {bound * n_shown / N_NEW:.1%} of all 60 answers" in printed
    lines = lines_of(out)
    assert len(lines) == 12 and {line["metadata"]["sampling"] for line in lines} == {
        "audit"
    }
    for line in lines:
        i = line["metadata"]["own"] - 300
        assert line["mask"] == masks[i].tolist()
        judged = [v for v, label in enumerate(line["labels"]) if label >= 0]
        assert i == wrong or judged == np.flatnonzero(masks[i]).tolist()


def test_the_draw_of_an_audit_is_blind_and_the_same_at_each_start(
    folder, filter, truth, tmp_path, capsys
):
    out = tmp_path / "out"
    command = [
        "label",
        folder / "new.jsonl",
        "--audit",
        folder / "m",
        "--no-page",
        "-o",
        out,
    ]
    drawn = {}
    for name, n in (("a", 10), ("a", 10), ("b", 10), ("c", 20)):
        more = ["-n", n, "--journal", tmp_path / name]
        assert run(*command, *more) == 0
        said = capsys.readouterr()
        assert f"{n} of the {n} texts are not judged" in said.err
        assert "at most 100.0%" in said.out
        ids = [line["id"] for line in lines_of(out)]
        assert drawn.setdefault(name, ids) == ids
    # A new audit draws new answers.
    assert set(drawn["a"]) != set(drawn["b"]) and drawn["c"][:10] != drawn["a"]


def test_the_looks_of_an_audit_are_settled_before_its_first_verdict(
    folder, filter, truth, tmp_path, capsys
):
    graphs = read_jsonl(folder / "new.jsonl").graphs
    masks = filter.predict(graphs)
    n_shown = sum(bool(mask.any()) for mask in masks)
    journal, out = tmp_path / "j", tmp_path / "out"
    command = ["label", folder / "new.jsonl", "--no-page", "-o", out]
    command += ["--audit", folder / "m", "--journal", journal]

    def bound_of(n_wrong, n):
        return (
            f"{error_rate_upper_bound(n_wrong, n, confidence_level=1 - 0.05 / 3):.1%}"
        )

    assert run(*command, "-n", "5,10,20") == 0
    said = capsys.readouterr()
    assert (
        "interim result 1 of 3" in said.err and f"at most {bound_of(5, 5)}" in said.out
    )
    ids = [line["id"] for line in lines_of(out)]
    assert len(ids) == 20
    places = [next(i for i, g in enumerate(graphs) if g.id == name) for name in ids]
    store = LabelStore([graphs[i] for i in places], journal, purpose="audit")
    order = AuditOrder([masks[i] for i in places], [5, 10, 20])
    for n in (5, 10, 20):
        asked = order(store, "ann")
        assert {problem for problem, _ in asked} == set(range(n)) - set(
            range({5: 0, 10: 5, 20: 10}[n])
        )
        for problem, claims in asked:
            for v in claims:
                store.label(problem, v, "false" if problem == 7 else "true", by="ann")
        assert order.look(store) == (n, int(n > 7), 0)
        assert run(*command) == 0  # the journal knows the sizes
        said = capsys.readouterr()
        assert (
            f"at most {bound_of(int(n > 7), n)} of the {n_shown} nonempty texts"
            in said.out
        )
        assert f"interim result {[5, 10, 20].index(n) + 1} of 3" in said.err
    for more in ("20", "5,10,30", "50"):
        assert run(*command, "-n", more) == 2
        said = capsys.readouterr().err
        assert f"got {more}" in said and "5,10,20" in said
    assert run(*command, "--seed", 1) == 2
    assert run(*command, "--alpha", 0.3) == 2
    assert run(*command, "-n", "5,10,20") == 0


@pytest.mark.long
@pytest.mark.parametrize("settled", [True, False])
def test_looks_that_were_settled_err_as_seldom_as_is_said(settled):
    """5 % of the audits are wrong that look four times, and .18 if each look is a new -n."""
    rng = np.random.default_rng(0)
    sizes = [50, 100, 150, 200]
    level = 1 - 0.05 / len(sizes) if settled else 0.95
    wrong = 0
    for _ in range(2000):
        verdicts = np.cumsum(rng.random(200) < 0.1)
        bounds = [
            error_rate_upper_bound(int(verdicts[n - 1]), n, confidence_level=level)
            for n in sizes
        ]
        wrong += min(bounds) < 0.1
    assert (wrong / 2000 <= 0.05 + 3 * 0.005) == settled


def test_unsure_counts_as_wrong_in_an_audit_and_a_false_claim_ends_its_text(
    tmp_path, folder
):
    graphs = read_jsonl(folder / "new.jsonl").graphs[:3]
    masks = [np.ones(graph.n_claims, bool) for graph in graphs]
    masks[2][1:] = False
    store = LabelStore(graphs, tmp_path / "j", purpose="audit")
    order = AuditOrder(masks)
    assert order.verdicts(store) == ["open"] * 3
    store.label(0, 0, "unsure", by="ann")
    store.label(2, 0, "true", by="bob")
    store.label(2, 1, "false", by="bob")  # it is not kept
    assert order.verdicts(store) == ["wrong", "open", "right"]
    assert [i for i, _ in order(store, "ann")] == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", 3], "--budget has no effect without --review"),
        (["-n", 3], "-n has no effect without --audit"),
        (["--text"], "--text has no effect without --review"),
        (["--review", "m", "--audit", "m"], "--review and --audit"),
        (["--review", "m", "--settle", "bob"], "--settle "),
        (["--review", "m", "--filter", "m"], "--filter "),
        (["--audit", "m", "--budget", 3], "--budget has no effect without --review"),
        (["--review", "m", "--budget", -1], "got -1"),
        (["--review", "m", "--error-rate", 1], "error rate must be"),
        (["--review", "m", "--meaning", "supported"], "got 'supported'"),
        (["--audit", "m", "-n", 0], "got 0"),
        (["--audit", "m", "-n", "50,20"], "got 50,20"),
        (["--audit", "m", "-n", "many"], "got many"),
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
            graph.replace(metadata={**graph.metadata, "label_meaning": "true"})
            for graph in data.graphs
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


def test_an_audit_of_answers_that_calibrated_is_refused(folder, tmp_path, capsys):
    train = folder / "train.jsonl"
    for name, n in (("all", 300), ("one", 1)):
        data = read_jsonl(train)
        new = read_jsonl(folder / "new.jsonl").graphs
        write_jsonl(tmp_path / f"{name}.jsonl", [*new, *data.graphs[:n]])
        command = [
            "label",
            tmp_path / f"{name}.jsonl",
            "--audit",
            folder / "m",
            "--no-page",
        ]
        assert run(*command, "-o", tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert f" {n} answers " in said and "from the audit" in said
        assert not (tmp_path / "out").exists()
