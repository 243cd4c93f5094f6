"""Unknown edges against none, contexts, missing verdicts, and answers to one question."""

import numpy as np
import pytest

from skdcf import GraphBatch, ReasoningGraph
from skdcf.graphs import as_batch
from skdcf.identity import question_groups

ODD = ("", " ", "a\0b", "\ud800", "Ann\nBob", "é")


def two_claims(edges, **more):
    return ReasoningGraph([[0.0], [1.0]], edges, claims=["a", "b"], **more)


def test_unknown_edges_alone_and_among_999_others():
    known, unknown = two_claims(()), two_claims(None)
    batch = as_batch([known] * 500 + [unknown] + [known] * 499)
    assert np.flatnonzero(~batch.edges_known).tolist() == [500]
    assert np.flatnonzero(~batch[498:502].edges_known).tolist() == [2]
    arrays = batch.features, batch.offsets
    again = GraphBatch.from_arrays(*arrays, (), edges_known=batch.edges_known)
    assert (again.edges_known == batch.edges_known).all()
    assert not GraphBatch.from_arrays(*arrays).edges_known.any()
    assert GraphBatch.from_arrays(*arrays, ()).edges_known.all()
    assert as_batch([[1.0], [2.0]]).edges_known.all()  # rows have nothing to build on
    assert "n_edges=unknown" in repr(unknown) and "n_edges=0" in repr(known)


def test_what_is_said_of_edges_must_fit():
    arrays = np.zeros((3, 1)), [0, 2, 3]
    with pytest.raises(ValueError, match=r'0 \("p".*edges_known'):
        GraphBatch.from_arrays(
            *arrays, [(0, 1)], edges_known=[False, True], ids=["p", 1]
        )
    for wrong in ([True], [1, 0], True, [[True, False]]):
        with pytest.raises(ValueError, match=r"edges_known.*2 booleans"):
            GraphBatch.from_arrays(*arrays, (), edges_known=wrong)
    with pytest.raises(ValueError, match=r"edges.*pairs"):
        ReasoningGraph([[1.0]], [None])


def count(batch, groups=None):
    return len(np.unique(question_groups(as_batch(batch), groups)))


def asked(problem=None, group=None, context=None):
    metadata = {} if group is None else {"group": group}
    return ReasoningGraph([[0.0]], problem=problem, metadata=metadata, context=context)


def test_order_of_what_tells_questions_apart():
    a = asked("What is  2?", "x", ["c"])
    assert count([a, asked("Else?", "x", ["d"])]) == 1  # the key before the text
    assert count([a, asked("What is  2?", "y", ["c"])]) == 2
    assert count([asked("What is  2?"), asked("what IS 2? ", context=["d"])]) == 1
    assert count([asked("", context=["c"]), asked(None, context=["c"])]) == 2
    assert count([asked("q"), asked()]) == 2
    assert count([asked(), asked()]) == 2 and count([asked(" "), asked("")]) == 2
    assert count([asked(t) for t in ODD]) == len(ODD)
    assert count([a, a, asked("Else?")], groups=[1, 2, 2]) == 2
    assert count([a, a, a], groups=False) == 3
    assert count([asked(group=7), asked(group="7")]) == 1  # files write it either way
    assert count([asked(), asked(), asked()], groups=[7.0, 7.0, 8.0]) == 2
    by_text, by_name = (
        question_groups(as_batch([g])) for g in (asked("group"), asked(group="group"))
    )
    assert by_text[0] != by_name[0]


def test_names_for_some_problems_only_are_refused():
    rows = [asked("q", 1), asked("q"), asked()]
    with pytest.raises(ValueError, match=r"problem 1.*'group'.*named = .*unnamed = "):
        count(rows)
    assert count(rows, groups=[1, 1, 2]) == 2 and count(rows, groups=False) == 3


def test_numbers_of_questions_do_not_depend_on_the_company():
    rows = [asked("q"), asked("r", context=["c"]), asked()]
    together = question_groups(as_batch(rows))
    for i, row in enumerate(rows[:2]):
        assert question_groups(as_batch([asked("z"), row]))[1] == together[i] >= 0
    given = question_groups(as_batch(rows), ["x", "y", "x"])
    assert (
        question_groups(as_batch(rows[:1]), ["y"])[0]
        == given[1]
        == (question_groups(as_batch([asked(group="y")]))[0])
    )
    numbers = question_groups(as_batch(rows), np.array([1.0, 2.0, 3.0]))
    assert numbers[1] == question_groups(as_batch([asked(group=2)]))[0]


@pytest.mark.parametrize(
    "groups, message",
    [
        ([1, 2], "groups .*shape"),
        ([1, None, 2], "problem 1.*group"),
        ([1.0, np.nan, 2.0], "problem 1.*group"),
    ],
)
def test_groups_must_fit(groups, message):
    with pytest.raises(ValueError, match=message):
        count([asked()] * 3, groups)


@pytest.mark.parametrize("key", [1.5, True, ["a"], {"a": 1}])
def test_keys_are_texts_or_whole_numbers(key):
    with pytest.raises(ValueError, match=r"1.*'group'"):
        count([asked(group="a"), asked(group=key)])
