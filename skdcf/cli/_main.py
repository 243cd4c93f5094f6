"""The program: its commands, what it says, and how it ends."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import contextmanager

from .. import __version__
from . import _data, _demo, _extract, _label, _model, _results

OK, BAD, INTERRUPTED = 0, 2, 130

_EPILOG = """Files are JSON Lines, one problem per line; "-" is standard input or output.
Every command explains itself: skdcf COMMAND --help"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of the program.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line; None takes it from the process.

    Returns
    -------
    int
        0 if all went well; 1 if `check` found broken lines; 2 if something was wrong with
        the command line or the data; 130 after an interruption.
    """
    options = make_parser().parse_args(argv)
    try:
        with _short_warnings():
            return options.run(options) or OK
    except KeyboardInterrupt:
        print("skdcf: interrupted; no file was changed", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (ImportError, OSError, ValueError) as error:
        print(f"skdcf {options.command}: {_sentence(error)}", file=sys.stderr)
        return BAD


def make_parser() -> argparse.ArgumentParser:
    """The command line, with all commands.

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
    version = f"skdcf {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in (_extract, _label, _data, _model, _results, _demo):
        group.add_to(commands)
    return parser


@contextmanager
def _short_warnings():
    """Show a warning as one sentence, without the line of code that it came from."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = _show_warning
        yield


def _show_warning(message, *_, **__):
    print(f"skdcf: warning: {message}", file=sys.stderr)


def _sentence(error):
    """What is wrong, without the number that an operating system gives it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error
    return error
