"""Find a published file in the data directory, or download it there."""

import hashlib
import os
from os import PathLike
from pathlib import Path

from ._sources import SOURCES


def get_data_home(data_home: str | PathLike | None = None) -> Path:
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
    >>> from skdcf.datasets import get_data_home
    >>> get_data_home("some/where").name
    'where'
    """
    if data_home is None:
        data_home = os.environ.get("SKDCF_DATA") or Path.home() / ".cache" / "skdcf"
    return Path(data_home).expanduser()


def local_file(name, data_home=None, download_if_missing=True):
    """The path of the file called ``name`` in `SOURCES`, checked by its checksum.

    Raises
    ------
    OSError
        If the file is not there and may not be or cannot be downloaded.
    ValueError
        If the download has another checksum.
    """
    source, path = SOURCES[name], get_data_home(data_home) / name
    found = checksum_of(path, source) if path.is_file() else "missing"
    if found == source.checksum:
        return path
    if not download_if_missing:
        state = "is missing" if found == "missing" else f"has checksum {found}"
        raise FileNotFoundError(
            f"{path} {state}, expected {source.checksum}; allow the download "
            f"(download_if_missing=True) or put {source.url} there"
        )
    _download(source, path)
    return path


def checksum_of(path, source):
    """Checksum of a file as hexadecimal digits, of the kind that its source has."""
    content = Path(path).read_bytes()
    if len(source.checksum) == 64:
        return hashlib.sha256(content).hexdigest()
    # Git puts a header before what it hashes. Only the name in git is known here.
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _download(source, path):
    """Pooch writes to a temporary file beside the target, checks it and renames it."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"downloading {source.url} needs pooch: pip install pooch, or put the file "
            f"at {path} yourself"
        ) from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(
            source.url,
            known_hash=source.checksum if len(source.checksum) == 64 else None,
            fname=path.name,
            path=path.parent,
        )
        if checksum_of(path, source) != source.checksum:
            path.unlink()
            raise ValueError(
                f"{source.url} does not match {source.checksum}: try again"
            )
    except PermissionError as error:
        raise PermissionError(
            f"{path} is not there and its directory cannot be written to: choose "
            "another data_home (or SKDCF_DATA), or have the file put there"
        ) from error
    except OSError as error:
        raise OSError(
            f"{source.url} could not be downloaded ({type(error).__name__}): check the "
            f"connection, or put the file at {path} yourself"
        ) from error
