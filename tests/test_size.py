"""No folder grows, no file is long, and few names of modules are in capitals."""

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
    "apps": 1172,
    "apps/cli": 7118,
    "apps/labelling": 6880,
    "apps/llm": 9023,
    "apps/service": 2424,
    "apps/text": 3323,
    "datasets": 11050,
    "evaluation": 5922,
    "features": 13672,
    "ops": 6998,
    "top": 43481,
    "training": 3233,
}
MOST_LINES = 700
MOST_CAPITALS = 79


def lines_of_docstrings(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant):
                yield from range(statement.lineno, statement.end_lineno + 1)


def lines_of_code(path):
    """Return the line of each token that is not in a comment or docstring."""
    source = path.read_text(encoding="utf-8")
    skipped = set(lines_of_docstrings(ast.parse(source)))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = [t.start[0] for t in tokens if t.type not in LAYOUT]
    return [line for line in lines if line not in skipped]


def folder_of(path):
    parts = path.relative_to(PACKAGE).parts
    if parts[0] == "apps":
        return "/".join(parts[:2]) if len(parts) > 2 else "apps"
    return parts[0] if len(parts) > 1 else "top"


def test_no_folder_grows_and_no_file_is_long():
    tokens = Counter()
    for path in PACKAGE.rglob("*.py"):
        lines = lines_of_code(path)
        tokens[folder_of(path)] += len(lines)
        assert len(set(lines)) <= MOST_LINES, path
    assert {
        folder: n for folder, n in tokens.items() if n > MOST_TOKENS.get(folder, 0)
    } == {}


def test_few_names_in_capitals():
    n_names = 0
    for path in PACKAGE.rglob("*.py"):
        for line in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = getattr(line, "targets", [getattr(line, "target", None)])
            n_names += sum(getattr(t, "id", "").isupper() for t in targets)
    assert n_names <= MOST_CAPITALS
