"""Guards against what would lose the guarantee silently.

A guard raises an error or issues a warning. Guards are functions of what `fit` recorded and of the
new problems, and stand in this file under a comment that states what is lost without them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import FunctionType
from typing import Any
from uuid import uuid4

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from ._checks import counted, printable, warn
from .edges import chain_edges
from .exceptions import (
    CalibrationWarning,
    GuaranteeWarning,
    LabelWarning,
    ParameterWarning,
)
from .graphs import GraphBatch
from .graphs.ragged import ranges
from .identity import Hashes, has_many_digits, read_groups


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
    columns_are_fine : bool
        Whether answers without texts are recognised by their columns.
    """

    trained: dict[str, NDArray[Any]]
    calibrated: dict[str, NDArray[Any]]
    scorer: str
    level: float | None
    origin: dict[str, dict[str, list[Any]]]
    settings: dict[str, Any]
    columns_are_fine: bool


# Provenance. The coverage was 0.78 instead of 0.90 when only the edges of the calibration
# problems had been corrected, 0.80 when a different judge labelled the new problems, and 0.69
# when the new problems had no edges. When filters were calibrated at alpha = 0.1 on the verdicts
# of six models, 3 to 64 % of the filtered agent runs contained a step that people judged to be
# wrong.

# Values of problems without these keys, because software that does not choose answers or correct
# edges does not record this either.
_ASSUMED = {"chosen_by": "none", "edges_corrected": False}
_FEW = 0.05  # proportion of differing problems above which a warning is issued


def origin_of(batch, labels=None, *, edges_read, edges):
    """Return how problems were made, as a dict of dicts of lists.

    ``labels`` is None if the problems are only filtered. ``edges_read`` says whether the filter
    uses the edges of these problems, and ``edges`` is its parameter.
    """
    rows = [_ASSUMED | row for row in batch.provenance_rows or [{}]]
    keys = {key: None for row in rows for key in row}
    return {
        "fields": _fields_of(batch, edges_read, edges),
        "provenance": {key: _distinct(row.get(key) for row in rows) for key in keys},
        "judges": {} if labels is None else _judges_of(batch, labels),
    }


def _fields_of(batch, edges_read, edges):
    """Return which fields the problems have, and in how many problems."""
    # An answer with a single claim does not need edges.
    has_several = batch.sizes > 1
    has_edges = np.diff(batch.edge_offsets)[has_several] > 0
    half, fine = precision_of(batch)
    fields = {
        "alternatives": _is_known(batch.alternatives),
        "context": _is_known(batch.context),
        "n_alternatives": numbers_of_alternatives(batch),
        "known edges": [],
        "share with edges": [],
        "n that need edges": [len(has_edges)],
        "half columns": half,
        "fine columns": fine,
    }
    if edges_read and len(has_edges):
        fields["share with edges"] = [float(has_edges.mean())]
    if edges_read and edges == "none":
        # Unknown edges mean that there are none, but columns may read known edges.
        fields["known edges"] = _distinct(batch.edges_known[has_several].tolist())
    return fields


def _is_known(column):
    return [False] if column is None else _distinct(v is not None for v in column)


def numbers_of_alternatives(batch):
    """Return the number of alternatives of each answer that has claims and alternatives."""
    rows = () if batch.alternatives is None else batch.alternatives[batch.sizes > 0]
    return [
        sum(bool(text and not text.isspace()) for text in row)
        for row in rows
        if row is not None
    ]


def _distinct(values):
    return list(dict.fromkeys(values))


def labels_of_models(batch, labels):
    """Return the proportion of labels that models assigned, and the names of the models."""
    n_labels = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_of_models = 0
    names = set()
    for n, row in zip(n_labels.tolist(), batch.provenance_rows, strict=False):
        source = str(row.get("label_source"))
        if n and source.startswith("model "):
            n_of_models += n
            names.add(source.removeprefix("model "))
    return n_of_models / max(int(n_labels.sum()), 1), sorted(names)


