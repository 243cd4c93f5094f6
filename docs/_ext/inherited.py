"""Inherited methods are short on the page of a class, and whole on one page.

All filters have the methods of one base class, which is not public. Their docstrings would
stand on six pages, where they hide what is the class's own. ``described_at`` in conf.py names
the page that has them whole, by base class; the others have their first paragraph and a link.
"""

from importlib import import_module


def setup(app):
    """Shorten docstrings after numpydoc has read them, and found nothing missing."""
    app.add_config_value("described_at", {}, "env")
    app.connect("autodoc-process-docstring", shorten, priority=600)
    return {"parallel_read_safe": True}


def shorten(app, what, name, obj, options, lines):
    """Leave the first paragraph of what a class has from a base that is described elsewhere."""
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
