"""Commands to fit, calibrate, use and report on filters."""

import json
import warnings

import numpy as np
from sklearn.base import clone

from ... import evaluation, load, save
from ..._checks import counted
from ..._files import write_text
from ...datasets import jsonl
from ...datasets.paths import MISSING, paths_of, put_at, value_at
from ...datasets.records import NAMES
from ...exceptions import CalibrationWarning
from ...features import reasoning_features
from ...guarantees import NoFalseClaim
from ...inspection import explain
from ...labels import pack_labels
from ...presets import CoherentConformalFilter
from ...scorers import ClassifierScorer, FeatureScorer
from ...uses import seen
from .. import reporting
from ..labelling import describe_labels
from ..text import kept_text
from . import _files as files
from ._main import FAILED


def fit(options):
    """Fit and save a filter."""
    problems = files.read_problems(options, labelled=True)
    graphs = problems.graphs
    features = {"given": None, None: "auto"}.get(options.features)
    if options.features in ("built-in", "both"):
        features = reasoning_features()
        features.set_params(keep_input=options.features == "both")
    size = options.calibration
    if options.all_labels:
        if size is not None:
            raise ValueError(
                f"--all-labels cannot be used with --calibration, got {size:g}. Omit one of them"
            )
        size = "all"
    elif size == 0 or (size or 0) >= 1:
        size = int(size)
    scorer = options.scorer
    column = None if size else _column_for_few(options, graphs, features)
    if column:
        scorer = FeatureScorer(column)
    elif scorer == "logistic":
        scorer = ClassifierScorer()
    share = options.show
    if share is None:
        share = 1 if options.online or column or size == "all" else "auto"
    filter = CoherentConformalFilter(
        scorer,
        features=features,
        edges="none" if options.no_edges else "given",
        alpha=options.alpha,
        online=options.online,
        calibration_size=size,
        guarantee=None if share == 1 else NoFalseClaim(show=share),
        random_state=options.seed,
    )
    filter.fit(graphs, problems.labels)
    n = files.count_questions(graphs)
    files.inform(
        f"fitted a filter on {counted(len(graphs), 'answer')} to {counted(n, 'question')} with "
        f"{counted(len(graphs.edges), 'edge')}"
    )
    if n < len(graphs) / 2:
        files.inform(
            "only one answer to each question is used for calibration. If answers to the same "
            "text are different cases, run split again with --group-by context or none"
        )
    return _save(filter, problems, options)


def _column_for_few(options, graphs, features):
    """Return the column that has to be the scorer because calibration requires all answers.

    The column measures how well the context supports each claim. Returns None otherwise.
    """
    n = files.count_questions(graphs)
    needed = NoFalseClaim().problems_needed(options.alpha)
    held_out = NoFalseClaim().calibration_count(n, options.alpha)
    if options.scorer != "linear" or not held_out < needed <= n:
        return None
    column = "context_trigrams"  # the column that performs best on its own
    is_computed = features is not None and graphs.context is not None
    if not is_computed and column not in (graphs.feature_names or ()):
        return None
    files.inform(
        f"at alpha = {options.alpha:g}, {needed} of these {n} answers are needed for "
        f"calibration. The others are too few to train a scorer, so the column {column} is "
        "the scorer. Label more answers to train one"
    )
    return column


def calibrate(options):
    """Load a saved filter, calibrate it again, and save the result."""
    problems = files.read_problems(options, labelled=True)
    filter = load(options.model)
    if options.show == "auto":
        raise ValueError(
            "--show must be a number for skdcf calibrate, got 'auto'. An automatic choice requires "
            "the training answers. Omit --show to use the value saved in the filter"
        )
    if options.alpha is not None:
        filter.set_params(alpha=options.alpha)
    if options.show is not None:
        guarantee = clone(filter.guarantee or NoFalseClaim())
        filter.set_params(guarantee=guarantee.set_params(show=options.show))
    filter.calibrate(problems.graphs, problems.labels)
    return _save(filter, problems, options)


def _save(filter, problems, options):
    """Save the filter unless it would remove all claims, and print its guarantee."""
    labels = pack_labels(problems.labels, problems.graphs)
    files.inform(f"labels: {describe_labels(problems.graphs, labels)}")
    if not filter.n_calibration_:
        save(filter, options.output)
        files.inform(
            f"saved as {options.output} without calibration. Calibrate it with skdcf calibrate "
            "before use"
        )
        return None
    calibration = filter.calibration_
    level = calibration.guarantee.level(None, filter.alpha)
    keeps_nothing = calibration.keeps_nothing(level)
    if not keeps_nothing:
        save(filter, options.output)
    files.inform(
        f"calibrated on {reporting.describe_calibration(filter)}",
        f"guarantee: {filter.describe()}",
    )
    if calibration.guarantee.show == 1:
        files.inform(
            "all answers may pass (--show 1), so the guarantee is an average over all answers, "
            "including those without kept claims"
        )
    files.inform(*_levels(filter, problems))
    if keeps_nothing:
        files.inform(
            f"the filter was not saved, because it would remove all claims at alpha = "
            f"{filter.alpha:g}. Label more answers, use a larger --alpha, let more answers pass "
            "(--show 1)"
        )
        return FAILED
    files.inform(f"saved as {options.output}")
    return None


