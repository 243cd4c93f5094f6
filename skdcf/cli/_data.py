"""Commands that look at problems: ``check`` and ``features``."""

import json
from collections import Counter

import numpy as np

from .._checks import printable
from ..datasets import format_jsonl, read_jsonl
from ..features import reasoning_features
from ._files import (
    add_json,
    add_output,
    add_problems,
    inform,
    read_problems,
    source,
    write_lines,
)

FOUND_BROKEN_LINES = 1
_SHOWN = 20  # broken lines


def add_to(commands):
    """Add the commands of this module to the program."""
    parser = commands.add_parser(
        "check", help="say what a file holds and what is wrong"
    )
    add_problems(parser, "the problems")
    add_json(parser)
    parser.set_defaults(run=check)

    parser = commands.add_parser(
        "features", help="compute features from questions, claims and edges"
    )
    add_problems(parser, "the problems")
    add_output(parser, "where to write the problems with their features")
    parser.set_defaults(run=add_features)


def check(options):
    """Print what there is, and each line that breaks the format."""
    data = read_jsonl(source(options.problems), on_invalid="drop")
    summary = _summary(data)
    if options.json:
        print(json.dumps(summary))
    else:
        print("\n".join(_describe(options.problems, summary)))
    return FOUND_BROKEN_LINES if data.dropped else 0


def _summary(data):
    graphs = data.graphs
    labels = np.concatenate(data.labels or [[]]).astype(int)
    questions = () if graphs.problems is None else graphs.problems
    others = () if graphs.alternatives is None else graphs.alternatives
    return {
        "problems": len(graphs),
        "claims": graphs.n_claims,
        "edges": len(graphs.edges),
        "questions": sum(map(bool, questions)),
        "claim_texts": graphs.claims is not None,
        "features": None if graphs.features is None else graphs.n_features,
        "alternatives": dict(Counter(len(a) for a in others if a is not None)),
        "labels": {
            name: int(np.sum(labels == value))
            for name, value in (("true", 1), ("false", 0), ("unknown", -1))
        },
        "groups": 0 if data.groups is None else len(set(data.groups.tolist())),
        "metadata": sorted({key for row in data.metadata or [] for key in row or {}}),
        "broken_lines": [
            {"line": number, "reason": reason} for number, reason in data.dropped
        ],
    }


def _describe(name, summary):
    alone = "" if summary["edges"] else ": every claim stands alone"
    yield (
        f"{name}: {summary['problems']} problems, {summary['claims']} claims, "
        f"{summary['edges']} edges{alone}"
    )
    features, labels = summary["features"], summary["labels"]
    rows = {
        "questions": f"in {summary['questions']} problems",
        "claim texts": "yes" if summary["claim_texts"] else "no",
        "features": features or 'none ("skdcf fit" computes those of texts and edges)',
        "alternatives": ", ".join(
            f"{k} other answers in {n} problems"
            for k, n in sorted(summary["alternatives"].items())
        ),
        "labels": ", ".join(f"{n} {name}" for name, n in labels.items() if n),
        "groups": summary["groups"],
        "metadata": ", ".join(map(printable, summary["metadata"])),
    }
    for title, value in rows.items():
        yield f"  {title:13} {value or 'none'}"
    if broken := summary["broken_lines"]:
        yield f"{len(broken)} broken lines:"
        yield from (f"  line {b['line']}: {b['reason']}" for b in broken[:_SHOWN])
        if len(broken) > _SHOWN:
            yield f"  and {len(broken) - _SHOWN} more"


def add_features(options):
    """Write the problems again, with the built-in columns beside those that they have."""
    data = read_problems(options.problems)
    graphs = reasoning_features().fit_transform(data.graphs)
    columns = (data.labels, data.masks)
    more = {"groups": data.groups, "metadata": data.metadata}
    write_lines(options.output, format_jsonl(graphs, *columns, **more))
    inform(f"{len(graphs)} problems with {graphs.n_features} features each")
