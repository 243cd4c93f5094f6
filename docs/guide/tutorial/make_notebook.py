"""Convert tutorial.rst and its data to a notebook.

python docs/guide/tutorial/make_notebook.py
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "tutorial.rst"


def main():
    """Write tutorial.ipynb next to the page."""
    text = json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n"
    PAGE.with_suffix(".ipynb").write_text(text, encoding="utf-8")


def notebook():
    """Return the notebook as a dictionary in nbformat 4.5."""
    cells = list(cells_of(PAGE.read_text(encoding="utf-8")))
    made = (HERE / "make_log.py").read_text(encoding="utf-8")
    made = made.partition('if __name__ == "__main__"')[0].partition('"""\n\n')[2]
    made = made.replace("HERE = Path(__file__).parent", 'HERE = Path("tutorial")')
    setup = "# Write the generated log and the verdicts into the folder tutorial/.\n"
    setup += made.strip() + "\n\n\nHERE.mkdir(exist_ok=True)\nmain()"
    cells.insert(1, ("code", setup))
    return {
        "cells": [cell(i, *one) for i, one in enumerate(cells)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cell(number, kind, source):
    """Return a cell as a dictionary."""
    common = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    common["source"] = source.splitlines(keepends=True)
    return common | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def cells_of(page):
    """Yield the text and the code of the page in order."""
    text, code = [], []
    for line in [*page.splitlines(), ""]:
        if line.startswith((">>> ", "... ")) or line == "...":
            if text:
                yield "markdown", markdown("\n".join(text))
                text = []
            code.append(line[4:])
        elif code and line:
            continue  # skip printed output
        else:
            if code:
                yield "code", "\n".join(code).replace("docs/guide/", "")
                code = []
            text.append(line)
    if "".join(text).strip():
        yield "markdown", markdown("\n".join(text))


def markdown(text):
    """Convert text to Markdown, with links to other pages replaced by their names."""
    text = re.sub(r"^(.+)\n=+$", r"# \1", text, flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n-{3,}$", r"## \1", text, flags=re.MULTILINE)
    text = re.sub(r"\n\nThe log of this tutorial.*?\n\n", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r":doc:`(\w+)`", r'the page "\1" of the guide', text)
    text = re.sub(r"\.\. code-block:: console\n\n", "", text)
    text = re.sub(r"^   (?=\S)", "    ", text, flags=re.MULTILINE)
    return text.replace("``", "`").strip()


if __name__ == "__main__":
    main()
