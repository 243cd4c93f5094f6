"""Error messages whose wording depends on the entry point.

The advice on how to fix an error differs between Python, the command line and clients of the
service. For example, the argument ``rename`` in Python corresponds to the command-line option
``--map``. The message of an error with advice is a `Message`, which consists of strings and
`Advice` objects. The string value of a message contains the wording for Python. Other entry
points look up their own wording of each piece of advice by name in ``apps/messages.toml``.
"""

from __future__ import annotations

from typing import Any


class Advice(str):
    """Advice on how to fix an error, worded for Python, with data for other wordings.

    Parameters
    ----------
    name : str
        Key under which the wordings for other entry points are stored.
    text : str
        The wording for Python.
    **fields : object
        Values for the placeholders in the other wordings.
    """

    name: str
    fields: dict[str, Any]

    def __new__(cls, name: str, text: str, **fields: Any) -> Advice:
        """Create a string from ``text``, and store the name and the fields."""
        self = super().__new__(cls, text)
        self.name = name
        self.fields = fields
        return self

    def __getnewargs_ex__(self) -> Any:
        """Return the constructor arguments, so errors can be pickled."""
        return (self.name, str(self)), self.fields


class Message(str):
    """Message that consists of strings, `Advice` and other messages.

    Parameters
    ----------
    *parts : str
        The parts. A nested `Message` is replaced by its parts.
    """

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Message:
        """Create a string by joining the parts."""
        self = super().__new__(cls, "".join(parts))
        self.parts = tuple(p for part in parts for p in getattr(part, "parts", (part,)))
        return self

    def __getnewargs__(self) -> Any:
        """Return the constructor arguments, so errors can be pickled."""
        return self.parts


def message_of(error: Exception) -> str:
    """Return an error message, which is a `Message` if it has several wordings."""
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Message) else str(error)
