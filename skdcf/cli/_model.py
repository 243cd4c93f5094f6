"""Commands that make and use a filter: ``fit``, ``calibrate`` and ``filter``."""

from collections import Counter
from itertools import islice, tee

from tqdm import tqdm

from .. import load, save
from .._checks import printable
from ..datasets import format_jsonl, iter_jsonl
from ..estimators import CoherentConformalFilter
from ..features import reasoning_features
from ..graphs import GraphBatch
from ..labelling import describe_labels
from ..metrics import filter_of, unwrap
from ..pipeline import FilterPipeline
from ..scorers import ClassifierScorer
from ._files import (
    add_alpha,
    add_output,
    add_problems,
    check_folder,
    inform,
    read_problems,
    source,
    write_lines,
)

SCORERS = ("auto", "linear", "neyman-pearson")
LOGISTIC = "logistic"
FEATURES = ("given", "built-in", "both")
RESULT = "filtered"  # the key of the metadata under which the result stands
_CHUNK = 5000  # problems in memory at a time


def add_to(commands):
    """Add the commands of this module to the program."""
    parser = commands.add_parser("fit", help="train a filter on labelled problems")
    add_problems(parser, "labelled problems")
    add_output(parser, "where to save the filter")
    add_alpha(parser)
    add_scorer(parser)
    parser.add_argument(
        "--no-edges", action="store_true", help="filter claims one by one"
    )
    parser.add_argument(
        "--calibration", type=float, help="share or number of problems that calibrate"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=fit, alpha=0.1)

    parser = commands.add_parser(
        "calibrate",
        help="calibrate a filter again, on labelled problems it has not seen",
    )
    add_model(parser)
    add_problems(parser, "labelled problems")
    add_output(parser, "where to save the filter (may be the same file)")
    add_alpha(parser)
    parser.set_defaults(run=calibrate)

    parser = commands.add_parser("filter", help="keep what can be trusted")
    add_model(parser)
    add_problems(parser, "new problems")
    add_output(parser, 'where to write the problems ("-" is standard output)')
    add_alpha(parser)
    parser.add_argument(
        "--text",
        action="store_true",
        help="write the kept text only, one answer a line",
    )
    parser.set_defaults(run=filter_problems)


def add_model(parser):
    """The argument of a command that uses a filter."""
    parser.add_argument(
        "model", metavar="MODEL", help='a filter that "skdcf fit" saved'
    )


def add_scorer(parser):
    """The options that say how claims are scored."""
    parser.add_argument(
        "--scorer",
        default="auto",
        metavar="NAME",
        help=f"{', '.join(SCORERS)}, {LOGISTIC} (regression on single claims), or the name "
        "of a column of the features (default: auto)",
    )
    parser.add_argument(
        "--features",
        choices=FEATURES,
        help='those of the file, the built-in ones, or both (default: "given" if the file '
        "has any)",
    )


def make_filter(scorer, options, **more):
    """An unfitted filter with the scorer of that name."""
    scorer = ClassifierScorer() if scorer == LOGISTIC else scorer
    return CoherentConformalFilter(scorer, random_state=options.seed, **more)


def wanted_features(wanted, graphs):
    """The transformer that computes features, or None where those given are enough."""
    wanted = wanted or ("built-in" if graphs.features is None else "given")
    if wanted == "given":
        return None
    return reasoning_features().set_params(keep_input=wanted == "both")


def fit(options):
    """Train, calibrate and save a filter."""
    check_folder(options.output)
    data = read_problems(options.problems, labelled=True)
    size = options.calibration
    model = make_filter(
        options.scorer,
        options,
        alpha=options.alpha,
        coherent=not options.no_edges,
        calibration_size=int(size) if size is not None and size >= 1 else size,
    )
    if features := wanted_features(options.features, data.graphs):
        model = FilterPipeline([("features", features), ("filter", model)])
    model.fit(data.graphs, data.labels, data.groups)
    save(model, options.output)
    alone = (
        "" if len(data.graphs.edges) else ", without edges: every claim stands alone"
    )
    inform(
        f"fitted on {len(data.graphs)} problems{alone}",
        f"labels: {describe_labels(data.graphs, data.labels)}",
        *promise(filter_of(model)),
        f"saved as {options.output}",
    )


