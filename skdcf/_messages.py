"""Messages of which some parts are worded by the entry point at which somebody reads them.

What to do about an error is said differently in Python (``rename={"text": "claims"}``), on the
command line (``--map text=claims``) and to who sends requests. Such an error holds a `Message`,
whose parts are texts and `Advice`. As a string it reads as in Python. An entry point takes the
parts and words each advice by its name and fields (``apps/messages.toml``).
"""

from __future__ import annotations

from typing import Any


class Advice(str):
    """What to do, in the words of Python, with a name and fields for other words.

    Parameters
    ----------
    name : str
        Other entry points find their words by it.
    text : str
        The words of Python.
    **fields : object
        The values that stand in the words.
    """

    name: str
    fields: dict[str, Any]

    def __new__(cls, name: str, text: str, **fields: Any) -> Advice:
        """Make the text, and keep what others need."""
        self = super().__new__(cls, text)
        self.name, self.fields = name, fields
        return self

    def __getnewargs_ex__(self) -> Any:
        """For pickles: errors are sent between processes."""
        return (self.name, str(self)), self.fields


class Message(str):
    """A message made of texts and `Advice`, and of other messages.

    Parameters
    ----------
    *parts : str
        A `Message` among them gives its own parts.
    """

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Message:
        """Join the parts."""
        self = super().__new__(cls, "".join(parts))
        self.parts = tuple(p for part in parts for p in getattr(part, "parts", (part,)))
        return self

    def __getnewargs__(self) -> Any:
        """For pickles: errors are sent between processes."""
        return self.parts


def message_of(error: Exception) -> str:
    """Return what an error says, with its parts if it has any."""
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Message) else str(error)
