#!/usr/bin/env python3
"""Refuses names that do not say what a thing is. Standard library only.

python3 packaging/names.py                         look through app/, packaging/ and tests/, without the folders in NOT_YET
python3 packaging/names.py FILE OR FOLDER [...]    look through these, whatever NOT_YET says

A bare participle or pronoun (`found`, `one`) tells what happened to a thing, not what the thing is: `rows_to_score` can be read
alone, `asked` cannot. A field that files or messages carry as `taken` gets a good name in Python and keeps the old one there:
`groups_pulled: int = msgspec.field(name="taken")`. What cannot be renamed at all stands in ALLOWED, with the reason.

`bindings` is also how tests/measured/house.py counts, so that the figure and the lint mean the same.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("app", "packaging", "tests")
VAGUE = frozenset([
    "one", "made", "found", "told", "said", "held", "kept", "given",
    "wanted", "shown", "heard", "seen", "asked", "taken", "left", "again",
])  # fmt: skip

# Folders (with all below them) and files whose names are still to be improved. Lines only leave this list; in the end it is
# empty.
NOT_YET: tuple[str, ...] = (
    "app/waggle/protocol",
    "app/waggle_lab",
    "packaging",
    "tests",
)

# The end of a qualified name (module.Class.function.name) -> why it stays.
ALLOWED: dict[str, str] = {
    "LabelBox.left": "a side of a rectangle, beside `top`, `right` and `bottom`",
    "Standing.taken": "a field of the file of standings, and of the peer's state in the window",
}

Kind = Literal["module", "class", "function", "parameter", "variable", "comprehension", "attribute", "constant", "import"]
LOCAL: tuple[Kind, ...] = ("parameter", "variable", "comprehension")  # what the body of a function works with
ADVICE: dict[Kind, str] = {
    "module": "name the file after what it holds",
    "class": "name it with a noun for what an object of it is",
    "function": "name it with a verb for what it does, or as an assertion if it returns a bool",
    "parameter": "name what the caller passes",
    "variable": "name what it holds",
    "comprehension": "name what the comprehension runs over",
    "attribute": "name what it holds",
    "constant": "name what it is the value of",
    "import": "import it under its own name, or under a noun",
}


_Placed = ast.stmt | ast.expr | ast.arg | ast.pattern | ast.excepthandler | ast.alias  # what has a line and a column


@dataclass(frozen=True)
class Binding:
    name: str
    line: int
    column: int  # from 1, as editors count
    kind: Kind
    qualified: str  # the module, the classes and functions around it, and the name, with dots between them


@dataclass(eq=False)
class _Scope:
    name: str
    kind: Literal["module", "class", "function", "comprehension"]
    bound: set[str] = field(default_factory=set)
    of_outer_scopes: set[str] = field(default_factory=set)  # declared global or nonlocal


def is_vague(name: str) -> bool:
    """Whether a name is one of the refused words, whatever underscores, digits or capitals it is written with."""
    return name.strip("_").rstrip("0123456789").strip("_").lower() in VAGUE


def bindings(tree: ast.Module, module: str) -> Iterator[Binding]:
    """Every name that a module binds, once for each scope that binds it; `self`, `cls`, `_` and plain imports choose no name."""
    finder = _Finder(module)
    finder.visit(tree)
    yield Binding(module, 1, 1, "module", module)
    yield from finder.bindings


def module_name(path: Path) -> str:
    """A file's own name; of `__init__.py`, the name of its folder."""
    return path.parent.name if path.stem == "__init__" else path.stem


