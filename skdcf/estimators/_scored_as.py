"""What scores belong to: a guarantee, a scorer, and what it was trained on.

Scores of one scorer are no calibration of another. What is compared is text, which is the
same in another process and after a file.
"""

from types import FunctionType
from zlib import crc32

import numpy as np

from .._checks import without_places


def described(guarantee, without=()):
    """The settings of a guarantee as text, which is the same in another session."""
    if guarantee is None:
        return None
    settings = guarantee.get_params(deep=False).items()
    named = {k: _named(v) for k, v in settings if k not in without}
    return f"{type(guarantee).__name__}({named})"


def _named(value):
    return getattr(value, "__qualname__", None) or without_places(repr(value))


def described_scorer(scorer):
    """The settings of a scorer as text, and what its functions do."""
    values = scorer.get_params(deep=False).values()
    functions = [code_of(v) for v in values if isinstance(v, FunctionType)]
    return " ".join([without_places(repr(scorer)), *functions])


def code_of(function):
    """A short text for what a function does: others of its name may do something else."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    more = function.__defaults__, function.__kwdefaults__, cells
    text = f"{_text(function.__code__)} {_text(more)}"
    return f"{crc32(text.encode(errors='replace')):08x}"


def _text(value):
    """As ``repr``, but the same in every session: without places, lines and hashes."""
    if hasattr(value, "co_code"):
        return _text((value.co_code, value.co_names, value.co_consts))
    if isinstance(value, (set, frozenset)):
        return f"{{{sorted(map(_text, value))}}}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_text, value))})"
    return without_places(repr(value))


def trained_on(batch, labels, seed):
    """A short text for the problems and the randomness that a scorer is trained with."""
    arrays = (labels, batch.offsets, batch.edges, batch.features)
    found = [0 if a is None else crc32(np.ascontiguousarray(a)) for a in arrays]
    return f"{seed} {found}"
