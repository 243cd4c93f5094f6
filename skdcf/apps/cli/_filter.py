"""Commands to fit, calibrate, use and report on filters."""

import json
import warnings

import numpy as np

from ... import evaluation, load, save
from ..._checks import counted
from ..._files import write_text
from ...datasets import jsonl
from ...datasets.paths import MISSING, paths_of, put_at, value_at
from ...datasets.records import NAMES
from ...exceptions import CalibrationWarning
from ...features import reasoning_features
from ...guarantees import NoFalseClaim
from ...guards import labels_of_models
from ...inspection import explain
from ...labels import pack_labels
from ...presets import CoherentConformalFilter
from ...scorers import ClassifierScorer, FeatureScorer
from ...uses import seen
from .. import reporting
from ..labelling import describe_labels
from ..text import kept_text
from . import _files as files

RESULT = "filtered"  # metadata key for the decision of the filter
KEEPS_NOTHING = 1  # exit code
# column of `ContextFeatures` that performs best on its own
_SUPPORT = "context_trigrams"
_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3)


def fit(options):
    """Fit and save a filter."""
    problems = files.read_problems(options, labelled=True)
    graphs = problems.graphs
    features = {"given": None, None: "auto"}.get(options.features)
    if options.features in ("built-in", "both"):
        features = reasoning_features()
        features.set_params(keep_input=options.features == "both")
    scorer = options.scorer
    share = options.show
    size = options.calibration
    if options.all_labels:
        if size is not None:
            raise ValueError(
                f"--all-labels cannot be used with --calibration, got {size:g}. Omit one of them"
            )
        size = "all"
        share = 1 if share is None else share
        files.inform(
            "all labels are used for training and for calibration, and all answers may pass "
            "(--show 1)"
        )
    elif size == 0 or (size or 0) >= 1:
        size = int(size)
    if size != "all" and _needs_all_answers(options, graphs, features):
        scorer = FeatureScorer(_SUPPORT)
        share = 1 if share is None else share
    elif scorer == "logistic":
        scorer = ClassifierScorer()
    if share is None:
        share = 1 if options.online else "auto"
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
    files.inform(
        f"fitted a filter on {counted(len(graphs), 'answer')} to "
        f"{counted(files.count_questions(graphs), 'question')} with "
        f"{counted(len(graphs.edges), 'edge')}"
    )
    return _save(filter, problems, options)


def _needs_all_answers(options, graphs, features):
    """Return whether calibration requires all answers, so one column has to be the scorer.

    This column measures how well the context supports each claim.
    """
    n = files.count_questions(graphs)
    needed = NoFalseClaim().problems_needed(options.alpha)
    held_out = NoFalseClaim().calibration_count(n, options.alpha)
    if options.scorer != "linear" or options.calibration or not held_out < needed <= n:
        return False
    is_computed = features is not None and graphs.context is not None
    if not is_computed and _SUPPORT not in (graphs.feature_names or ()):
        return False
    files.inform(
        f"at alpha = {options.alpha:g}, {needed} of these {n} answers are needed for "
        f"calibration. The others are too few to train a scorer, so the column {_SUPPORT} is "
        "the scorer, and all answers may pass unless --show is given. Label more answers to "
        "train one"
    )
    return True


def calibrate(options):
    """Load a saved filter, calibrate it again, and save the result."""
    problems = files.read_problems(options, labelled=True)
    filter = load(options.model)
    if options.show == "auto":
        raise ValueError(
            "--show must be a number in calibrate, because only the training answers can "
            "choose it, got 'auto'. Omit --show to use the value saved in the filter"
        )
    if options.alpha is not None:
        filter.set_params(alpha=options.alpha)
    if options.show is not None:
        guarantee = (filter.guarantee or NoFalseClaim()).with_share(options.show)
        filter.set_params(guarantee=guarantee)
    filter.calibrate(problems.graphs, problems.labels)
    return _save(filter, problems, options)


def _save(filter, problems, options):
    """Save the filter unless it would remove all claims, and print its guarantee."""
    labels = pack_labels(problems.labels, problems.graphs)
    files.inform(f"labels: {describe_labels(problems.graphs, labels)}")
    share, _ = labels_of_models(problems.graphs, labels)
    if share > 0:
        files.inform(f"a model gave {share:.0%} of the labels")
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
        *_levels(filter, problems),
    )
    if keeps_nothing:
        files.inform(
            f"the filter was not saved, because it would remove all claims at alpha = "
            f"{filter.alpha:g}. Label more answers, use a larger --alpha, let more answers pass "
            "(--show 1)"
        )
        return KEEPS_NOTHING
    files.inform(f"saved as {options.output}")
    return None


def _levels(filter, problems):
    """Yield the lines of a table of levels, and the number of labels that the next one needs."""
    calibration = filter.calibration_
    trained, calibrated = seen(filter, problems.graphs)
    rows = np.flatnonzero(calibrated & ~trained)
    # Answers that are used in each fit cannot be filtered by these fits.
    if len(rows) < 2 or filter._labelled is not None:
        return
    levels = sorted({*_LEVELS, filter.alpha})
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
    for level in sorted(_LEVELS, reverse=True):
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
    n_removed = sum(len(mask) > 0 and not mask.any() for mask in masks)
    files.inform(
        f"{sum(int(mask.sum()) for mask in masks)} of "
        f"{counted(problems.graphs.n_claims, 'claim')} in {counted(len(masks), 'answer')} were "
        f"kept. All claims of {counted(n_removed, 'answer')} were removed"
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
            {RESULT: _decision(answer, mask, text)}
            for answer, mask, text in zip(explained, masks, texts, strict=True)
        ]
        for i, positions in enumerate(checked or ()):
            decisions[i][RESULT]["checked"] = positions
        columns = {"groups": problems.groups, "metadata": decisions}
        lines = jsonl.format_jsonl(problems.graphs, problems.labels, masks, **columns)
        pairs = zip(lines, texts, strict=True)
        lines = (_with_own_keys(line, text, options) for line, text in pairs)
    elif None in texts:
        raise ValueError(
            f"{options.problems}: each line must contain claims to write their text, but line "
            f"{texts.index(None) + 1} contains only features. Pass --json"
        )
    else:
        lines = (" ".join(str(text).split()) for text in texts)
    files.write_lines(options.output, lines)


def _decision(answer, mask, text):
    levels = [a if np.isfinite(a) else None for a in answer.smallest_alpha.tolist()]
    by_person = "A person judged it, or a claim that it depends on, false."
    return {
        "alpha": answer.alpha,
        "claim_alpha": levels,
        "passes": bool(answer.passes),
        "reasons": {
            str(v): answer.reasons.get(v, by_person)
            for v in np.flatnonzero(~mask).tolist()
        },
        "text": text,
    }


def _with_own_keys(line, text, options):
    """Return a line with the keys of the file, and with the text under ``--text-key``."""
    record = json.loads(line)
    names = record["metadata"].pop(NAMES, {})
    record = {names.get(key, key): value for key, value in record.items()}
    key = options.text_key
    if key is None:
        return json.dumps(record)
    place = record if value_at(record, key) is not MISSING else record["metadata"]
    if key == RESULT or "[]" in key or not isinstance(value_at(place, key), str):
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