def _judges_of(batch, labels):
    share, names = labels_of_models(batch, labels)
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
    joined: dict[str, Any] = {}
    for section in origins[0]:
        parts = [origin[section] for origin in origins]
        # A key that is missing in a part has the value None there.
        absent = [None] if section == "provenance" else []
        keys = {key: None for part in parts for key in part}
        joined[section] = {
            key: _distinct(v for part in parts for v in part.get(key, absent))
            for key in keys
        }
    return joined


def compare_origin(record, origin, *, skipped=()):
    """Raise ValueError or warn if problems were made differently than those in calibration.

    Provenance keys that start with one of the prefixes ``skipped`` are not compared.
    """
    calibrated = record.origin["fields"]
    new = origin["fields"]
    for name in ("known edges", "alternatives", "context"):
        _refuse_new(f"having {name}", calibrated[name], new[name])
    _refuse_other_precision(calibrated, new)
    _warn_of_fewer_edges(calibrated, new)
    warn_of_alternatives(record, Counter(new["n_alternatives"]))

    calibrated = record.origin["provenance"]
    new = origin["provenance"]
    one_sided = []
    for key in _distinct([*calibrated, *new]):
        if key.startswith(skipped):
            continue
        before = calibrated.get(key, [None])
        now = new.get(key, [None])
        _refuse_new(f"provenance[{key!r}]", before, now)
        is_missing = None in now and None not in before
        if is_missing or (before == [None]) != (now == [None]):
            one_sided.append(key)
    if one_sided:
        warn(
            f"the provenance keys {one_sided} are known only for the calibration problems or "
            "only for these problems, so it cannot be checked that both were made in the same "
            "way. Give both kinds of problems the same keys",
            GuaranteeWarning,
        )


def _refuse_new(name, before, now):
    """Raise ValueError if there is a value that calibration did not have."""
    known = [value for value in before if value is not None]
    new = [value for value in now if value not in before and value is not None]
    if known and new:
        raise ValueError(
            f"{name} must be one of the values in calibration, {known}, got {new[0]!r}. The "
            "guarantee holds only for problems that were made in the same way. Make these "
            "problems in the same way, or calibrate again on problems made like these"
        )


def _warn_of_fewer_edges(calibrated, new):
    share = min(calibrated["share with edges"], default=0.0)
    n_problems = max(new["n that need edges"])
    if share >= 0.9 and n_problems >= 20 and new["share with edges"] == [0.0]:
        warn(
            f"none of the {n_problems} problems with several claims has edges, but "
            f"{share:.0%} of the calibration problems do. The guarantee does not hold "
            "if the claims depend on each other. In that case, pass their edges",
            GuaranteeWarning,
        )


def warn_of_alternatives(record: Record, counts: Counter[int]) -> None:
    """Warn if many problems have more or fewer alternatives than those in calibration.

    ``counts`` contains the number of problems for each number of alternatives.
    """
    calibrated = record.origin["fields"]["n_alternatives"]
    if not calibrated:
        return
    low, high = min(calibrated), max(calibrated)
    outside = [number for number in counts if not low <= number <= high]
    n_outside = sum(counts[number] for number in outside)
    if n_outside > _FEW * counts.total():
        warn(
            f"the calibration problems have {low} to {high} alternatives, but {n_outside} of "
            f"{counts.total()} problems have more or fewer, for example {outside[0]}, so the "
            "guarantee does not hold. Generate as many alternatives as for the calibration "
            "problems",
            GuaranteeWarning,
        )


# Half precision. If the columns were computed in float64 for calibration and in float16 or
# bfloat16 for new problems, the miscoverage was 0.235 at alpha = 0.1. In the opposite case, it
# was 0.188. Rounding moves false claims past the threshold.

_LOOKED_UP = 100_000  # number of claims that suffices to determine the precision
_RARE = 0.01  # proportion of half-precision numbers that may occur by chance


