"""Recorded runs of agents become steps, and a stream stops at the first doubtful one."""

import json

import numpy as np
import pytest
from scipy.stats import betabinom

from skdcf import HardCF, ReasoningGraph
from skdcf.adapters import from_runs
from skdcf.apps.cli import main
from skdcf.edges import chain_edges

USER = {"role": "user", "content": "Where was the founder of Acme born?"}


def call(name, arguments, id="a"):
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def asks(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answers(content, id="a"):
    return {"role": "tool", "tool_call_id": id, "content": content}


def says(content):
    return {"role": "assistant", "content": content}


def read(*messages, **more):
    return from_runs([{"task": 0, "messages": list(messages)}], **more).graphs[0]


def column(graph, name):
    return graph.features[:, graph.feature_names.index(name)].tolist()


RUN = (
    USER,
    asks(call("search", '{"query": "Acme"}')),
    answers("Acme was founded by Ada Byron."),
    asks(call("search", '{"query": "Ada Byron"}', "b"), content="Now her."),
    answers("", "b"),
    asks(call("search", '{"query": "Ada Byron"}', "c")),
    answers("She was born in London.", "c"),
    says("London"),
)


def test_each_message_of_the_agent_is_a_step():
    graph = read(*RUN)
    assert graph.problem == USER["content"]
    assert graph.claims[1] == 'Now her.\nsearch({"query": "Ada Byron"})'
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert graph.context is None
    assert graph.metadata["messages"] == [1, 3, 5, 7]
    assert column(graph, "position") == [0, 1, 2, 3]
    assert column(graph, "n_calls") == [1, 1, 1, 0]
    lengths = [len(claim) for claim in graph.claims]
    assert column(graph, "log_length") == pytest.approx(np.log1p(lengths))


def test_data_flow_follows_arguments_into_observations():
    graph = read(*RUN, edges="data")
    assert graph.edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 3], [2, 3]]


@pytest.mark.parametrize("edges", ["chain", "data"])
def test_a_run_that_is_cut_has_the_same_columns_and_edges(edges):
    whole = read(*RUN, edges=edges)
    for v, position in enumerate(whole.metadata["messages"]):
        part = read(*RUN[: position + 1], edges=edges)
        assert part.claims == whole.claims[: v + 1]
        assert np.array_equal(part.features, whole.features[: v + 1])
        assert part.edges.tolist() == [e for e in whole.edges.tolist() if e[1] <= v]


def test_parallel_calls_are_one_step_and_answers_come_in_any_order():
    both = asks(call("f", '{"x": 1}'), call("g", "{}", "b"))
    graph = read(USER, both, answers("two", "b"), answers("one"), says("done"))
    assert graph.claims == ('f({"x": 1})\ng({})', "done")
    assert column(graph, "n_calls") == [2, 0]
    # One call of the two has no answer.
    graph = read(USER, both, answers("two", "b"), says("done"))
    assert graph.claims == ('f({"x": 1})\ng({})', "done")


def test_calls_without_an_answer_may_end_a_run():
    assert read(USER, asks(call("f", "{}"))).n_claims == 1


def test_content_that_is_empty_or_no_text():
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    graph = read(
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]},
        says("A cat."),
    )
    assert graph.problem == "What is it?\n[image_url]"
    assert graph.claims == ("A cat.",)
    for step in (None, "", [], " ", [image], [{"type": "text", "text": "It:"}, image]):
        with pytest.raises(ValueError, match=r"message 1 .*keys are"):
            read({"role": "user", "content": "What is it?"}, says(step))


@pytest.mark.parametrize("arguments", ["{query: Acme", "[1, 2]", "3"])
def test_a_call_that_is_no_json_object_is_kept_as_text(arguments):
    first = asks(call("search", '{"query": "Acme"}'))
    second = asks(call("search", arguments, "b"))
    graph = read(USER, first, answers(f"Acme, {arguments}"), second, edges="data")
    assert graph.claims[1] == f"search({arguments})"
    assert graph.edges.tolist() == []


