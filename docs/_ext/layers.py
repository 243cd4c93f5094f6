"""Directive ``layers``, which draws the modules of the package from their imports.

A module is in the lowest row above all modules that it imports. Below its name are the modules that
it imports, without those that these already import. Imports inside functions do not count.
"""

import ast
from pathlib import Path

import networkx as nx
from docutils import nodes
from docutils.parsers.rst import Directive

import skdcf

PACKAGE = Path(skdcf.__file__).parent


def setup(app):
    """Register the directive."""
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True}


class Layers(Directive):
    """Draw the modules in rows, with the lowest row at the bottom."""

    def run(self):
        graph = nx.transitive_reduction(imports())
        rows = reversed(list(nx.topological_generations(graph.reverse())))
        html = "".join(
            f'<div class="layer">{"".join(box(name, graph[name]) for name in sorted(row))}</div>'
            for row in rows
        )
        return [nodes.raw("", f'<div class="layers">{html}</div>', format="html")]


def box(name, below):
    """Return the HTML of a module and of the modules that it imports."""
    kind = "application" if name.startswith("apps.") else "estimators"
    return f'<div class="{kind}"><code>{name}</code><small>{", ".join(sorted(below))}</small></div>'


def imports():
    """Return the graph of the public modules, with an edge from a module to each import."""
    graph = nx.DiGraph()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        for node in at_top(ast.parse(path.read_text("utf-8")).body):
            base = parts[: len(parts) - node.level] if node.level else ()
            inside = (node.module or "").split(".") if node.module else []
            for alias in node.names:
                target = module_of((*base, *inside, alias.name))
                graph.add_edge(module_of(parts), target)
    graph.remove_nodes_from([""])
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


def at_top(statements):
    """Yield the relative imports that run when the module is imported."""
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            yield statement
        elif isinstance(statement, ast.Try):
            yield from at_top(statement.body)


def module_of(parts):
    """Return the name of a public module of the package, or an empty string."""
    name = parts[:2] if parts[0] == "apps" else parts[:1]
    path = PACKAGE.joinpath(*name)
    if name[-1].startswith("_") or not (
        path.is_dir() or path.with_suffix(".py").exists()
    ):
        return ""
    return ".".join(name)
