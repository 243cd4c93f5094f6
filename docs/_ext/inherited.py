"""Shorten the docstrings of inherited methods on all pages except one.

All filters inherit methods from a private base class. On the pages of six classes, the full
docstrings would hide the methods of the class itself. For each base class, ``described_at`` in
conf.py names the page with the full docstrings. The other pages contain the first paragraph
and a link.
"""

from importlib import import_module


def setup(app):
    """Shorten docstrings after numpydoc has checked them."""
    app.add_config_value("described_at", {}, "env")
    app.connect("autodoc-process-docstring", shorten, priority=600)
    return {"parallel_read_safe": True}


def shorten(app, what, name, obj, options, lines):
    """Keep only the first paragraph of a method whose base class is described elsewhere."""
    path, _, member = name.rpartition(".")
    module, _, class_name = path.rpartition(".")
    if what not in ("method", "property") or not module:
        return
    documented = getattr(import_module(module), class_name, None)
    bases = getattr(documented, "__mro__", ())
    owner = next((base for base in bases if member in vars(base)), None)
    page = owner and app.config.described_at.get(f"{owner.__module__}.{owner.__name__}")
    if not page or page == path:
        return
    start = next((i for i, line in enumerate(lines) if line.strip()), 0)
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    lines[end:] = ["", f"`{page}.{member}` has the parameters and an example.", ""]