def test_arguments_may_be_parsed_already():
    first = asks(call("f", {"x": "Acme"}))
    then = asks(call("f", {"x": ["Byron", 12, True, None]}, "b"))
    graph = read(USER, first, answers("Byron"), then, edges="data")
    assert graph.claims[0] == 'f({"x": "Acme"})'
    assert graph.edges.tolist() == [[0, 1]]


def test_labels_and_tasks():
    run = {"task": 3, "messages": list(RUN), "id": "mine"}
    data = from_runs(
        [run | {"labels": {"1": 1, 5: 0}}, run | {"id": "other", "labels": {}}]
    )
    assert [y.tolist() for y in data.labels] == [[1, -1, 0, -1], [-1] * 4]
    assert data.groups[0] == data.groups[1] and data.graphs[0].id == "mine"
    with pytest.raises(ValueError, match=r"labels.*2"):
        from_runs([run | {"labels": {2: 1}}])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"messages": [USER, says("x")]}, 'problem "run/0": task .*None'),
        ({"task": True, "messages": [USER, says("x")]}, "task .*True"),
        ({"task": 1, "messages": [USER]}, r"run.*step"),
        (
            {"task": 1, "messages": [USER, answers("x"), asks(call("f", "{}"))]},
            "answers",
        ),
        ({"task": 1, "messages": [{"role": "bot", "content": "x"}]}, "role of .*'bot'"),
        ({"task": 1}, "messages"),
        (["task"], "run 0 .*list"),
    ],
)
def test_broken_runs_are_named(run, message):
    with pytest.raises(ValueError, match=message):
        from_runs([run])


@pytest.mark.parametrize(
    "message",
    [
        "hello",
        says(3),
        says([3]),
        says([{"text": 3}]),
        says([{}]),
        {"role": "assistant", "tool_calls": "search"},
        asks(3),
        asks({"id": "a"}),
        asks({"id": "a", "function": {}}),
        asks(call("f", "{}", id=["a"])),
        {"role": "tool", "tool_call_id": {}, "content": "x"},
        {"type": "function_call", "name": "f"},
        {"role": "assistant", "parts": [{"content": "x"}]},
    ],
)
def test_a_message_of_another_shape_is_named(message):
    with pytest.raises(ValueError, match=r"message 2.*form"):
        read(USER, says("first"), message, says("last"))


@pytest.mark.parametrize("messages", [None, "hello", 3, {"role": "user"}])
def test_messages_are_a_list(messages):
    with pytest.raises(ValueError, match=r"messages.*list"):
        from_runs([{"task": 1, "messages": messages}])


@pytest.mark.parametrize("labels", [[1], {"x": 1}, 1])
def test_labels_are_by_position(labels):
    with pytest.raises(ValueError, match=r"dict.*position"):
        from_runs([{"task": 1, "messages": list(RUN), "labels": labels}])


def test_data_never_flows_back_and_makes_no_cycle():
    """Each of two calls has what the other returned, and a third what comes after it."""
    messages = [
        USER,
        asks(call("f", '{"x": "beta", "y": "later"}')),
        answers("alpha"),
        asks(call("g", '{"x": "alpha", "y": "later"}', "b")),
        answers("beta", "b"),
        says("done"),
        asks(call("h", '{"x": "beta"}', "c")),
        answers("later", "c"),
    ]
    graph = read(*messages, edges="data")
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3]]


def test_edges_of_a_file_that_make_a_cycle_are_refused(tmp_path, capsys):
    path = tmp_path / "steps.jsonl"
    line = {"claims": ["a", "b"], "edges": [[0, 1], [1, 0]], "labels": [1, 0]}
    path.write_text(json.dumps(line) + "\n")
    assert main(["fit", str(path), "-o", str(tmp_path / "m.skops"), "--online"]) == 2
    assert "cycle" in capsys.readouterr().err
    assert not (tmp_path / "m.skops").exists()


