"""No folder of the package grows."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "skdcf"
LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.COMMENT,
}
# Lower a number after code was removed. A larger number needs a reason in the commit message.
MOST_TOKENS = {
    "adapters": 1860,
    "apps": 1185,
    "apps/cli": 7250,
    "apps/labelling": 7030,
    "apps/llm": 9095,
    "apps/service": 2610,
    "apps/text": 3580,
    "datasets": 10180,
    "evaluation": 6720,
    "features": 15095,
    "graphs": 6715,
    "guarantees": 3480,
    "inspection": 1420,
    "monitoring": 2140,
    "ops": 7140,
    "plots": 2430,
    "scorers": 4580,
    "top": 29300,
    "training": 3710,
}


def lines_of_docstrings(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant):
                yield from range(statement.lineno, statement.end_lineno + 1)


def tokens_of(path):
    """Count the tokens of a file without comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    skipped = set(lines_of_docstrings(ast.parse(source)))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(t.type not in LAYOUT and t.start[0] not in skipped for t in tokens)


def folder_of(path):
    parts = path.relative_to(PACKAGE).parts
    if parts[0] == "apps":
        return "/".join(parts[:2]) if len(parts) > 2 else "apps"
    return parts[0] if len(parts) > 1 else "top"


def test_no_folder_grows():
    tokens = Counter()
    for path in PACKAGE.rglob("*.py"):
        tokens[folder_of(path)] += tokens_of(path)
    assert {
        folder: n for folder, n in tokens.items() if n > MOST_TOKENS.get(folder, 0)
    } == {}
