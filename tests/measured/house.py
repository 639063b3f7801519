#!/usr/bin/env python3
"""Measures how well the source can be read, before and after it was put in order, and writes house.json; standard library only.

    python3 tests/measured/house.py [--commit REVISION] [--look]

"before" is always commit START, read out of git, and "after" the working tree, or the commit that `--commit` names: the same
functions measure both. `--look` only prints, and takes a tree that no commit names. The figures:

files_flat_max            Python files directly in one folder of app/: the most, and in which folder
vague_names_percent       of what functions bind (parameters and local variables, also of comprehensions), each name once a scope:
                          how many are on the list of packaging/names.py; `_of_every_kind` adds modules, classes, functions,
                          attributes, constants and `import ... as`
commit_subject_median     characters; of the commits since START, or, up to START, of the last 200. Merges do not count
contracts                 of import-linter, in pyproject.toml
classes_over_12_public    classes in app/ with more than a dozen public methods, properties with them, inherited ones without
constructors_over_7       `__init__` in app/ with more than seven parameters beside self; dataclasses and Structs, which write
                          theirs from their fields, are data and do not count
page_imports_page         pairs of modules of different pages of the window where the first imports the second
lab_imports_from_product  imports of the laboratory in product code, and names of its modules in strings, for importlib or `-m`
..._lines                 of Python, with blank ones and comments: app/ without the laboratory, the laboratory, tests/
monkeypatches             `monkeypatch.setattr(` in tests/
suite_green_of_10         of the last ten runs in tests/measured/suite.jsonl those whose `green` is true; null without ten runs
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
from collections.abc import Iterator
from pathlib import Path

import keep

sys.path.insert(0, str(keep.ROOT / "packaging"))
import names

START = "d538037081ff648f6136582bc673fd5281c481b7"
COMMITS_BEFORE = 200
METHODS, PARAMETERS, RUNS = 12, 7, 10
LABORATORIES = ("waggle.lab", "waggle_lab")  # the module of before, and that of after

# The window's pages of before, which lay flat in app/waggle/gui, and the modules that only they are made of.
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit", metavar="REVISION")
    parser.add_argument("--look", action="store_true")
    options = parser.parse_args()
    if not options.look and not options.commit:
        keep.require_clean()
    revision = git("rev-parse", f"{options.commit or 'HEAD'}^{{commit}}").strip()
    with checkout(START) as root:
        figures: dict[str, object] = {"before": measure(root, START)}
    if options.commit:
        with checkout(revision) as root:
            figures["after"] = None if revision == START else measure(root, revision)
    else:
        figures["after"] = measure(keep.ROOT, revision)
    if options.look:
        print(json.dumps(figures, indent=2))
    else:
        keep.write(Path(__file__).resolve(), figures, commit=revision)
    return 0


def measure(root: Path, revision: str) -> dict[str, object]:
    """Every figure of one source tree, whose last commit is `revision`."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in names.files_under(root / "app")}
    tests = [path.read_text(encoding="utf-8") for path in names.files_under(root / "tests")]
    laboratory = {path for path in trees if is_inside(module_of(root, path), LABORATORIES)}
    product = {path: tree for path, tree in trees.items() if path not in laboratory}
    folder, files = Counter(path.parent.relative_to(root).as_posix() for path in trees).most_common(1)[0]
    bound = [binding for path, tree in trees.items() for binding in names.bindings(tree, names.module_name(path))]
    large = [f"{module_of(root, path)}.{name}" for path, tree in trees.items() for name in classes_over_12_public(tree)]
    wide = [f"{module_of(root, path)}.{name}" for path, tree in trees.items() for name in constructors_over_7(tree)]
    across = imports_between_pages(
        {module_of(root, path): {target for target, _ in imported(root, path, tree)} for path, tree in trees.items()}
    )
    uses = [f"{module_of(root, path)}:{line}" for path, tree in product.items() for line in laboratory_lines(root, path, tree)]
    return {
        "files_flat_max": files,
        "files_flat_max_folder": folder,
        "vague_names_percent": percent([binding for binding in bound if binding.kind in names.LOCAL]),
        "vague_names_percent_of_every_kind": percent(bound),
        "commit_subject_median": commit_subject_median(revision),
        "contracts": len(tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]),
        "classes_over_12_public": len(large),
        "classes_over_12_public_which": sorted(large),
        "constructors_over_7": len(wide),
        "constructors_over_7_which": sorted(wide),
        "page_imports_page": len(across),
        "page_imports_page_which": sorted(across),
        "lab_imports_from_product": len(uses),
        "lab_imports_from_product_which": sorted(uses),
        "product_lines": sum(lines_in(path) for path in product),
        "lab_lines": sum(lines_in(path) for path in laboratory),
        "test_lines": sum(len(text.splitlines()) for text in tests),
        "monkeypatches": sum(text.count("monkeypatch.setattr(") for text in tests),
        "suite_green_of_10": suite_green_of_10(root / "tests/measured/suite.jsonl"),
    }


@contextlib.contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A commit's files in a folder of their own, until it is left."""
    archive = subprocess.check_output(["git", "archive", revision, "app", "tests", "pyproject.toml"], cwd=keep.ROOT)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=keep.ROOT, text=True)


def percent(bound: list[names.Binding]) -> float:
    return round(100 * sum(names.is_vague(binding.name) for binding in bound) / len(bound), 2)


def commit_subject_median(revision: str) -> float | None:
    """None where no commit came after START yet."""
    came_before = (
        subprocess.run(["git", "merge-base", "--is-ancestor", revision, START], cwd=keep.ROOT, check=False).returncode == 0
    )
    which = (f"-{COMMITS_BEFORE}", revision) if came_before else (f"{START}..{revision}",)
    subjects = git("log", "--no-merges", "--format=%s", *which).splitlines()
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
    """Of every module, by what it imports: `importing > imported`."""
    pages = {module: page for module in imports if (page := page_of(module))}
    return [
        f"{module} > {target}" for module, page in pages.items() for target in imports[module] if pages.get(target, page) != page
    ]


def page_of(module: str) -> str | None:
    """The page of the window that a module, or something in it, belongs to."""
    if match := re.match(r"waggle\.gui\.pages\.(\w+)\.", f"{module}."):
        return match[1] if match[1] != "page" else None  # pages/page.py is what all pages are made from
    match = re.match(r"waggle\.gui\.(\w+)", module)
    return next((page for page, modules in FLAT_PAGES.items() if match and match[1] in modules), None)


def laboratory_lines(root: Path, path: Path, tree: ast.Module) -> list[int]:
    """Where the laboratory is imported, or one of its modules is named to be."""
    lines = {line for target, line in imported(root, path, tree) if is_inside(target, LABORATORIES)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w.]+", node.value):
            lines |= {node.lineno} if is_inside(node.value, LABORATORIES) else set()
    return sorted(lines)


def imported(root: Path, path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every module that is imported, and every name that is imported from one: it may be a module as well. With its line."""
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


def suite_green_of_10(path: Path) -> int | None:
    runs = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    return sum(run["green"] is True for run in runs[-RUNS:]) if len(runs) >= RUNS else None


if __name__ == "__main__":
    raise SystemExit(main())
