"""The zip archive around what skops writes: versions and checksums beside it."""

import hashlib
import io
import json
import platform
import zipfile
from importlib.metadata import version

from sklearn.exceptions import InconsistentVersionWarning

from .._checks import warn

FORMAT = 1
_ABOUT = "skdcf.json"


def own_version():
    """Version of this package, which is not whole yet while its modules are imported."""
    from .. import __version__

    return __version__


def build(members, kind):
    """The archive as bytes; ``members`` are bytes by name."""
    about = {
        "format": FORMAT,
        "skdcf": own_version(),
        "object": kind,
        "written_with": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scikit-learn", "skops")},
        },
        "sha256": {k: hashlib.sha256(v).hexdigest() for k, v in members.items()},
    }
    return zipped({_ABOUT: json.dumps(about, indent=1).encode()} | members)


def zipped(parts):
    """A zip archive, uncompressed, as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def unzipped(content):
    """The parts of an uncompressed zip archive by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read(content):
    """(what the file says about itself, all of its other parts by name).

    Raises
    ------
    ValueError
        With the reason, if the archive is damaged, changed or of a newer format.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_infos(archive.infolist(), len(content))
        parts = unzipped(content)
        about = json.loads(parts.pop(_ABOUT))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"it is cut off or damaged ({error})") from error
    except (KeyError, RecursionError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it was not written by skdcf.save ({error})") from error
    _check_about(about)
    _check_sums(about["sha256"], parts)
    return about, parts


def _check_infos(infos, size):
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise ValueError("it holds two members of one name")
    if sum(info.file_size for info in infos) > size:
        raise ValueError("its members overlap: together they are larger than the file")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise ValueError(f"its member {info.filename!r} is compressed or encrypted")


def _check_about(about):
    if not isinstance(about, dict) or type(about.get("format")) is not int:
        raise ValueError("it does not say which format it has")
    if about["format"] > FORMAT:
        raise ValueError(
            f"its format is {about['format']}, written by skdcf {about.get('skdcf')}; this "
            f"is skdcf {own_version()}, which reads format {FORMAT} and older: update skdcf"
        )
    known = all(isinstance(about.get(key), str) for key in ("skdcf", "object"))
    known &= all(isinstance(about.get(key), dict) for key in ("sha256", "written_with"))
    if about["format"] < 1 or not known:
        raise ValueError("what it says about itself is damaged")


def warn_of_versions(about):
    """Warn where another skdcf or scikit-learn wrote the file."""
    here = version("scikit-learn"), own_version()
    there = about["written_with"].get("scikit-learn"), about["skdcf"]
    if here != there:
        texts = [f"{sklearn} (with skdcf {skdcf})" for sklearn, skdcf in (here, there)]
        names = "current_sklearn_version", "original_sklearn_version"
        versions = dict(zip(names, texts, strict=True))
        kind = InconsistentVersionWarning
        warn(kind(estimator_name=about["object"], **versions), kind)


def _check_sums(sums, parts):
    if odd := sorted(sums.keys() ^ parts.keys()):
        raise ValueError(f"members were added or removed after it was saved: {odd[:3]}")
    for name, content in parts.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise ValueError(f"its member {name!r} was changed after it was saved")
