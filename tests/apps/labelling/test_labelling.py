"""Labels: the journal, who said what, agreement of people and models, what to judge next."""

import csv
import itertools
import json
import os
import stat
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.labelling import (
    LabelStore,
    agreement,
    describe_labels,
    from_label_studio,
    next_to_label,
    to_label_studio,
)
from skdcf.apps.labelling.exchange import LABEL_STUDIO_CONFIG, read_csv, write_csv
from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl


def kappa_of(first, second):
    return agreement(first, second).kappa


def problem(*claims, edges=(), **fields):
    return ReasoningGraph(None, edges, claims=claims, **fields)


GRAPHS = [problem("a", "b", edges=[(0, 1)], id="one"), problem("c", problem="q?")]


# --- the journal


def test_every_word_is_on_disk_before_the_next(tmp_path):
    path = tmp_path / "journal"
    store = LabelStore(GRAPHS, path)
    for n, (i, v, word) in enumerate(
        [(0, 0, "true"), (1, 0, "unsure"), (0, 0, "false")], 1
    ):
        store.label(i, v, word, by="ann")
        assert len(path.read_bytes().splitlines()) == n
        assert LabelStore(GRAPHS, path).said(i, "ann")[v] == word
    store.label(0, 0, None, by="ann")
    assert LabelStore(GRAPHS, path).said(0, "ann") == [None, None]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_program_killed_while_it_writes_loses_that_line_only(tmp_path, cut):
    path = tmp_path / "journal"
    store = LabelStore(GRAPHS, path)
    store.label(0, 0, "true", by="ann")
    store.label(0, 1, "false", by="ann")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    left = ["true", "false" if cut == 1 else None]  # without its end the line is whole
    said = (
        nullcontext() if cut == 1 else pytest.warns(UserWarning, match="was incomplete")
    )
    with said:
        again = LabelStore(GRAPHS, path)
    assert again.said(0, "ann") == left
    again.label(1, 0, "true", by="ann")
    last = LabelStore(GRAPHS, path)
    assert (last.said(0, "ann"), last.said(1, "ann")) == (left, ["true"])


def test_judgements_follow_their_problem(tmp_path):
    store = LabelStore(GRAPHS, tmp_path / "journal")
    store.label(1, 0, "false", by="ann")
    turned = LabelStore([problem("new"), *GRAPHS[::-1]], tmp_path / "journal")
    assert [turned.said(i, "ann") for i in range(3)] == [
        [None],
        ["false"],
        [None, None],
    ]
    other = LabelStore([problem("c, changed", problem="q?")], tmp_path / "journal")
    assert other.said(0, "ann") == [None]


def test_a_problem_that_stands_there_twice_is_judged_once(tmp_path):
    store = LabelStore([GRAPHS[1], GRAPHS[1]], tmp_path / "journal")
    store.label(0, 0, "true", by="ann")
    store.label(1, 0, "false", by="ann")
    assert store.said(0, "ann") == store.said(1, "ann") == ["false"]
    assert [row.tolist() for row in store.export("ann").labels] == [[0], [0]]


