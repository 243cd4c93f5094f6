"""Commands to fit, apply and inspect filters, and to check problem files."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, repeat, starmap
from math import isfinite
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from tqdm import tqdm

from ... import evaluation, load, save
from ..._checks import counted, printable
from ..._files import write_text
from ...choosing import choose, chosen_answers, passing_answers, release
from ...datasets import records
from ...datasets.paths import MISSING, paths_of, put_at, value_at
from ...exceptions import CalibrationWarning
from ...features import reasoning_features
from ...graphs.ragged import reduce_segments
from ...guarantees import NoFalseClaim, problems_needed
from ...guards import labels_of_models
from ...identity import GROUP, read_groups
from ...labels import pack_labels
from ...presets import CoherentConformalFilter
from ...scorers import (
    ClassifierScorer,
    FeatureScorer,
)
from ...uses import check, seen
from .. import labelling, reporting
from .._messages import renumbered
from ..text import LAYOUT, kept_text
from . import _files as files

RESULT = "filtered"  # metadata key for the decision of the filter
KEEPS_NOTHING = FOUND_BROKEN_LINES = 1  # exit codes
_CHUNK = 500  # maximum number of problems in memory at a time
# column of `ContextFeatures` that performs best on its own
_SUPPORT = "context_trigrams"
_SHOWN = 20  # maximum number of different errors to print
_EVERY = 10  # Print only every tenth candidate value of the share.
_DOUBLINGS, _DRAWS = 6, 10
_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3)


def make_filter(scorer, options, **more):
    """Return an unfitted filter that uses the given scorer, or the scorer with the given name."""
    if scorer == "logistic":
        scorer = ClassifierScorer()
    return CoherentConformalFilter(scorer, random_state=options.seed, **more)


def _scorer_without_training(options, graphs, features):
    """If all answers are required for calibration, return a scorer that needs no training.

    The function returns None if enough answers remain for training, or if the scorer is not
    "linear". Otherwise, the function returns a `FeatureScorer` for the column that measures how
    well the context supports each claim.
    """
    n = files.count_questions(graphs)
    needed = problems_needed(options.alpha)
    held_out = NoFalseClaim().calibration_count(n, options.alpha)
    if options.scorer != "linear" or options.calibration or not held_out < needed <= n:
        return None
    computed = features is not None and graphs.context is not None
    if not (computed or _SUPPORT in (graphs.feature_names or ())):
        return None
    files.inform(
        f"at alpha = {options.alpha:g}, {needed} of these {n} answers are needed for "
        f"calibration. The remaining answers are too few to train a scorer, so the "
        f"column {_SUPPORT} is used as the scorer, and all answers may pass unless --show is "
        "given. Label more answers to train one"
    )
    return FeatureScorer(_SUPPORT)


def wanted_features(options, graphs):
    """Return the transformer for the feature columns, or None to use the columns in the file."""
    if options.features is None:
        return "auto"
    if options.features == "given":
        return None
    return reasoning_features().set_params(keep_input=options.features == "both")


def fit(options):
    """Fit and save a filter."""
    problems = files.read_problems(options, labelled=True)
    size = options.calibration
    graphs = problems.graphs
    settings = {
        "edges": "none" if options.no_edges else "given",
        "alpha": options.alpha,
        "online": options.online,
    }
    settings["calibration_size"] = int(size) if size == 0 or (size or 0) >= 1 else size
    features = settings["features"] = wanted_features(options, graphs)
    scorer = _scorer_without_training(options, graphs, features)
    share = options.show
    if scorer is None:
        scorer = options.scorer
    elif share is None:
        share = 1
    n = len(graphs)
    edges_note = "" if len(graphs.edges) else ", without edges"
    with files.clock(f"fitting on {counted(n, 'problem')}"):
        model = _fitted(make_filter(scorer, options, **settings), problems, share)
    questions = files.count_questions(graphs)
    files.inform(
        f"the filter was fitted on {counted(n, 'problem')} of "
        f"{counted(questions, 'question')}{edges_note}"
    )
    return _save(model, problems, options)


def _fitted(filter, problems, share):
    """Fit and return the filter for the given share of passing answers.

    If ``share`` is None, the value is "auto", or 1 for an online filter.
    """
    if share is None:
        share = 1 if filter.online else "auto"
    if share != 1:
        filter.guarantee = NoFalseClaim(show=share)
    return filter.fit(problems.graphs, problems.labels)


def calibrate(options):
    """Load a saved filter, calibrate it again, and save the result."""
    problems = files.read_problems(options, labelled=True)
    filter = load(options.model)
    if options.show == "auto":
        raise ValueError(
            "--show auto is only available in fit, because it requires training answers. "
            "Pass a number, or omit --show to use the value saved in the filter"
        )
    guarantee = filter.guarantee
    if options.alpha is not None:
        guarantee = guarantee and guarantee.for_level(options.alpha)
        filter.set_params(alpha=options.alpha, guarantee=guarantee)
    if options.show is not None:
        guarantee = (guarantee or NoFalseClaim()).with_share(options.show)
        filter.set_params(guarantee=guarantee)
    if options.choose:
        problems = _chosen(filter, problems)
    filter.calibrate(problems.graphs, problems.labels)
    return _save(filter, problems, options)


def _chosen(filter, problems):
    """Return the answers that the filter chooses, marked as chosen, with their labels if known."""
    rows = choose(filter, problems.graphs)
    files.inform(
        f"{len(rows)} of {counted(len(problems.graphs), 'answer')} were chosen, one per question"
    )
    labels = problems.labels
    if labels is not None:
        labels = [labels[i] for i in rows]
    return Bunch(graphs=chosen_answers(filter, problems.graphs), labels=labels)


def _save(filter, data, options):
    """Save the filter unless it would remove all claims, and print its guarantee."""
    if not filter.n_calibration_:
        save(filter, options.output)
        files.inform(
            *_labels_of(data),
            f"saved as {options.output} without calibration. Calibrate it with skdcf calibrate "
            "before use",
        )
        return None
    # Save the filter before printing, because the program that reads the summary may close the
    # pipe.
    keeps_nothing = np.all(np.isneginf(filter.threshold())) and not options.force
    if not keeps_nothing:
        save(filter, options.output)
    files.inform(*_labels_of(data))
    if unfinished := labelling.describe_unfinished(data.graphs, data.labels):
        files.inform(unfinished)
    files.inform(f"guarantee: {filter.describe()}")
    files.inform(*_shares_tried(filter))
    files.inform(*_levels_to_choose(filter, data))
    files.inform(*_labels_missing(filter))
    calibration = filter.calibration_
    pass_ = "" if calibration.guarantee.show == 1 else ","
    files.inform(
        f"{reporting.describe_calibration(filter)}{pass_} allow any alpha of at least "
        f"{1 / (calibration.n_passing + 1):.3g}"
    )
    if keeps_nothing:
        files.inform(
            f"skdcf {options.command}: the filter was not saved, because it would "
            "remove all claims at this level. Label more answers, use a larger --alpha, "
            "let more answers pass (--show 1), or save the filter with --force"
        )
        return KEEPS_NOTHING
    files.inform(f"saved as {options.output}")


def _labels_of(data):
    """Yield the number of labels, and the share of them that a model gave, if any."""
    yield f"labels: {labelling.describe_labels(data.graphs, data.labels)}"
    share, _ = labels_of_models(data.graphs, pack_labels(data.labels, data.graphs))
    if share > 0:
        yield f"a model gave {share:.0%} of the labels"


def _labels_missing(filter):
    """Yield how many more calibration answers the next lower level needs."""
    guarantee = filter.calibration_.guarantee
    n = filter.n_calibration_
    for level in sorted(_LEVELS, reverse=True):
        needed = guarantee.problems_needed(level)
        if needed > n:
            yield (
                f"alpha = {level:g} needs at least {needed} calibration answers. Label "
                f"{needed - n} more to use it"
            )
            return


def _shares_tried(filter):
    """Yield the lines of a table with the training error rate for each share of answers."""
    table = getattr(filter, "share_table_", None)
    if filter.share_ is None or table is None:
        return
    share = filter.share_
    passing = filter.calibration_.passing
    rounded = (
        ""
        if f"{passing:.0%}" == f"{share:.0%}"
        else f", or {passing:.0%} after rounding"
    )
    yield f"{share:.0%} of the answers may pass (--show {share:g}){rounded}. This share was chosen"
    yield "on the training answers. An answer passes if its safest claim is below a cut. The last"
    yield "column counts the passing answers in which a false claim is also below the cut. These"
    yield "are not errors of the filter, whose threshold is calibrated afterwards:"
    yield "may pass   training answers that pass   of these, a false claim is below the cut"
    is_chosen = table[:, 0] == filter.share_
    rows = np.unique([*range(0, len(table), _EVERY), *np.flatnonzero(is_chosen)])
    for share, passing, wrong in table[rows]:
        rate = f"{wrong:.0f} ({wrong / passing:.0%})" if passing else "-"
        chosen = "   chosen" if share == filter.share_ else ""
        yield f"{share:>8.0%}   {passing:>26.0f}   {rate:>40}{chosen}"


def _levels_to_choose(filter, data):
    """Yield the lines of a table that compares error rates and kept claims at several levels."""
    calibration = filter.calibration_
    levels = sorted({*_LEVELS, filter.alpha})
    trained, calibrated = seen(filter, data.graphs)
    rows = np.flatnonzero(calibrated & ~trained)
    graphs = data.graphs[rows]
    labels = [data.labels[i] for i in rows]
    if len(labels) < 2:
        return
    with warnings.catch_warnings():
        # The printed table already contains the information in the warning.
        warnings.simplefilter("ignore", CalibrationWarning)
        report = evaluation.evaluate_filter(filter, graphs, labels, levels)
    yield "alpha   shown   false among shown (range)   true claims kept per answer"
    for level, kept, error in zip(
        levels, report.retention, report.retention_error, strict=True
    ):
        share = calibration.shown(level)
        rate = calibration.false_among_shown(level)
        if not share:
            yield f"{level:<6g}  nothing shown"
            continue
        among_shown = "not known"
        if rate:
            wrong, low, high = rate
            bounds = "" if np.isnan(low) else f" ({low:.0%} to {high:.0%})"
            among_shown = f"{wrong:>4.0%}{bounds}"
        line = f"{level:<6g}  {share:>5.0%}   {among_shown}".ljust(44)
        yield f"{line}{kept:.2f} +- {error:.2f}"
    if any(calibration.shown(level) for level in levels):
        yield "The share of shown texts with a false claim is an estimated mean over calibration"
        yield "samples. For 90 % of the samples, the share lies in the range in parentheses."
    yield "Choose alpha before the calibration answers are judged. The guarantee of the level that"
    yield "looks best in this table is slightly too optimistic."


def filter_problems(options):
    """Write each problem with its mask, the level of each claim, and the filtered text."""
    files.check_folder(options.output)
    filter = load(options.model)
    filter.check_calibrated()
    counts = Counter()
    alpha = filter.calibration_.guarantee.level(options.alpha, filter.alpha)
    is_whole = options.choose or options.guarantee == "shown"
    blocks = read_lines(options, None if is_whole else _CHUNK)
    if options.choose:
        blocks = [_chosen_lines(filter, lines) for lines in blocks]
    if options.guarantee == "shown":
        chunks = _shown(filter, blocks, alpha, options=options, counts=counts)
    else:
        chunks = _filtered(filter, blocks, alpha, options=options, counts=counts)
    lines: Iterable[str]
    if options.text:
        texts = (text for c in chunks for text in shown_texts(c))
        lines = (one_line(text) or options.empty for text in texts)
    else:
        guarantee = options.guarantee
        if guarantee == "answers" and filter.calibration_.guarantee.show != 1:
            guarantee = "passing"
        decision = {"alpha": alpha, "guarantee": guarantee}
        formatted = (format_lines(chunk, decision, options) for chunk in chunks)
        lines = chain.from_iterable(formatted)
    files.write_lines(options.output, lines)
    files.inform(
        f"{counts['kept']} of {counted(counts['claims'], 'claim')} in "
        f"{counted(counts['problems'], 'problem')} were kept. All claims of "
        f"{counted(counts['empty'], 'problem')} were removed"
    )


@dataclass
class Lines:
    """Problems read from lines of a file, with the decisions of the filter.

    Each field has one entry per problem. The fields of decisions are None before the filter
    decides.

    Parameters
    ----------
    problems : Columns
        Problems read from the lines.
    groups : list of (str, int or None)
        Value of the key ``group`` in each line, even if ``--group-by`` selects another key.
    names : list of dict
        Mappings from keys of the JSON Lines format to the keys used instead in the line.
    masks : list of boolean arrays
        Whether each claim is kept.
    levels : list of float arrays
        Smallest alpha at which each claim is kept.
    checked : list of lists of int
        Positions of the claims that are kept because a person found them true. The field is None
        if there was no review.
    passes : list of bool
        Whether the guarantee covers the answer. The field is None if it covers all answers.
    """

    problems: Any
    groups: list[str | int | None]
    names: list[dict[str, str]]
    masks: Any = None
    levels: Any = None
    checked: Any = None
    passes: Any = None

    def __len__(self):
        return len(self.groups)

    def take(self, rows):
        """Return the problems at the given positions, without decisions."""
        groups = [self.groups[i] for i in rows]
        names = [self.names[i] for i in rows]
        return Lines(self.problems.take(rows), groups=groups, names=names)


def read_lines(options, size=None):
    """Yield the problems in a file as instances of `Lines` with up to ``size`` problems."""
    rename = files.renamed(options)
    pairs = iter(files.read_records(options, files.row_reader(options)))
    n_before = 0
    while chunk := list(islice(pairs, size)):
        objects, rows = zip(*chunk, strict=True)
        try:
            problems = records.pack(rows)
        except ValueError as error:
            raise ValueError(renumbered(error, n_before)) from error
        n_before += len(rows)
        groups = [record.get("group") for record in objects]
        names = map(files.names_in_file, objects, problems.metadata, repeat(rename))
        yield Lines(problems, groups=groups, names=list(names))


def _chosen_lines(filter, lines):
    """Return the chosen answers, with the choice recorded in their metadata."""
    graphs = check(filter, lines.problems.graphs)
    chosen = chosen_answers(filter, graphs)
    files.inform(
        f"{len(chosen)} of {counted(len(lines), 'answer')} were chosen, one per question"
    )
    lines = lines.take(choose(filter, graphs))
    metadata = [graph.metadata for graph in chosen]
    problems = lines.problems._replace(graphs=chosen, metadata=metadata)
    return replace(lines, problems=problems)


def _filtered(filter, blocks, alpha, options, counts):
    """Filter the problems in chunks, and yield `Lines` with the decisions of the filter."""
    # disable=None shows progress only in a terminal.
    with tqdm(unit=" problems", disable=None) as bar:
        n_before = 0
        for lines in blocks:
            try:
                # The problems are checked once here, because each method of the filter would
                # check them again.
                graphs = check(filter, lines.problems.graphs)
                masks = filter.predict(graphs, alpha)
            except ValueError as error:
                raise ValueError(renumbered(error, n_before)) from error
            n_before += len(lines)
            yield decided(filter, lines, graphs, masks=masks, counts=counts)
            bar.update(len(lines))


def decided(filter, lines, graphs, *, masks, counts):
    """Return the lines with their masks and claim levels."""
    levels = filter.predict_alpha(graphs)
    passes = None
    if filter.calibration_.guarantee.show != 1:
        passes = passing_answers(filter, graphs).tolist()
    n_kept = reduce_segments(np.add, np.concatenate(masks), graphs.offsets, 0)
    # An answer without claims is not counted, because the filter removed nothing from it.
    n_empty = int(np.sum((n_kept == 0) & (graphs.sizes > 0)))
    counts.update(
        problems=len(lines),
        claims=graphs.n_claims,
        kept=int(n_kept.sum()),
        empty=n_empty,
    )
    return replace(
        lines,
        masks=masks,
        levels=levels,
        passes=passes,
    )


def _shown(filter, blocks, alpha, options, counts):
    """Yield the lines, filtered to bound the expected error rate among the shown texts."""
    [lines] = blocks
    graphs = check(filter, lines.problems.graphs)
    masks = release(filter, graphs, alpha, one_per_question=options.one_per_question)
    n_shown = sum(bool(mask.any()) for mask in masks)
    percent = f"{100 * alpha:g} %"
    files.inform(
        f"{n_shown} of {len(lines)} answers are shown",
        "guarantee: the expected share of shown texts with a false claim is at most "
        f"{percent} per batch. Among the batches with at least one shown text, the "
        f"expected share is at most {percent} divided by the proportion of such batches. "
        "To bound the error rate of the passing answers in batches of any size, fit with "
        "--show (in Python, show= of the guarantee)",
    )
    guarantee = filter.calibration_.guarantee
    if guarantee.by is not None:
        groups = Counter(map(str, read_groups(guarantee.by, graphs)))
        sizes = ", ".join(f"{printable(name)}: {n}" for name, n in groups.items())
        files.inform(
            f"each group is a separate batch. Number of answers per group: {sizes}"
        )
    yield decided(filter, lines, graphs, masks=masks, counts=counts)


def shown_texts(lines, mark_checked=False):
    """Yield the kept text of each problem, or raise ValueError if a kept claim has no text."""
    graphs = lines.problems.graphs
    for i, text in enumerate(_marked_texts(lines, mark_checked)):
        yield kept_text(graphs[i], lines.masks[i]) if text is None else text


def _marked_texts(lines, mark_checked):
    """Return the kept texts, or None for a problem whose claims have no texts.

    If ``mark_checked`` is True, claims that a person checked are marked.
    """
    texts = []
    for i, graph in enumerate(lines.problems.graphs):
        if graph.claims is None:
            texts.append(None)
            continue
        checked = lines.checked[i] if mark_checked else None
        if checked:
            claims = list(graph.claims)
            for v in checked:
                claims[v] = _with_mark(claims[v])
            graph = graph.replace(claims=claims)
        text = kept_text(graph, lines.masks[i])
        has_layout = LAYOUT in (graph.metadata or {})
        texts.append(text if has_layout else one_line(text))
    return texts


def _with_mark(claim):
    """Return a claim with a mark before its first word, or above its code block or formula."""
    if "\n" in claim:
        return f"[checked]\n{claim}"
    words = claim.lstrip("#| ")
    return f"{claim.removesuffix(words)}[checked] {words}"


def one_line(text):
    """Return a text without line breaks, so each line of a file contains one answer."""
    return " ".join(text.split())


def format_lines(lines, about, options, *, mark_checked=False):
    """Yield each line as JSON, with its original keys and the decision of the filter."""
    texts = _marked_texts(lines, mark_checked)
    decisions = _decisions_of(lines, about, texts)
    metadata = []
    for given, decision in zip(lines.problems.metadata, decisions, strict=True):
        row = {**(given or {}), RESULT: decision}
        row.pop(files.NAMES, None)
        if options.group_by is not None:
            row.pop(GROUP, None)
        metadata.append(row)
    problems = lines.problems._replace(
        masks=lines.masks, groups=lines.groups, metadata=metadata
    )
    problems = problems._replace(graphs=problems.graphs.replace(metadata=metadata))
    written = map(records.format_problem, problems.problems())
    rows = zip(written, lines.names, texts, strict=True)
    yield from starmap(partial(_with_keys_of_file, options), rows)


def _decisions_of(lines, about, texts):
    """Yield the decision on each problem, which is written to its metadata."""
    for i, (levels, text) in enumerate(zip(lines.levels, texts, strict=True)):
        levels = [a if isfinite(a) else None for a in levels.tolist()]
        fields = about | {"claim_alpha": levels}
        if lines.passes is not None:
            fields["passes"] = lines.passes[i]
        if lines.checked is not None:
            fields["checked"] = lines.checked[i]
        if text is not None:
            fields["text"] = text
        yield fields


def _with_keys_of_file(options, line, names, text):
    """Return a line with the keys of the file and, if requested, with its text."""
    if not names and options.text_key is None:
        return line
    record = {names.get(key, key): value for key, value in json.loads(line).items()}
    if options.text_key is not None:
        _put_text(record, options.text_key, text or options.empty)
    return json.dumps(record)


def _put_text(record, key, text):
    """Replace the unfiltered answer under a key with the filtered text."""
    place = record if value_at(record, key) is not MISSING else record["metadata"]
    if key == RESULT or "[]" in key or not isinstance(value_at(place, key), str):
        raise ValueError(
            f"--text-key {key}: each line must contain a string under this key, because "
            "the unfiltered answer would otherwise remain in the line. A line without "
            f"this key has the keys {', '.join(paths_of(record))}"
        )
    put_at(place, key, text)


def report(options):
    """Write an HTML report on a saved filter, and print its numbers."""
    problems = files.read_problems(options, labelled=True)
    model = load(options.model)
    model.check_calibrated()
    settings = {
        "alphas": options.alphas,
        "by": options.by,
        "n_answers": options.answers,
        "filter_name": options.model,
        "data_name": options.problems,
    }
    evaluated, html = reporting.compose(
        model, problems.graphs, problems.labels, **settings
    )
    write_text(options.output, [html])
    files.inform(
        f"labels: {labelling.describe_labels(problems.graphs, problems.labels)}"
    )
    print(evaluated)
    files.inform(f"wrote {options.output}")
