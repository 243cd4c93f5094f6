"""Wordings of claims: graphs, labels, and every way to count what a text says."""

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.exceptions import GuaranteeWarning, LabelWarning
from skdcf.features import GraphFeatures, TextFeatures
from skdcf.graphs import pack_labels, shown_statements
from skdcf.graphs.wordings import claims_as_worded, count_once, statements_of
from skdcf.guarantees import ExpectedFalse, Guarantee, NoFalseClaim
from skdcf.metrics import evaluate_filter
from skdcf.ops.hard import path_risk
from tests.worded import draw, draw_answers

pytestmark = pytest.mark.filterwarnings("ignore::skdcf.exceptions.LabelWarning")

OPENED = ["It opened in March 1871", "It opened in the 19th century"]


def opened(**fields):
    wordings = [OPENED, ["So it is old", "It is not new", "It exists"], ["It burnt"]]
    table = np.arange(6.0).reshape(6, 1)
    return ReasoningGraph(table, [(0, 1), (1, 2)], wordings=wordings, **fields)


def test_a_wording_builds_on_the_vaguer_one_and_a_claim_on_the_most_specific():
    graph = opened()
    assert graph.claims[:3] == (*OPENED, "So it is old")
    assert sorted(map(tuple, graph.edges.tolist())) == [
        (0, 4),  # the vaguest wording of the second claim rests on the date
        (1, 0),
        (2, 5),
        (3, 2),
        (4, 3),
    ]


def test_it_comes_back_from_every_form():
    graph = opened(problem="When?", metadata={"no_verdict": [3]})
    assert ReasoningGraph.from_dict(graph.to_dict()) == graph
    assert graph.replace(problem="When?") == graph
    batch = GraphBatch.from_graphs([graph, opened()])
    assert batch[0] == graph and batch[[1, 0]][1] == graph
    parents = [[], [0], [1]]
    table = graph.features
    assert ReasoningGraph.from_parents(
        parents, table, wordings=graph.wordings, problem="When?"
    ) == graph.replace(metadata=None)
    unknown = graph.replace(edges=None)
    assert not unknown.edges_known and unknown.to_dict()["edges"] is None
    assert len(unknown.edges) == 3  # between wordings
    assert graph.to_dict()["edges"] == [[0, 1], [1, 2]]


def test_features_have_a_row_for_each_claim_or_each_wording():
    wordings = [OPENED, ["It burnt"]]
    repeated = ReasoningGraph([[1.0], [2.0]], wordings=wordings)
    assert repeated.features.ravel().tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match=r"4 rows|3 claim texts"):
        ReasoningGraph([[1.0]] * 4, wordings=wordings)


@pytest.mark.parametrize(
    ("wordings", "match"),
    [
        ([["a", " "]], r"claim 0.*wordings\[1\]"),
        ([["It is so", "it  IS so"]], r"claim 0.*wordings\[1\].*wordings\[0\]"),
        ([[]], "claim 0.*wordings"),
        ([None], "claim 0.*wordings"),
        ([["a", 3]], "claim 0.*3"),
        (["ab"], "claim 0.*wordings"),
    ],
)
def test_bad_wordings_are_refused(wordings, match):
    with pytest.raises(ValueError, match=match):
        ReasoningGraph(None, wordings=wordings)


def test_claims_are_the_most_specific_wordings():
    graph = ReasoningGraph(None, (), claims=[OPENED[0], "b"], wordings=[OPENED, None])
    assert graph.claims == (*OPENED, "b")
    with pytest.raises(ValueError, match=r"claim 0.*wordings"):
        ReasoningGraph(None, (), claims=[OPENED[1]], wordings=[OPENED])
    with pytest.raises(ValueError, match=r"2.*1"):
        ReasoningGraph(None, (), claims=["a", "b"], wordings=[OPENED])


def test_a_vaguer_wording_that_is_false_counts_and_there_is_a_warning():
    batch = GraphBatch.from_graphs([opened()] * 3)
    with pytest.warns(LabelWarning, match="1 wordings"):
        labels = pack_labels([[1, 0, 1, 1, 1, 1]] + [[1] * 6] * 2, batch)
    assert labels[:6].tolist() == [0, 0, 1, 1, 1, 1]
    labels = pack_labels([[1, -1, 1, 1, -1, 1], [-1, 0, 0, -1, 1, 1], [1] * 6], batch)
    assert labels.tolist() == [-1, -1, -1, -1, -1, 1, 0, 0, 0, -1, 1, 1, *[1] * 6]


def _many(seed, n=60, **options):
    rng = np.random.default_rng(seed)
    worlds = [draw(rng, **options) for _ in range(n)]
    batch = GraphBatch.from_graphs([w.graph() for w in worlds])
    labels = pack_labels([w.flat_labels for w in worlds], batch)
    return worlds, batch, labels


