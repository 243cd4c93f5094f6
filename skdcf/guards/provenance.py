"""Guard against problems whose provenance differs from that of the calibration problems.

When only the edges of the calibration problems were corrected, the coverage was 0.78 instead of
0.90. When a different judge labelled the new problems, the coverage was 0.80. The field
``provenance`` of a problem describes how the problem and its labels were made. The values of each
key are compared with the values that the calibration problems had.
"""

from __future__ import annotations

from .._checks import warn
from ..exceptions import GuaranteeWarning
from .judges import judges_of
from .presence import presence_of

# Values of problems without these keys, because software that does not choose answers or correct
# edges does not record this either.
_ASSUMED = {"chosen_by": "none", "edges_corrected": False}


def origin_of(estimator, batch, labels=None):
    """Return how problems were made, as a dict of dicts of lists.

    The labels of problems that are only filtered are None.
    """
    return {
        "presence": presence_of(estimator, batch),
        "provenance": provenance_of(batch),
        "judges": {} if labels is None else judges_of(batch, labels),
    }


def provenance_of(batch):
    """Return the distinct values of each key, with None if the key is missing in some problems."""
    rows = [_ASSUMED | row for row in batch.provenance_rows or [{}]]
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: list(dict.fromkeys(row.get(key) for row in rows)) for key in keys}


def join_origins(origins):
    """Join the results of `origin_of` for several parts of the calibration problems."""
    joined = {}
    for section in ("presence", "provenance", "judges"):
        parts = [origin[section] for origin in origins]
        absent = [None] if section == "provenance" else []
        joined[section] = {
            name: list(dict.fromkeys(v for p in parts for v in p.get(name, absent)))
            for name in dict.fromkeys(name for part in parts for name in part)
        }
    return joined


def compare_provenance(calibrated, new, *, prefix_left_out):
    """Raise ValueError or warn if the provenance of new problems differs from that in calibration.

    Parameters
    ----------
    calibrated, new : dict of str to list
        Results of `provenance_of` for the calibration problems and for the new problems.
    prefix_left_out : tuple of str
        Keys with these prefixes are not compared.

    Raises
    ------
    ValueError
        If a value does not occur in the calibration problems.

    Warns
    -----
    GuaranteeWarning
        If only the new problems or only the calibration problems have a key.
    """
    one_sided = []
    for key in dict.fromkeys([*calibrated, *new]):
        if key.startswith(prefix_left_out):
            continue
        values_before = calibrated.get(key, [None])
        values_now = new.get(key, [None])
        known_before = [value for value in values_before if value is not None]
        known_now = [value for value in values_now if value is not None]
        differing = [value for value in known_now if value not in known_before]
        if known_before and differing:
            raise ValueError(
                f"provenance[{key!r}] must be one of the values in calibration, "
                f"{known_before}, got {differing[0]!r}. The guarantee holds only for problems "
                "that were made in the same way. Make these problems in the same way, or "
                "calibrate again on problems made like these"
            )
        is_missing = None in values_now and None not in values_before
        if is_missing or bool(known_before) != bool(known_now):
            one_sided.append(key)
    if one_sided:
        warn(
            f"the provenance keys {one_sided} are known only for the calibration problems or "
            "only for these problems, so it cannot be checked that both were made in the same "
            "way. Give both kinds of problems the same keys",
            GuaranteeWarning,
        )