def precision_of(batch):
    """Return the columns that have numbers in half precision, and those that have finer ones.

    A number in half precision is a float16 or bfloat16 number with more than four significant
    digits. If a column has finer numbers, a few of its numbers may be of this kind by chance.
    """
    table = batch.features
    if table is None or not table.size:
        return [], []
    table = np.ascontiguousarray(table[:_LOOKED_UP])
    # A float64 number has 52 bits after its first, a float16 number 10, and a bfloat16 number 7.
    is_short = table.view(np.uint64) & (2**42 - 1) == 0
    is_half = is_short.all(axis=0)
    is_long = is_short & has_many_digits(table)
    has_half = is_long.sum(axis=0) > np.where(is_half, 0, _RARE * len(table))
    # A single number may have been computed in float32.
    if has_half.any() and len(np.unique(table[is_long & is_half])) < 2:
        has_half &= ~is_half
    return np.flatnonzero(has_half).tolist(), np.flatnonzero(~is_half).tolist()


def _refuse_other_precision(calibrated, new):
    half, fine = ({*calibrated[name]} for name in ("half columns", "fine columns"))
    new_half, new_fine = ({*new[name]} for name in ("half columns", "fine columns"))
    coarser = (fine - half) & (new_half - new_fine)
    for column in sorted(coarser | (half - fine) & new_fine):
        raise ValueError(
            f"column {column} must have the precision that it had in calibration, got "
            f"{'only numbers' if column in coarser else 'numbers finer than those'} in half "
            "precision (float16 or bfloat16). Compute the column in the same precision, or "
            "calibrate again on problems like these"
        )


def refuse_unknown_edges(batch: GraphBatch) -> None:
    """Raise ValueError if the edges of a problem with several claims are unknown."""
    unknown = ~batch.edges_known & (batch.sizes > 1)
    if unknown.any():
        first = batch.name_of(int(np.argmax(unknown)))
        raise ValueError(
            f"the edges of {int(unknown.sum())} of {len(batch)} problems with several "
            f"claims are unknown (the first is {first}). Pass edges=() to the graph if its claims "
            'are independent, or set edges="none" or edges to a function from skdcf.edges in '
            "the filter (skdcf fit --no-edges)"
        )


# Choice. A rule that picks one of several answers is part of the filter. At alpha = 0.1, a filter
# that was calibrated on random answers kept a false claim in 17 % of the answers that such a rule
# had picked out of five.


def refuse_other_scorer(record, batch):
    """Raise ValueError if another filter's scorer chose the calibration answers."""
    for i, row in enumerate(batch.provenance_rows):
        scorer = row.get("chosen_scorer", record.scorer)
        if scorer != record.scorer:
            raise ValueError(
                f'{batch.name_of(i)}: provenance["chosen_scorer"] must be the scorer of this '
                f"filter, {record.scorer!r}, got {scorer!r}. A refitted filter chooses "
                "different answers. Choose again with this filter, and judge these answers"
            )


def refuse_chosen(batch):
    """Raise ValueError if any answer has already been chosen from several answers."""
    for i, row in enumerate(batch.provenance_rows):
        if "chosen_by" in row:
            raise ValueError(
                f"{batch.name_of(i)} must not be chosen in advance, got "
                f'provenance["chosen_by"]={row["chosen_by"]!r}. Pass all sampled answers to '
                "each question instead"
            )


def fingerprint(*parts):
    """Return a hash of a fitted scorer, its columns, and the settings that affect path risks.

    Functions that were defined interactively cannot be pickled, so their hash is a random number.
    """
    try:
        return joblib.hash(parts)
    except Exception:
        return uuid4().hex


# Several answers to one question. At alpha = 0.1, a filter kept a false claim in at least one of
# seven answers for 50 % of the questions.


def questions_in(record: Record, batch: GraphBatch) -> Counter[str]:
    """Return the number of answers in a batch to each question with a name or a text.

    Question texts are compared only if they identified the questions in calibration.
    """
    names = (row.get("group") for row in batch.metadata_rows)
    counts = Counter(str(name) for name in names if isinstance(name, (str, int)))
    kept = record.calibrated
    if counts or batch.problems is None or (kept["named_by"] != "text").any():
        return counts
    texts = (" ".join((text or "").casefold().split()) for text in batch.problems)
    return Counter(text for text in texts if text)


def warn_of_several_answers(counts: Counter[Any]) -> None:
    """Warn if there are several answers to the same question."""
    repeated = [n for n in counts.values() if n > 1]
    if repeated:
        warn(
            f"got {sum(repeated)} answers to {counted(len(repeated), 'question')}, but the "
            "guarantee covers neither all answers together nor an answer that is "
            "selected because of its kept claims. Select one answer to each question "
            "before filtering",
            GuaranteeWarning,
        )


