"""Find published data files in the data directory, or download them.

The package does not contain the files, because most sources do not state a licence. The files are
downloaded on request from the authors' repositories. ``sources.json`` lists the sources. Each
folder of the data directory mirrors an address that is pinned to a commit. For each file,
``sources.json`` contains the SHA-256 checksum, or the SHA-1 checksum of the git blob (40 digits)
if the SHA-256 checksum is unknown. The folder ``descr`` contains the user-facing descriptions of
the data sets.
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
from ..edges import chain_edges, no_edges
from ..graphs.hashes import text_code
from .lines import iter_objects
from .records import build_dataset, spread


class Source(NamedTuple):
    """The address and the checksum of a published file."""

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
    """Return the URL of a file, given its folder's URL or a URL pattern that contains the stem."""
    if "{stem}" in url:
        return url.format(stem=Path(name).stem)
    return f"{url}/{name}"


#: Source of each file, keyed by its path relative to the data directory.
SOURCES = _read_sources()


class Options(TypedDict, total=False):
    """Options that every ``fetch_*`` function accepts in addition to its own parameters."""

    data_home: str | PathLike[str] | None
    download_if_missing: bool
    n_retries: int
    delay: float
    on_invalid: Literal["raise", "drop"]
    return_X_y: bool
    return_groups: bool


_DEFAULTS: dict[Any, Any] = {"download_if_missing": True, "n_retries": 3, "delay": 1.0}
_DEFAULTS |= {"on_invalid": "raise", "return_X_y": False, "return_groups": False}

#: Folders whose ``.jsonl`` files each contain a single object.
_ONE_OBJECT = ("conformal_factuality/", "conformal_rag/")
#: Decorator that adds the fields of `Options` to the parameters of a function.
fetcher = partial(spread, Options, **_DEFAULTS)
#: Type annotations for one or more names, and for an edge rule.
Names = str | Sequence[str]
Rule = str | Callable


def get_data_home(data_home: str | PathLike[str] | None = None) -> Path:
    """Return the directory for downloaded data sets.

    Parameters
    ----------
    data_home : str or path-like, optional
        Data directory. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf`` if the variable is not set.

    Returns
    -------
    data_home : pathlib.Path
        The directory, which may not exist yet.

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
    """Return the path of a file in `SOURCES`, after verifying or downloading the file.

    Raises
    ------
    OSError
        If the file is missing and cannot be downloaded, or if downloads are disabled.
    """
    source = SOURCES[name]
    path = get_data_home(data_home) / name
    checksum = checksum_of(path, source) if path.is_file() else "missing"
    if checksum == source.checksum:
        return path
    if not download_if_missing:
        state = (
            "is missing" if checksum == "missing" else f"has the checksum {checksum}"
        )
        raise FileNotFoundError(
            f"{path} must have the checksum {source.checksum}, but it {state}. Set "
            f"download_if_missing=True to download the file, or save {source.url} at this "
            "path"
        )
    _download(source, path, n_retries, delay)
    return path


def checksum_of(path: Any, source: Any) -> str:
    """Return the checksum of a file, with the hash function of the published checksum."""
    content = Path(path).read_bytes()
    if len(source.checksum) == 64:
        return hashlib.sha256(content).hexdigest()
    # The published checksum is a git blob hash, which also covers a header.
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _download(source, path, n_retries, delay):
    """Download a file, verify its checksum, and move it to its final path."""
    from sklearn.datasets import fetch_file

    sha256 = source.checksum if len(source.checksum) == 64 else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a checksum, `fetch_file` would keep an existing file.
        if sha256 is None:
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
            raise OSError(
                f"the checksum of the downloaded file must be {source.checksum}, but it is "
                "different"
            )
    except PermissionError as error:
        raise PermissionError(
            f"{path} is missing, and its directory is not writable. Set data_home or "
            "SKDCF_DATA to another directory, or ask an administrator to save the file "
            "there"
        ) from error
    except OSError as error:
        raise OSError(
            f"{source.url} could not be downloaded ({error}). Check the connection, or save the "
            f"file as {path}"
        ) from error


def read(name: str, options: Any) -> Any:
    """Return the content of a published JSON file, or the list of objects in a JSON Lines file."""
    path = local_file(name, **options)
    if path.suffix != ".jsonl" or name.startswith(_ONE_OBJECT):
        return json.loads(path.read_text("utf-8"))
    records = [record for _, record in iter_objects(path, nan=True)]
    if broken := [record for record in records if isinstance(record, ValueError)]:
        raise broken[0]
    return records


def rows(pattern: Any, id: Any, options: Any, **choices: Any) -> Any:
    """Yield the id and the content of each record in several files.

    The strings ``pattern`` and ``id`` are formatted with every combination of the ``choices``,
    and the chosen values are also added to the records. The string ``id`` may also refer to the
    number of the record, ``i``, and to the fields of the record. ``pattern`` may also be a
    function that returns the file name for a combination of the choices. A file contains a list
    of records, a list under the key ``data``, or several named lists. If a file contains several
    named lists, the name of the list is added to each record as ``key``.
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
    """Return the distinct names that the caller selected.

    Each keyword argument is a pair of a value (a name, "all", or a list of names) and the valid
    names.
    """
    out = {}
    for name, (value, choices) in asked.items():
        if isinstance(value, str):
            value = list(choices) if value == "all" else [value]
        out[name] = list(dict.fromkeys(value))
        if not out[name]:
            raise ValueError(
                f"{name} must not be empty. Choose at least one of {sorted(choices)}"
            )
        for item in out[name]:
            check_choice(name, item, choices)
    return out


