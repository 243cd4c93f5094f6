"""The public names are those of the list, and each module says its own."""

import pkgutil
import tomllib
from collections import defaultdict
from importlib import import_module

import skdcf


def test_all_modules_export_the_names_of_the_list(checkout):
    text = (checkout / "docs/public_names.toml").read_text(encoding="utf-8")
    promised = defaultdict(list)
    for tier in tomllib.loads(text).values():
        for module, names in tier.items():
            promised[module] += names
    names = [module.name for module in pkgutil.walk_packages(skdcf.__path__, "skdcf.")]
    modules = [skdcf, *(import_module(n) for n in names if not n.endswith("__main__"))]
    found = {m.__name__: m.__all__ for m in modules if hasattr(m, "__all__")}
    assert found.keys() == promised.keys()
    for module, exported in found.items():
        assert sorted(exported) == sorted(promised[module]), module
        assert all(hasattr(import_module(module), name) for name in exported)
    page = (checkout / "docs/api.rst").read_text(encoding="utf-8")
    assert all(f"\n   {module}\n" in page for module in found)
