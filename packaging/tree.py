#!/usr/bin/env python3
"""Writes TREE.md: every file of the source root with the first sentence of its own docstring. Standard library only."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "packaging/TREE.md"
HEAD = "# The tree\n\nWritten by `python3 packaging/tree.py`.\n\n"
LAW = """
The law: a room may only look down, and the window and the engine meet in `protocol` alone. It is written as import contracts in
`pyproject.toml` and run by the test command.
"""
ROOMS = ("protocol", "rl", "sapo", "tasks", "policy", "swarm", "engine", "lab", "gui")
AROUND = (
    ("resources/", "what ships with Waggle: the starter model, audit.jsonl, a recorded run, the books of words, and the look"),
    (
        "tests/",
        "a folder for each room; end_to_end/: real engines, real hivemind, a real window; hostile/: a network that falls apart; "
        "pictures/: the window in every theme, size, state and language",
    ),
    (
        "packaging/",
        "dev.py (the commands), lock.txt (exact versions), tree.py (this page), translations.py, build.py (the installers)",
    ),
)


def tree() -> str:
    """The lines between the fences."""
    source = ROOT / "app/waggle"
    lines = ["app/waggle/", *_files(source, "  ")]
    for room in ROOMS:
        lines.append(_line("  ", f"{room}/", source / room / "__init__.py"))
        lines += _files(source / room, "    ")
    lines += [f"{name:<26}{what}" for name, what in AROUND]
    return "\n".join(lines) + "\n"


def written() -> str:
    """The page as it should be."""
    return f"{HEAD}```\n{tree()}```\n{LAW}"


def _files(folder: Path, indent: str) -> list[str]:
    """The files of a folder; a folder in a room is one line."""
    files = {path.name: path for path in folder.glob("*.py") if path.name != "__init__.py"}
    folders = {f"{path.parent.name}/": path for path in folder.glob("*/__init__.py")} if folder.name in ROOMS else {}
    return [_line(indent, name, path) for name, path in sorted((files | folders).items())]


def _line(indent: str, name: str, path: Path) -> str:
    said = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
    return f"{indent + name:<26}{said.split('. ')[0].rstrip('.')}"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
