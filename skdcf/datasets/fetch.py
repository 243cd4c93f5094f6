"""Find published files in the data directory or download them: once for all data sets.

Most of the sources state no licence, so the files are downloaded from upstream on the
user's behalf and none is part of this package. ``sources.json`` says where they are: each
folder below the data directory mirrors one at an address that is pinned by a commit, and
each file has its SHA-256, or where only that is known (40 digits) the SHA-1 of its git
blob. ``descr`` holds what users are told of each data set.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

from .._checks import check_choice
from .._files import iter_objects
from ..edges import chain_edges, no_edges
from ..graphs.hashes import text_code
from .records import build_dataset, spread


class Source(NamedTuple):
    """One published file."""

    url: str
    checksum: str


def _read_sources():
    folders = json.loads(files(__package__).joinpath("sources.json").read_text("utf-8"))
    return {
        f"{folder}/{Path(name).name}": Source(_address(place["url"], name), checksum)
        for folder, place in folders.items()
        for name, checksum in place["files"].items()
    }


def _address(url, name):
    """The address of a file, which ends with its name or has it inside."""
    if "{stem}" in url:
        return url.format(stem=Path(name).stem)
    return f"{url}/{name}"


#: Path below the data directory -> where the file comes from.
SOURCES = _read_sources()


class Options(TypedDict, total=False):
    """The options of every ``fetch_*`` function, besides its own parameters."""

    data_home: str | PathLike[str] | None
    download_if_missing: bool
    n_retries: int
    delay: float
    on_invalid: Literal["raise", "drop"]
    return_X_y: bool
    return_groups: bool


_DEFAULTS: dict[Any, Any] = {"download_if_missing": True, "n_retries": 3, "delay": 1.0}
_DEFAULTS |= {"on_invalid": "raise", "return_X_y": False, "return_groups": False}

#: Folders whose files called ``.jsonl`` hold one object each.
_ONE_OBJECT = ("conformal_factuality/", "conformal_rag/")
#: Gives a function all options of `Options`.
fetcher = partial(spread, Options, **_DEFAULTS)
#: Annotations of one or several names, and of a rule for edges.
Names = str | Sequence[str]
Rule = str | Callable


def get_data_home(data_home: str | PathLike[str] | None = None) -> Path:
    """The directory in which data sets are kept.

    Parameters
    ----------
    data_home : str or path-like, optional
        Without it, the environment variable ``SKDCF_DATA``, and without that
        ``~/.cache/skdcf``.

    Returns
    -------
    pathlib.Path
        It need not exist yet.

    Examples
    --------
    >>> from skdcf.datasets.fetch import get_data_home
    >>> get_data_home("some/where").name
    'where'
    """
    if data_home is None:
        data_home = os.environ.get("SKDCF_DATA") or Path.home() / ".cache" / "skdcf"
    return Path(data_home).expanduser()


def local_file(
    name: str,
    data_home: Any = None,
    download_if_missing: Any = True,
    n_retries: Any = 3,
    delay: Any = 1.0,
    **_: Any,
) -> Any:
    """The path of the file called ``name`` in `SOURCES`, checked by its checksum.

    Raises
    ------
    OSError
        If the file is not there and may not be or cannot be downloaded.
    """
    source = SOURCES[name]
    path = get_data_home(data_home) / name
    checksum = checksum_of(path, source) if path.is_file() else "missing"
    if checksum == source.checksum:
        return path
    if not download_if_missing:
        state = "is missing" if checksum == "missing" else f"has checksum {checksum}"
        raise FileNotFoundError(
            f"{path} {state}, expected {source.checksum}; allow the download "
            f"(download_if_missing=True) or put {source.url} there"
        )
    _download(source, path, n_retries, delay)
    return path


def checksum_of(path: Any, source: Any) -> str:
    """Checksum of a file as hexadecimal digits, of the kind that its source has."""
    content = Path(path).read_bytes()
    if len(source.checksum) == 64:
        return hashlib.sha256(content).hexdigest()
    # Git puts a header before what it hashes. Only the name in git is known here.
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _download(source, path, n_retries, delay):
    """Download a file next to the target, check it and rename it, as scikit-learn does."""
    from sklearn.datasets import fetch_file

    sha256 = source.checksum if len(source.checksum) == 64 else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if sha256 is None:  # else the file would be taken for the right one
            path.unlink(missing_ok=True)
        fetch_file(
            source.url,
            folder=path.parent,
            local_filename=path.name,
            sha256=sha256,
            n_retries=n_retries,
            delay=delay,
        )
        if checksum_of(path, source) != source.checksum:
            path.unlink()
            raise OSError(f"its checksum differs from the expected {source.checksum}")
    except PermissionError as error:
        raise PermissionError(
            f"{path} is not there and its directory cannot be written to: choose "
            "another data_home (or SKDCF_DATA), or have the file put there"
        ) from error
    except OSError as error:
        raise OSError(
            f"{source.url} could not be downloaded ({error}): check the connection, or put "
            f"the file at {path} yourself"
        ) from error


def read(name: str, options: Any) -> Any:
    """The content of a published file; of JSON Lines a list with one object per line."""
    path = local_file(name, **options)
    if path.suffix != ".jsonl" or name.startswith(_ONE_OBJECT):
        return json.loads(path.read_text("utf-8"))
    records = [record for _, record in iter_objects(path, nan=True)]
    if broken := [record for record in records if isinstance(record, ValueError)]:
        raise broken[0]
    return records


def rows(pattern: Any, id: Any, options: Any, **choices: Any) -> Any:
    """The records of several files, with their ids, one at a time.

    ``pattern`` and ``id`` are filled with every combination of the ``choices``, which each
    record gets, too; ``id`` also with the number of the record, ``i``, and its fields.
    ``pattern`` may be a function of the choices. A file holds a list, as it is or as
    ``data``, or lists by a name, which becomes ``key``.
    """
    for values in product(*choices.values()):
        of = dict(zip(choices, values, strict=True))
        name = pattern(**of) if callable(pattern) else pattern.format(**of)
        content = read(name, options)
        if isinstance(content, dict):
            content = content.get("data") or [
                record | {"key": key, "k": k}
                for key, records in content.items()
                for k, record in enumerate(records)
            ]
        for i, record in enumerate(content):
            record = record | of
            yield id.format(**record | {"i": i}), record


def chosen(**asked: Any) -> Any:
    """List the distinct names that a caller chose.

    Each keyword has a value, which is a name, "all", or a list of names, and the choices.
    """
    out = {}
    for name, (value, choices) in asked.items():
        if isinstance(value, str):
            value = list(choices) if value == "all" else [value]
        out[name] = list(dict.fromkeys(value))
        if not out[name]:
            raise ValueError(f"{name} is empty: some of {sorted(choices)} expected")
        for item in out[name]:
            check_choice(name, item, choices)
    return out


def edge_rule(graph: str | Callable[..., Any]) -> Any:
    """The function behind "none", "chain" or a callable, and its name."""
    if callable(graph):
        return graph, getattr(graph, "__name__", type(graph).__name__)
    check_choice("graph", graph, ("none", "chain"))
    return {"none": no_edges, "chain": chain_edges}[graph], graph


def load(
    name: str,
    records: Any,
    parse: Any,
    options: Any,
    *,
    graph: Any = "none",
    answer: Any = None,
    **words: Any,
) -> Any:
    """Make the result of a ``fetch_*`` function from the records of its files.

    Parameters
    ----------
    name : str
        Of the data set, and of its description, into which ``words`` are put, lists
        with commas.
    records : dict from id to record, or pairs of them
    parse : callable
        ``parse(record)`` as for `build_dataset`. ``group`` may be any text; where there is
        none, the question tells problems apart.
    options : dict
        Values of `Options`.
    graph : str or callable
        As the functions have it: where ``parse`` gives no edges.
    answer : sequence of str, optional
        The fields with the question, the model and the answer, a text or a list of steps,
        where questions have several answers. Broken records are no problems, but answers
        they are.
    """
    check_choice("on_invalid", options["on_invalid"], ("raise", "drop"))
    rule, words["rule"] = edge_rule(graph)
    words = {k: ", ".join(w) if isinstance(w, list) else w for k, w in words.items()}
    records = dict(records)
    other_texts = [None] * len(records)
    if answer is not None and records:
        picked = (_pick(record, answer) for record in records.values())
        other_texts = other_answers(*zip(*picked, strict=True))

    def line(pair):
        record, alternatives = pair
        out = {"alternatives": alternatives} | parse(record)
        out["group"] = text_code(out.get("group", out.get("problem")))
        if "edges" not in out:
            out["edges"] = list(map(list, rule(out["claims"], out.get("problem"))))
        return out

    return build_dataset(
        zip(records, zip(records.values(), other_texts, strict=True), strict=True),
        line,
        descr=describe(name).format(**words),
        **{key: options[key] for key in ("on_invalid", "return_X_y", "return_groups")},
    )


def _pick(record, fields):
    *question, key, text = (record[field] for field in fields)
    return tuple(question), key, "\n".join(text) if isinstance(text, list) else text


def read_words(name: str, said: Any, words: Any, place: Any = "claim {}") -> Any:
    """The labels that words in a file stand for; ValueError names the first unknown word."""
    for v, word in enumerate(said):
        check_choice(f"{place.format(v)}: {name}", word, words)
    return [words[word] for word in said]


def describe(name: str) -> str:
    """Read the text that tells users of a data set."""
    return files(__package__).joinpath(f"descr/{name}.txt").read_text("utf-8")


def other_answers(groups: Any, keys: Any, texts: Any) -> Any:
    """The other answers to each problem's question.

    Parameters
    ----------
    groups : iterable of hashable
        The question of each problem.
    keys : iterable of str
        Who gave the answer. Others come in the order of their keys, and in that of the
        problems where keys are equal.
    texts : iterable of str
        The answer of each problem, as one text.

    Returns
    -------
    list of list of str
        Per problem the texts of the other problems of its group.
    """
    rows = list(zip(groups, keys, texts, strict=True))
    members = defaultdict(dict)
    for i in sorted(range(len(rows)), key=lambda i: rows[i][1]):
        members[rows[i][0]][i] = rows[i][2]
    each = enumerate(groups)
    return [[t for j, t in members[g].items() if j != i] for i, g in each]
