"""No import runs upwards, and heavy modules are imported late.

There is one test per rule. Its message names the files that break it.
"""

import ast
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "skdcf"

# Each layer may import what lies below it, and what lies next to it without a circle.
LAYERS = [
    {
        "_checks",
        "_docs",
        "_drawing",
        "_files",
        "_html",
        "_jobs",
        "_messages",
        "_parameters",
        "_sklearn",
        "_version",
        "exceptions",
    },
    {"graphs", "edges"},
    {"ops"},
    {"features", "guarantees", "relaxation", "training"},
    {"scorers"},
    {"guards"},
    {"estimators"},
    {"evaluation", "metrics"},
    {"inspection", "plots"},
    {"adapters", "datasets", "monitoring", "persistence"},
    {"apps", "apps._messages"},
    {"apps.web"},
    {"apps.labelling", "apps.llm", "apps.reporting"},
    {"__main__", "apps.cli", "apps.service"},
]

# Pure mathematics: nothing of scikit-learn, whose interface is added above.
WITHOUT_SKLEARN = {"graphs", "ops", "training"}

# Gradients are taken here and nowhere else, so that predicting needs no autograd.
AUTOGRAD = (
    "ops/soft*.py",
    "ops/segments.py",
    "relaxation/*",
    "training/*",
    "scorers/_models.py",
)

# Imported inside the functions that use them, never at the top of a module.
HEAVY = {
    "distributed",
    "fastapi",
    "json_repair",
    "matplotlib",
    "narwhals",
    "networkx",
    "openai",
    "pandas",
    "polars",
    "prometheus_client",
    "pydantic",
    "skops",
    "starlette",
    "uvicorn",
    "xgboost",
}

# A service is made of these. The command imports it when it serves.
WEB = {"fastapi", "prometheus_client", "pydantic", "starlette", "uvicorn"}


def is_web(path):
    return place(path).startswith(
        ("apps/service/", "apps/web/", "apps/labelling/_pages", "apps/cli/_serve")
    )


# Tests go through the public interface. What these import of a package's own shows nowhere
# else, for the reason given.
PRIVATE_NAMES = {
    "test_what_fit_says.py": "what a command prints of numbers that no small data set brings",
    "test_docstrings.py": "which names in braces stand for a description",
    "test_extras.py": "the packages that the command looks for",
    "test_messages.py": "messages made of parts, and the table with words for them",
    "test_ancestors.py": "bounds between small and large problems, set to be crossed",
    "test_drawing.py": "places on the canvas, and the few functions behind all pages",
    "test_agreement.py": "what is read of one text; columns are means of many",
    "test_arithmetic.py": "what is read of one text; columns are counts of many",
    "test_text.py": "the size of blocks; one operation against its definition",
    "test_folds.py": "one hazard in place of four, so that it is computed by hand",
    "test_hostile_files.py": "files that somebody forges who knows the format",
    "test_jobs.py": "processes, threads and warnings of jobs made by hand",
    "test_client.py": "pauses of a hundredth of a second",
    "test_faults.py": "pauses; sentences and log odds of replies made by hand",
    "test_sentences.py": "pieces of a text with their white space, which claims do not have",
    "test_limits.py": "clocks that run a hundred times as fast",
    "test_refusals.py": "pauses of a hundredth of a second",
    "test_replies.py": "backslashes of a reply, and the texts of the prompts",
    "test_steps.py": "any text at all as a reply; versions against files of prompts",
    "test_persistence.py": "files that somebody forges who knows the format",
    "test_plots.py": "the colours that drawings in two formats share",
    "test_neyman_pearson_price.py": "the bound between small and large problems",
    "test_prior.py": "weights of a blend against another minimiser",
    "test_processes.py": "the key, while another process makes it",
    "test_service_runs.py": "bounds that are soon reached, and a step that takes long",
    "test_rounding.py": "the size of the noise, which masks do not show",
    "test_tree_tables.py": "a forest that regresses, which is a part of the default alone",
    "ways_to_answer.py": "clocks that run a hundred times as fast",
    "test_with_scikit_learn.py": "which private names of scikit-learn are used",
}