def _levels(filter, problems):
    """Yield the lines of a table of levels, and the number of labels that the next one needs."""
    calibration = filter.calibration_
    trained, calibrated = seen(filter, problems.graphs)
    rows = np.flatnonzero(calibrated & ~trained)
    # Answers that are used in every fit cannot be filtered out-of-fold.
    if len(rows) < 2 or filter._labelled is not None:
        return
    usual = (0.3, 0.2, 0.1, 0.05, 0.02)
    levels = sorted({*usual, filter.alpha})
    with warnings.catch_warnings():
        # The table already contains the information in the warning.
        warnings.simplefilter("ignore", CalibrationWarning)
        report = evaluation.evaluate_filter(
            filter, problems.graphs[rows], [problems.labels[i] for i in rows], levels
        )
    passing = f"{calibration.passing:.0%}"
    yield "alpha   answers that pass   shown   true claims   wrong among passing (at most)"
    for level, kept in zip(levels, report.retention, strict=True):
        shown = calibration.shown(level)
        wrong = level if shown else 0
        yield f"{level:<5g}   {passing:>17}   {shown:>5.0%}   {kept:>11.2f}   {wrong:>.1%}"
    yield "Choose alpha before you judge the answers, since the best level here is too optimistic."
    for level in usual:
        needed = calibration.guarantee.problems_needed(level)
        if needed > filter.n_calibration_:
            more = counted(needed - filter.n_calibration_, "more calibration answer")
            yield f"alpha = {level:g} needs labels for {more}"
            return


def filter_problems(options):
    """Write the filtered answers."""
    problems = files.read_problems(options)
    filter = load(options.model)
    n_used = int(np.any(seen(filter, problems.graphs, problems.groups), axis=0).sum())
    if n_used:
        files.inform(
            f"{counted(n_used, 'answer')} or their questions were used to train or calibrate the "
            "filter. The guarantee does not hold for them"
        )
    explained = explain(filter, problems.graphs, alpha=options.alpha)
    masks = [explanation.kept for explanation in explained]
    write_answers(options, problems, explained, masks)
    files.inform(
        f"{sum(int(mask.sum()) for mask in masks)} of "
        f"{counted(problems.graphs.n_claims, 'claim')} in {counted(len(masks), 'answer')} were "
        "kept"
    )
    empty = [i for i, mask in enumerate(masks) if not mask.any()]
    for i in empty[:1]:
        files.inform(
            f"no claim was kept in {counted(len(empty), 'answer')}. For example, answer "
            f"{i + 1}: {_why_empty(explained[i], masks[i])}"
        )


def write_answers(options, problems, explained, masks, checked=None):
    """Write the kept text of each answer, or its line with the decision on each claim.

    ``checked`` contains the claims of each answer that a person found true in a review.
    """
    texts = [
        None if answer.graph.claims is None else kept_text(answer.graph, mask)
        for answer, mask in zip(explained, masks, strict=True)
    ]
    if options.json or options.text_key:
        decisions = [
            {"filtered": _decision(answer, mask, text)}
            for answer, mask, text in zip(explained, masks, texts, strict=True)
        ]
        for i, positions in enumerate(checked or ()):
            decisions[i]["filtered"]["checked"] = positions
        columns = {"groups": problems.groups, "metadata": decisions}
        lines = jsonl.format_jsonl(problems.graphs, problems.labels, masks, **columns)
        pairs = zip(lines, texts, strict=True)
        lines = (_with_own_keys(line, text, options) for line, text in pairs)
    elif None in texts:
        raise ValueError(
            f"{options.problems}: text can be written only if each line contains claims, but line "
            f"{texts.index(None) + 1} contains only features. Pass --json"
        )
    else:
        lines = (" ".join(str(text).split()) for text in texts)
    files.write_lines(options.output, lines)


def _decision(answer, mask, text):
    levels = [a if np.isfinite(a) else None for a in answer.smallest_alpha.tolist()]
    return {
        "alpha": answer.alpha,
        "claim_alpha": levels,
        "passes": bool(answer.passes),
        "reasons": {str(v): _reason(answer, v) for v in np.flatnonzero(~mask)},
        "text": text,
        "why_empty": _why_empty(answer, mask),
    }


def _reason(answer, v):
    by_person = "A person judged it, or a claim that it depends on, false."
    return answer.reasons.get(int(v), by_person)


def _why_empty(answer, mask):
    """Return why no claim of an answer is kept, which is the reason for its safest claim."""
    if mask.any():
        return None
    if not len(mask):
        return "It has no claims."
    return _reason(answer, np.argmin(answer.path_risk))


def _with_own_keys(line, text, options):
    """Return a line with the keys of the file, and with the text under ``--text-key``."""
    record = json.loads(line)
    names = record["metadata"].pop(NAMES, {})
    record = {names.get(key, key): value for key, value in record.items()}
    key = options.text_key
    if key is None:
        return json.dumps(record)
    place = record if value_at(record, key) is not MISSING else record["metadata"]
    if key == "filtered" or "[]" in key or not isinstance(value_at(place, key), str):
        raise ValueError(
            f"--text-key {key}: each line must contain a string under this key, because "
            "the unfiltered answer would otherwise remain in the line. A line without "
            f"this key has the keys {', '.join(paths_of(record))}"
        )
    put_at(place, key, text)
    return json.dumps(record)


def report(options):
    """Write an HTML report on a saved filter, and print its table of levels."""
    problems = files.read_problems(options, labelled=True)
    table, html = reporting.compose(
        load(options.model), problems.graphs, problems.labels, options.alphas
    )
    write_text(options.output, [html])
    print(table)
    files.inform(
        f"reported on {counted(len(problems.graphs), 'answer')} in {options.output}"
    )
