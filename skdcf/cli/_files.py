"""What the commands read and write."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils import Bunch

from .._files import replaced
from ..datasets import read_jsonl

STANDARD = "-"


def add_problems(parser: argparse.ArgumentParser, help: str, name: str = "problems"):
    """The argument of a command that reads problems."""
    parser.add_argument(
        name, metavar="FILE.jsonl", help=f'{help} ("-" is standard input)'
    )


def add_output(parser: argparse.ArgumentParser, help: str, *, required: bool = True):
    """The option of a command that writes a file."""
    parser.add_argument("-o", "--output", metavar="FILE", required=required, help=help)


def add_alpha(parser: argparse.ArgumentParser):
    """The option of a command that works at one level."""
    parser.add_argument(
        "--alpha", type=float, help="accepted share of answers with a false claim"
    )


def add_alphas(parser: argparse.ArgumentParser, default: Sequence[float]):
    """The option of a command that works at several levels."""
    parser.add_argument(
        "--alphas",
        type=float,
        nargs="+",
        default=list(default),
        metavar="ALPHA",
        help=f"levels to evaluate (default: {' '.join(map(str, default))})",
    )


def add_json(parser: argparse.ArgumentParser):
    """The option of a command whose result other programs may read."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def source(path: str) -> Path | BinaryIO:
    """What to read problems from."""
    return sys.stdin.buffer if path == STANDARD else Path(path)


def check_folder(path: str):
    """Raise before long work that the folder of the output is not there."""
    folder = Path(path).absolute().parent
    if path != STANDARD and not folder.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")


def write_lines(path: str, lines: Iterable[str]):
    """Write a text; a file appears when it is complete."""
    to_screen = path == STANDARD
    with nullcontext(sys.stdout) if to_screen else replaced(path) as file:
        for line in lines:
            file.write(line + "\n")


def read_problems(path: str, *, labelled: bool = False) -> Bunch:
    """The problems of a file, which has to hold labels where they are needed."""
    data = read_jsonl(source(path))
    if labelled and data.labels is None:
        raise ValueError(
            f'{path}: no line has "labels". They are one number per claim: 1 true, 0 '
            "false, -1 where nobody judged it"
        )
    return data


def inform(*lines: str):
    """Tell the user something that is no result."""
    print(*lines, sep="\n", file=sys.stderr)


def plain(value: Any) -> Any:
    """A result as JSON has it; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
