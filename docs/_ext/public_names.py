"""Report public names without a docstring or without an entry in the reference.

Public names are the names in ``__all__`` of `skdcf` and of its modules that api.rst
lists, and the public methods and properties of their classes. A module of `skdcf` that
is neither listed in api.rst nor in ``internal_modules`` of conf.py is also reported. A
method may inherit its docstring. Members inherited from other packages are excluded,
because these packages document them.
"""

import inspect
import pkgutil
import tomllib
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

PACKAGE = "skdcf"
LIST = Path(__file__).parents[1] / "public_names.toml"
TIERS = tomllib.loads(LIST.read_text(encoding="utf-8"))
PROVISIONAL = {
    f"{module}.{name}"
    for module, names in TIERS["provisional"].items()
    for name in names
}
logger = logging.getLogger(__name__)


def setup(app):
    """Connect the checks to the build."""
    app.add_config_value("internal_modules", [], "env")
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", mark_provisional)
    app.connect("env-check-consistency", check)
    app.add_directive("names-of-modules", NamesOfModules)
    return {"parallel_read_safe": True}


def mark_provisional(app, what, name, obj, options, lines):
    """Say on the page of a provisional name that it may change."""
    if name in PROVISIONAL:
        lines[2:2] = ["*Provisional:* this name may change in any version.", ""]


class NamesOfModules(SphinxDirective):
    """Directive that lists the names of one tier ("stable" or "provisional") by module."""

    required_arguments = 1

    def run(self):
        return [
            node
            for module, names in TIERS[self.arguments[0]].items()
            for node in self.section(module, names)
        ]

    def section(self, module, names):
        """Return the name of a module and a table of its classes and functions."""
        home = import_module(module)
        listed = (f"~{module}.{n}" for n in names if callable(getattr(home, n)))
        text = "\n   ".join([".. autosummary::", "", *listed])
        return [nodes.rubric(module, module), *self.parse_text_to_nodes(text)]


def skip_foreign(app, what, name, obj, skip, options):
    """Skip members that a class inherits from another package."""
    return True if skip or not is_own(obj) else None


def check(app, env):
    """Report every public name that lacks a docstring or an entry."""
    documented = set(env.get_domain("py").objects)
    for module in public_modules(app.config.internal_modules):
        if module.__name__ not in documented:
            report(module.__name__, "is not listed in docs/api.rst, nor internal")
            continue
        for name, obj in public_names(module):
            said = obj.__doc__ if inspect.isclass(obj) else inspect.getdoc(obj)
            if not (said or "").strip():
                report(name, "has no docstring")
            if name not in documented:
                report(name, "does not appear in the API reference")


def report(name, problem):
    """Issue a Sphinx warning, which ``-W`` turns into an error."""
    logger.warning("public name %s %s", name, problem, type="public_names")


def public_modules(internal):
    """Return the package, and its top-level modules and applications that are not internal."""
    yield import_module(PACKAGE)
    for parent in (PACKAGE, f"{PACKAGE}.apps"):
        for _, name, _ in pkgutil.iter_modules(import_module(parent).__path__):
            if not name.startswith("_") and name not in internal:
                yield import_module(f"{parent}.{name}")


def public_names(module):
    """Yield the qualified names and objects in ``__all__``, and the members of the classes."""
    if not hasattr(module, "__all__"):
        report(module.__name__, "has no __all__")
    for name in getattr(module, "__all__", ()):
        obj = getattr(module, name)
        full = f"{module.__name__}.{name}"
        if inspect.ismodule(obj):
            continue
        if inspect.isclass(obj) or callable(obj):
            yield full, obj
        if inspect.isclass(obj):
            for member, value in inspect.getmembers_static(obj):
                if not member.startswith("_") and is_function(value) and is_own(value):
                    yield f"{full}.{member}", value


def is_function(member):
    """Return whether a member is a method or a property."""
    kinds = (property, classmethod, staticmethod)
    return inspect.isroutine(member) or isinstance(member, kinds) or is_cached(member)


def is_cached(member):
    """Return whether a member is a ``functools.cached_property``."""
    return hasattr(member, "attrname") and hasattr(member, "func")


def is_own(member):
    """Return whether a member belongs to this package, or to an unknown module."""
    for inner in ("fget", "func", "__func__", "__objclass__"):
        member = getattr(member, inner, None) or member
    origin = getattr(member, "__module__", None)
    return origin is None or origin.split(".")[0] == PACKAGE
