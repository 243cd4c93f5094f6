"""Filters that remove false claims from language model answers, with a statistical guarantee.

Submodules are imported when they are first used, so the command line starts quickly.
The public names are declared for editors and type checkers in ``__init__.pyi``.
"""

from importlib import import_module

from ._version import __version__ as __version__

__all__ = [
    "BoostedIndependentFactuality",
    "CalibrationPart",
    "CoherentConformalFilter",
    "GraphBatch",
    "HardCF",
    "IndependentFactuality",
    "ReasoningGraph",
    "SingleFeatureCF",
    "XGBoostCF",
    "load",
    "load_threshold",
    "problems_needed",
    "save",
    "save_threshold",
]

_HOMES = (
    dict.fromkeys(("GraphBatch", "ReasoningGraph"), "graphs")
    | dict.fromkeys(("CalibrationPart", "problems_needed"), "parts")
    | dict.fromkeys(("load", "load_threshold", "save", "save_threshold"), "persistence")
)


def __getattr__(name):
    # Import scikit-learn first. Importing scipy through nested imports of this package takes
    # about 14 % longer.
    if name in __all__:
        import_module("sklearn")
        home = import_module(f".{_HOMES.get(name, 'presets')}", __name__)
        globals()[name] = value = getattr(home, name)
        return value
    if not name.startswith("_"):
        try:  # Importing a submodule also sets it as an attribute of the package.
            return import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
