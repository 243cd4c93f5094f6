"""Check built pages: links work, no bullet is empty, and nothing is loaded from other sites.

python .ci/check_pages.py docs/_build/html
"""

import functools
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that a browser loads automatically. Links to other sites are not included.
LOADS = {
    "script": ["src"],
    "img": ["src", "srcset"],
    "iframe": ["src"],
    "source": ["src", "srcset"],
    "video": ["src", "poster"],
    "audio": ["src"],
    "embed": ["src"],
    "object": ["data"],
}
FETCHED = {"stylesheet", "icon", "shortcut", "preload", "prefetch", "modulepreload"}
FROM_OUTSIDE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")

# Sphinx makes a list out of a "-" in a cell of a table.
EMPTY_BULLET = re.compile(r"<li>\s*</li>")


class Page(HTMLParser):
    """Parser that collects the anchors, the links and the loaded addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loads = {"", "top"}, [], []
        self.feed(text)
        self.loads += FROM_OUTSIDE.findall(text)
        self.has_empty_bullet = bool(EMPTY_BULLET.search(text))

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        self.names |= {attrs[key] for key in ("id", "name") if key in attrs}
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        if tag == "link" and FETCHED & set(attrs.get("rel", "").split()):
            self.loads.append(attrs.get("href", ""))
        loaded = (attrs.get(key, "") for key in LOADS.get(tag, ()))
        self.loads += [address for address in loaded if address]


def main(folder):
    """Print all errors, and return 0 if there are none."""
    folder = Path(folder).resolve()
    found = (p for p in sorted(folder.rglob("*.html")) if "_static" not in p.parts)
    pages = {p: Page(p.read_text("utf-8")) for p in found}
    if not pages:
        print(f"no pages in {folder}", file=sys.stderr)
        return 2
    wrong = [line for path in pages for line in check(path, pages, folder)]
    for sheet in folder.rglob("*.css"):
        for address in FROM_OUTSIDE.findall(sheet.read_text("utf-8")):
            wrong.append(f"{sheet.relative_to(folder)}: loads {address}")
    print(*wrong, f"{len(pages)} pages, {len(wrong)} errors", sep="\n")
    return 1 if wrong else 0


def check(path, pages, folder):
    """Return the errors of a page."""
    name, page = path.relative_to(folder), pages[path]
    if page.has_empty_bullet:
        yield f"{name}: an empty bullet, perhaps from a dash in a table"
    for address in page.loads:
        if re.match(r"(https?:)?//", address):
            yield f"{name}: loads {address}"
        elif missing(path, address, pages):
            yield f"{name}: no file {address}"
    for address in page.links:
        if fault := missing(path, address, pages):
            yield f"{name}: no {fault} {address}"


def missing(path, address, pages):
    """Return what an internal address lacks: "file", "anchor", or None."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = file_at(path.parent, unquote(parts.path)) if parts.path else path
    if target is None:
        return "file"
    name = unquote(
        parts.fragment.partition(":~:")[0]
    )  # what follows is text to look for
    known = target not in pages or name in pages[target].names
    return None if known else "anchor"


@functools.cache
def file_at(folder, address):
    """Return the file of an address, or None. Cached, because most pages share their links."""
    target = (folder / address).resolve()
    target = target / "index.html" if target.is_dir() else target
    return target if target.exists() else None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
