"""Error messages whose wording depends on the entry point.

The advice on an error differs between Python (``rename={"text": "claims"}``), the command line
(``--map text=claims``) and clients of the service. An error with such advice contains a
`Message`, which consists of strings and `Advice` objects. The string value of a message is its
wording for Python. Other entry points look up their own wording of each piece of advice by name
in ``apps/messages.toml``.
"""

from __future__ import annotations

from typing import Any


class Advice(str):
    """Advice on an error, worded for Python, with a name and fields for alternative wordings.

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
        """Create the text, and store the name and the fields."""
        self = super().__new__(cls, text)
        self.name, self.fields = name, fields
        return self

    def __getnewargs_ex__(self) -> Any:
        """Return the constructor arguments for pickling. Processes exchange errors as pickles."""
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
        """Join the parts into one string."""
        self = super().__new__(cls, "".join(parts))
        self.parts = tuple(p for part in parts for p in getattr(part, "parts", (part,)))
        return self

    def __getnewargs__(self) -> Any:
        """Return the constructor arguments for pickling. Processes exchange errors as pickles."""
        return self.parts


def message_of(error: Exception) -> str:
    """Return the message of an error, which is a `Message` if there are several wordings."""
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Message) else str(error)
