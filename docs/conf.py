"""Sphinx configuration for `make docs`, which treats warnings as errors."""

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
    "layers",
    "public_names",
    "showcase",
    "whole_numbers",
]
# The copy button copies commands and code without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_math_renderer = "mathml"
bibtex_bibfiles = ["references.bib"]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.md5"]
default_role = "py:obj"

# API reference: api.rst names the modules, and the templates list the names in __all__.
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # "Class.method" is too long for the margin
numpydoc_show_class_members = False

_tools = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]
numpydoc_validation_checks = set(_tools["numpydoc_validation"]["checks"])
numpydoc_validation_exclude = set(_tools["numpydoc_validation"]["exclude"])

# Top-level modules of skdcf that are internal, or whose names `skdcf` itself exports.
# public_names.py checks that api.rst lists every other module.
internal_modules = [
    *(
        "apps",
        "cli",
        "columns",
        "filters",
        "full",
        "graphs",
        "guards",
        "identity",
        "jitter",
        "labels",
        "online",
        "ops",
        "parts",
        "persistence",
        "presets",
        "uses",
        "web",
    )
]

# The page with the full docstrings of a base class. Other pages have the first paragraphs.
described_at = {"skdcf.filters.ConformalFilter": "skdcf.CoherentConformalFilter"}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdcf",),
    "subsection_order": "gallery_order.SECTIONS",
    "within_subsection_order": "gallery_order.FirstThingsFirst",
    "remove_config_comments": True,
    "ignore_repr_types": r"matplotlib|skdcf\.plots|'list'",  # the picture is already shown
    "show_memory": False,
    "parallel": 2,  # number of parallel examples, as many as parallel pages in `make docs`
    "download_all_examples": False,
    "write_computation_times": False,  # the table would load scripts from other sites
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
# These pages have no section with other pages to list.
html_sidebars = {
    page: []
    for page in (
        "changelog",
        "glossary",
        "installation",
        "other_tools",
        "references",
        "security",
    )
}
html_domain_indices = False
html_context = {"default_mode": "auto"}
