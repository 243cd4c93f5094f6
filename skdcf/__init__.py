"""Filters that remove false claims from language model answers, with a statistical guarantee.

Submodules are imported when they are first used, so the command line starts quickly.
The public names are declared for editors and type checkers in ``__init__.pyi``.
"""

from importlib import import_module

from ._version import __version__ as __version__

# The module of each public name.
_module_of = {
    "BoostedIndependentFactuality": "presets",
    "CalibrationPart": "parts",
    "CoherentConformalFilter": "presets",
    "GraphBatch": "graphs",
    "HardCF": "presets",
    "IndependentFactuality": "presets",
    "ReasoningGraph": "graphs",
    "SingleFeatureCF": "presets",
    "XGBoostCF": "presets",
    "load": "persistence",
    "load_threshold": "persistence",
    "problems_needed": "parts",
    "save": "persistence",
    "save_threshold": "persistence",
}

__all__ = list(_module_of)


def __getattr__(name):
    # Import scikit-learn first. Importing scipy through nested imports of this package takes
    # about 14 % longer.
    if name in _module_of:
        import_module("sklearn")
        return getattr(import_module(f".{_module_of[name]}", __name__), name)
    if not name.startswith("_"):
        try:  # Importing a submodule also sets it as an attribute of the package.
            return import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
