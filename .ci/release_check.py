"""Check the distributions of a release.

The source distribution and the wheel are built into dist/ and checked with the tools of the
package index. Then the tests run in the unpacked source distribution, in a separate
environment. Finally, the program checks the fields that a person must fill in.

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
#: Pattern of an image or a link, with groups for the "!" of an image, the text and the target.
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def run(*command, cwd=CHECKOUT):
    """Run a command, and exit with its name if it fails."""
    print("==", *command, flush=True)
    if subprocess.run([str(part) for part in command], cwd=cwd).returncode:
        sys.exit(f"release-check: FAILED: {' '.join(map(str, command))}")


def with_addresses(text, url, version):
    """Return a page whose links and images have absolute addresses."""
    places = {"!": "raw", "": "blob"}

    def absolute(match):
        mark, words, target = match.groups()
        if "://" in target:
            return match[0]
        return f"{mark}[{words}]({url.rstrip('/')}/{places[mark]}/v{version}/{target})"

    return LINK.sub(absolute, text)


def relative_links(text):
    """Return the links of a page that do not work outside the repository."""
    targets = (target for *_, target in LINK.findall(text))
    return [target for target in targets if "://" not in target]


def check_distributions(url):
    """Build both distributions, and return the source distribution.

    They are built from a copy of the checkout, in which the README has absolute links.
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
    """Return the version of the package."""
    text = (checkout / "skdcf/_version.py").read_text("utf-8")
    return re.search(r'"(.+)"', text)[1]


def address():
    """Return the address of the repository, or None if it is not set."""
    setup = ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    return setup["metadata"].get("url")


def missing_by_hand():
    """Return what a person must still fill in before a release."""
    setup = ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    citation = (CHECKOUT / "CITATION.cff").read_text("utf-8")
    security = (CHECKOUT / "SECURITY.md").read_text("utf-8")
    changelog = (CHECKOUT / "docs/changelog.rst").read_text("utf-8")
    found = {
        "author_email in setup.cfg": "author_email" in setup["metadata"],
        "url in setup.cfg": bool(address()),
        "the address of the repository (repository-code) in CITATION.cff": (
            "\nrepository-code: " in citation
        ),
        "the address for private reports in SECURITY.md": (
            "https://" in security or "@" in security
        ),
        "the date of the release in docs/changelog.rst": (
            "(not released)" not in changelog
        ),
    }
    return [what for what, is_there in found.items() if not is_there]


if __name__ == "__main__":
    built = check_distributions(address())
    if "--no-tests" not in sys.argv:
        check_tests(built)
    if missing := missing_by_hand():
        sys.exit(
            "release-check: all other checks passed. A person must fill in the following, as "
            "described in docs/development/releasing.rst:\n  * "
            + "\n  * ".join(missing)
        )
    print("release-check: passed")
