#!/usr/bin/env python3
"""Updates the translation files in resources/language with the words of the window. Standard library only.

python3 packaging/translations.py          add new words (empty: still to be translated) and remove unused ones
python3 packaging/translations.py --check  change nothing; exit status 1 if a word is missing, empty or stale

In a file, `words` are the window's own. `told` are patterns of texts from below the window; it must have the sentences of all
errors and warnings.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APP, BOOKS = ROOT / "app/waggle", ROOT / "resources/language"
GUI = APP / "gui"
SUGGESTED = ROOT / "resources/models.json"  # its sentences are shown in the window
NOT_TOLD = {
    APP / "practice",
    *(APP / f"cli/{name}" for name in ("control", "models", "preferences", "shared", "swarms", "talk", "watch")),
    *(APP / f"cli/{name}.py" for name in ("completion", "ctl", "days", "history", "identity", "main", "race", "window")),
}  # the texts of these appear only in terminals
TELLS = re.compile(
    r"Error$|^(MemoryShort|ModelMissing|ConnectionFault|OsFault|Warned|EngineFailed|CommandRefused|_tell_failure)$"
)
SENTENCE = re.compile(r"(?<=\.)\s+")
FOLLOWS = re.compile(r"^%\d\s+(?=[A-Z])")  # the placeholder holds a sentence or nothing
FAULTS = "Fault"  # the enum of reasons why a peer's message is refused, which are parts of a sentence
DOORS = ("tr", "later")  # translate their first argument; `plural` translates its second and third
TABLES = re.compile(r"^[A-Z][A-Z_]*$")  # tables of words; `tr` gets a word by a name or a subscript
ICONS = {path.stem for path in (ROOT / "resources/look/icons").glob("*.svg")}


def window_words() -> set[str]:
    """Every text that the window translates."""
    suggested = {model["good_at"] for model in json.loads(SUGGESTED.read_text(encoding="utf-8"))}
    written = {words for path in sorted(GUI.rglob("*.py")) for words in _window_words_in(path)}
    return {words for words in suggested | written if re.search("[A-Za-z]{2}", words)}


def sentences_below() -> set[str]:
    """Every sentence of an error or a warning below the window, with %1, %2 as placeholders, and every reason of a refusal."""
    paths = (path for path in sorted(APP.rglob("*.py")) if NOT_TOLD.isdisjoint((path, *path.parents)))
    return {sentence for path in paths for sentence in _sentences_in(path) if re.search("[A-Za-z]{2}", sentence)}


def _sentences_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and TELLS.search(called):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("title", "advice"))):
                for words in _literals(argument):
                    yield from _sentences(words)
        elif isinstance(node, ast.ClassDef) and node.name == FAULTS:
            for member in node.body:
                yield from _literals(member.value) if isinstance(member, ast.Assign) else ()
        elif isinstance(node, ast.JoinedStr):  # a sentence that is appended to another one
            for words in _literals(node):
                yield from _sentences(words) if FOLLOWS.search(words) else ()


def _sentences(words: str) -> Iterator[str]:
    for sentence in SENTENCE.split(words):
        if sentence.endswith("."):
            yield _numbered(FOLLOWS.sub("", sentence))


def _numbered(sentence: str) -> str:
    """The sentence with its placeholders numbered from 1."""
    places = iter(range(1, 10))
    return re.sub(r"%\d", lambda _: f"%{next(places)}", sentence)


def _window_words_in(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            arguments = node.args[:1] if called in DOORS else node.args[1:3] if called == "plural" else []
            for argument in arguments:
                yield from _literals(argument)
    for node in tree.body:
        name = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(name, ast.Name) and TABLES.match(name.id) and node.value is not None:
            yield from _in_table(node.value, name.id)


def _literals(node: ast.expr) -> Iterator[str]:
    """A literal, both branches of `a if b else c`, or an f-string with %1 for each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "%1" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from _literals(node.body)
        yield from _literals(node.orelse)


def _in_table(node: ast.expr, name: str) -> Iterator[str]:
    """Words of a table that begin like a sentence; icons, colours and keys do not."""
    if isinstance(node, ast.Dict):
        node = ast.Tuple(elts=[*node.values], ctx=ast.Load())
    for part in ast.walk(node):
        words = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        if re.match(r"[A-Z][a-z]+(?:[ .…,-]|$)", words) and words not in ICONS and not words.startswith("Ctrl"):
            yield words


def main(arguments: list[str]) -> int:
    window, below, ill = window_words(), sentences_below(), False
    for path in sorted(BOOKS.glob("*.json")):
        book = json.loads(path.read_text(encoding="utf-8"))
        words = book["words"]
        missing, stale = sorted(window - words.keys()), sorted(words.keys() - window)
        empty = sorted(key for key, value in words.items() if not value and key in window)
        broken = sorted(key for key, value in words.items() if value and _places(key) != _places(value))
        missing += sorted(sentence for sentence in below if sentence not in words and not book["told"].get(sentence))
        broken += sorted(key for key, value in book["told"].items() if _places(key) != _places(value))
        for kind, keys in (("missing", missing), ("stale", stale), ("empty", empty), ("other places than the English", broken)):
            for key in keys:
                sys.stdout.write(f"{path.name}: {kind}: {key!r}\n")
        ill = ill or bool(missing or stale or empty or broken)
        if "--check" not in arguments:
            book["words"] = {key: words.get(key, "") for key in sorted(window)}
            book["told"] = dict(sorted({**{key: "" for key in below if key not in words}, **book["told"]}.items()))
            path.write_text(json.dumps(book, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 1 if ill else 0


def _places(words: str) -> set[str]:
    return set(re.findall(r"%\d|%n", words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
