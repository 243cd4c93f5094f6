"""Write files atomically."""

import os
from contextlib import contextmanager
from gzip import compress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replaced(path, mode="w", **options):
    """Open a new file that replaces ``path`` once it is completely written.

    If writing is interrupted, for example because the disk is full or the process is killed, the
    old file is unchanged. A killed process leaves behind a hidden file with the suffix ``.part``.

    Parameters
    ----------
    path : path-like
        File path. Symbolic links are followed. The permissions of an existing file are kept. If
        the file is read-only, an error is raised. A path that is not a regular file, such as
        ``/dev/null``, is written to directly.
    mode : {"w", "wb"}
        Text or binary mode.
    **options
        Additional keyword arguments for ``open``.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with open(path, mode, **options) as file:
            yield file
        return
    draft = path.with_name(f".{path.name[:100]}.{uuid4().hex}.part")
    try:
        if path.exists():
            # Opening the file raises an error if it is read-only.
            path.open("ab").close()
            draft.touch(0o600)
            draft.chmod(path.stat().st_mode)
        with open(draft, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


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
    with replaced(path, "wb") as file:
        file.write(content)
    return Path(path)
