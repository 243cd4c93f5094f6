"""The program: it reads the command line, runs one command, and says how it ended.

What the commands take stands in ``commands.toml``. Nothing heavy is imported here.
"""

from __future__ import annotations

import argparse
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

_EPILOG = """Files are JSON Lines, one problem per line; "-" is standard input or output.
Every command explains itself: skdcf COMMAND --help"""


def _share(text: str) -> float | str:
    """Read a share, which may be left to `fit`."""
    return text if text == "auto" else float(text)


_TYPES = {"float": float, "int": int, "share": _share}
#: What the extra ``apps`` brings (tests/test_extras.py compares this with setup.cfg).
_PACKAGES = (
    "fastapi json_repair latex2mathml matplotlib narwhals openai pandas prometheus_client "
    "pydantic sentencex uvicorn"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of the program.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line; None takes it from the process.

    Returns
    -------
    int
        0 if all went well; 1 if `check` found broken lines, `fit` and `calibrate` too
        few labels to keep anything, or `answer` no model that could be reached; 2 if
        something was wrong with the command line or the data, or if the extra ``apps``
        is not installed; 130 after an interruption.
    """
    # As in files: a pipe on Windows has letters of one region only.
    with suppress(AttributeError):  # somebody put another stream in its place
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    missing = [name for name in _PACKAGES.split() if find_spec(name) is None]
    if missing:
        from ..._checks import missing_package

        print(f"skdcf: {missing_package(missing[0], 'apps')}", file=sys.stderr)
        return BAD
    try:
        options = make_parser().parse_args(argv)
        with _short_warnings():
            module, _, name = options.run.partition(":")
            with _interrupted_later():
                run = getattr(import_module(f".{module}", __package__), name)
            with _accepted(getattr(options, "accept_provenance", None)):
                return run(options) or OK
    except KeyboardInterrupt:
        print(
            "skdcf: interrupted; a file is there only if it was complete",
            file=sys.stderr,
        )
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (ImportError, OSError, ValueError) as error:
        print(f"skdcf {options.command}: {_sentence(error)}", file=sys.stderr)
        return BAD


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line, with all commands.

    Returns
    -------
    argparse.ArgumentParser
    """
    parser = argparse.ArgumentParser(
        prog="skdcf",
        description="Keep of a language model's answers what can be trusted.",
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
    """A flag that is repeated: its lists are joined, and a second single value is refused."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Store the values, beside those that stand there already."""
        flags = vars(namespace).setdefault("flags", set())
        repeated = self.dest in flags
        flags.add(self.dest)
        if repeated and self.nargs != "+":
            parser.error(
                f"{option_string} stands there twice: which of the two counts?"
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
def _accepted(reason):
    """Accept problems that were made otherwise for a reason, whatever the command does."""
    if reason is None:
        yield
        return
    from ...estimators import accept_provenance

    print(f"skdcf: problems made otherwise are accepted: {reason}", file=sys.stderr)
    with accept_provenance(reason):
        yield


@contextmanager
def _interrupted_later():
    """Hold Ctrl-C back while modules are imported, some of which would hide it."""
    asked = []
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive only in the main thread
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
    """Show a warning as one sentence, without the line of code that it came from."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_, **__: print(
            f"skdcf: warning: {reworded(message, 'program')}", file=sys.stderr
        )
        yield


def _sentence(error):
    """Say what is wrong, without the number that an operating system gives it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error
    return reworded(error, "program")