def test_a_name_that_is_used_again_is_that_of_the_latest_call():
    """Some servers number the calls of each response from 0 on."""
    graph = read(
        USER,
        asks(call("f", "{}")),
        answers("one"),
        asks(call("g", "{}")),
        answers("two"),
        asks(call("h", '{"x": "two"}')),
        edges="data",
    )
    assert graph.edges.tolist() == [[1, 2]]


def test_runs_are_a_list_and_edges_are_known():
    with pytest.raises(ValueError, match=r"list.*runs"):
        from_runs({"task": 1, "messages": []})
    with pytest.raises(ValueError, match="edges"):
        from_runs([], edges="none")


def test_ten_thousand_steps():
    graph = read(USER, *[says(f"step {v}") for v in range(10_000)])
    assert graph.n_claims == 10_000 and len(graph.edges) == 9_999


# ------------------------------------------------------------- forms of messages

LANGCHAIN = (
    {"type": "human", "content": USER["content"]},
    {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "search", "args": {"query": "Acme"}, "id": "a"}],
    },
    {"type": "tool", "tool_call_id": "a", "content": "Founded by Ada Byron."},
    {"type": "ai", "content": "Her, and her home.", "tool_calls": [
        {"name": "search", "args": {"query": "Ada Byron"}, "id": "b"},
        {"name": "where", "args": {}, "id": "c", "type": "tool_call"},
    ]},
    {"type": "tool", "tool_call_id": "c", "content": ""},
    {"type": "tool", "tool_call_id": "b", "content": "Born in London."},
    {"type": "ai", "content": [{"type": "text", "text": "London"}]},
)  # fmt: skip
RESPONSES = (
    USER,
    {"type": "reasoning", "summary": []},
    {
        "type": "function_call",
        "call_id": "a",
        "name": "search",
        "arguments": '{"query": "Acme"}',
    },
    {
        "type": "function_call_output",
        "call_id": "a",
        "output": "Founded by Ada Byron.",
    },
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Her, and her home."}],
    },
    {
        "type": "function_call",
        "call_id": "b",
        "name": "search",
        "arguments": '{"query": "Ada Byron"}',
    },
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "where", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": ""},
    {"type": "function_call_output", "call_id": "b", "output": "Born in London."},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "London"}],
    },
)


def said(content):
    return {"type": "text", "content": content}


def called(name, arguments, id):
    return {"type": "tool_call", "name": name, "arguments": arguments, "id": id}


def answered(response, id):
    return {"type": "tool_call_response", "response": response, "id": id}


INPUT = [
    {"role": "system", "parts": [said("Be brief.")]},
    {"role": "user", "parts": [said(USER["content"])]},
    {"role": "assistant", "parts": [called("search", {"query": "Acme"}, "a")]},
    {"role": "tool", "parts": [answered("Founded by Ada Byron.", "a")]},
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm"},
            said("Her, and her home."),
            called("search", {"query": "Ada Byron"}, "b"),
            called("where", {}, "c"),
        ],
    },
    {"role": "tool", "parts": [answered("Born in London.", "b"), answered("", "c")]},
]
OUTPUT = [{"role": "assistant", "parts": [said("London")], "finish_reason": "stop"}]


def span(messages, output, *, as_list=False, as_text=False):
    values = {"gen_ai.input.messages": messages, "gen_ai.output.messages": output}
    if as_text or as_list:
        values = {name: json.dumps(value) for name, value in values.items()}
    if as_list:
        values = [{"key": k, "value": {"stringValue": v}} for k, v in values.items()]
    return {"name": "chat", "attributes": values}


SPANS = (
    [span(INPUT[:2], INPUT[2:3]), {"name": "tool"}, span(INPUT, OUTPUT)],
    [span(INPUT, OUTPUT, as_text=True), span(INPUT[:4], INPUT[4:5], as_text=True)],
    [span(INPUT, OUTPUT, as_list=True)],
)
STEPS = (
    'search({"query": "Acme"})',
    'Her, and her home.\nsearch({"query": "Ada Byron"})\nwhere({})',
    "London",
)