@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("max_false", [0, 1, 2])
def test_scores_are_the_largest_safe_thresholds_of_the_text(levels, max_false):
    worlds, batch, labels = _many(1, levels=levels)
    risk = path_risk(-batch.features[:, 0], batch)
    once = count_once(labels, batch)
    scores = NoFalseClaim(max_false).scores(risk, once, batch.offsets)
    for world, score in zip(worlds, scores, strict=True):
        safe = [t for t in world.thresholds() if world.n_false(t) <= max_false]
        assert score == max(safe)


@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("of", ["share", "count"])
def test_the_loss_at_each_threshold_is_that_of_the_text(levels, of):
    worlds, batch, labels = _many(2, levels=levels)
    risk = path_risk(-batch.features[:, 0], batch)
    guarantee = ExpectedFalse(of)
    once = count_once(labels, batch)
    jumps = guarantee.jumps(risk, once, batch.offsets, batch.vaguest)
    largest = guarantee.largest_loss(risk, batch.offsets, batch.vaguest)
    largest = np.broadcast_to(largest, risk.shape)
    for i, world in enumerate(worlds):
        own = jumps.problem == i
        top = 0.0
        for t in world.thresholds():
            false, n = world.n_false(t), len(world.text(t))
            top = max(top, false if of == "count" else false / max(n, 1))
            reached = jumps.height[own & (jumps.position < t)].sum()
            assert reached == pytest.approx(top)
        if of == "count":  # a claim that is just kept may be false, and all with it
            rows = slice(*batch.offsets[i : i + 2])
            for r, bound in zip(risk[rows], largest[rows], strict=True):
                assert bound == len(world.text(np.nextafter(r, np.inf)))


def test_what_is_counted_is_what_the_text_says():
    worlds, batch, labels = _many(3, levels=4)
    risk = path_risk(-batch.features[:, 0], batch)
    for t in (0.5, 1.5, 2.5, 9.0):
        kept = risk < t
        said = statements_of(batch, labels, kept)
        for i, (world, graph) in enumerate(zip(worlds, batch, strict=True)):
            rows = slice(*said.offsets[i : i + 2])
            text = world.text(t)
            assert said.kept[rows].sum() == len(text)
            trues = (said.labels[rows] == 1) & said.kept[rows]
            assert trues.sum() == sum(true for *_, true in text)
            assert said.reworded[rows].sum() == sum(k > 0 for _, k, _ in text)
            mask = kept[slice(*batch.offsets[i : i + 2])]
            words = [f"claim {c}, wording {k}" for c, k, _ in text]
            shown = graph.shown(mask)
            assert list(shown.claims) == words and shown.wordings is None
            # Each shown claim stands below the shown claims that it builds on.
            place = {c: j for j, (c, *_) in enumerate(text)}
            due = {(place[p], place[c]) for c in place for p in world.parents[c]}
            assert set(map(tuple, shown.edges.tolist())) == due


def test_without_wordings_nothing_changes():
    graph = ReasoningGraph([[1.0], [2.0]], [(0, 1)], claims=["a", "b"])
    batch = GraphBatch.from_graphs([graph])
    labels = pack_labels([[0, 1]], batch)
    assert labels.tolist() == [0, 1]
    assert count_once(labels, batch) is labels
    said = shown_statements(batch, [[0, 1]], [[True, False]])
    assert said.kept.tolist() == [True, False] and not said.reworded.any()
    assert graph.shown(np.array([True, False])) == graph.subgraph([True, False])
    assert "wordings" not in graph.to_dict()


def test_columns_that_do_not_depend_on_the_wording_are_those_of_the_claim():
    batch = GraphBatch.from_graphs([opened(problem="When?")])
    plain = [claims_as_worded(batch, k)[0] for k in range(3)]
    for transformer in (GraphFeatures(), TextFeatures()):
        table = transformer.fit(batch).transform(batch).features
        tables = [transformer.fit(p).transform(p).features for p in plain]
        # (claim, number of steps to a vaguer wording) of each row
        for row, (claim, k) in enumerate(
            [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0)]
        ):
            np.testing.assert_array_equal(table[row, 1:], tables[k][claim, 1:])
    structure = GraphFeatures().fit(batch).transform(batch).features[:, 1:]
    assert (structure[0] == structure[1]).all()


def _data(seed, n, wordings=True):
    worlds = draw_answers(np.random.default_rng(seed), n, wordings)
    graphs = [world.graph(id=i) for i, world in enumerate(worlds)]
    if not wordings:
        graphs = [graph.shown() for graph in graphs]
    return graphs, [world.flat_labels for world in worlds]