# What packages take from modules of others beyond their ``__all__``, which is for users. A
# package offers the others these names and no more; one that nobody takes is struck out.
TAKEN = {
    "apps.reporting": "describe_calibration",
    "apps.cli": "main",
    "datasets.jsonl": "bunch_of describe_faults format_jsonl read_blocks",
    "datasets.lines": "iter_objects",
    "datasets.paths": "MISSING paths_of put_at value_at",
    "datasets.records": (
        "BROKEN Columns OWN PASSAGES Problem USUAL build_dataset format_problem format_problems "
        "passages_with_texts problems_of LineReader schemas_of_keys plain rename_keys spread"
    ),
    "datasets.runs": "answers_of_other_runs read_beginning read_run",
    "datasets.tables": "explain_rows open_table",
    "estimators": (
        "CoherentConformalFilter ConformalFilter PROMISED SingleFeatureCF accept_provenance "
        "as_chosen at_level calibrated_masks calibration_scores check choose "
        "chosen_answers compare_provenance count_as_trained decide "
        "fit_levels flat_masks labels_of_people largest_risks passing_answers "
        "provenance_of "
        "reason_in_force reason_sent_with refuse_without_hazards seen shown_masks"
    ),
    "evaluation.compare": "seeded",
    "features.columns": (
        "apply_columns carry_columns columns_require_fit fit_columns list_looking_ahead "
        "reads_edges"
    ),
    "graphs": "GraphBatch Labels Problems ReasoningGraph",
    "graphs.hashes": (
        "Hashes content_hashes hash_numbers hash_text mix most_answers problem_digest "
        "question_hashes text_code"
    ),
    "graphs.labels": "LABEL_WORDS Labels UNSURE_WORDS read_column read_labels word_key",
    "graphs.per_problem": "LabelList",
    "graphs.problems": (
        "GROUP Groups Problems as_one as_set kept_text kept_texts pack_graphs read_groups "
        "read_weights hashes_of"
    ),
    "graphs.ragged": (
        "flatten offsets_of optional_rows pass_all ranges reduce_segments segment_ids slices "
        "sort_small starts_run"
    ),
    "graphs.sources": (
        "FLAGGED KINDS LAYOUT MARKED_WORDS NEVER_KEPT NO_CLAIM SOURCES UNSURE WITHOUT_CLAIM "
        "is_list_of_claims iterate_sources makes_claim marked_claims never_kept read_sources "
        "without_positions"
    ),
    "graphs.wordings": (
        "claims_as_worded count_once premises_of rows_of_claims shares_of_claims "
        "statements_of table_of_wordings text_key true_shares"
    ),
    "guarantees": "Overlapping PathRisks choose_share refuse_dependence",
    "guards": "at_calibrate at_choice at_fit at_scores at_use",
    "guards.choices": "ANY CHOSEN_BY WHOLE fingerprint refuse_chosen refuse_whole",
    "guards.copies": "refuse_copies with_texts",
    "guards.judges": ("judges_of kinds_of labels_of_people name_errors person_judged"),
    "guards.levels": "level_in_force level_of warn_of_level",
    "guards.overlap": "refuse_trained",
    "guards.presence": "without_unknown_edges",
    "guards.priors": "known_to_priors refuse_known_questions",
    "guards.provenance": (
        "MADE accept_provenance compare_provenance join_origins provenance_of reason_in_force "
        "reason_sent_with"
    ),
    "guards.rounding": "below_copies nearly_equal raised single_columns",
    "guards.settings": (
        "described described_guarantee refuse_changed refuse_unused refuse_without_theory "
        "settings_of"
    ),
    "guards.several": "warn_of_several_answers",
    "guards.verdicts": "check_never_kept without_some_claims",
    "apps.labelling": "exchange",
    "apps.labelling.sources": "LabelSource WORDS get_label_sources set_label_sources",
    "apps.llm": (
        "AnswerReader AnswerSplitter EndpointError FilteredAnswer Frequency NoClaimList Reword "
        "SampleAnswers SemanticJudge Usage Verify check_writer no_claim_list"
    ),
    "metrics": "NO_COVERAGE mean_error mean_interval per_question report_of",
    "ops.ancestors": "find_highest pass_on sum_ancestors",
    "ops.chance": "chance_of_error fit_frailty",
    "ops.conformal": (
        "Jumps claim_alpha conformal_rank conformal_threshold count_jumps "
        "count_up_to fewest_of_rank least_share leave_one_out_alpha passing_count "
        "passing_cut problems_needed share_jumps shown_rank staircase whole_count"
    ),
    "ops.graph_metrics": "LOOKING_BACK METRICS PAPER_METRICS check_size compute_metrics",
    "ops.hard": (
        "allowing_scores below_true_claims coherent_labels last_safe_thresholds "
        "nonconformity_scores path_risk segment_max "
        "segment_min segment_sum"
    ),
    "ops.mean_bound": "largest_mean",
    "ops.overlap": "overlap_threshold",
    "ops.neyman_pearson": "log_price",
    "ops.segments": "scatter_sum take with_vjp with_vjps",
    "ops.soft": (
        "log_loss neural_sort path_retention smooth_quantile soft_maximum soft_minimum"
    ),
    "ops.soft_grid": (
        "GridLayout gated_weights grid_retention log_coherence log_keep "
        "soft_supremum threshold_grid violation"
    ),
    "scorers.resolve": "Folded as_scorer folds out_of_fold_confidence scorer_requires_fit",
    "apps.service": "JsonFormatter",
    "training.gain": "Gain check_gain worth_of",
    "apps.web.guard": "GONE Guard LINES",
    "apps.web.refusal": "RefusedError fault_of read_object",
    "apps.web.server": "server_of",
    "training.loop": "Model train",
    "training.splitting": (
        "Standardizer hold_out holdout_count noise_columns number_groups "
        "refuse_one_group"
    ),
}


