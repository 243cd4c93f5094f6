"""What models are told: files of the package, with a version in their name.

A prompt is part of the call, and so of the name under which a reply is remembered:
another prompt, another reply. What is asked about (questions, answers, claims) is never
written into a prompt. It follows as one JSON object, in a message of its own.
"""

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

#: Version of each prompt that is used by default.
VERSIONS = {
    "answer": 1,
    "decompose": 1,
    "domain_flags": 1,
    "entailment": 1,
    "frequency": 1,
    "graph": 1,
    "labels": 1,
    "merge": 1,
    "semantic": 1,
    "verify": 1,
}


class Prompt(NamedTuple):
    """What a model is told.

    Parameters
    ----------
    name : str
        Name and version, or a digest where the caller wrote it.
    text : str
    """

    name: str
    text: str


def load_prompt(name: str, version: int | None = None) -> Prompt:
    """A prompt of the package.

    Parameters
    ----------
    name : str
        "answer", "decompose", "domain_flags", "entailment", "frequency", "graph",
        "labels", "merge", "semantic" or "verify".
    version : int, optional
        None is the newest.

    Returns
    -------
    Prompt

    Raises
    ------
    ValueError
        If there is none of that name and version.

    Examples
    --------
    >>> from skdcf.llm import load_prompt
    >>> load_prompt("merge").name
    'merge-1'
    """
    full = f"{name}-{VERSIONS.get(name) if version is None else version}"
    path = files("skdcf.llm").joinpath(f"prompts/{full}.txt")
    if name not in VERSIONS or not path.is_file():
        raise ValueError(f"there is no prompt {full!r}; names are {sorted(VERSIONS)}")
    return Prompt(full, path.read_text("utf-8").strip())


def resolve_prompt(name: str, own: str | Path | None) -> Prompt:
    """The prompt of the package, or the caller's own: its text, or a Path to it."""
    if own is None:
        return load_prompt(name)
    text = own.read_text("utf-8") if isinstance(own, Path) else own
    if not text.strip():
        raise ValueError(f"the prompt for {name!r} is empty")
    digest = hashlib.sha256(text.strip().encode()).hexdigest()[:8]
    return Prompt(f"{name}-own-{digest}", text.strip())
