"""The entry point of the program, which parses the command line and runs one command.

The arguments of the commands are defined in ``commands.toml``. This module does not import numpy,
scipy or scikit-learn, so the program starts quickly.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ..._version import __version__

# Exit status of a command that ran and has a negative result. Invalid input has 2, as in argparse,
# and an interruption 130, as in shells.
FAILED = 1


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command given by the command-line arguments.

    Parameters
    ----------
    argv : sequence of str, optional
        The command-line arguments. By default, the arguments of the process are used.

    Returns
    -------
    exit_code : int
        The exit code, which is 0 on success. The exit code is 1 if `fit` or `calibrate` had too
        few labels to keep any claim, or if `judge` found that a judge changed. The exit code is 2
        if the command line or the data contain an error, or if the extra ``apps`` is not
        installed. The exit code is 130 if the program was interrupted.
    """
    # Files are in UTF-8, but pipes on Windows use a regional encoding by default. A stream that
    # replaced stdout may have no `reconfigure`.
    with suppress(AttributeError):
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    options = make_parser().parse_args(argv)
    try:
        module, _, name = options.run.partition(":")
        with warnings.catch_warnings():
            warnings.simplefilter("once")
            # one line for each warning, without its location in the code
            warnings.showwarning = lambda message, *_, **__: print(
                f"skdcf: warning: {_numbered(message)}", file=sys.stderr
            )
            run = getattr(import_module(f".{module}", __package__), name)
            code = run(options) or 0
        fields = vars(options)
        if code == 0 and fields.get("output", "") not in (None, "-"):
            print(f"next: {options.next.format(**fields)}", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        print("skdcf: interrupted. No incomplete file was written", file=sys.stderr)
        return 130
    except BrokenPipeError:  # The reading process closed the pipe, as "head" does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        from ..._checks import missing_package

        print(f"skdcf: {missing_package(str(error.name), 'apps')}", file=sys.stderr)
        return 2
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        message = _numbered(error)
        if isinstance(error, OSError) and error.strerror:
            message = f"{error.filename or ''}: {error.strerror}".removeprefix(": ")
        print(f"skdcf {options.command}: {message}", file=sys.stderr)
        return 2


def make_parser() -> argparse.ArgumentParser:
    """Return the command-line parser with all commands.

    Returns
    -------
    parser : argparse.ArgumentParser
        The parser, with one subparser per command.
    """
    tables = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
    parser = argparse.ArgumentParser(
        prog="skdcf",
        description="Remove false claims from the answers of a language model.",
        epilog=tables["epilog"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skdcf {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    arguments = tables["arguments"]
    for command, settings in tables["commands"].items():
        sub = commands.add_parser(
            command,
            help=settings["help"],
            description=settings.get(
                "description", f"{settings['help'].capitalize()}."
            ),
            epilog=f"Example: {settings['example']}",
        )
        for name in settings["arguments"]:
            _add(sub, name, arguments.get(f"{command} {name}") or arguments[name])
        sub.set_defaults(run=settings["run"], next=settings["next"])
    return parser


def _add(parser, name, settings):
    settings = dict(settings)
    if "type" in settings:
        types = {"float": float, "int": int, "share": _share, "file": _file}
        settings["type"] = types[settings["type"]]
    if not name.startswith("-"):
        name = settings.pop("dest", name)
    parser.add_argument(*filter(None, (settings.pop("short", None), name)), **settings)


def _numbered(message):
    """Return a message in which problems are numbered from 1, and empty texts are named."""
    message = re.sub(r"(?<!\w)''", "an empty text", str(message))
    return re.sub(
        r"\bproblem (\d+)\b", lambda match: f"problem {int(match[1]) + 1}", message
    )