GUARANTEES = [
    (NoFalseClaim(), 0.1),
    (NoFalseClaim(max_false=1), 0.1),
    (ExpectedFalse("share"), 0.1),
    (ExpectedFalse("count"), 0.3),
    (NoFalseClaim(show=0.6), 0.2),
]


@pytest.mark.parametrize(("guarantee", "alpha"), GUARANTEES)
def test_no_more_is_missed_than_allowed(guarantee, alpha):
    # benchmarks/guarantees/wordings.py has more answers and more draws.
    graphs, labels = _data(0, 2000)
    batch = GraphBatch.from_graphs(graphs)
    rng = np.random.default_rng(1)
    losses = []
    for _ in range(12):
        order = rng.permutation(len(batch))
        few, many = order[:100], order[100:]
        cf = HardCF(0, alpha=alpha, guarantee=guarantee)
        cf.fit(batch[few], [labels[i] for i in few], groups=False)
        y = [labels[i] for i in many]
        report = evaluate_filter(cf, batch[many], y, [alpha], groups=False)
        losses.append(1 - report.coverage[0])
    error = np.std(losses, ddof=1) / np.sqrt(len(losses))
    assert np.mean(losses) < alpha + 3 * error


def test_a_report_counts_each_claim_once_and_the_reworded_apart():
    graphs, labels = _data(2, 400)
    cf = HardCF(0, alpha=0.2).fit(graphs[:200], labels[:200], groups=False)
    report = evaluate_filter(cf, graphs[200:], labels[200:], [0.2], groups=False)
    masks = cf.predict(graphs[200:])
    n_true = n_vaguer = n_false = 0
    for graph, mask, y in zip(graphs[200:], masks, labels[200:], strict=True):
        for text in graph.shown(mask).claims:
            c, k = (int(word) for word in text.replace(",", "").split()[1::2])
            y_of_claim = y[2 * c : 2 * c + 2]
            good = y_of_claim[k:].all()
            n_true += good
            n_vaguer += good and k > 0
            n_false += not good
    assert report.retention[0] == pytest.approx(n_true / 200)
    assert report.reworded[0] == pytest.approx(n_vaguer / 200)
    assert report.false_kept[0] == pytest.approx(n_false / 200)
    assert cf.score(graphs[200:], labels[200:]) == pytest.approx(n_true / 200)
    assert "reworded" in str(report)
    assert 0 < n_vaguer < n_true


def test_text_shows_the_most_specific_wording_that_is_kept():
    graphs, labels = _data(3, 300)
    cf = HardCF(0, alpha=0.3).fit(graphs, labels, groups=False)
    texts = cf.filter(graphs, output="text")
    assert any("wording 1" in text for text in texts)
    assert any("wording 0" in text for text in texts)
    for text in texts:
        claims = [line.split(",")[0] for line in text.splitlines()]
        assert len(set(claims)) == len(claims)


def test_wordings_must_be_there_exactly_if_calibration_had_them():
    worded, labels = _data(4, 200)
    plain, y = _data(4, 200, wordings=False)
    without = HardCF(0).fit(plain, y, groups=False)
    with pytest.raises(ValueError, match="wordings"):
        without.predict(worded)
    cf = HardCF(0).fit(worded, labels, groups=False)
    with pytest.raises(ValueError, match="wordings"):
        cf.predict(plain)
    more = [
        g.replace(
            features=np.repeat(g.features, 2, axis=0),
            wordings=[[*row, *(t + " or so" for t in row)] for row in g.wordings],
        )
        for g in worded
    ]
    with pytest.warns(GuaranteeWarning, match=r"wordings.*200 of 200.*4"):
        cf.predict(more)


def test_what_cannot_count_statements_is_refused():
    class Own(Guarantee):
        def scores(self, path_risk, labels, offsets):
            return np.full(len(offsets) - 1, np.inf)

        def loss(self, labels, kept, offsets):
            return np.zeros(len(offsets) - 1)

    worded, labels = _data(5, 50)
    with pytest.raises(ValueError, match=r"Own.*wordings"):
        HardCF(0, guarantee=Own()).fit(worded, labels, groups=False)
    with pytest.raises(ValueError, match=r"online.*wordings"):
        HardCF(0, online=True).fit(worded, labels, groups=False)


def test_edges_none_keeps_a_specific_wording_behind_the_vaguer_one():
    worded, labels = _data(6, 100)
    cf = HardCF(0, alpha=0.3, edges="none").fit(worded, labels, groups=False)
    for graph, risk in zip(worded, cf.path_risk(worded), strict=True):
        assert (risk[::2] >= risk[1::2]).all()
        assert risk[5] == -graph.features[5, 0]  # whatever the claim builds on