def place(path):
    return path.relative_to(PACKAGE).as_posix()


def package_of(path):
    """Return the part of the package that a file belongs to, such as "ops" or "apps.llm"."""
    return package_of_name(path.relative_to(PACKAGE).with_suffix("").parts)


def package_of_name(parts):
    """Return the part of the package that a dotted name begins with."""
    inside = parts[0] == "apps" and parts[1:2] not in ((), ("__init__",))
    return ".".join(parts[: 1 + inside])


def layer_of(name):
    """The number of a package's layer; the package itself stands on the last."""
    found = [number for number, packages in enumerate(LAYERS) if name in packages]
    return found[0] if found else len(LAYERS) - 1


def python_files():
    return sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """Pairs (dotted module, whether it is imported as soon as the file is)."""
    return list(_imports(path))


def _imports(path):
    statements = [(node, True) for node in tree_of(path).body]
    for node, at_once in statements:  # which grows by what stands inside
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = base_of(path, node)
            names = [f"{base}.{a.name}" for a in node.names] + [base]
        else:
            at_once &= not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            inner = [
                n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr)
            ]
            statements += [(statement, at_once) for statement in inner]
            continue
        for name in names:
            yield name, at_once


def base_of(path, node):
    """The dotted x of ``from x import y``, relative ones resolved."""
    if not node.level:
        return node.module
    package = ("skdcf", *path.relative_to(PACKAGE).parent.parts)
    package = package[: len(package) - node.level + 1]
    return ".".join((*package, *([node.module] if node.module else ())))


def packages_imported(path):
    """The packages that a file imports from, apart from its own."""
    names = [tuple(name.split(".")) for name, _ in imports(path)]
    found = {
        package_of_name(parts[1:])
        for parts in names
        if parts[0] == "skdcf" and len(parts) > 1
    }
    return {name for name in found if is_module(name)} - {package_of(path)}