# Seen before. When the same answers, under reworded questions, were used for both training and
# calibration, the miscoverage of a forest was 0.26 at alpha = 0.1, and that of columns without
# texts 0.57. If a log contains an answer several times, counting all copies in calibration leads
# to a miscoverage of up to 0.21. If a model repeats itself, counting each distinct answer once
# leads to 0.22. Data do not tell the two apart, so the filter refuses many copies.


def refuse_trained(record: Record, batch: GraphBatch, hashes: Hashes) -> None:
    """Raise ValueError if questions were used for training."""
    trained = hashes.among(record.trained)
    if trained.any():
        raise ValueError(
            f"the guarantee only covers new problems, but {int(trained.sum())} of the "
            "problems in X were used for training or share a question with a training "
            f"problem (the first is {batch.name_of(int(np.argmax(trained)))}). Use other "
            "problems for calibration, or fit the filter again"
        )


_REMEDIES = (
    "If the data contain answers several times, pass groups= with equal values for copies. If the "
    "model repeats itself, pass groups= with one value for each question, or groups=False if "
    "each answer has its own question"
)


def not_held_out(candidates: Hashes, held: Hashes) -> NDArray[np.bool_]:
    """Return which training candidates equal no held-out answer, or raise ValueError if none."""
    if candidates.named_by != "text":
        return np.ones(len(candidates.answer), dtype=bool)
    kept = (candidates.answer == 0) | ~np.isin(candidates.answer, held.answer)
    if len(kept) and not kept.any():
        raise ValueError(
            f"all {len(kept)} training answers equal calibration answers. {_REMEDIES}"
        )
    return kept


def not_trained(
    record: Record, hashes: Hashes, group_of: NDArray[np.integer]
) -> NDArray[np.intp]:
    """Return the rows of answers that equal no training answer, or raise ValueError.

    The share of the other answers is bounded in each group.
    """
    same = np.isin(hashes.answer, record.trained["answer"])
    if hashes.named_by == "group" or not same.any():
        return np.arange(len(same))
    most = 0.5 if hashes.named_by == "answer" else _FEW
    shares = np.bincount(group_of, same) / np.bincount(group_of)
    if shares.max() > most:
        own = group_of == np.argmax(shares)
        raise ValueError(
            f"at most {most:.0%} of the calibration answers may equal training answers, but "
            f"{same[own].sum()} of {own.sum()} do. {_REMEDIES}"
        )
    if hashes.named_by == "answer":
        return np.arange(len(same))
    warn(
        f"{same.sum()} of {len(same)} calibration answers equal training answers and are left "
        "out. The guarantee applies to new answers that equal no training answer",
        GuaranteeWarning,
    )
    return np.flatnonzero(~same)


def check_copies(
    hashes: Hashes,
    in_training: NDArray[np.bool_],
    group_of: NDArray[np.integer],
    level: float,
) -> None:
    """Raise ValueError or warn if calibration answers equal each other or training answers.

    There is one answer to each question. ``in_training`` says which of them equal an answer that
    would otherwise train. The share of copies is bounded in each group.
    """
    largest = 0.0
    n_copies = 0
    for group in np.unique(group_of):
        own = group_of == group
        answer = hashes.answer[own]
        _, code, count = np.unique(answer, return_inverse=True, return_counts=True)
        is_copy = (answer > 0) & ((count[code] > 1) | in_training[own])
        # A pair consists of two calibration answers, or of one and its copies in training.
        distinct = np.unique(answer[is_copy])
        n_alone = len(np.setdiff1d(distinct, answer[in_training[own]]))
        n_pairs = int(is_copy.sum()) - n_alone
        share = is_copy.mean()
        if share > _FEW and n_pairs > 1 and hashes.named_by == "text":
            raise ValueError(
                f"at most {_FEW:.0%} of the calibration answers may be copies of other answers, "
                f"but {int(is_copy.sum())} of {len(answer)} are. {_REMEDIES}"
            )
        n_copies += int(is_copy.sum())
        largest = max(largest, share)
    if hashes.named_by == "text" and n_copies:
        warn(
            f"{n_copies} of {len(group_of)} calibration answers are copies of other answers. For "
            "new answers that equal no answer in fit or calibrate, the guarantee holds at the "
            f"level {level / (1 - min(largest, 0.99)):.3g} instead of {level:g}",
            GuaranteeWarning,
        )
    if hashes.named_by == "group" and largest > _FEW:
        warn(
            f"{n_copies} of {len(group_of)} calibration answers equal training answers or answers "
            "of other groups. The guarantee holds if the groups are different questions to which "
            "the model gives the same answer. If they are copies of one answer, give them equal "
            "groups",
            GuaranteeWarning,
        )


