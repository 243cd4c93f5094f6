"""Everything that has to be true of a release, from the distributions themselves.

The source distribution and the wheel are built into dist/. Both are checked by the tools
of the package index; then the tests run in the unpacked source distribution, in an
environment of its own. Last comes what only a person can fill in.

    python .ci/release_check.py [--no-tests]
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from configparser import ConfigParser
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DIST = CHECKOUT / "dist"


def run(*command, cwd=CHECKOUT):
    """Run a command, or end with its name."""
    print("==", *command, flush=True)
    if subprocess.run([str(part) for part in command], cwd=cwd).returncode:
        sys.exit(f"release-check: FAILED: {' '.join(map(str, command))}")


def check_distributions():
    """Build both, and return the source distribution."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    run(sys.executable, "-m", "check_wheel_contents", *sorted(DIST.glob("*.whl")))
    (source,) = DIST.glob("*.tar.gz")
    return source


def check_tests(source):
    """Run ``make test`` in the unpacked source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        run("make", "test", cwd=Path(folder) / source.name.removesuffix(".tar.gz"))


def missing_by_hand():
    """Fields of the metadata that a person has to fill in before a release."""
    setup = ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    return [name for name in ("author_email", "url") if name not in setup["metadata"]]


if __name__ == "__main__":
    built = check_distributions()
    if "--no-tests" not in sys.argv:
        check_tests(built)
    if missing := missing_by_hand():
        sys.exit(
            f"release-check: setup.cfg has no {' and no '.join(missing)}: fill them in, as "
            "docs/development/releasing.rst says"
        )
    print("release-check: passed")