@pytest.mark.parametrize(
    ("run", "positions"),
    [
        ({"messages": LANGCHAIN}, [1, 3, 6]),
        ({"messages": RESPONSES}, [2, 4, 10]),
        *[({"spans": spans}, [2, 4, 6]) for spans in SPANS],
    ],
)
def test_other_forms_of_messages_are_the_same_steps(run, positions):
    labels = dict(zip(positions, (1, 0, 1), strict=True))
    data = from_runs([{"task": 0, "labels": labels, **run}], edges="data")
    graph = data.graphs[0]
    assert graph.problem == USER["content"]
    assert graph.claims == STEPS
    assert graph.metadata["messages"] == positions
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert column(graph, "n_calls") == [1, 2, 0]
    assert data.labels[0].tolist() == [1, 0, 1]


def test_two_responses_without_anything_between_them_are_two_steps():
    text = {"type": "message", "role": "assistant", "content": "one"}
    assert read(USER, text, text | {"content": "two"}).claims == ("one", "two")
    chat = says("one")
    assert read(USER, chat, chat).claims == ("one", "one")


def test_spans_without_content_are_refused():
    run = {"task": 0, "spans": [{"attributes": {"gen_ai.request.model": "m"}}]}
    with pytest.raises(ValueError, match=r"capture.*contents"):
        from_runs([run])


# --------------------------------------------------- the other runs of a task


def runs_of_task(*endings, task=0):
    return [{"task": task, "messages": [*RUN[:-1], says(text)]} for text in endings]


def test_answers_are_compared_with_those_of_the_other_runs():
    endings = (
        "<think>Not Paris.</think> It is <answer> London </answer>",
        "<answer>london, England",
        "She was born in Paris.",
    )
    data = from_runs(runs_of_task(*endings), alternatives=True)
    assert data.feature_names[-1] == "answer_agreement"
    # {london}, {london, england} and {she, was, born, in, paris}
    expected = [[1, 1, 1, 1 / 2], [1, 1, 1, 1 / 2], [1, 1, 1, 0]]
    assert [column(g, "answer_agreement") for g in data.graphs] == expected
    assert data.graphs[0].alternatives == endings[1:]


def test_runs_of_other_tasks_say_nothing():
    here = runs_of_task("London", "Paris")
    there = runs_of_task("London", "London", task="0 ")
    data = from_runs([*here, *there], alternatives=True)
    agreement = [column(g, "answer_agreement")[-1] for g in data.graphs]
    assert agreement == [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r'"run/2".*7'):
        from_runs([*here, *runs_of_task("London", task=7)], alternatives=True)


@pytest.mark.parametrize("ending", ["?!", "..."])
def test_an_answer_without_words_agrees_with_nothing(ending):
    data = from_runs(runs_of_task(ending, "London"), alternatives=True)
    assert [column(g, "answer_agreement")[-1] for g in data.graphs] == [0, 0]


def test_a_running_run_is_compared_with_those_that_are_over():
    """A column never changes when the run goes on, and a run that is cut has no answer."""
    over = runs_of_task("London", "London or Paris")
    whole = {"task": 0, "messages": list(RUN)}
    rows = from_runs([whole, *over], alternatives=True).graphs[0]
    for v, position in enumerate(rows.metadata["messages"]):
        part = {"task": 0, "messages": list(RUN[: position + 1])}
        cut = from_runs([part, *over], alternatives=True).graphs[0]
        assert np.array_equal(cut.features, rows.features[: v + 1])
    assert column(rows, "answer_agreement") == [1, 1, 1, 1]


def test_the_first_broken_run_is_named_with_alternatives_too():
    broken = {"task": 0, "messages": [{"role": "bot"}]}
    with pytest.raises(ValueError, match='problem "run/2": the role of message 0'):
        from_runs([*runs_of_task("London", "Paris"), broken], alternatives=True)