class _Finder(ast.NodeVisitor):
    def __init__(self, module: str) -> None:
        self.bindings: list[Binding] = []
        self._scopes = [_Scope(module, "module")]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(
            node.name, node, "function", column=len("async def ") if isinstance(node, ast.AsyncFunctionDef) else len("def ")
        )
        self._visit_all([*node.decorator_list, *_around(node.args), *([node.returns] if node.returns else [])])
        self._visit_inside(_Scope(node.name, "function"), [*parameters(node.args), *node.body])

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(_around(node.args))
        self._visit_inside(_Scope("<lambda>", "function"), [*parameters(node.args), node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, node, "class", column=len("class "))
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self._visit_inside(_Scope(node.name, "class"), node.body)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._visit_comprehension(node.generators, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._visit_comprehension(node.generators, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._visit_comprehension(node.generators, [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._visit_comprehension(node.generators, [node.key, node.value])

    def visit_arg(self, node: ast.arg) -> None:
        self._bind(node.arg, node, "parameter")

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        holder = next(scope for scope in reversed(self._scopes) if scope.kind != "comprehension")
        self._bind(node.target.id, node.target, scope=holder)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        holder = next((scope for scope in reversed(self._scopes) if scope.kind == "class"), None)
        if isinstance(node.ctx, ast.Store) and is_own and holder:
            self._bind(node.attr, node, scope=holder, column=len(ast.unparse(node.value)) + 1)
        self.visit(node.value)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name, node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._bind(node.rest, node)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        if node.asname:
            self._bind(node.asname, node, "import")

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._scopes[-1].of_outer_scopes |= set(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.visit_Global(node)

    def _bind(self, name: str, node: _Placed, kind: Kind | None = None, *, scope: _Scope | None = None, column: int = 0) -> None:
        scope = scope or self._scopes[-1]
        if name in scope.bound | scope.of_outer_scopes or name in ("self", "cls") or not name.strip("_"):
            return
        scope.bound.add(name)
        kinds: dict[str, Kind] = {
            "module": "constant",
            "class": "attribute",
            "function": "variable",
            "comprehension": "comprehension",
        }
        around = self._scopes[: self._scopes.index(scope) + 1]
        qualified = ".".join([*(outer.name for outer in around if outer.kind != "comprehension"), name])
        self.bindings.append(Binding(name, node.lineno, node.col_offset + 1 + column, kind or kinds[scope.kind], qualified))

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _visit_inside(self, scope: _Scope, nodes: Iterable[ast.AST]) -> None:
        self._scopes.append(scope)
        self._visit_all(nodes)
        self._scopes.pop()

    def _visit_comprehension(self, clauses: list[ast.comprehension], results: list[ast.expr]) -> None:
        self.visit(clauses[0].iter)  # evaluated outside of the comprehension's own scope
        later = [part for clause in clauses for part in (clause.target, *clause.ifs)] + [clause.iter for clause in clauses[1:]]
        self._visit_inside(_Scope("<comprehension>", "comprehension"), [*later, *results])


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*several, *(starred for starred in (arguments.vararg, arguments.kwarg) if starred)]


def _around(arguments: ast.arguments) -> list[ast.expr]:
    """Defaults and annotations, which the scope around the function evaluates."""
    annotations = [parameter.annotation for parameter in parameters(arguments)]
    return [expression for expression in (*arguments.defaults, *arguments.kw_defaults, *annotations) if expression]


def files_under(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*.py") if "__pycache__" not in file.parts) if path.is_dir() else [path]


def vague_bindings(path: Path) -> list[Binding]:
    """In the order of their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return sorted(
        (binding for binding in bindings(tree, module_name(path)) if is_vague(binding.name)),
        key=lambda binding: (binding.line, binding.column),
    )


def allowed_as(binding: Binding, allowed: Iterable[str]) -> str | None:
    """The entry of the allow-list that a binding is under."""
    return next((entry for entry in allowed if f".{binding.qualified}".endswith(f".{entry}")), None)


def refusal(path: str, binding: Binding) -> str:
    return f"{path}:{binding.line}:{binding.column} {binding.name}: does not say what this is; {ADVICE[binding.kind]}"


def refusals(root: Path, *, not_yet: Iterable[str], allowed: Iterable[str]) -> tuple[list[str], list[str]]:
    """What the lint refuses in a source root, and the entries of `not_yet` below which every name is fine."""
    waiting, used, lines = dict.fromkeys(not_yet, 0), set(), []
    for file in (file for place in PLACES if (root / place).is_dir() for file in files_under(root / place)):
        path = file.relative_to(root)
        entry = next((entry for entry in waiting if path.is_relative_to(entry)), None)
        for binding in vague_bindings(file):
            if reason := allowed_as(binding, allowed):
                used.add(reason)
            elif entry is None:
                lines.append(refusal(path.as_posix(), binding))
            else:
                waiting[entry] += 1
    lines += [
        f"packaging/names.py: ALLOWED has `{entry}`, which nothing binds any more: take it out"
        for entry in allowed
        if entry not in used
    ]
    return lines, [entry for entry, count in waiting.items() if not count and (root / entry).exists()]


def main(arguments: list[str]) -> int:
    if arguments:
        chosen = [file for argument in arguments for file in files_under(Path(argument))]
        lines = [
            refusal(file.as_posix(), binding)
            for file in chosen
            for binding in vague_bindings(file)
            if not allowed_as(binding, ALLOWED)
        ]
    else:
        lines, clean = refusals(ROOT, not_yet=NOT_YET, allowed=ALLOWED)
        for entry in clean:
            print(f"Every name in {entry} is fine: take it out of NOT_YET in packaging/names.py.")
    for line in lines:
        print(line)
    if lines:
        print(f"{len(lines)} refused. What cannot be renamed gets its reason in ALLOWED of packaging/names.py.")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