def edge_rule(graph: str | Callable[..., Any]) -> Any:
    """Return the edge rule and its name, given "none", "chain" or a callable."""
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
    """Return the result of a ``fetch_*`` function, given the records of its files.

    Parameters
    ----------
    name : str
        Name of the data set and of its description file. The description is formatted with
        ``words``. Lists in ``words`` are joined by commas.
    records : dict from id to record, or pairs of them
        The records of the files, keyed by id.
    parse : callable
        A function ``parse(record)`` as in `build_dataset`. The value of the key ``group`` may be
        any string. By default, the group of a problem is its question.
    options : dict
        Values of `Options`.
    graph : str or callable
        Rule that creates the edges, as in the ``fetch_*`` functions. The edge rule is used if
        ``parse`` returns no edges.
    answer : sequence of str, optional
        For data sets with several answers per question, the names of the fields that contain the
        question, the model and the answer (a string or a list of steps). The answers in invalid
        records are still used as alternatives.
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
    """Convert the words in a file to labels, or raise ValueError if a word is unknown."""
    for v, word in enumerate(said):
        check_choice(f"{place.format(v)}: {name}", word, words)
    return [words[word] for word in said]


def describe(name: str) -> str:
    """Return the user-facing description of a data set."""
    return files(__package__).joinpath(f"descr/{name}.txt").read_text("utf-8")


def other_answers(groups: Any, keys: Any, texts: Any) -> Any:
    """Return the alternative answers for each problem.

    Parameters
    ----------
    groups : iterable of hashable
        The question of each problem.
    keys : iterable of str
        The model that wrote each answer. The alternative answers are sorted by model. Answers by
        the same model are in the order of the problems.
    texts : iterable of str
        The answer to each problem, as one string.

    Returns
    -------
    answers : list of list of str
        For each problem, the answers of the other problems in the same group.
    """
    rows = list(zip(groups, keys, texts, strict=True))
    members = defaultdict(dict)
    for i in sorted(range(len(rows)), key=lambda i: rows[i][1]):
        members[rows[i][0]][i] = rows[i][2]
    each = enumerate(groups)
    return [[t for j, t in members[g].items() if j != i] for i, g in each]