# Rounding. The last bits of a score may differ in another batch, on another machine or in
# float32. The risk of an exact copy of a false claim may then lie below its calibrated score.
# With such copies, the coverage was 0.74 instead of 0.90. Scores are therefore lowered by more
# than the measured difference.

_RESCORED = 512  # number of problems to score again
# Tolerance relative to the largest confidence, or absolute if the largest confidence is below 1.
# Confidences computed in float32 differ by about 1e-6.
_TOLERATED = 1e-5
# factor by which the difference on another machine may exceed the difference measured here
_MARGIN = 10.0
_FLOAT32 = 1e-7  # relative resolution of float32 numbers
_SINGLE = 1e-5  # resolution of scores computed in float32, or from float32 features
_BLOCK = (
    2_000  # number of claims compared at a time, which fit into the processor cache
)
# amount by which scores shared by several problems are lowered, relative to the score
_COPIED = 1e-6


def _smaller_batches(n):
    """Return the rows of smaller batches of n problems: some alone, 7, 60, a third and the rest."""
    rows = np.unique(np.linspace(0, n - 1, min(n, _RESCORED)).astype(int))
    # Sums may depend on the size of the batch.
    parts = np.split(rows, np.cumsum([*8 * [1], 7, 60, len(rows) // 3]))
    return [part for part in parts if 0 < len(part) < n]


def measure_rounding(confidence_alone, batch, confidence):
    """Return ten times the largest measured difference between two confidences in the same claim.

    Raise ValueError if the columns or the scorer depend on other problems in the batch.
    ``confidence_alone`` computes the columns and confidences of a batch, and ``confidence`` was
    computed for the whole ``batch`` in a single call.
    """
    bound = _TOLERATED * max(np.abs(confidence).max(initial=0.0), 1.0)
    worst = 0.0
    for rows in _smaller_batches(len(batch)):
        part = batch[rows]
        confidence_before = confidence[ranges(batch.offsets[rows], batch.sizes[rows])]
        difference = np.abs(confidence_alone(part) - confidence_before)
        if difference.max(initial=0.0) > bound:
            claim = int(np.argmax(difference))
            raise ValueError(
                f"{batch.name_of(rows[part.problem_of[claim]])}: the confidences must not "
                f"depend on other problems, but they differ by {difference[claim]:.3g} if the "
                f"problem is scored alone, and rounding explains only {bound:.3g}. Do not "
                "rank, scale or clip the confidences across the batch, and compute them in "
                "float32 or float64"
            )
        worst = max(worst, difference.max(initial=0.0))
    return _MARGIN * worst


def resolution_of(scorer, batches, confidence):
    """Return the expected reproducibility of the scores, relative to 1 + abs(score).

    How the features were computed is not known. A column is assumed to be computed in float32 if
    float32 can represent all its numbers exactly and some of them are not round (3 and 0.25 are
    round). The confidences are checked for float32 numbers in the same way. The batches are the
    problems passed by the caller, and the same problems with the columns that the scorer uses.
    """
    tables = [b.features for b in batches if b.features is not None]
    tables.append(confidence[:, None])
    if not any(single_columns(table).any() for table in tables):
        return scorer.resolution
    if getattr(scorer, "gain", None) is not None:
        _refuse_split_prices(scorer, batches[-1], confidence)
    return max(scorer.resolution, _SINGLE)


def _refuse_split_prices(scorer, batch, confidence):
    """Raise ValueError if prices change too much within the resolution of float32 columns.

    Claims of an answer with equal hazards share a price. If the hazards differ in their last
    digits, the prices differ.
    """
    signs = np.where(np.arange(batch.n_features) % 2, 1.0, -1.0)
    features = batch.features * (1 + _FLOAT32 * signs)
    moved = scorer.confidence(batch.replace_features(features, batch.feature_names))
    difference = np.abs(moved - confidence)
    bound = _TOLERATED * max(np.abs(confidence).max(initial=0.0), 1.0)
    claim = int(np.argmax(difference))
    if difference[claim] > bound:
        raise ValueError(
            f"{batch.locate(claim)}: the columns are float32 numbers, and the log price of the "
            f"claim changes by {difference[claim]:.3g} if they change by their resolution "
            f"({_FLOAT32:g}), but at most {bound:.3g} is allowed. Pass the columns in float64, or "
            "use a scorer with gain=1 or gain=None"
        )


def lowered(scores, resolution, rounding):
    """Return the scores, lowered by the largest difference expected on another machine."""
    scores = scores.copy()
    finite = np.isfinite(scores)
    size = 1 + np.abs(scores[finite])
    scores[finite] -= np.maximum(resolution * size, rounding)
    return scores


def raised(risk, table):
    """Raise the prediction risks in rows that contain a float32 number that is not round.

    The same problem may have been scored in float64 during calibration, and 0.6 is smaller by
    about 2e-8 in float64 than in float32. If the risks were not raised, copies of a false claim
    could have risks below their calibrated score.
    """
    blocks = np.array_split(table, len(table) // _BLOCK + 1)
    broken = np.concatenate([_compare_single(rows)[1].any(axis=1) for rows in blocks])
    return risk + _SINGLE * (1 + np.abs(risk)) * broken if broken.any() else risk


def single_columns(table):
    """Return which columns contain only float32 numbers, of which at least one is not round."""
    single, broken = _compare_single(table[:100_000])
    return single.all(axis=0) & broken.any(axis=0)


def _compare_single(table):
    """Return which numbers are float32 numbers, and which of these are not round."""
    with np.errstate(over="ignore"):
        single = table == table.astype(np.float32)
        scaled = table * 1024
        return single, single & (scaled != np.floor(scaled))


def below_copies(scores):
    """Lower duplicate scores by about one millionth, unless they are round numbers.

    If equal scores are not round numbers, they probably belong to copies of a claim, and another
    copy may be scored on another machine. The reproducibility of columns that the filter did not
    compute is unknown. For example, the difference between products near 1e7 is accurate only to
    about 1e-8.
    """
    size = 1 + np.abs(scores)
    # The difference between two infinite scores is NaN.
    with np.errstate(invalid="ignore"):
        broken = np.abs(scores - np.round(scores, 3)) > 1e-9 * size
    _, code, count = np.unique(scores, return_inverse=True, return_counts=True)
    copied = broken & (count[code] > 1)
    scores = scores.copy()
    scores[copied] -= _COPIED * size[copied]
    return scores


# Groups. If the group of a problem depends on the other problems in the batch, as its rank does,
# the groups in calibration and in use differ, so the guarantee holds in none of them.


def refuse_dependence(guarantee, batch, groups):
    """Raise ValueError if the group of a problem depends on other problems."""
    if groups is None:
        return
    for part in _smaller_batches(len(batch)):
        for i, alone in zip(part, read_groups(guarantee.by, batch[part]), strict=True):
            if alone != groups[i]:
                raise ValueError(
                    f"the group of {batch.name_of(int(i))} must not depend on other problems, "
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


def refuse_changed(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise ValueError if a setting that affects the threshold differs."""
    for name, value in before.items():
        if name not in now or now[name] != value:
            raise ValueError(
                f"{name} of the filter or its guarantee must not change after calibration, but it "
                f"was {value!r} and is {now.get(name)!r} now. Call calibrate or fit again, with "
                "parts that were computed with the same settings"
            )


def warn_of_search(was_changed: bool) -> None:
    """Warn if the guarantee was changed between cloning and fitting, as in a search."""
    if was_changed:
        warn(
            "alpha, guarantee, ties or edges was set after cloning, but score compares only "
            "filters with the same guarantee. The filter that guarantees least keeps most. "
            "Choose these parameters without looking at the score",
            GuaranteeWarning,
        )


# Levels. At levels below 1 / (n + 1), the rank is 0, so no claims can be kept. Using the smallest
# score as the threshold, or leaving answers unfiltered, would invalidate the guarantee.


def warn_of_level(calibration, level):
    """Warn if no claims are kept at a level, or if alpha was probably confused with 1 - alpha."""
    if level > 0.5 and calibration.guarantee.is_probability:
        warn(
            f"alpha = {level:g} allows a false claim in {level:.0%} of the problems, "
            f"because alpha is the maximum error rate. Did you mean {1 - level:.3g}?",
            ParameterWarning,
        )
    shortage = calibration.shortage(level)
    if shortage:
        warn(shortage, CalibrationWarning)


# Labels. If the most doubtful answers are judged first, or a filter chose what a person checked,
# the judged answers are not a random sample. Unjudged claims count as false, so the guarantee
# holds, but few claims are kept. A column that contains the labels looks perfect in calibration,
# but new problems have no labels.

_FEWEST = 20  # With fewer judged claims, a good score may equal the labels by chance.


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


def warn_of_no_errors(labels):
    """Warn if some claims are labelled true but no claim is labelled false."""
    n_true = int(np.sum(labels == 1))
    if n_true and not (labels == 0).any():
        warn(
            f"no claim is labelled false, because all {n_true} labels are 1. There are "
            "therefore no errors to learn from. Check that 1 means true and 0 means false",
            LabelWarning,
        )


def warn_of_unjudged(batch, labels):
    """Warn if no claim of some calibration problems was judged."""
    n_judged_claims = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_unjudged = int(np.sum((n_judged_claims == 0) & (batch.sizes > 0)))
    if n_unjudged:
        warn(
            f"{n_unjudged} of the {len(batch)} calibration problems have no claims judged "
            "true or false. All claims of these problems count as false, so the filter may "
            "keep far fewer claims than possible. Leave these problems out only if the "
            "problems that were judged are a random sample",
            LabelWarning,
        )


def warn_of_labels_among_columns(batch: GraphBatch, labels: NDArray[Any]) -> None:
    """Warn about columns with one value for all true claims and another for all false claims."""
    if batch.features is None:
        return
    true, false = (batch.features[labels == label] for label in (1, 0))
    n_judged = len(true) + len(false)
    if n_judged < _FEWEST or not (len(true) and len(false)):
        return
    constant = (true == true[0]).all(axis=0) & (false == false[0]).all(axis=0)
    for column in np.flatnonzero(constant & (true[0] != false[0])).tolist():
        name = batch.feature_names[column] if batch.feature_names else column
        warn(
            f"the column {printable(name)} has one value for all true claims and another "
            f"value for all false claims ({n_judged} judged claims). Leave this column out "
            "if it was computed from the labels, because new problems have no labels",
            LabelWarning,
        )


# Direction. If the user passes a risk as the confidence, the guarantee still holds, but almost all
# claims are dropped. If the edges point from children to parents, a kept claim may appear without
# the claims on which it depends.


def warn_of_reversed_edges(batch):
    """Warn if every edge points from a later claim to an earlier one."""
    edges = batch.edges
    if len(edges) >= 10 and (np.diff(edges) < 0).all():
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
    m, n = (len(np.unique(problem_of[labels == label])) for label in (1, 0))
    if min(m, n) < _FEWEST:
        return
    true, false = confidence[labels == 1], confidence[labels == 0]
    n_higher = mannwhitneyu(true, false, method="asymptotic").statistic
    share = n_higher / (len(true) * len(false))
    if share < 0.5 - 4 * np.sqrt((m + n + 1) / (12 * m * n)):
        warn(
            f"the score may have the wrong sign. In {1 - share:.0%} of all pairs of one "
            "true and one false calibration claim, the false claim has the higher score. "
            "A higher score must mean higher confidence, so pass the negative of a score "
            "that measures risk. The guarantee still holds, but few claims are kept",
            ParameterWarning,
        )
