"""Run the tests on every supported Python, and on the oldest supported dependencies.

Each run has an environment of its own in .venv/matrix. An interpreter that is not on the
machine is fetched by uv; where that fails too, the others go on, and the whole fails.

    python .ci/matrix.py [RUN ...] [-- ARGUMENTS FOR PYTEST]
"""

import os
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).with_name("uv")

# Runs: the version of Python, and the strategy of uv for choosing dependency versions.
RUNS = {
    "3.11": ("3.11", "highest"),
    "3.12": ("3.12", "highest"),
    "3.13": ("3.13", "highest"),
    "oldest": ("3.11", "lowest-direct"),
}
NO_PYTHON = "FAILED: no interpreter to be had"


def main(arguments):
    """Print the result of each run, and return 0 if tests were run and all of them passed."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names, options = arguments[:cut] or list(RUNS), arguments[cut + 1 :]
    if unknown := [name for name in names if name not in RUNS]:
        print(f"no such run: {unknown}; there are {list(RUNS)}", file=sys.stderr)
        return 2
    outcomes = {}
    for name in names:
        print(f"\n== {name} ==", flush=True)
        start = time.monotonic()
        outcome = run(name, options)
        outcomes[name] = f"{outcome} ({time.monotonic() - start:.0f} s)"
    print("\n== matrix ==")
    for name, outcome in outcomes.items():
        print(f"{name:>8}  {outcome}")
    return 0 if all(o.startswith("passed") for o in outcomes.values()) else 1


def run(name, options):
    """Create the environment, run the tests and return the outcome."""
    version, resolution = RUNS[name]
    folder = CHECKOUT / ".venv" / "matrix" / name
    if not make_environment(version, folder):
        return NO_PYTHON
    python = folder / "bin" / "python"
    install = [UV, "pip", "install", "--quiet", "--python", python]
    install += ["--resolution", resolution, "--editable", ".[test]"]
    if not succeeds(install):
        return "FAILED to install"
    pytest = [python, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"]
    pytest += ["-m", "not wheel", *options]
    return "passed" if succeeds(pytest) else "FAILED"


def make_environment(version, folder):
    """Create an environment with an interpreter of this version, and return whether it worked."""
    make = [UV, "venv", "--quiet", "--clear", folder, "--python"]
    found = any(succeeds([*make, path]) for path in installed(version))
    return found or succeeds([*make, version])


def installed(version):
    """Return working interpreters on the PATH and, if installed, those of pyenv."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    paths = [Path(folder) / name for folder in os.get_exec_path()]
    paths += pyenv.glob(f"{version}*/bin/{name}")
    # pyenv has shims for all versions, but only the shims of selected versions work.
    return [p for p in paths if p.is_file() and succeeds([p, "-c", ""], quiet=True)]


def succeeds(command, *, quiet=False):
    """Run a command in the checkout, and return whether it succeeds."""
    target = subprocess.DEVNULL if quiet else None
    ended = subprocess.run(command, cwd=CHECKOUT, stdout=target, stderr=target)
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
