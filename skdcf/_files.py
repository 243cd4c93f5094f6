"""Write files atomically."""

import os
from gzip import compress
from pathlib import Path
from uuid import uuid4


def write_bytes(path, content):
    """Write a file that replaces ``path`` once it is completely written.

    If writing is interrupted, for example because the disk is full or the process is killed, the
    old file is unchanged. A killed process leaves behind a hidden file with the suffix ``.part``.

    Parameters
    ----------
    path : path-like
        File path. Symbolic links are followed. The permissions of an existing file are kept. If
        the file is read-only, an error is raised. A path that is not a regular file, such as
        ``/dev/null``, is written to directly.
    content : bytes
        The content of the file.

    Returns
    -------
    path : pathlib.Path
        The file that was written.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return Path(path)
    draft = target.with_name(f".{target.name[:100]}.{uuid4().hex}.part")
    try:
        if target.exists():
            # Opening the file raises an error if it is read-only.
            target.open("ab").close()
            draft.touch(0o600)
            draft.chmod(target.stat().st_mode)
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return Path(path)


def write_text(path, lines):
    """Write lines to a file atomically.

    Parameters
    ----------
    path : path-like
        Path of the file, which is compressed with gzip if the name ends with ``.gz``.
    lines : iterable of str
        The lines to write, without trailing newlines.

    Returns
    -------
    path : pathlib.Path
        The file that was written.
    """
    content = "".join(f"{line}\n" for line in lines).encode()
    if str(path).endswith(".gz"):
        # The time is omitted, so the same content is always compressed to the same bytes.
        content = compress(content, mtime=0)
    return write_bytes(path, content)
