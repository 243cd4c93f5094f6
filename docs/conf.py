"""Sphinx configuration; `make docs` builds with it, warnings being errors."""

import sys
import tomllib
from pathlib import Path

import skdcf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "skdcf"
author = "The skdcf developers"
copyright = "The skdcf developers"
version = release = skdcf.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "gallery_order",
    "glossary_links",
    "headline",
    "mathml",
    "inherited",
    "public_names",
    "showcase",
    "whole_numbers",
]
# What is copied are commands and code, without prompts and what was printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_math_renderer = "mathml"
bibtex_bibfiles = ["references.bib"]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.md5"]
default_role = "py:obj"

# API reference: api.rst names the modules, the templates list what their __all__ holds.
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # the margin has no room for "Class.method"
numpydoc_show_class_members = False

_tools = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]
numpydoc_validation_checks = set(_tools["numpydoc_validation"]["checks"])
numpydoc_validation_exclude = set(_tools["numpydoc_validation"]["exclude"])

# Top-level modules of skdcf whose names are not for users, or are exported by `skdcf`
# itself. Every other one has to stand in api.rst: public_names.py sees to it.
internal_modules = ["apps", "cli", "estimators", "guards", "ops", "web"]

# The page that has the methods of a base class whole; the others have their first paragraphs.
described_at = {
    "skdcf.estimators._filter.ConformalFilter": "skdcf.CoherentConformalFilter"
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdcf",),
    "subsection_order": "gallery_order.SECTIONS",
    "within_subsection_order": "gallery_order.FirstThingsFirst",
    "remove_config_comments": True,
    "ignore_repr_types": r"matplotlib|skdcf\.plots|'list'",  # the picture is there already
    "show_memory": False,
    "parallel": 2,  # examples at once, as `make docs` reads two pages at once
    "download_all_examples": False,
    "write_computation_times": False,  # its table would load scripts from other sites
}

html_theme = "pydata_sphinx_theme"
html_title = "skdcf"
html_static_path = ["_static"]
html_css_files = ["skdcf.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
# These pages have no neighbours to list.
html_sidebars = {
    page: [] for page in ("changelog", "glossary", "installation", "references")
}
html_domain_indices = False
html_context = {"default_mode": "auto"}