def calibrate(options):
    """Calibrate a saved filter again and save it."""
    check_folder(options.output)
    model = load(options.model)
    data = read_problems(options.problems, labelled=True)
    filter, graphs = unwrap(model, data.graphs)
    if options.alpha is not None:
        promised = filter.guarantee and filter.guarantee.for_level(options.alpha)
        filter.set_params(alpha=options.alpha, guarantee=promised)
    filter.calibrate(graphs, data.labels)
    save(model, options.output)
    inform(
        f"labels: {describe_labels(data.graphs, data.labels)}",
        *promise(filter),
        f"saved as {options.output}",
    )


def promise(filter):
    """What a calibrated filter promises, in two sentences."""
    n, kind = filter.n_calibration_, filter.calibration_.promise
    level = kind.level(None, filter.alpha)
    yield f"promise: {filter.calibration_.describe(level)}"
    yield f"{n} answers calibrated; they allow levels from alpha = {1 / (n + 1):.3g} on"


def filter_problems(options):
    """Write each problem with the mask of what is kept, its level per claim and the text."""
    model = load(options.model)
    filter = filter_of(model)
    alpha = filter.calibration_.promise.level(options.alpha, filter.alpha)
    counts = Counter()
    rows = _counted(
        filtered(model, iter_jsonl(source(options.problems)), alpha), counts
    )
    lines = _texts(rows) if options.text else _lines(rows, alpha)
    write_lines(options.output, lines)
    inform(
        f"{counts['kept']} of {counts['claims']} claims kept in {counts['problems']} "
        "problems"
    )


def filtered(model, rows, alpha):
    """Each `Problem` of ``rows`` with the mask and the levels of its claims."""
    # None shows progress where somebody watches, and is silent in a pipe.
    rows = iter(tqdm(rows, unit=" problems", disable=None))
    model = FilterPipeline.of(model)
    while chunk := list(islice(rows, _CHUNK)):
        graphs = GraphBatch.pack([row.graph for row in chunk])
        masks, levels = model.predict(graphs, alpha=alpha), model.predict_alpha(graphs)
        yield from zip(chunk, masks, levels, strict=True)


def kept_text(row, mask):
    """The kept claims as one text; empty where nothing is kept."""
    if row.graph.claims is None:
        raise ValueError(
            f'problem "{printable(row.graph.id)}" has no claim texts, so that there is no '
            "text to write: leave out --text"
        )
    return " ".join(
        " ".join(text.split())
        for text, keep in zip(row.graph.claims, mask, strict=True)
        if keep
    )


def _texts(rows):
    for row, mask, _ in rows:
        yield kept_text(row, mask)


def _counted(rows, counts):
    for row, mask, levels in rows:
        counts.update(problems=1, claims=len(mask), kept=int(mask.sum()))
        yield row, mask, levels


def _lines(rows, alpha):
    """A stream of problems as lines; its columns are read side by side."""
    graphs, labels, masks, groups, metadata = tee(rows, 5)
    return format_jsonl(
        (row.graph for row, _, _ in graphs),
        (row.labels for row, _, _ in labels),
        (mask for _, mask, _ in masks),
        groups=(row.group for row, _, _ in groups),
        metadata=(_with_result(*parts, alpha) for parts in metadata),
    )


def _with_result(row, mask, levels, alpha):
    """The metadata of a problem, and in it what came out."""
    result = {"alpha": alpha, "claim_alpha": levels.tolist()}
    if row.graph.claims is not None:
        result["text"] = kept_text(row, mask)
    return {**(row.metadata or {}), RESULT: result}
