"""AgentProcessBench: runs of agents, joined with the verdicts of people and of judges."""

import json
from pathlib import Path

import numpy as np
import pytest

from skdcf import CoherentConformalFilter, HardCF
from skdcf.apps.labelling.sources import get_label_sources
from skdcf.datasets import fetch_agent_process_bench
from skdcf.datasets.fetch import SOURCES
from skdcf.graphs import pack_labels, question_groups

JUDGES = [
    "deepseek-v3.2",
    "gemini-3-flash",
    "gpt-5.2-thinking",
    "kimi-k2.5",
    "llama-3.3-70b",
    "qwen3-8b",
]


@pytest.fixture
def runs(data_home):
    """Load a set, or skip where its files are not there."""
    if not (data_home / "agent_process_bench").is_dir():
        pytest.skip("no real data: SKDCF_DATA has no agent_process_bench/")

    def fetch(*args, **options):
        options |= {"data_home": data_home, "download_if_missing": False}
        return fetch_agent_process_bench(*args, **options)

    return fetch


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("subset", "steps", "wrong", "right", "false_below_false"),
    [
        ("hotpotqa", 734, 179, 146, 0.63),
        ("tau2", 3557, 1110, 107, 0.71),
        ("bfcl", 2590, 570, 66, 0.36),
    ],
)
def test_counts(runs, subset, steps, wrong, right, false_below_false):
    data = runs(subset)
    flat = pack_labels(data.labels, data.graphs)
    assert (len(data.graphs), data.graphs.n_claims) == (250, steps)
    assert len(data.graphs.edges) == steps - 250
    assert (flat == 0).sum() == wrong and (flat == -1).sum() == 0
    assert sum(bool(y.all()) for y in data.labels) == right
    assert np.unique(data.groups, return_counts=True)[1].tolist() == [5] * 50
    assert len(set(question_groups(data.graphs).tolist())) == 50
    after = [y[np.argmin(y) + 1 :] for y in data.labels if not y.all()]
    below = float(np.mean(np.concatenate(after) == 0))
    assert below == pytest.approx(false_below_false, abs=0.006)
    assert (data.graphs.claims is None) is (subset != "hotpotqa")


@pytest.mark.long
@pytest.mark.parametrize("subset", ["hotpotqa", "tau2", "bfcl"])
def test_verdicts_against_the_records(runs, data_home, subset):
    """Every verdict of every judge stands at its step, as a column and as a label."""
    home = data_home / "agent_process_bench"
    data = runs(subset, judges="all")
    assert data.feature_names[-6:] == [f"verdict of {name}" for name in JUDGES]
    place = {(row["task"], row["run"]): i for i, row in enumerate(data.metadata)}
    for k, name in enumerate(JUDGES):
        labels = runs(subset, labels=name).labels
        n_missing = 0
        for record in lines(home / f"judges/{name}/{subset}.jsonl"):
            i = place[record["query_index"], record["sample_index"]]
            verdicts = [
                record["step_labels"][str(position)]
                for position in data.metadata[i]["messages"]
            ]
            n_missing += verdicts.count(None)
            column = data.graphs[i].features[:, k - 6].tolist()
            assert column == [verdict or 0 for verdict in verdicts]
            expected = [-1 if v is None else int(v >= 0) for v in verdicts]
            assert labels[i].tolist() == expected
        assert sum(int((y == -1).sum()) for y in labels) == n_missing


def test_texts_are_those_of_the_messages(runs, data_home):
    data = runs()
    records = lines(data_home / "agent_process_bench/hotpotqa.jsonl")
    for graph, record in zip(data.graphs, records, strict=True):
        assert graph.problem == record["question"]
        assert graph.context is None and graph.features.shape[1] == 3
        for text, position in zip(
            graph.claims, graph.metadata["messages"], strict=True
        ):
            message = record["messages"][position]
            assert message["role"] == "assistant"
            assert text.startswith(message["content"].strip())
            for call in message.get("tool_calls", ()):
                assert call["function"]["arguments"] in text


def test_edges(runs):
    assert len(runs("tau2", graph="none").graphs.edges) == 0
    flow = runs(graph="data").graphs
    assert all((graph.edges[:, 0] < graph.edges[:, 1]).all() for graph in flow)
    assert len(flow.edges) == 481
    for asked in ({"graph": "data"}, {"alternatives": True}):
        with pytest.raises(ValueError, match=r"texts.*subset='bfcl'"):
            runs("bfcl", **asked)


def test_alternatives_are_the_other_runs_of_the_task(runs):
    data = runs(alternatives=True)
    last = {
        (row["task"], row["run"]): graph.claims[-1]
        for graph, row in zip(data.graphs, data.metadata, strict=True)
    }
    for graph, row in zip(data.graphs, data.metadata, strict=True):
        others = [last[row["task"], k] for k in range(5) if k != row["run"]]
        assert list(graph.alternatives) == others
    right = [
        (y[-1], g.features[-1, -1])
        for g, y in zip(data.graphs, data.labels, strict=True)
    ]
    agreement = [np.mean([a for y, a in right if y == truth]) for truth in (0, 1)]
    assert agreement[1] > agreement[0] + 0.2