# ------------------------------------------------------------------- stop=True


def chains(n, seed):
    """Runs of three to six steps; a step is wrong with chance .8 risk squared."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for size in rng.integers(3, 7, n):
        risk = rng.random(size)
        chain = [(v - 1, v) for v in range(1, size)]
        graphs.append(ReasoningGraph(-risk[:, None], chain, feature_names=["score"]))
        labels.append((rng.random(size) >= 0.8 * risk**2).astype(int))
    return graphs, labels


def steps(graph):
    for v, row in enumerate(graph.features):
        yield {"features": row, "parents": [v - 1] if v else []}


def test_a_stream_that_stops_is_predict_up_to_the_first_doubtful_step():
    X, y = chains(300, 0)
    lengths = set()
    for rule in ("given", chain_edges):
        cf = HardCF(0, online=True, alpha=0.2, edges=rule)
        if rule is chain_edges:
            texts = [[f"{v}" for v in range(g.n_claims)] for g in X]
            X = [
                ReasoningGraph(g.features, claims=t, feature_names=g.feature_names)
                for g, t in zip(X, texts, strict=True)
            ]
        cf.fit(X[:200], y[:200], groups=False)
        for graph, mask in zip(X[200:], cf.predict(X[200:]), strict=True):
            claims = list(steps(graph))
            for v, claim in enumerate(claims):
                if graph.claims:
                    del claim["parents"]
                    claim["text"] = graph.claims[v]
            feed = iter(claims)
            names = graph.feature_names
            decisions = list(cf.stream(feed, stop=True, feature_names=names))
            kept = int(mask.sum())
            assert decisions == mask[: kept + 1].tolist()
            # Nothing after the doubtful step was asked for.
            assert len(list(feed)) == graph.n_claims - len(decisions)
            if len(decisions) < graph.n_claims:
                lengths.add(len(decisions))
    assert lengths >= {1, 2, 3}


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_nothing_wrong_is_carried_out_before_the_stop(alpha):
    X, y = chains(700, 1)
    cf = HardCF(0, online=True, alpha=alpha).fit(X[:200], y[:200])
    n = cf.calibration_.n
    covered = 0
    for graph, labels in zip(X[200:], y[200:], strict=True):
        names = graph.feature_names
        decisions = list(cf.stream(steps(graph), stop=True, feature_names=names))
        covered += all(labels[v] for v, kept in enumerate(decisions) if kept)
    rank = int((n + 1) * alpha + 1e-9)
    # The misses of one calibration set are beta-binomial.
    low, high = betabinom(500, n + 1 - rank, rank).interval(0.9999)
    assert low <= covered <= high < 500


def test_stopping_needs_a_chain():
    X, y = chains(100, 0)
    cf = HardCF(0, online=True, alpha=0.2).fit(X, y)
    row = np.full_like(X[0].features[0], 100.0)
    fork = [{"features": row, "parents": []}] * 2
    names = X[0].feature_names
    assert list(cf.stream(fork, feature_names=names)) == [True, True]
    decisions = cf.stream(fork, stop=True, feature_names=names)
    assert next(decisions)
    with pytest.raises(ValueError, match=r"claim.*1.*claim.*0"):
        next(decisions)
    apart = HardCF(0, online=True, edges="none").fit(X, y)
    with pytest.raises(ValueError, match=r"stop=True .*chain"):
        next(apart.stream(fork, stop=True, feature_names=names))


def test_a_very_long_run_is_a_chain_or_refused():
    steps = [{"role": "assistant", "content": f"step {i}"} for i in range(10_000)]
    with pytest.raises(ValueError, match=r"2,000 steps.*10,000"):
        read(USER, *steps, edges="data")
    graph = read(USER, *steps, edges="chain")
    assert graph.n_claims == 10_000 and len(graph.edges) == 9_999