def is_module(name):
    path = PACKAGE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def private_of_others(path):
    """Names that a file imports although another package keeps them to itself.

    Modules at the top, such as ``skdcf._checks``, are shared by all packages.
    """
    for name, _ in imports(path):
        parts = name.split(".")
        if (
            parts[0] == "skdcf"
            and parts[1:]
            and package_of_name(parts[1:]) != package_of(path)
        ):
            inside = parts[2:] if parts[1] != "apps" else parts[3:]
            if any(p.startswith("_") and not p.startswith("__") for p in inside):
                yield name


@cache
def listed(module):
    """The names in ``__all__`` of a module, such as "ops.hard"; None where it is none."""
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not path.exists():
        return None
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def taken_from_others(path):
    """Pairs (module, name) of what a file takes from other packages beyond ``__all__``."""
    tree = tree_of(path)
    for node in ast.walk(tree):
        base = base_of(path, node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names if base.partition(".")[0] == "skdcf" else ():
            module = base.removeprefix("skdcf").strip(".")
            whole = f"{module}.{alias.name}".strip(".")
            own = package_of_name(whole.split(".")) == package_of(path)
            if own or whole.startswith(("_", "apps._")):
                continue
            if listed(whole) is not None:  # a module, of which attributes are taken
                taken = attributes_of(alias.asname or alias.name, tree)
                yield from ((whole, name) for name in taken - listed(whole))
            elif module and alias.name not in listed(module):
                yield module, alias.name


def attributes_of(name, tree):
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == name
    }


def external(path):
    """Pairs (package, whether it is imported as soon as the file is)."""
    return {(name.split(".")[0], at_top) for name, at_top in imports(path)}


def test_no_import_runs_upwards():
    upwards = [
        f"{place(path)} imports {name}"
        for path in python_files()
        for name in packages_imported(path)
        if layer_of(name) > layer_of(package_of(path))
    ]
    assert upwards == []


def test_no_circles():
    graph = {}
    for path in python_files():
        if path != PACKAGE / "__init__.py":
            graph.setdefault(package_of(path), set()).update(packages_imported(path))
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def test_every_package_has_a_layer():
    packages = {package_of(path) for path in python_files()} - {"__init__"}
    assert packages - set().union(*LAYERS) == set()


def test_private_modules_are_private():
    found = {place(path): list(private_of_others(path)) for path in python_files()}
    assert {path: names for path, names in found.items() if names} == {}


def test_packages_take_from_others_what_is_listed():
    taken = {}
    for path in python_files():
        for module, name in taken_from_others(path):
            taken.setdefault(module, {}).setdefault(name, place(path))
    listed = {(module, name) for module in TAKEN for name in TAKEN[module].split()}
    pairs = {(module, name) for module in taken for name in taken[module]}
    new = [f"{taken[m][n]} takes {n} of {m}" for m, n in sorted(pairs - listed)]
    assert not new, "add to TAKEN, or use what is there: " + "; ".join(new)
    assert not listed - pairs, f"nobody takes these: {sorted(listed - pairs)}"


def test_tests_go_through_the_public_face():
    """Who needs something of a package's own says why, and who does not is not listed."""
    attacks = set(Path(__file__).parent.glob("attacks/*.py"))
    needing = {
        path.name
        for path in set(Path(__file__).parent.rglob("*.py")) - attacks
        for name, _ in imports(path)
        if name.startswith("skdcf.")
        and any(p.startswith("_") and not p.startswith("__") for p in name.split("."))
    }
    assert needing == PRIVATE_NAMES.keys()


