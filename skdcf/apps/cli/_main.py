"""The entry point of the program, which parses the command line and runs one command.

The arguments of the commands are defined in ``commands.toml``. This module does not import numpy,
scipy or scikit-learn, so the program starts quickly.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import threading
import tomllib
import warnings
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ..._version import __version__
from .._messages import reworded

OK, FAILED, BAD, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """Files are JSON Lines with one problem per line. "-" means standard input or output.
To get help on a command, run: skdcf COMMAND --help"""


def _share(text: str) -> float | str:
    """Return the share of answers as a float, or "auto" if `fit` should choose the share."""
    return text if text == "auto" else float(text)


def _file(text: str) -> str:
    """Return the path of a file, or raise an error for "-", because no lines are written."""
    if text == "-":
        raise argparse.ArgumentTypeError(
            "must be the path of a file, got '-'. Only a command that writes lines can write to "
            "standard output"
        )
    return text


_COLLECT_AFTER = 10_000  # number of new objects after which Python searches for cycles
_TYPES = {"float": float, "int": int, "share": _share, "file": _file}
#: Packages in the ``apps`` extra, which tests/test_extras.py compares with setup.cfg.
_PACKAGES = (
    "fastapi json_repair latex2mathml matplotlib openai pandas pydantic sentencex "
    "uvicorn"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command given by the command-line arguments.

    Parameters
    ----------
    argv : sequence of str, optional
        The command-line arguments. By default, the arguments of the process are used.

    Returns
    -------
    exit_code : int
        The exit code, which is 0 on success. The exit code is 1 if `check` found invalid lines,
        if `fit` or `calibrate` had too few labels to keep any claim, or if `answer` could not
        reach a model. The exit code is 2 if the command line or the data contain an error, or if
        the extra ``apps`` is not installed. The exit code is 130 if the program was interrupted.
    """
    # Files are in UTF-8, but pipes on Windows use a regional encoding by default. A stream that
    # replaced stdout may have no `reconfigure`.
    with suppress(AttributeError):
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        missing = [name for name in _PACKAGES.split() if find_spec(name) is None]
        if missing:
            from ..._checks import missing_package

            print(f"skdcf: {missing_package(missing[0], 'apps')}", file=sys.stderr)
            return BAD
        options = make_parser().parse_args(argv)
        with _short_warnings(), _fewer_collections():
            module, _, name = options.run.partition(":")
            with _interrupted_later():
                run = getattr(import_module(f".{module}", __package__), name)
            return run(options) or OK
    except KeyboardInterrupt:
        print(
            "skdcf: interrupted. No incomplete file was written",
            file=sys.stderr,
        )
        return INTERRUPTED
    except BrokenPipeError:  # The reading process closed the pipe, as "head" does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (ImportError, OSError, ValueError) as error:
        print(f"skdcf {options.command}: {_sentence(error)}", file=sys.stderr)
        return BAD


@contextmanager
def _fewer_collections():
    """Search for reference cycles less often, as a context manager.

    Each line of a file consists of many small objects without cycles. With the threshold of
    Python, the searches take longer than parsing the lines.
    """
    first, *others = gc.get_threshold()
    if first:  # The threshold 0 means that there are no searches.
        gc.set_threshold(max(first, _COLLECT_AFTER), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def make_parser() -> argparse.ArgumentParser:
    """Return the command-line parser with all commands.

    Returns
    -------
    parser : argparse.ArgumentParser
        The parser, with one subparser per command.
    """
    parser = argparse.ArgumentParser(
        prog="skdcf",
        description="Remove false claims from the answers of a language model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skdcf {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    tables = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
    arguments = tables["arguments"]
    for command, settings in tables["commands"].items():
        settings = {"description": settings["help"].capitalize() + ".", **settings}
        words = {key: settings[key] for key in ("help", "description")}
        words["epilog"] = f"Example: {settings['example']}"
        sub = commands.add_parser(command, **words)
        for name in settings["arguments"]:
            _add(sub, name, arguments.get(f"{command} {name}") or arguments[name])
        sub.set_defaults(run=settings["run"])
    return parser


class _EveryValue(argparse.Action):
    """Join the values of a repeated flag, or report an error if the flag accepts only one value."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Append the values to those of earlier occurrences of the flag."""
        flags = vars(namespace).setdefault("flags", set())
        repeated = self.dest in flags
        flags.add(self.dest)
        if repeated and self.nargs != "+":
            parser.error(
                f"{option_string} was given twice, but it accepts one value. Remove "
                "one of the two"
            )
        if repeated:
            values = [*getattr(namespace, self.dest), *values]
        setattr(namespace, self.dest, values)


def _add(parser, name, settings):
    settings = {k: _TYPES[v] if k == "type" else v for k, v in settings.items()}
    if not name.startswith("-"):
        name = settings.pop("dest", name)
    elif "action" not in settings:
        settings["action"] = _EveryValue
    if isinstance(settings.get("metavar"), list):
        settings["metavar"] = tuple(settings["metavar"])
    parser.add_argument(*filter(None, (settings.pop("short", None), name)), **settings)


@contextmanager
def _interrupted_later():
    """Delay Ctrl-C until the imports are complete, because some imports suppress Ctrl-C."""
    asked = []
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread receives signals.
        return
    handler = signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if asked:
        raise KeyboardInterrupt


@contextmanager
def _short_warnings():
    """Print each warning on one line, without its location in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_, **__: print(
            f"skdcf: warning: {reworded(message, 'program')}", file=sys.stderr
        )
        yield


def _sentence(error):
    """Return an error message without the error number of the operating system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error
    return reworded(error, "program")
