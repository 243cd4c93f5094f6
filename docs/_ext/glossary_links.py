"""Link the first use of each glossary term on a page to the glossary."""

import re

from docutils import nodes

#: Guide pages, development pages and top-level pages, except for the glossary itself.
PAGES = re.compile(r"(guide|referees|development)/.+|index|installation")
#: Glossary terms that are usually used in their everyday meaning.
PLAIN = {"child", "columns", "context", "group", "origin", "parent", "question"}
#: Nodes that contain code, or that are already links.
CLOSED = (
    nodes.literal,
    nodes.math,
    nodes.reference,
    nodes.table,
    nodes.title,
    nodes.container,  # the cards of a grid are links as a whole
)


def setup(app):
    """Connect `link` to Sphinx."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link(app, doctree, docname):
    """Replace the first use of each term in running text with a link."""
    if not PAGES.fullmatch(docname):
        return
    ids = {
        name: anchor
        for name, _, kind, _, anchor, _ in app.env.get_domain("std").get_objects()
        if kind == "term" and name not in PLAIN
    }
    longest = sorted(map(re.escape, ids), key=len, reverse=True)
    # "confidence interval" is not a use of the term "confidence".
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
    """Return whether a node is inside code, a heading, a table, a card or a link."""
    while (node := node.parent) is not None:
        if isinstance(node, CLOSED):
            return True
    return False


def linked(text, words, left, there):
    """Return the parts of a text, with a link at the first use of each term."""
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
