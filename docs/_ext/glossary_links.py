"""On each page the first use of a word of the glossary leads to the glossary."""

import re

from docutils import nodes

#: Guide and development pages, and those at the top, but for the glossary itself.
PAGES = re.compile(r"(guide|referees|development)/.+|index|installation")
#: Words that mostly mean what everybody means by them.
PLAIN = {"child", "columns", "context", "group", "origin", "parent", "question"}
#: What holds code, or leads somewhere else already.
CLOSED = (
    nodes.literal,
    nodes.math,
    nodes.reference,
    nodes.table,
    nodes.title,
    nodes.container,  # the cards of a grid are links as a whole
)


def setup(app):
    """Connect it to the end of the reading."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link(app, doctree, docname):
    """Replace the first use of each word, within running text, by a link."""
    if not PAGES.fullmatch(docname):
        return
    ids = {
        name: anchor
        for name, _, kind, _, anchor, _ in app.env.get_domain("std").get_objects()
        if kind == "term" and name not in PLAIN
    }
    longest = sorted(map(re.escape, ids), key=len, reverse=True)
    # A confidence interval is no confidence.
    words = re.compile(
        rf"(?<![\w-])({'|'.join(longest)})s?(?![\w-]| interval)", re.IGNORECASE
    )
    there = app.builder.get_relative_uri(docname, "glossary")
    left = dict(ids)
    for paragraph in doctree.findall(nodes.paragraph):
        if is_closed(paragraph):
            continue
        for text in list(paragraph.findall(nodes.Text)):
            if not is_closed(text):
                text.parent.replace(
                    text, list(linked(text.astext(), words, left, there))
                )


def is_closed(node):
    """Whether a node stands inside of code, a heading, a table, a card or a link."""
    while (node := node.parent) is not None:
        if isinstance(node, CLOSED):
            return True
    return False


def linked(text, words, left, there):
    """The parts of a text, with links where a word is used for the first time."""
    end = 0
    for match in words.finditer(text):
        name = next((n for n in left if n.lower() == match[1].lower()), None)
        if name is not None:
            yield nodes.Text(text[end : match.start()])
            uri = f"{there}#{left.pop(name)}"
            about = {"refuri": uri, "internal": True, "classes": ["term"]}
            yield nodes.reference("", match[0], **about)
            end = match.end()
    yield nodes.Text(text[end:])
