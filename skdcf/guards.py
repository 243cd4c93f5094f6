"""Guards against what would lose the guarantee silently.

A guard raises an error or issues a warning. Guards are functions of what `fit` recorded and of the
new problems, and stand in this file under a comment that states what is lost without them.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from statistics import mode
from types import FunctionType
from typing import Any
from uuid import uuid4

import joblib
import numpy as np
from scipy.stats import rankdata

from ._arrays import in_blocks, ranges, starts_run
from ._checks import counted, printable, show, warn
from .edges import chain_edges
from .exceptions import (
    CalibrationWarning,
    GuaranteeWarning,
    LabelWarning,
    ParameterWarning,
)
from .features.columns import reads_edges
from .identity import (
    has_many_digits,
    is_repeated,
    mix,
    question_groups,
    read_groups,
)


@dataclass(frozen=True)
class Record:
    """What a filter remembers about its problems.

    Attributes
    ----------
    trained, calibrated : dict of str to ndarray
        Hashes of the questions and contents of the training and calibration problems.
    scorer : str
        Hash of the fitted scorer, its columns, and the settings that affect path risks.
    level : float or None
        Level for which the scorer was trained, or None if training does not depend on the level.
    origin : dict of dict of list
        How the calibration problems were made, as returned by `origin_of`.
    settings : dict
        Settings in calibration.
    """

    trained: dict[str, Any]
    calibrated: dict[str, Any]
    scorer: str
    level: float | None
    origin: dict[str, Any]
    settings: dict[str, Any]


def refuse_incomplete(record, n_features):
    """Raise an error if a saved record lacks something that new problems are compared with.

    If the record of a damaged file lacked a value and a default was used, nothing would be
    compared. With such a file, the miscoverage was 0.24 at alpha = 0.1.
    """
    origin = Record(**vars(record)).origin
    needed = {
        "fields": ("alternatives", "context", "known edges"),
        "precision": (),
        "provenance": (),
        "counts": ("alternatives",),
        "edges": ("given",),
        "judges": (),
    }
    for section, names in needed.items():
        if section not in origin or {*names} - {*origin[section]}:
            raise ValueError(
                f"the saved filter must contain {[section, *names]}. Fit the filter again"
            )
    if n_features and not origin["precision"]:
        raise ValueError("'precision' must be known. Fit the filter again")


# Provenance. The coverage was 0.78 instead of 0.90 when only the edges of the calibration problems
# had been corrected, 0.80 when a different judge labelled the new problems, 0.69 when the new
# problems had no edges, and 0.83 when they had one alternative instead of ten. A rule that picks
# one of several answers is part of the filter: when a filter was calibrated on random answers, the
# coverage was 0.83 for answers that such a rule had picked out of five. When filters were
# calibrated at alpha = 0.1 on the verdicts of six models, 3 to 64 % of the filtered agent runs
# contained a step that people judged to be wrong. If the columns had float64 precision in
# calibration and float16 or bfloat16 precision in new problems, the coverage was 0.77. In the
# opposite case, it was 0.81.

# Largest proportion of problems or labels that differ, or of copies, that causes no warning.
_FEW = 0.05
_HALF, _FINER = "float16 or bfloat16", "float32 or finer"


def origin_of(batch, labels, edges, features):
    """Return how problems were made, as a dict of dicts of lists.

    ``labels`` is None if the problems are only filtered. ``edges`` and ``features`` are those of
    the filter.
    """
    edges_read = edges == "given" or (edges == "none" and reads_edges(features))
    # An answer with a single claim does not need edges.
    needs_edges = (batch.sizes > 1) & edges_read
    has_edges = np.diff(batch.edge_offsets)[needs_edges] > 0
    # Software that does not choose answers or correct edges does not record this.
    assumed = {"chosen_by": "none", "edges_corrected": False}
    rows = batch.provenance_rows or [{}]
    # Answers without claims do not count.
    texts = () if batch.alternatives is None else batch.alternatives[batch.sizes > 0]
    counts = [sum(map(bool, map(str.strip, row))) for row in texts if row is not None]
    return {
        "fields": {
            "alternatives": _is_known(batch.alternatives),
            "context": _is_known(batch.context),
            "known edges": _distinct(batch.edges_known[needs_edges].tolist()),
        },
        "precision": _precision_of(batch, is_new=labels is None),
        "provenance": {
            key: _distinct(row.get(key, assumed.get(key)) for row in rows)
            for key in _distinct(chain(assumed, *rows))
        },
        "counts": {"alternatives": counts},
        "edges": {"given": (int(has_edges.sum()), len(has_edges))},
        "judges": {} if labels is None else _judges_of(batch, labels),
    }


def _is_known(column):
    return [False] if column is None else _distinct(v is not None for v in column)


def _distinct(values):
    return list(dict.fromkeys(values))


def _precision_of(batch, is_new):
    """Return the precision of each column, or None if its numbers do not show the precision.

    The keys are the names of the columns, or their positions if they have no names. In new
    problems, a single number does not show the precision of its column if another column is finer.
    By chance, a column of a new answer had a single number with few bits in 0.2 % of answers with
    31 columns, and in 1.6 % of incomplete answers.
    """
    if batch.features is None:
        return {}
    columns, table = batch.fractional
    precision = np.full(batch.n_features, None)
    # A few rows show that most columns are finer. Whole numbers up to 2048 have no precision.
    for n_rows in (100, 100_000):
        if len(columns):
            is_finer = ~in_blocks(_is_short, table[:n_rows]).all(axis=0)
            precision[columns[is_finer]] = _FINER
            columns, table = columns[~is_finer], table[:100_000, ~is_finer]
    if len(columns):
        # Numbers with at most four significant digits are round, as are whole numbers below
        # 10,000.
        is_long = (table != np.floor(table)) | (np.abs(table) >= 10_000)
        is_long[is_long] = has_many_digits(table[is_long])
        is_half = is_long.sum(axis=0) > (is_new and _FINER in precision)
        precision[columns[is_half]] = _HALF
    names = batch.feature_names or range(batch.n_features)
    return dict(zip(names, precision[:, None].tolist(), strict=True))


def _is_short(table):
    """Return which numbers are float16 or bfloat16 numbers."""
    # A float64 number has 52 bits after its first, and a bfloat16 number has 7.
    is_bfloat16 = table.view(np.uint64) & (2**45 - 1) == 0
    return is_bfloat16 | (table == table.astype(np.float16))


def _judges_of(batch, labels):
    """Return the proportion of labels that models assigned, and the names of the models."""
    if batch.provenance is None:
        return {}
    rows = batch.provenance_rows
    judged = batch.problem_of[labels >= 0].tolist()
    sources = [str(rows[i].get("label_source")) for i in judged]
    models = [s.removeprefix("model ") for s in sources if s.startswith("model ")]
    share = len(models) / max(len(sources), 1)
    names = sorted({*models})
    if share > _FEW:
        warn(
            f"a language model assigned {share:.0%} of the calibration labels "
            f"({', '.join(names)}), so the guarantee applies to the verdicts of this model "
            "and does not bound the errors that the model overlooks. Let a person label a "
            "random sample of answers (skdcf label), fit on the labels of the model with "
            "calibration_size=0, and calibrate on the labels of the person",
            LabelWarning,
        )
    return {"share": [share], "names": names}


def join_origins(origins):
    """Join the results of `origin_of` for several parts of the calibration problems."""

    def join(section, key):
        if section == "edges":
            return np.sum([made[section][key] for made in origins], axis=0).tolist()
        # A provenance key that is missing in a part has the value None there.
        missing = [] if section == "judges" else [None]
        rows = [made[section].get(key, missing) for made in origins]
        values = _distinct(chain.from_iterable(rows))
        # The numbers of a part may be short by chance.
        return [_FINER] if section == "precision" and _FINER in values else values

    return {
        section: {
            key: join(section, key)
            for key in _distinct(key for made in origins for key in made[section])
        }
        for section in origins[0]
    }


def compare_origin(record, origin, skipped):
    """Raise ValueError or warn if problems were made differently than those in calibration.

    Provenance keys that start with one of the prefixes ``skipped`` are not compared.
    """
    for section in ("fields", "precision", "provenance"):
        if record.origin[section] != origin[section]:
            _compare(section, record.origin[section], origin[section], skipped)
    warn_of_alternatives(record, Counter(origin["counts"]["alternatives"]))
    warn_of_missing_edges(record, origin["edges"]["given"])


def _compare(section, calibrated, asked, skipped):
    """Compare the values of each provenance key, column or field with those in calibration."""
    if section == "precision" and calibrated.keys().isdisjoint(asked):
        # If only one side has names, the columns are in the same order.
        asked = dict(zip(calibrated, asked.values(), strict=False))
    one_sided = []
    for key in calibrated | asked:
        if section == "provenance" and key.startswith(skipped):
            continue
        # Only provenance keys and columns may be missing on one side.
        before = calibrated[key] if section == "fields" else calibrated.get(key, [None])
        now = asked.get(key, [None])
        known = [value for value in before if value is not None]
        new = [value for value in now if value not in [*before, None]]
        if known and new:
            name = f"{section}[{key!r}]"
            if section == "precision":
                name = f"the precision of column {key!r}"
            raise ValueError(
                f"{name} must be one of the values in calibration, {known}, got "
                f"{new[0]!r}. The guarantee holds only for problems that were made in the "
                "same way. Make these problems in the same way, or calibrate again on "
                "problems made like these"
            )
        is_missing = None in now and None not in before
        if section == "provenance" and (
            is_missing or (before == [None]) != (now == [None])
        ):
            one_sided.append(key)
    if one_sided:
        warn(
            f"the provenance keys {one_sided} are set only for the calibration problems or only "
            "for these problems, so it is impossible to check whether both were made in the same "
            "way. Set the same keys for both",
            GuaranteeWarning,
        )


def warn_of_missing_edges(record, given):
    """Warn if none of the problems has edges, but most calibration problems do."""
    n_given, n = given
    n_given_before, n_before = record.origin["edges"]["given"]
    if not n_given and min(n, n_before) >= 20 and n_given_before >= 0.9 * n_before:
        warn(
            f"none of the {n} problems with several claims has edges, but "
            f"{n_given_before / n_before:.0%} of the calibration problems do. The guarantee does "
            "not hold if the claims depend on each other. In that case, pass their edges",
            GuaranteeWarning,
        )


def warn_of_alternatives(record, counts):
    """Warn if many problems have more or fewer alternatives than those in calibration.

    ``counts`` contains the number of problems for each number of alternatives.
    """
    calibrated = record.origin["counts"]["alternatives"]
    if not calibrated:
        return
    low, high = min(calibrated), max(calibrated)
    n_outside = sum(n for number, n in counts.items() if not low <= number <= high)
    if n_outside > _FEW * counts.total():
        warn(
            f"the calibration problems have {low} to {high} alternatives, but {n_outside} of "
            f"{counts.total()} problems have more or fewer, so the guarantee does not hold. "
            "Generate as many alternatives as for the calibration problems",
            GuaranteeWarning,
        )


def refuse_unknown_edges(batch):
    """Raise ValueError if the edges of a problem with several claims are unknown."""
    if (unknown := ~batch.edges_known & (batch.sizes > 1)).any():
        first = batch.name_of(np.argmax(unknown))
        raise ValueError(
            f"the edges of {unknown.sum()} of {len(batch)} problems with several "
            f"claims are unknown (the first is {first}). Pass edges=() to the graph if its claims "
            'are independent. Otherwise, set edges in the filter to "none" (skdcf fit --no-edges) '
            "or to a function from skdcf.edges"
        )


# Several answers to one question. At alpha = 0.1, a filter kept a false claim in at least one of
# seven answers for 50 % of the questions.


def questions_in(record, batch):
    """Return the number of answers in a batch to each question with a name or a text.

    Question texts are compared only if they identified the questions in calibration.
    """
    if batch.problems is None and batch.metadata is None:
        return Counter()
    question = question_groups(batch)
    by_text = not any("group" in row for row in batch.metadata_rows)
    if by_text and (record.calibrated["named_by"] != "text").any():
        return Counter()
    return Counter(question[question >= 0].tolist())


def warn_of_several_answers(counts):
    """Warn if there are several answers to the same question."""
    if repeated := [n for n in counts.values() if n > 1]:
        warn(
            f"got {sum(repeated)} answers to {counted(len(repeated), 'question')}, but the "
            "guarantee covers neither all answers together nor an answer that is "
            "selected because of its kept claims. Select one answer to each question "
            "before filtering",
            GuaranteeWarning,
        )


class EarlierAnswers:
    """Warns about answers that come one at a time as if they were passed in one call."""

    def __init__(self):
        self._given = np.zeros(2, int)
        self._n_alternatives = Counter()
        self._n_answers = Counter()  # of each hashed question

    def warn(self, record, batch, origin):
        """Warn about an answer and all earlier ones, as `predict` does about one call."""
        self._given += origin["edges"]["given"]
        warn_of_missing_edges(record, self._given)
        self._n_alternatives.update(origin["counts"]["alternatives"])
        warn_of_alternatives(record, self._n_alternatives)
        asked = questions_in(record, batch)
        self._n_answers.update(asked)
        warn_of_several_answers({q: self._n_answers[q] for q in asked})


# Seen before. When the same answers, under reworded questions, were used for both training and
# calibration, the miscoverage of a forest was 0.26 at alpha = 0.1, and that of columns without
# texts 0.57. If a log contains an answer several times, counting all copies in calibration leads
# to a miscoverage of up to 0.21. If a model repeats itself, counting each distinct answer once
# leads to 0.22. Data cannot distinguish these two cases, so the filter refuses many copies.


def refuse_seen(use, stored, batch, hashes):
    """Raise ValueError if questions were used for training or for calibration."""
    is_seen = hashes.among(stored)
    if is_seen.any():
        raise ValueError(
            f"the guarantee only covers new questions, but {is_seen.sum()} of the problems in X "
            f"were used for {use} or share a question with such a problem (the first is "
            f"{batch.name_of(np.argmax(is_seen))}). Use other problems, or fit the filter "
            "again"
        )


def not_held_out(candidates, held):
    """Return which candidates may train: no copies of held-out answers, if texts name questions."""
    is_compared = (candidates.answer > 0) & (candidates.named_by == "text")
    return ~(is_compared & np.isin(candidates.answer, held.answer))


def not_trained(record, part):
    """Return the rows of answers that may be used for calibration, or raise ValueError.

    Unless groups name the questions, copies of training answers are left out, and their share is
    bounded in each group.
    """
    hashes = part.hashes
    same = np.isin(hashes.answer, record.trained["answer"])
    same &= hashes.named_by != "group"
    stays = hashes.named_by == "answer"
    _refuse_many(same, same, part, 0.5 if stays else _FEW, n_allowed=0)
    if stays or not same.any():
        return np.arange(len(same))
    warn(
        f"{same.sum()} of {len(same)} calibration answers equal training answers and are left "
        "out. The guarantee applies to new answers that equal no training answer",
        GuaranteeWarning,
    )
    return np.flatnonzero(~same)


def check_copies(part, candidates, level):
    """Raise ValueError or warn if calibration answers equal each other or training answers.

    There is one answer to each question. ``candidates`` are the hashes of the answers that could
    have been used for training. The share of copies is bounded in each group.
    """
    hashes, group_of = part.hashes, part.group_of
    in_training = np.isin(hashes.answer, candidates)
    of_group = hashes.answer + mix(group_of.astype(np.uint64))
    is_copy = (hashes.answer > 0) & (is_repeated(of_group) | in_training)
    if hashes.named_by == "answer" or not is_copy.any():
        return
    # A pair consists of two calibration answers, or of a calibration and a training answer.
    first = np.unique(of_group, return_index=True)[1]
    is_second = is_copy.copy()
    is_second[first[~in_training[first]]] = False
    by_text = hashes.named_by == "text"
    share = _refuse_many(is_copy, is_second, part, _FEW if by_text else 1, n_allowed=1)
    count_of = f"{is_copy.sum()} of {len(group_of)} calibration answers"
    if by_text:
        warn(
            f"{count_of} are copies of other answers. For new answers that equal no answer in "
            "fit or calibrate, the guarantee holds at the level "
            f"{level / (1 - min(share, 0.99)):.3g} instead of {level:g}",
            GuaranteeWarning,
        )
    elif share > _FEW:
        warn(
            f"{count_of} equal training answers or answers of other groups. The guarantee holds "
            "if the groups are different questions to which the model gives the same answer. If "
            "they are copies of one answer, give them equal groups",
            GuaranteeWarning,
        )


def _refuse_many(is_copy, is_second, part, most, n_allowed):
    """Return the largest share of copies in a group, or raise ValueError if there are too many.

    In each group, ``n_allowed`` answers for which ``is_second`` is True are always allowed. The
    error message counts the answers of all groups that have too many copies, so it is the same
    for every order of the rows.
    """
    group_of = part.group_of
    shares = np.bincount(group_of, is_copy) / np.bincount(group_of)
    has_many = (shares > most) & (np.bincount(group_of, is_second) > n_allowed)
    if has_many.any():
        own = has_many[group_of]
        text = mode(sorted(part.texts[is_copy & own]))
        example = f". The most frequent copy begins with {show(text)}" if text else ""
        raise ValueError(
            f"at most {most:.0%} of the calibration answers may equal other or training answers, "
            f"but {is_copy[own].sum()} of {own.sum()} do{example}. If the data contain answers "
            "several times, pass groups= (--group-by) with equal values for copies. If the model "
            "repeats itself, pass groups= with one value for each question, or groups=False if "
            "each answer has its own question"
        )
    return shares.max()


# Rounding. The last bits of a score may differ in another batch, on another machine or in
# float32. The risk of an exact copy of a false claim may then lie below its calibrated score.
# With such copies, the coverage was 0.74 instead of 0.90. Calibration scores are therefore lowered
# by the larger of `measure_rounding` and `resolution_of`, and equal scores are lowered further by
# `below_copies`:
#
# measure_rounding  ten times the difference between batches, if the scorer computes in batches
# resolution_of     the resolution of the scorer, or of float32 if columns or scores have it
# below_copies      a millionth, for equal scores that are not round
#
# At prediction, `raised` increases the risks of rows with float32 numbers, because the same row may
# have been calibrated in float64.

_SINGLE = 1e-5  # resolution of scores computed in float32, or from float32 features


def _smaller_batches(n):
    """Return the rows of smaller batches of n problems: some alone, 7, 60, a third and the rest."""
    rows = np.linspace(0, n - 1, min(n, 512)).astype(int)
    # Sums may depend on the size of the batch.
    parts = np.split(rows, [*range(1, 9), 15, 75, 75 + len(rows) // 3])
    return [part for part in parts if 0 < len(part) < n]


def _explained_by_rounding(confidence):
    """Return the largest allowed difference between two confidences in the same claim."""
    # Confidences computed in float32 differ by about 1e-6.
    return _SINGLE * np.abs(confidence).max(initial=1.0)


def measure_rounding(confidence_alone, batch, confidence):
    """Return ten times the largest measured difference between two confidences in the same claim.

    Raise ValueError if the columns or the scorer depend on other problems in the batch.
    ``confidence_alone`` computes the columns and confidences of a batch, and ``confidence`` was
    computed for the whole ``batch`` in a single call.
    """
    bound = _explained_by_rounding(confidence)
    worst = 0.0
    for rows in _smaller_batches(len(batch)):
        claims = ranges(batch.offsets[rows], batch.sizes[rows])
        difference = np.abs(confidence_alone(batch[rows]) - confidence[claims])
        worst = difference.max(initial=worst)
        if worst > bound:
            raise ValueError(
                f"{batch.locate(claims[np.argmax(difference)])}: the confidences must not depend "
                f"on other problems, but they differ by {worst:.3g} if the problem is scored "
                f"alone, and rounding explains only {bound:.3g}. Do not rank, scale or clip the "
                "confidences across the batch, and compute them in float32 or float64"
            )
    return 10 * worst


def resolution_of(scorer, problems, confidence):
    """Return the expected reproducibility of the scores, relative to 1 + abs(score).

    How the features were computed is not known. A column is assumed to be computed in float32 if
    float32 can represent all its numbers exactly and some of them are not round (3 and 0.25 are
    round). The confidences are checked for float32 numbers in the same way.
    """
    batches = {problems.batch, problems.columns}
    tables = [b.fractional[1] for b in batches if b.features is not None]
    is_single = any(single_columns(t).any() for t in [*tables, confidence[:, None]])
    if is_single and getattr(scorer, "gain", None) is not None:
        _refuse_split_prices(scorer, problems.columns, confidence)
    return max(scorer.resolution, _SINGLE * is_single)


def _refuse_split_prices(scorer, batch, confidence):
    """Raise ValueError if prices change too much within the resolution of float32 columns.

    Claims of an answer with equal hazards share a price. If the hazards differ in their last
    digits, the prices differ.
    """
    signs = np.where(np.arange(batch.n_features) % 2, 1, -1)
    table = batch.features * (1 + 1e-7 * signs)
    moved = scorer.confidence(batch.replace_features(table, batch.feature_names))
    difference = np.abs(moved - confidence)
    bound = _explained_by_rounding(confidence)
    claim = np.argmax(difference)
    if not difference[claim] <= bound:  # The difference may be NaN.
        raise ValueError(
            f"{batch.locate(claim)}: the columns are float32 numbers, and the log price of the "
            f"claim changes by {difference[claim]:.3g} if they change by their resolution "
            f"(1e-07), but at most {bound:.3g} is allowed. Pass the columns in float64, or "
            "use a scorer with gain=1 or gain=None"
        )


def lowered(scores, resolution, rounding=0.0):
    """Return the scores, lowered by the largest difference expected on another machine.

    The difference is the larger of ``rounding`` and ``resolution``, which is relative to
    1 + abs(score).
    """
    # Infinity minus infinity would be NaN.
    size = np.where(np.isinf(scores), 0.0, 1 + np.abs(scores))
    return scores - np.maximum(resolution * size, rounding)


def raised(risk, batch):
    """Raise the prediction risks in rows that contain a float32 number that is not round.

    The same problem may have been scored in float64 during calibration, and 0.6 is smaller by
    about 2e-8 in float64 than in float32. If the risks were not raised, copies of a false claim
    could have risks below their calibrated score.
    """
    broken = in_blocks(_find_broken_rows, batch.fractional[1])
    return -lowered(-risk, _SINGLE * broken)


def single_columns(table):
    """Return which columns contain only float32 numbers, of which at least one is not round."""
    single = in_blocks(_find_single, table).all(axis=0)
    return single & in_blocks(_find_broken, table).any(axis=0)


def _find_single(table):
    return table == table.astype(np.float32)


def _find_broken(table):
    """Return which numbers are float32 numbers that are not round."""
    return _find_single(table) & (table * 1024 != np.floor(table * 1024))


def _find_broken_rows(table):
    # Most columns have no float32 numbers.
    columns = _find_single(table).any(axis=0)
    return _find_broken(table[:, columns]).any(axis=1)


def below_copies(scores):
    """Lower duplicate scores by about one millionth, unless they are round numbers.

    If equal scores are not round numbers, they probably belong to copies of a claim, and another
    copy may be scored on another machine. The reproducibility of columns that the filter did not
    compute is unknown. For example, the difference between products near 1e7 is accurate only to
    about 1e-8.
    """
    is_round = np.isclose(scores, np.round(scores, 3), rtol=1e-9, atol=1e-9)
    return lowered(scores, 1e-6 * (~is_round & is_repeated(scores)))


# Groups. If the group of a problem depends on the other problems in the batch, as its rank does,
# the groups in calibration and in use differ, so the guarantee holds in none of them. With groups
# above and below the median of the batch, the coverage of answers that were filtered one at a time
# was 0.38 in the group with more errors, instead of 0.90.


def refuse_dependence(guarantee, batch, groups):
    """Raise ValueError if the group of a problem depends on other problems."""
    for part in _smaller_batches(len(batch)):
        for i, alone in zip(part, read_groups(guarantee.by, batch[part]), strict=True):
            if alone != groups[i]:
                raise ValueError(
                    f"the group of {batch.name_of(i)} must not depend on other problems, "
                    f"got {groups[i]} in the whole batch and {alone} in a smaller batch. Do not "
                    "compute ranks or sums over the batch"
                )


# Settings. A threshold is valid only for the settings with which it was calibrated. With the rule
# of the published code, ties="include", the coverage was 0.84 instead of 0.90 on data with ties.


def refuse_without_theory(guarantee, *, ties, online, edges):
    """Raise ValueError if no guarantee is known for the settings of a filter."""
    guarantee.validate()
    if online and guarantee.show != 1 and edges is not chain_edges:
        raise ValueError(
            "show must be 1 if online=True, unless the claims form a chain, got "
            f"{guarantee.show!r}. An incomplete answer does not determine whether the "
            "complete answer passes. Set edges=skdcf.edges.chain_edges, or show=1"
        )
    if online and any(map(callable, guarantee.entries)):
        raise ValueError(
            f"by must be a metadata key if online=True, got {guarantee.by!r}. A function of whole "
            "answers cannot be computed while an answer is written"
        )
    if ties == "include":
        raise ValueError(
            f'ties="include" invalidates guarantee={guarantee!r} if scores are tied. '
            'Set guarantee=None, ties="exclude" or ties="jitter"'
        )


def fingerprint(*parts):
    """Return a hash of a fitted scorer, its columns, and the settings that affect path risks.

    Functions that were defined interactively cannot be pickled, so their hash is a random number.
    """
    try:
        return joblib.hash(parts)
    except Exception:
        return uuid4().hex


def comparable(value):
    """Return a value that is equal for equal settings, in another process too.

    Functions with the same source code may differ, so functions must be identical objects.
    """
    if isinstance(value, (list, tuple)):
        return tuple(map(comparable, value))
    if not callable(value) or isinstance(value, (FunctionType, type)):
        return value
    try:
        return joblib.hash(value)
    except Exception:
        return value


def refuse_changed(before, now):
    """Raise ValueError if a setting that affects the threshold differs."""
    for name in before | now:
        if before.get(name) != now.get(name):
            raise ValueError(
                f"{name} of the filter or its guarantee must not change after calibration, but it "
                f"was {before.get(name)!r} and is {now.get(name)!r} now. Call calibrate or fit "
                "again, with parts that were computed with the same settings"
            )


def warn_of_search(was_changed):
    """Warn if the guarantee was changed between cloning and fitting, as in a search."""
    if was_changed:
        warn(
            "alpha, guarantee, ties or edges was set after cloning, but score compares only "
            "filters with the same guarantee. The filter that guarantees least keeps most. "
            "Choose these parameters without looking at the score",
            GuaranteeWarning,
        )


# Levels. At levels below 1 / (n + 1), the rank is 0, so no claims can be kept. Using the smallest
# score as the threshold would invalidate the guarantee. With 4 answers and alpha = 0.1, the
# coverage would be 0.80.


def warn_of_level(calibration, level):
    """Warn if no claims are kept at a level, or if alpha was probably confused with 1 - alpha."""
    if level > 0.5 and calibration.guarantee.is_probability:
        warn(
            f"alpha = {level:g} allows a false claim in {level:.0%} of the problems, "
            f"because alpha is the maximum error rate. Did you mean {1 - level:.3g}?",
            ParameterWarning,
        )
    if shortage := calibration.shortage(level):
        warn(shortage, CalibrationWarning)


# Labels. If the most doubtful answers are judged first, or a filter chose what a person checked,
# the judged answers are not a random sample. Unjudged claims count as false, so the guarantee
# holds, but few claims are kept. A column that contains the labels looks perfect in calibration,
# but new problems have no labels. When the column said that all new claims are true, all false
# claims were kept.


def refuse_chosen_labels(batch):
    """Raise ValueError if the answers to label were not drawn at random."""
    for i, row in enumerate(batch.provenance_rows):
        order = row.get("label_order", "random")
        if order != "random":
            raise ValueError(
                "calibration problems must be drawn at random before they are labelled, but "
                f"{batch.name_of(i)} has the label_order {order!r} in its provenance. Use "
                "such problems only for training: fit with calibration_size=0, and calibrate "
                "on problems that were drawn at random"
            )


def warn_of_unjudged(batch, labels):
    """Warn if no claim of some calibration problems was judged."""
    n_judged = starts_run(batch.problem_of[labels >= 0]).sum()
    if n_unjudged := np.count_nonzero(batch.sizes) - n_judged:
        warn(
            f"{n_unjudged} of the {len(batch)} calibration problems have no claims judged "
            "true or false. All claims of these problems count as false, so the filter may "
            "keep far fewer claims than possible. Leave these problems out only if the "
            "problems that were judged are a random sample",
            LabelWarning,
        )


def warn_of_labels_among_columns(batch, labels):
    """Warn about columns with one value for all true claims and another for all false claims."""
    # A column that differs from the labels of these claims cannot equal those of all claims.
    rows = np.concatenate([np.flatnonzero(labels == label)[:1000] for label in (1, 0)])
    # With fewer judged claims, a good score may equal the labels by chance.
    if not batch.n_features or len(rows) < 20:
        return
    with np.errstate(all="ignore"):
        matrix = np.corrcoef(batch.features[rows].T, labels[rows])
        for column in np.flatnonzero(np.abs(matrix[-1, :-1]) > 1 - 1e-12):
            is_judged = labels >= 0
            whole = np.corrcoef(batch.features[is_judged, column], labels[is_judged])
            if not abs(whole[0, 1]) > 1 - 1e-12:
                continue
            name = batch.feature_names[column] if batch.feature_names else column
            warn(
                f"the column {printable(name)} has one value for all true claims and another value "
                f"for all false claims ({is_judged.sum()} judged claims). Leave this column out if "
                "it was computed from the labels, because new problems have no labels",
                LabelWarning,
            )


# Direction. If the user passes a risk as the confidence, the guarantee still holds, but fewer
# claims are kept (0.8 instead of 2.5 true claims in generated answers). If the edges point from
# children to parents, claims may be kept without the claims on which they depend. This happened in
# 49 % of generated answers whose edges had been reversed.


def warn_of_reversed_edges(batch):
    """Warn if every edge points from a later claim to an earlier one."""
    if len(batch.edges) >= 10 and (np.diff(batch.edges) < 0).all():
        warn(
            "every edge points from a later claim to an earlier claim, so the edges may "
            "be reversed. In an edge (parent, child), the child must depend on the parent",
            GuaranteeWarning,
        )


def warn_of_direction(confidence, labels, problem_of):
    """Warn if false claims score higher than true claims, for example if the score is a risk.

    The proportion of pairs in which the true claim has the higher score must be four standard
    errors below one half. Claims of one answer may be correlated, so the standard error is that
    of as many claims as there are answers with a true claim, and answers with a false claim.
    """
    # These are enough claims to recognise the direction.
    rows = np.flatnonzero(labels >= 0)[:100_000]
    labels, confidence, problem_of = labels[rows], confidence[rows], problem_of[rows]
    m, n = (starts_run(problem_of[labels == label]).sum() for label in (1, 0))
    if min(m, n) < 20:
        return
    ranks = rankdata(confidence)[labels == 1]
    share = (ranks.mean() - (len(ranks) + 1) / 2) / (len(labels) - len(ranks))
    if share < 0.5 - 4 * np.sqrt((m + n + 1) / (12 * m * n)):
        warn(
            f"the score may have the wrong sign. In {1 - share:.0%} of all pairs of one "
            "true and one false calibration claim, the false claim has the higher score. "
            "A higher score must mean higher confidence, so pass the negative of a score "
            "that measures risk. The guarantee still holds, but few claims are kept",
            ParameterWarning,
        )
