"""Commands that judge filters: ``evaluate``, ``compare`` and ``report``."""

import json
import sys
from dataclasses import asdict

from .. import load
from ..evaluation import compare_filters
from ..labelling import describe_labels
from ..metrics import evaluate_filter
from ..reporting import write_report
from ._files import (
    add_alphas,
    add_json,
    add_output,
    add_problems,
    check_folder,
    inform,
    plain,
    read_problems,
)
from ._model import (
    FEATURES,
    LOGISTIC,
    SCORERS,
    add_model,
    make_filter,
    wanted_features,
)

ALPHAS = (0.02, 0.05, 0.1, 0.2)


def add_to(commands):
    """Add the commands of this module to the program."""
    parser = commands.add_parser(
        "evaluate", help="say how well a filter does on labelled problems"
    )
    add_model(parser)
    add_problems(parser, "labelled problems that the filter has not seen")
    add_alphas(parser, ALPHAS)
    add_json(parser)
    _add_by(parser)
    parser.set_defaults(run=evaluate)

    parser = commands.add_parser(
        "compare", help="compare ways to score claims on the same splits"
    )
    add_problems(parser, "labelled problems")
    parser.add_argument(
        "--scorers",
        nargs="+",
        default=[LOGISTIC, *SCORERS],
        metavar="NAME",
        help='as for "skdcf fit --scorer"; the first is what the others compare with',
    )
    parser.add_argument("--features", choices=FEATURES)
    parser.add_argument(
        "--splits", type=int, default=10, help="number of random splits"
    )
    parser.add_argument("--jobs", type=int, default=1, help="splits at a time")
    parser.add_argument("--resume", metavar="FILE", help="go on after an interruption")
    parser.add_argument("--seed", type=int, default=0)
    add_alphas(parser, ALPHAS)
    add_json(parser)
    parser.set_defaults(run=compare)

    parser = commands.add_parser(
        "report", help="write a page on a filter and what it did to labelled problems"
    )
    add_model(parser)
    add_problems(parser, "labelled problems that the filter has not seen")
    add_output(parser, "where to write the page (HTML)")
    add_alphas(parser, ALPHAS)
    _add_by(parser)
    parser.add_argument("--answers", type=int, default=30, help="how many to show")
    parser.set_defaults(run=report)


def _add_by(parser):
    parser.add_argument(
        "--by", metavar="KEY", help="report on groups: a key of the metadata"
    )


def evaluate(options):
    """Print coverage and retention of a saved filter."""
    model = load(options.model)
    data = read_problems(options.problems, labelled=True)
    held = data.graphs, data.labels
    report = evaluate_filter(model, *held, options.alphas, by=options.by)
    inform(f"labels: {describe_labels(*held)}")
    print(json.dumps(plain(asdict(report))) if options.json else report)


def compare(options):
    """Print what filters with different scorers keep."""
    data = read_problems(options.problems, labelled=True)
    graphs = data.graphs
    if features := wanted_features(options.features, graphs):
        graphs = features.fit_transform(graphs)  # no label enters
    report = compare_filters(
        {name: make_filter(name, options) for name in options.scorers},
        graphs,
        data.labels,
        options.alphas,
        cv=options.splits,
        groups=data.groups,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=sys.stderr.isatty(),
        resume=options.resume,
    )
    print(json.dumps(plain(report.rows())) if options.json else report)


def report(options):
    """Write a page that a reader without Python understands."""
    check_folder(options.output)
    model = load(options.model)
    data = read_problems(options.problems, labelled=True)
    more = {"alphas": options.alphas, "by": options.by, "n_answers": options.answers}
    write_report(options.output, model, data.graphs, data.labels, **more)
    inform(f"wrote {options.output}")