def test_what_is_public_stands_on_the_page_of_the_interface(checkout):
    """Names are listed where users import from, and in no other module."""
    page = (checkout / "docs" / "api.rst").read_text(encoding="utf-8")
    documented = set(re.findall(r"^   (skdcf[.\w]*)$", page, re.MULTILINE))
    listing = {
        "skdcf" + "".join(f".{part}" for part in path.relative_to(PACKAGE).parts)
        for path in python_files()
        if re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    names = {name.removesuffix(".py").removesuffix(".__init__") for name in listing}
    assert names == documented


def test_files_named_in_the_docstrings_of_modules_exist(checkout):
    """A private name, as ``_fit``, is that of a file next to it, or stands in the module."""
    for path in python_files():
        text = path.read_text(encoding="utf-8")
        docstring = ast.get_docstring(tree_of(path)) or ""
        for name in re.findall(r"`([\w./]+\.(?:html|json|md|py|rst|toml))`", docstring):
            folders = (path.parent, PACKAGE, checkout)
            assert any((folder / name).exists() for folder in folders), (path, name)
        for name in re.findall(r"`(_\w+)`", docstring):
            defined = re.search(rf"^(?:class |def |){name}\b", text, re.MULTILINE)
            assert (path.parent / f"{name}.py").exists() or defined, (path, name)


def test_each_list_of_guards_is_called_from_one_place():
    """Who guards something finds the place, and nothing is checked twice or never."""
    lists = TAKEN["guards"].split()
    calls = [
        node.func.attr
        for path in python_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "guards"
    ]
    assert sorted(calls) == sorted(lists)


def test_guards_are_called_by_the_estimators_alone():
    assert {
        package_of(p) for p in python_files() if "guards" in packages_imported(p)
    } == {"estimators"}


def test_maths_without_sklearn():
    assert [
        place(path)
        for path in python_files()
        if package_of(path) in WITHOUT_SKLEARN
        and "sklearn" in {name for name, _ in external(path)}
    ] == []


def test_autograd_where_gradients_are_taken():
    assert [
        place(path)
        for path in python_files()
        if not any(fnmatch(place(path), pattern) for pattern in AUTOGRAD)
        and "autograd" in {name for name, _ in external(path)}
    ] == []


def test_heavy_modules_inside_functions():
    assert [
        f"{place(path)} imports {name}"
        for path in python_files()
        for name, at_top in external(path)
        if at_top and name in HEAVY and name not in (WEB if is_web(path) else ())
    ] == []


def test_the_core_imports_no_application():
    assert [
        f"{place(path)} imports {name}"
        for path in python_files()
        for name, _ in imports(path)
        if name.startswith("skdcf.apps")
        and not package_of(path).startswith("apps")
        and place(path) != "__main__.py"
    ] == []


def test_importing_loads_nothing_heavy():
    """scikit-learn itself may load some of them where they are installed."""
    packages = "{name.split('.')[0] for name in sys.modules}"
    code = (
        f"import sys, sklearn.model_selection; before = {packages}\n"
        f"import skdcf; skdcf.HardCF; print(*{packages} - before)"
    )
    new = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "skdcf" in new
    assert (HEAVY | {"autograd"}).isdisjoint(new), sorted(new)


def test_checker_resolves_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    for folder in ("ops", "graphs"):
        (tmp_path / folder).mkdir()
    for name in ("metrics", "estimators"):
        (tmp_path / f"{name}.py").touch()
    path = tmp_path / "ops" / "soft.py"
    path.write_text(
        '"""A docstring\nof two lines."""\n'
        "import numpy as np\n"
        "from .. import metrics, HardCF\n"
        "from ..graphs._ragged import split\n"
        "from .hard import path_risk  # a comment\n"
        "from . import _here\n"
        "\n"
        "def f():\n"
        "    from skdcf.estimators import HardCF\n"
        "    import pandas.api\n"
    )
    assert packages_imported(path) == {"metrics", "graphs", "estimators"}
    assert list(private_of_others(path)) == [
        "skdcf.graphs._ragged.split",
        "skdcf.graphs._ragged",
    ]
    assert external(path) == {
        ("numpy", True),
        ("skdcf", True),
        ("skdcf", False),
        ("pandas", False),
    }
    assert layer_of(package_of(path)) == 2


def test_every_warning_has_a_category_of_its_own():
    """So that each kind can be filtered; `warn` needs one, and nothing goes around it."""
    bare = [
        place(path)
        for path in python_files()
        if "warnings.warn(" in path.read_text(encoding="utf-8")
        or ", UserWarning)" in path.read_text(encoding="utf-8")
    ]
    assert bare == ["_checks.py"]