def test_sources_of_labels(runs):
    people = runs("bfcl").graphs[0]
    assert {(s.kind, s.by) for s in get_label_sources(people)} == {("human", "people")}
    assert people.metadata["sampling"] == "random"
    judged = runs("bfcl", labels="kimi-k2.5").graphs[0]
    assert {s.kind for s in get_label_sources(judged)} == {"model"}
    assert "sampling" not in judged.metadata


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subset": "gaia"}, "subset .*'gaia'"),
        ({"judges": "kimi"}, "judges .*'kimi'"),
        ({"labels": "gpt"}, "labels .*'gpt'"),
        ({"graph": "tree"}, "graph .*'tree'"),
    ],
)
def test_unknown_names(arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch_agent_process_bench(**arguments)


def test_verdicts_that_fit_no_run_are_named(tmp_path, monkeypatch):
    run = {"query_index": 0, "sample_index": 0, "step_labels": {"1": 1, "3": -1}}
    contents = {
        "agent_process_bench/labels/tau2.jsonl": [run, run | {"sample_index": 1}],
        "agent_process_bench/judges/kimi-k2.5/tau2.jsonl": [run],
    }

    def local_file(name, **options):
        path = tmp_path / name.replace("/", "_")
        path.write_text("\n".join(map(json.dumps, contents[name])))
        return path

    monkeypatch.setattr("skdcf.datasets.fetch.local_file", local_file)
    with pytest.raises(ValueError, match=r"messages judged.*kimi-k2\.5"):
        fetch_agent_process_bench("tau2", judges="kimi-k2.5")
    data = fetch_agent_process_bench("tau2", judges="kimi-k2.5", on_invalid="drop")
    assert len(data.graphs) == 1 and len(data.dropped) == 1
    assert data.graphs.features.tolist() == [[0, 1], [1, -1]]


def test_all_sources_are_read(tmp_path, monkeypatch):
    asked = set()

    def local_file(name, **options):
        asked.add(name)
        path = tmp_path / Path(name).name
        path.write_text("")
        return path

    monkeypatch.setattr("skdcf.datasets.fetch.local_file", local_file)
    for subset in ("hotpotqa", "tau2", "bfcl", "gaia_dev"):
        with pytest.raises(ValueError, match=r"data.*contain.*problem"):
            fetch_agent_process_bench(subset, judges="all")
    folder = "agent_process_bench/"
    assert asked == {name for name in SOURCES if name.startswith(folder)}


def test_addresses_are_those_of_the_repository():
    url = SOURCES["agent_process_bench/judges/kimi-k2.5/tau2.jsonl"].url
    assert url.endswith("/Kimi-K2.5/tau2__blind_kimi-k2.5-Non-Thinking.jsonl")
    url = SOURCES["agent_process_bench/hotpotqa.jsonl"].url
    assert url.endswith("/data/AgentProcessBench/hotpotqa.jsonl")


@pytest.mark.parametrize("edges", ["chain", "data"])
@pytest.mark.parametrize("learner", ["stack", "regression"])
def test_decisions_never_depend_on_what_comes_later(runs, edges, learner):
    """Masks are those of the whole run, where it is cut and where it is streamed.

    Risks may differ in their last bits, below which the threshold lies.
    """
    data = runs(graph=edges, alternatives=True)
    tasks = np.unique(data.groups)
    train = np.flatnonzero(np.isin(data.groups, tasks[:40]))
    made = {
        "stack": CoherentConformalFilter(online=True, alpha=0.2, random_state=0),
        "regression": HardCF(online=True, alpha=0.2, random_state=0),
    }
    cf = made[learner].fit(data.graphs[train], [data.labels[i] for i in train])
    names = data.feature_names
    lengths = set()
    for i in np.flatnonzero(~np.isin(data.groups, tasks[:40]))[::4]:
        graph = data.graphs[int(i)]
        mask = cf.predict([graph])[0]
        risks = cf.path_risk([graph])[0]
        about = {
            "feature_names": names,
            "problem": graph.problem,
            "alternatives": graph.alternatives,
            "metadata": {"group": graph.metadata["group"]},
        }
        steps = [
            {
                "text": text,
                "features": graph.features[v],
                "parents": graph.edges[graph.edges[:, 1] == v, 0].tolist(),
            }
            for v, text in enumerate(graph.claims)
        ]
        assert list(cf.stream(steps, **about)) == mask.tolist()
        for v in range(graph.n_claims):
            part = graph.subgraph(np.arange(graph.n_claims) <= v)
            assert cf.path_risk([part])[0] == pytest.approx(risks[: v + 1], rel=1e-12)
            assert cf.predict([part])[0].tolist() == mask[: v + 1].tolist()
        if edges == "chain":
            stopped = list(cf.stream(steps, stop=True, **about))
            assert stopped == mask[: int(mask.sum()) + 1].tolist()
            lengths.add(len(stopped))
    assert edges == "data" or len(lengths) >= 3
