"""Layer 0: files that are there as a whole or not at all."""

import contextlib
import os
import uuid
from pathlib import Path


@contextlib.contextmanager
def replaced(path, mode="w", **options):
    """Open a new file that takes the place of ``path`` once all is written.

    Whatever interrupts the writing, be it a full disk or the end of the process, leaves
    what was there before. At worst a hidden file that ends in ``.part`` stays behind,
    and nobody reads it.

    Parameters
    ----------
    path : path-like
        A symbolic link is followed.
    mode : {"w", "wb"}
    **options
        As for ``open``.
    """
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.part")
    try:
        with open(part, mode.replace("w", "x"), **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
