"""Everything that has to be true of a release, from the distributions themselves.

The source distribution and the wheel are built into dist/. Both are checked by the tools
of the package index; then the tests run in the unpacked source distribution, in an
environment of its own. Last comes what only a person can fill in.

    python .ci/release_check.py [--no-tests]
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from configparser import ConfigParser
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DIST = CHECKOUT / "dist"
#: An image or a link: its mark, its words and its target.
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def run(*command, cwd=CHECKOUT):
    """Run a command, or end with its name."""
    print("==", *command, flush=True)
    if subprocess.run([str(part) for part in command], cwd=cwd).returncode:
        sys.exit(f"release-check: FAILED: {' '.join(map(str, command))}")


def with_addresses(text, url, version):
    """A page with the address of the repository in its links and images."""
    places = {"!": "raw", "": "blob"}

    def absolute(match):
        mark, words, target = match.groups()
        if "://" in target:
            return match[0]
        return f"{mark}[{words}]({url.rstrip('/')}/{places[mark]}/v{version}/{target})"

    return LINK.sub(absolute, text)


def relative_links(text):
    """The links of a page that lead nowhere outside of the repository."""
    targets = (target for *_, target in LINK.findall(text))
    return [target for target in targets if "://" not in target]


def check_distributions(url):
    """Build both, and return the source distribution.

    They are built from a copy, whose README has the address in its links.
    """
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "skdcf"
        left_out = shutil.ignore_patterns(
            ".git", ".venv", "build", "dist", "*.egg-info"
        )
        shutil.copytree(CHECKOUT, copy, ignore=left_out)
        if url:
            readme = copy / "README.md"
            text = readme.read_text("utf-8")
            readme.write_text(with_addresses(text, url, version_of(copy)), "utf-8")
        run(sys.executable, "-m", "build", "--outdir", DIST, cwd=copy)
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


def version_of(checkout):
    """The version that the package says."""
    text = (checkout / "skdcf/_version.py").read_text("utf-8")
    return re.search(r'"(.+)"', text)[1]


def address():
    """The address of the repository that a person has given, or None."""
    setup = ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    return setup["metadata"].get("url")


def missing_by_hand():
    """Fields of the metadata that a person has to fill in before a release."""
    setup = ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    return [name for name in ("author_email", "url") if name not in setup["metadata"]]


if __name__ == "__main__":
    built = check_distributions(address())
    if "--no-tests" not in sys.argv:
        check_tests(built)
    if missing := missing_by_hand():
        sys.exit(
            f"release-check: setup.cfg has no {' and no '.join(missing)}: fill them in, as "
            "docs/development/releasing.rst says"
        )
    print("release-check: passed")
