"""Write the tutorial as a notebook: the text and the code of tutorial.rst, and its data.

python docs/guide/tutorial/make_notebook.py
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "tutorial.rst"


def main():
    """Write tutorial.ipynb beside the page."""
    text = json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n"
    PAGE.with_suffix(".ipynb").write_text(text, encoding="utf-8")


def notebook():
    """The notebook as a dictionary, in nbformat 4.5."""
    cells = list(cells_of(PAGE.read_text(encoding="utf-8")))
    made = (HERE / "make_log.py").read_text(encoding="utf-8")
    made = made.partition('if __name__ == "__main__"')[0].partition('"""\n\n')[2]
    made = made.replace("HERE = Path(__file__).parent", 'HERE = Path("tutorial")')
    setup = "# The made-up log and the verdicts, written into the folder tutorial/.\n"
    setup += made.strip() + "\n\n\nHERE.mkdir(exist_ok=True)\nmain()"
    cells.insert(1, ("code", setup))
    return {
        "cells": [cell(i, *one) for i, one in enumerate(cells)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cell(number, kind, source):
    """One cell."""
    common = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    common["source"] = source.splitlines(keepends=True)
    return common | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def cells_of(page):
    """Text and code of the page in turn."""
    text, code = [], []
    for line in [*page.splitlines(), ""]:
        if line.startswith((">>> ", "... ")) or line == "...":
            if text:
                yield "markdown", markdown("\n".join(text))
                text = []
            code.append(line[4:])
        elif code and line:
            continue  # what was printed
        else:
            if code:
                yield "code", "\n".join(code).replace("docs/guide/", "")
                code = []
            text.append(line)
    if "".join(text).strip():
        yield "markdown", markdown("\n".join(text))


def markdown(text):
    """Text of the page in Markdown; links to other pages become their names."""
    text = re.sub(r"^(.+)\n=+$", r"# \1", text, flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n-{3,}$", r"## \1", text, flags=re.MULTILINE)
    text = re.sub(r"\n\nThe log here is made up.*?\n\n", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r":doc:`(\w+)`", r'the page "\1" of the guide', text)
    text = re.sub(r"\.\. code-block:: console\n\n", "", text)
    text = re.sub(r"^   (?=\$)", "    ", text, flags=re.MULTILINE)
    return text.replace("``", "`").strip()


if __name__ == "__main__":
    main()
