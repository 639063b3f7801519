#!/usr/bin/env python3
"""Measure how readable the source is, before and after it was put in order, and write house.json; standard library only.

    python3 tests/measured/house.py [--commit REVISION] [--look]

"before" is always commit START, read from git; "after" is the working tree, or the commit that `--commit` names. The same
functions measure both. `--look` only prints, and accepts uncommitted changes. The figures:

files_flat_max            the most Python files directly in one folder of app/, and that folder
vague_names_percent       of the names that functions bind (parameters and local variables, also of comprehensions, once a scope)
                          the share on the list of packaging/names.py; `_of_every_kind` adds modules, classes, functions,
                          attributes, constants and `import ... as`
commit_subject_median     characters, of the commits since START or, up to START, of the last 200; without merges
contracts                 of import-linter, in pyproject.toml
classes_over_12_public    classes in app/ with more than a dozen public methods, counting properties but not inherited methods
constructors_over_7       `__init__` in app/ with more than seven parameters beside self; dataclasses and Structs do not count,
                          because theirs are generated from fields
page_imports_page         pairs of modules of different pages of the window where the first imports the second
lab_imports_from_product  imports of the laboratory in product code, and names of its modules in strings, for importlib or `-m`
..._lines                 of Python, including blank lines and comments: app/ without the laboratory, the laboratory, tests/
monkeypatches             `monkeypatch.setattr(` in tests/
suite_green_of_10         the green runs among the last ten of this source in tests/measured/suite_soak.jsonl; null if there are
                          fewer than ten, or if fewer than five of them were beside a load of 8
suite_runs...             all runs in that file, of any source: how many, how many green, how many beside a load of 8
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import figures_file

sys.path.insert(0, str(figures_file.ROOT / "packaging"))
import names

START = "d538037081ff648f6136582bc673fd5281c481b7"
COMMITS_BEFORE = 200
METHODS, PARAMETERS = 12, 7
RUNS, LOADED_RUNS, LOAD = 10, 5, 8  # of the suite
LABORATORIES = ("waggle.lab", "waggle_lab")  # its package before and after

# Pages of the window before, when they were flat in app/waggle/gui, with the modules that only they use.
FLAT_PAGES = {
    "help": ("help_page",),
    "home": ("home", "hero", "why"),
    "live": ("live", "question_card", "stepper"),
    "peers": ("peers", "peer_table", "peer_strip"),
    "progress": ("progress", "round_table", "compare_view"),
    "settings": ("settings_page", "settings_rows", "cuda_view"),
    "swarms": (
        "swarms", "swarm_list", "swarm_form", "swarm_views", "race_view", "models_view",
        "try_view", "ask_view", "chat_view", "turn_box", "whose",
    ),
    "welcome": ("welcome", "dance"),
    "you": ("you", "identity_view", "goodbye_view", "share_card", "privacy"),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", metavar="REVISION", help="measure this commit instead of the working tree")
    parser.add_argument("--look", action="store_true", help="only print the figures")
    options = parser.parse_args()
    if not options.look and not options.commit:
        figures_file.require_clean_tree()
    revision = git("rev-parse", f"{options.commit or 'HEAD'}^{{commit}}").strip()
    with checkout(START) as root:
        figures: dict[str, object] = {"before": measure(root, START)}
    if options.commit:
        with checkout(revision) as root:
            figures["after"] = None if revision == START else measure(root, revision)
    else:
        figures["after"] = measure(figures_file.ROOT, revision)
    if options.look:
        print(json.dumps(figures, indent=2))
    else:
        figures_file.write(Path(__file__).resolve(), figures, commit=revision)
    return 0


def measure(root: Path, revision: str) -> dict[str, object]:
    """All figures of a source tree whose last commit is `revision`."""
    trees = trees_of(root)
    tests = [path.read_text(encoding="utf-8") for path in names.files_under(root / "tests")]
    laboratory = {path for path in trees if is_inside(module_of(root, path), LABORATORIES)}
    bindings = [binding for path, tree in trees.items() for binding in names.bindings(tree, names.module_name(path))]
    return {
        "vague_names_percent": percent([binding for binding in bindings if binding.kind in names.LOCAL]),
        "vague_names_percent_of_every_kind": percent(bindings),
        "commit_subject_median": commit_subject_median(revision),
        "contracts": len(tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]),
        **sizes(root, trees),
        "product_lines": sum(lines_in(path) for path in trees if path not in laboratory),
        "lab_lines": sum(lines_in(path) for path in laboratory),
        "test_lines": sum(len(text.splitlines()) for text in tests),
        "monkeypatches": sum(text.count("monkeypatch.setattr(") for text in tests),
        **suite_runs(root / "tests/measured/suite_soak.jsonl"),
        "suite_green_of_10": suite_green_of_10(root / "tests/measured/suite_soak.jsonl", figures_file.source_commit(revision)),
    }


def trees_of(root: Path) -> dict[Path, ast.Module]:
    """Every file of app/, parsed."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in names.files_under(root / "app")}