def test_annotators_do_not_disturb_each_other(tmp_path):
    store = LabelStore(GRAPHS, tmp_path / "journal")
    people = [f"person {k}" for k in range(8)]

    def work(k):
        for _ in range(10):
            store.label(0, k % 2, "true", by=people[k])
            store.correct_edges(0, [[1, 0]] if k % 2 else [], by=people[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    again = LabelStore(GRAPHS, tmp_path / "journal")
    assert again.annotators() == people and again.version == store.version == 160
    for k, by in enumerate(people):
        assert again.said(0, by) == [None if v != k % 2 else "true" for v in range(2)]
        assert again.edges(0, by) == ([[1, 0]] if k % 2 else [])


def test_what_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "diary.txt"
    path.write_text("Dear diary,\n")
    with pytest.raises(ValueError, match=r"diary\.txt.*line.*1"):
        LabelStore(GRAPHS, path)
    assert path.read_text() == "Dear diary,\n"
    for own in ('{"claims": ["a"]}', "Dear diary,", '{\n "claims": []\n}'):
        path.write_text(own)  # without an end of line
        with pytest.raises(ValueError, match=r"another.*journal"):
            LabelStore(GRAPHS, path)
        assert path.read_text().strip("\n") == own
    with pytest.raises(ValueError, match=r"problem 0 .*claim texts"):
        LabelStore([ReasoningGraph([[1.0]], [])], tmp_path / "journal")


def test_unsure_counts_as_false(tmp_path):
    """What nobody looked at is -1, also where somebody said that nobody looked."""
    store = LabelStore(GRAPHS, tmp_path / "journal")
    store.label(1, 0, "unknown", by="bob")
    assert store.export("bob").labels[1].tolist() == [-1]
    store.label(0, 0, "true", by="ann")
    store.label(0, 1, "unsure", by="ann")
    out = store.export("ann")
    assert [row.tolist() for row in out.labels] == [[1, 0], [-1]]
    assert out.words == [["true", "unsure"], [None]]
    first, second = out.sources[0]
    assert first.by == second.by == "ann" and first.when
    assert out.sources[1] == [None]
    assert len(out.graphs) == 2


def test_people_overrule_labels_that_were_there(tmp_path):
    store = LabelStore(GRAPHS, tmp_path / "journal", labels=[[1, 1], [0]])
    store.label(0, 1, "false", by="ann")
    store.label(1, 0, "unsure", by="ann")
    out = store.export("ann")
    assert [row.tolist() for row in out.labels] == [[1, 0], [0]]
    assert [source and source.by for row in out.sources for source in row] == [
        None,
        "ann",
        "ann",
    ]


def test_corrected_edges_are_exported_and_marked(tmp_path):
    store = LabelStore(GRAPHS, tmp_path / "journal")
    store.correct_edges(0, [], by="ann")
    out = LabelStore(GRAPHS, tmp_path / "journal").export("ann")
    assert out.n_corrected == 1
    assert out.graphs[0].edges.tolist() == []
    assert out.graphs[0].provenance["edges_corrected"] is True
    assert store.export("bob").graphs[0].edges.tolist() == [[0, 1]]


def test_exported_labels_survive_json_lines(tmp_path):
    store = LabelStore(GRAPHS, tmp_path / "journal")
    store.label(0, 0, "false", by="ann")
    out = store.export("ann")
    back = read_jsonl(write_jsonl(tmp_path / "a.jsonl", out.graphs, out.labels))
    assert [row.tolist() for row in back.labels] == [[0, -1], [-1]]


def test_tasks_for_label_studio():
    tasks = to_label_studio(GRAPHS, [["true", None], ["unsure"]])
    assert [t["data"]["claim"] for t in tasks] == ["a", "b", "c"]
    assert tasks[1]["data"]["premises"] == "1. a"
    assert [("annotations" in t) for t in tasks] == [True, False, True]
    [result] = tasks[2]["annotations"][0]["result"]
    assert result["value"] == {"choices": ["unsure"]}
    for name in (result["from_name"], result["to_name"]):
        assert f'name="{name}"' in LABEL_STUDIO_CONFIG
    for field in ("problem", "premises", "claim"):
        assert f'value="${field}"' in LABEL_STUDIO_CONFIG and field in tasks[0]["data"]
    json.dumps(tasks)


def test_what_label_studio_exports_is_read_back():
    words = [["true", "unsure"], ["false"]]
    tasks = json.loads(json.dumps(to_label_studio(GRAPHS, words)))
    # Its import refuses annotators that it does not know.
    assert all("completed_by" not in a for t in tasks for a in t.get("annotations", []))
    assert from_label_studio(tasks, GRAPHS) == {"imported": words}
    # As it exports them: who did it, when, and what was cancelled.
    for number, task in enumerate(tasks):
        task |= {"id": number, "predictions": [], "drafts": []}
        task["annotations"][0] |= {"completed_by": 7, "was_cancelled": False}
    skipped = {"completed_by": 8, "was_cancelled": True, "result": []}
    tasks[0]["annotations"].append(skipped)
    other = {
        "completed_by": {"email": "bob@example.org"},
        "result": tasks[1]["annotations"][0]["result"],
    }
    tasks[0]["annotations"].append(other)
    assert from_label_studio(tasks[::-1], GRAPHS) == {
        "7": words,
        "bob@example.org": [["unsure", None], [None]],
    }


def test_tables_that_would_say_nothing_are_refused(tmp_path):
    path = tmp_path / "claims.csv"
    write_csv(path, GRAPHS, [["true", "true"], ["false"]])
    bars = path.read_text("utf-8-sig").replace(",", "|")
    for text in (bars, "problem_id,claim_number,Label\n0,1,true\n", ""):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"label.* commas"):
            read_csv(path, GRAPHS)


def test_two_problems_of_one_id_take_no_labels():
    twice = [graph.replace(id="a") for graph in GRAPHS]
    for method in (to_label_studio, lambda graphs: from_label_studio([], graphs)):
        with pytest.raises(ValueError, match=r"problems.*'a'"):
            method(twice)


@pytest.mark.parametrize(
    "change",
    [
        {"problem_id": "nobody"},
        {"claim_number": 3},
        {"claim_number": "x"},
        {"claim": "another text"},
    ],
)
def test_judgements_of_other_claims_are_refused(tmp_path, change):
    tasks = to_label_studio(GRAPHS, [["true", "true"], ["false"]])
    tasks[1]["data"] |= change
    with pytest.raises(ValueError, match=f'task 2, .*"{next(iter(change))}"'):
        from_label_studio(tasks, GRAPHS)
    tasks = to_label_studio(GRAPHS, [["maybe", None], [None]])
    with pytest.raises(ValueError, match=r"task 1, .*label.*'maybe'"):
        from_label_studio(tasks, GRAPHS)
    with pytest.raises(ValueError, match="JSON-MIN"):
        from_label_studio([{"verdict": "true"}], GRAPHS)


def test_a_table_goes_out_and_comes_back(tmp_path):
    graphs = [problem("a, b\nc", 'say "x"', id="one"), problem("=1+1")]
    write_csv(tmp_path / "t.csv", graphs)
    with open(tmp_path / "t.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["claim"] for row in rows] == ["a, b\nc", 'say "x"', "'=1+1"]
    rows[0]["label"], rows[2]["label"], rows[2]["annotator"] = "True", "unsure", "bob"
    with open(tmp_path / "t.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows[::-1])
    assert read_csv(tmp_path / "t.csv", graphs) == {
        "imported": [["true", None], [None]],
        "bob": [[None, None], ["unsure"]],
    }
    write_csv(tmp_path / "u.csv", graphs, [["true", None], ["false"]])
    assert read_csv(tmp_path / "u.csv", graphs) == {
        "imported": [["true", None], ["false"]]
    }


@pytest.mark.parametrize("word", ["unclear", "Uncertain", "idk"])
def test_words_of_doubt_in_a_sheet_are_unsure(tmp_path, word):
    """They are no judgement, so kappa leaves them out."""
    graphs = [problem("a", "b", id="one")]
    write_csv(tmp_path / "t.csv", graphs)
    with open(tmp_path / "t.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["label"], rows[1]["label"] = word, "refuted"
    with open(tmp_path / "t.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    assert read_csv(tmp_path / "t.csv", graphs) == {"imported": [["unsure", "false"]]}


# --- sources


def test_sources_are_described():
    made = {"label_source": "person"}
    graphs = [GRAPHS[0].replace(provenance=made), GRAPHS[1]]
    assert describe_labels(graphs, [[1, 0], [1]]) == (
        "3 claims: 1 judged by an unknown source, 2 judged by people"
    )
    assert describe_labels(graphs, [[-1, -1], [-1]]) == "3 claims: 3 not judged"


# --- agreement


def random_labels(rng, n_problems, size, flip, unknown=0.0):
    """Truth, and labels that differ in a share of claims, more in some problems."""
    first = [rng.integers(0, 2, rng.integers(1, size)) for _ in range(n_problems)]
    second = []
    for row in first:
        rate = flip * rng.choice([0.2, 1.8])
        other = np.where(rng.random(len(row)) < rate, 1 - row, row)
        second.append(np.where(rng.random(len(row)) < unknown, -1, other))
    return first, second


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, second = random_labels(rng, 20, 6, rng.uniform(0, 0.6), 0.2)
        a, b = np.concatenate(first), np.concatenate(second)
        both = b >= 0
        result = kappa_of(first, second)
        assert result.kappa == pytest.approx(cohen_kappa_score(a[both], b[both]))
        assert result.agreement == pytest.approx((a[both] == b[both]).mean())
        assert result.n_unknown == (~both).sum()
        assert -1 <= result.low <= result.kappa <= result.high <= 1


@pytest.mark.long
def test_the_interval_covers_although_claims_of_a_problem_err_together():
    rng = np.random.default_rng(1)
    first, second = random_labels(rng, 40_000, 8, 0.2)
    truth = kappa_of(first, second).kappa
    hits = []
    for _ in range(400):
        pair = random_labels(rng, 60, 8, 0.2)
        result = kappa_of(*pair)
        hits.append(result.low <= truth <= result.high)
    assert 0.95 - 4 * np.sqrt(0.95 * 0.05 / 400) < np.mean(hits)


def test_kappa_at_its_edges():
    assert kappa_of([[1, 0], [0]], [[1, 0], [0]]).kappa == 1
    assert np.isnan(kappa_of([[1, 1], [1]], [[1, 1], [1]]).kappa)
    assert np.isnan(kappa_of([[1, 0]], [[1, 1]]).low)
    with pytest.raises(ValueError, match=r"claim.*by"):
        kappa_of([[1, -1]], [[-1, 0]])
    with pytest.raises(ValueError, match="same claims"):
        kappa_of([[1, 0]], [[1], [0]])
    assert "claims in" in str(kappa_of([[1, 0], [0]], [[1, 0], [1]]))


def test_agreement_with_a_model_by_hand():
    rng = np.random.default_rng(2)
    human, model = random_labels(rng, 80, 6, 0.2, 0.1)
    human[3][:] = -1
    result = agreement(model, human)
    h, m = np.concatenate(human), np.concatenate(model)
    table = confusion_matrix(h[h >= 0], np.where(m == -1, 0, m)[h >= 0])
    assert result.found == pytest.approx(table[0, 0] / table[0].sum())
    assert result.alarms == pytest.approx(((h == 1) & (m == 0)).sum() / (h == 1).sum())
    missed = [np.any((a == 0) & (b == 1)) for a, b in zip(human, model, strict=True)]
    assert result.n_problems == 79
    assert result.overlooked == pytest.approx(sum(missed) / 79)
    low, high = result.overlooked_interval
    assert low < result.overlooked < high
    assert "more of the problems than alpha" in str(result)


def test_the_bound_on_lost_coverage_holds():
    """Calibrated on a model's labels, a filter errs by alpha and what was overlooked."""
    graphs, human = make_reasoning_graphs(6000, random_state=3, return_X_y=True)
    rng = np.random.default_rng(3)
    model = [
        np.where((row == 0) & (rng.random(len(row)) < 0.4), 1, row) for row in human
    ]
    filter = HardCF("frequency-score", alpha=0.1, ties="jitter", random_state=0)
    filter.fit(graphs[:3000], model[:3000])
    kept = filter.predict(graphs[3000:])
    wrong = [np.any(k & (row == 0)) for k, row in zip(kept, human[3000:], strict=True)]
    bound = 0.1 + agreement(model[:3000], human[:3000]).overlooked
    assert 0.1 < np.mean(wrong) <= bound + 3 * np.sqrt(bound / 3000)


# --- what to judge next


def scored(risks, y, alpha):
    """Problems whose claims have these risks and no edges, and a filter fitted to them."""
    graphs = [ReasoningGraph([[-r] for r in row], []) for row in risks]
    return HardCF(0, alpha=alpha).fit(graphs, y), graphs


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_what_moves_the_threshold_is_found_by_brute_force():
    """For each problem: all ways to judge its unknown claims, each calibrated again."""
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(25):
        risks = [rng.normal(size=rng.integers(1, 5)) for _ in range(12)]
        y = [rng.choice([-1, 0, 1], size=len(r), p=[0.4, 0.2, 0.4]) for r in risks]
        filter, graphs = scored(risks, y, alpha=0.25)
        before = filter.threshold()
        expected = {}
        for i, row in enumerate(y):
            open_claims = np.flatnonzero(row == -1)
            for words in itertools.product([0, 1], repeat=len(open_claims)):
                labels = [r.copy() for r in y]
                labels[i][open_claims] = words
                after = HardCF(0, alpha=0.25).fit(graphs, labels).threshold()
                assert after >= before
                if after > before:
                    expected[i] = max(expected.get(i, 0), after - before)
        listed = next_to_label(filter, graphs, y)
        assert {n.problem: pytest.approx(n.gain) for n in listed} == expected
        for n in listed:
            labels = [r.copy() for r in y]
            labels[n.problem][list(n.claims)] = 1
            after = HardCF(0, alpha=0.25).fit(graphs, labels).threshold()
            assert after > before  # these claims are enough,
            for v in n.claims:  # and each of them is needed
                fewer = [r.copy() for r in labels]
                fewer[n.problem][v] = -1
                assert HardCF(0, alpha=0.25).fit(graphs, fewer).threshold() == before
        needed = [len(n.claims) for n in listed]
        assert needed == sorted(needed)
        found += len(listed)
    assert found > 30


def test_nothing_to_judge_where_all_is_known():
    graphs, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    filter = HardCF("frequency-score", alpha=0.2).fit(graphs, y)
    assert next_to_label(filter, graphs, y) == []


@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_the_riskiest_claim_comes_first():
    filter, graphs = scored(
        [[0.1, 0.3, 0.2, 9.0]] + [[8.0]] * 8, [[-1] * 4] + [[0]] * 8, 0.1
    )
    [only] = next_to_label(filter, graphs, [[-1] * 4] + [[0]] * 8)
    assert only.claims == (0,)
    y = [[1, -1, -1, -1]] + [[0]] * 8
    filter, graphs = scored([[0.1, 0.2, 0.2, 9.0]] + [[8.0]] * 8, y, 0.1)
    assert next_to_label(filter, graphs, y)[0].claims == (1, 2)


def test_other_promises_are_refused():
    from skdcf.guarantees import NoFalseClaim

    graphs, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    filter = HardCF("frequency-score", alpha=0.2, guarantee=NoFalseClaim(max_false=1))
    with pytest.raises(ValueError, match="max_false=1"):
        next_to_label(filter.fit(graphs, y), graphs, y)


# --- edges that nobody knows


@pytest.fixture
def unlinked():
    """Problems of which nobody knows what builds on what."""
    texts = ["2 + 2 = 4", "so it is even", "so it is no prime"]
    return [
        ReasoningGraph(None, None, claims=[f"{text} ({i})" for text in texts])
        for i in range(3)
    ]


def test_a_few_corrections_leave_unknown_edges_unknown(unlinked, tmp_path):
    store = LabelStore(unlinked, tmp_path / "j")
    store.correct_edges(0, [[0, 1]], by="ann")
    out = store.export("ann")
    assert not out.graphs.edges_known.any()
    assert (out.n_corrected, out.n_unknown) == (0, 1)
    assert not out.graphs.provenance_rows
    # What was said is kept, and the page shows it.
    assert LabelStore(unlinked, tmp_path / "j").edges(0, "ann") == [[0, 1]]


def test_all_edges_are_known_where_somebody_says_so(unlinked, tmp_path):
    store = LabelStore(unlinked, tmp_path / "j")
    store.correct_edges(0, [[0, 1]], by="ann")
    store.state_edges_known(True, by="ann")
    again = LabelStore(unlinked, tmp_path / "j")
    out = again.export("ann")
    assert out.graphs.edges_known.all()
    assert [graph.edges.tolist() for graph in out.graphs] == [[[0, 1]], [], []]
    # A person knows them all, so that edges of another source are another origin.
    assert all(row["edges_corrected"] for row in out.graphs.provenance_rows)
    assert not again.export("bob").graphs.edges_known.any()
    again.state_edges_known(False, by="ann")
    assert not again.export("ann").graphs.edges_known.any()
    # Of problems that came later nobody has said anything.
    store.state_edges_known(True, by="ann")
    more = [*unlinked, ReasoningGraph(None, None, claims=["a new one", "and another"])]
    assert not LabelStore(more, tmp_path / "j").export("ann").graphs.edges_known.any()
    with pytest.raises(ValueError, match=r"known.* 1"):
        store.state_edges_known(1, by="ann")