def test_a_rule_sees_each_claim_once():
    from skdcf.edges import chain_edges

    worded, labels = _data(7, 100)
    cf = HardCF(0, alpha=0.3, edges=chain_edges).fit(worded, labels, groups=False)
    for graph, risk in zip(worded[:5], cf.path_risk(worded[:5]), strict=True):
        chain = graph.replace(edges=[(0, 1), (1, 2)])
        due = path_risk(-graph.features[:, 0], GraphBatch.from_graphs([chain]))
        np.testing.assert_array_equal(risk, due)


def test_files_and_tables_keep_wordings(tmp_path):
    pytest.importorskip("narwhals")
    from skdcf.adapters import from_frame, to_frame
    from skdcf.datasets import read_jsonl, write_jsonl

    graphs = [opened(id="p"), ReasoningGraph([[1.0]], (), wordings=[["a"]], id="q")]
    labels = [[0, 1, 0, 1, 1, -1], [1]]
    write_jsonl(tmp_path / "x.jsonl", graphs, labels)
    read = read_jsonl(tmp_path / "x.jsonl")
    assert list(read.graphs) == graphs
    assert [row.tolist() for row in read.labels] == labels
    frame = to_frame(graphs, labels)
    assert frame["wording"].tolist() == [0, 1, 0, 1, 2, 0, 0]
    assert frame["claim"].tolist() == [0, 0, 1, 1, 1, 2, 0]
    for table in (frame, frame.iloc[::-1], frame.iloc[:6].drop(columns="claim")):
        back = from_frame(table)
        assert {g.id: g.replace(feature_names=None) for g in back.graphs} == {
            g.id: g for g in graphs if g.id in set(table["problem"])
        }
    wrong = frame.assign(wording=[0, 2, 0, 1, 2, 0, 0])
    with pytest.raises(ValueError, match=r"'p', row 1.*wording"):
        from_frame(wrong)
    with pytest.raises(ValueError, match=r"row 0.*text"):
        from_frame(frame.drop(columns="text"))


def test_a_saved_filter_compares_wordings(tmp_path):
    from skdcf import load, save

    worded, labels = _data(8, 100)
    cf = HardCF(0, alpha=0.3).fit(worded, labels, groups=False)
    save(cf, tmp_path / "filter.skdcf")
    loaded = load(tmp_path / "filter.skdcf")
    for before, after in zip(cf.predict(worded), loaded.predict(worded), strict=True):
        assert before.tolist() == after.tolist()
    with pytest.raises(ValueError, match="wordings"):
        loaded.predict(_data(8, 100, wordings=False)[0])


def test_training_counts_a_claim_once_whatever_its_wordings():
    from skdcf import CoherentConformalFilter
    from skdcf.graphs.wordings import true_shares

    batch = GraphBatch.from_graphs([opened()])
    shares = true_shares(np.array([1, 1, 0, 1, 1, 1]), batch)
    np.testing.assert_allclose(shares, [1 / 2, 1 / 2, 0, 1 / 3, 1 / 3, 1])
    worded, labels = _data(9, 300)
    for scorer in ("stack", "linear"):
        cf = CoherentConformalFilter(scorer, alpha=0.2, random_state=0)
        cf.fit(worded[:200], labels[:200], groups=False)
        assert cf.score(worded[200:], labels[200:]) > 0.3


def test_an_explanation_says_which_claims_were_reworded():
    from skdcf.inspection import explain

    graphs, labels = _data(3, 300)
    cf = HardCF(0, alpha=0.3).fit(graphs, labels, groups=False)
    for graph, explained in zip(graphs, explain(cf, graphs, labels), strict=True):
        shown = graph.shown(explained.kept).claims
        n_vaguer = sum("wording 1" in text for text in shown)
        assert len(explained.reworded) == n_vaguer
        assert explained.text.splitlines() == list(shown)
        said = f"{len(shown)} of 3 claims kept"
        assert explained.counted.startswith(said)
        for v, w in explained.reworded.items():
            assert f"Claim {v + 1} was reworded as claim {w + 1}" in str(explained)
            assert graph.claims[w] in shown and graph.claims[v] not in shown
            assert "reworded" in explained.causes[v]


def test_the_label_page_says_which_wording_to_judge_first(tmp_path):
    pytest.importorskip("fastapi")
    from skdcf.apps.labelling import LabelServer, LabelStore

    store = LabelStore([opened()], tmp_path / "labels")
    with LabelServer(store, annotator="ann") as server:
        [problem] = server.problems()["problems"]
    about = problem["reworded"]
    assert "Claim 2" in about[0] and "claim 1" in about[1]
    assert "Claim 4" in about[2] and "Claim 5" in about[3] and "claim 3" in about[4]
    assert about[5] == ""
    with pytest.raises(ValueError, match=r"problem 0.*wordings"):
        store.correct_edges(0, [[0, 1]], by="ann")
    assert store.export("ann").graphs[0].wordings == opened().wordings