def sizes(root: Path, trees: Mapping[Path, ast.Module]) -> dict[str, object]:
    """The figures that have a limit in every commit (tests/packaging/test_house.py), and what they count."""
    folder, files = Counter(path.parent.relative_to(root).as_posix() for path in trees).most_common(1)[0]
    page_imports = imports_between_pages(
        {module_of(root, path): {target for target, _ in imported(root, path, tree)} for path, tree in trees.items()}
    )
    product = {path: tree for path, tree in trees.items() if not is_inside(module_of(root, path), LABORATORIES)}
    counted = {
        "classes_over_12_public": [
            f"{module_of(root, path)}.{name}" for path, tree in trees.items() for name in classes_over_12_public(tree)
        ],
        "constructors_over_7": [
            f"{module_of(root, path)}.{name}" for path, tree in trees.items() for name in constructors_over_7(tree)
        ],
        "page_imports_page": page_imports,
        "lab_imports_from_product": [
            f"{module_of(root, path)}:{line}" for path, tree in product.items() for line in laboratory_lines(root, path, tree)
        ],
    }
    figures: dict[str, object] = {"files_flat_max": files, "files_flat_max_folder": folder}
    for name, places in counted.items():
        figures |= {name: len(places), f"{name}_which": sorted(places)}
    return figures


@contextlib.contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Check the files of a commit out into a temporary folder."""
    archive = subprocess.check_output(["git", "archive", revision, "app", "tests", "pyproject.toml"], cwd=figures_file.ROOT)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=figures_file.ROOT, text=True)


def percent(bindings: list[names.Binding]) -> float:
    return round(100 * sum(names.is_vague(binding.name) for binding in bindings) / len(bindings), 2)


def commit_subject_median(revision: str) -> float | None:
    """The median length of commit subjects; None if there is no commit since START."""
    came_before = (
        subprocess.run(["git", "merge-base", "--is-ancestor", revision, START], cwd=figures_file.ROOT, check=False).returncode
        == 0
    )
    revisions = (f"-{COMMITS_BEFORE}", revision) if came_before else (f"{START}..{revision}",)
    subjects = git("log", "--no-merges", "--format=%s", *revisions).splitlines()
    return statistics.median(map(len, subjects)) if subjects else None


def classes_over_12_public(tree: ast.Module) -> list[str]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if len({method.name for method in methods(node) if method.name[0] != "_"}) > METHODS]


def constructors_over_7(tree: ast.Module) -> list[str]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    constructors = {node.name: method.args for node in classes for method in methods(node) if method.name == "__init__"}
    return [name for name, arguments in constructors.items() if len(names.parameters(arguments)) - 1 > PARAMETERS]


def methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [statement for statement in node.body if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)]


def imports_between_pages(imports: dict[str, set[str]]) -> list[str]:
    """The imports between different pages, as `importing > imported`. `imports` maps modules to what they import."""
    pages = {module: page for module in imports if (page := page_of(module))}
    return [
        f"{module} > {target}" for module, page in pages.items() for target in imports[module] if pages.get(target, page) != page
    ]


def page_of(module: str) -> str | None:
    """The page of the window that a module or a name in it belongs to."""
    if match := re.match(r"waggle\.gui\.pages\.(\w+)\.", f"{module}."):
        return match[1] if match[1] not in ("page", "context") else None  # these two belong to all pages
    match = re.match(r"waggle\.gui\.(\w+)", module)
    return next((page for page, modules in FLAT_PAGES.items() if match and match[1] in modules), None)


def laboratory_lines(root: Path, path: Path, tree: ast.Module) -> list[int]:
    """The lines that import the laboratory, or name one of its modules in a string."""
    lines = {line for target, line in imported(root, path, tree) if is_inside(target, LABORATORIES)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w.]+", node.value):
            lines |= {node.lineno} if is_inside(node.value, LABORATORIES) else set()
    return sorted(lines)


def imported(root: Path, path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every imported module, and every name imported from one because it may be a module too, with its line."""
    package = module_of(root, path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield origin, node.lineno
            yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names)


def module_of(root: Path, path: Path) -> str:
    parts = path.relative_to(root / "app").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def lines_in(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def suite_runs(path: Path) -> dict[str, int]:
    """All recorded runs of the test command."""
    runs = recorded_runs(path)
    return {
        "suite_runs": len(runs),
        "suite_runs_green": sum(run["green"] is True for run in runs),
        "suite_runs_loaded": sum(run["load"] >= LOAD for run in runs),
    }


def recorded_runs(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def suite_green_of_10(path: Path, source: str) -> int | None:
    """The green runs among the last ten of a source; None without ten runs of which five were beside the full load."""
    runs = [run for run in recorded_runs(path) if run["commit"] == source][-RUNS:]
    if len(runs) < RUNS or sum(run["load"] >= LOAD for run in runs) < LOADED_RUNS:
        return None
    return sum(run["green"] is True for run in runs)


if __name__ == "__main__":
    raise SystemExit(main())
