#!/usr/bin/env python3
"""Updates the translation files in resources/language with the words of the window. Standard library only.

python3 packaging/translations.py          add new words (unfinished: still to be translated) and remove unused ones
python3 packaging/translations.py --check  change nothing; exit status 1 if a word is missing, unfinished or stale

The files are in the form of Qt Linguist (.ts), so Linguist opens them, and any editor. They hold the words of the window (`tr`,
`plural`, `later` and tables of words), the ids of messages from below it (`Message`, `counted`), and the sentences of all errors.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
APP, RESOURCES = ROOT / "app/waggle", ROOT / "resources"
CATALOGS = RESOURCES / "language"
GUI, TASKS = APP / "gui", APP / "tasks"
AUDIT = ROOT / "app/waggle_lab/security"  # its verdicts are shown
ONLY_IN_TERMINALS = {
    AUDIT,
    APP / "practice",
    *(APP / f"cli/{name}" for name in ("control", "models", "preferences", "rounds", "shared", "swarms", "talk", "watch")),
    *(APP / f"cli/{name}.py" for name in ("completion", "ctl", "identity", "main", "race", "window")),
}
ERRORS = re.compile(
    r"^(?!(ArgumentType|Assertion|CannotKeepAwake|EOF|Index|Key|Lookup|NotImplemented|Overflow|Runtime|Timeout|Type|Value)Error$)"
    r"(.*(Error|Fault)|MemoryShort|ModelMissing|HubUnavailable|QuestionsTooLong|BadRecord|NoEngine|EngineEnded|kind)$"
)
FAULTS = "Fault"  # the enum of reasons why a peer's message is refused
WORDS = ("tr", "later", "Message")  # called with words
PLURALS = ("plural", "counted")  # called with an amount, the words for one, and those for many, which stand in the catalogs
FORMS = {"de": 2, "pl": 3}  # how many forms the plural of a language has
CONTEXT = "Waggle"
TABLES = re.compile(r"^[A-Z][A-Z_]*$")  # tables of words; `tr` gets a word by a name or a subscript
ICONS = {path.stem for path in (ROOT / "resources/look/icons").glob("*.svg")}
LETTERS = re.compile("[A-Za-z]{2}")
PLACE = re.compile(r"%\d|%n")
ONLY_ORDER = {"%1 %2 %3 %4"}  # day, month, year and time: without a word, but not the same in all languages


Translation = tuple[str, ...]  # one form, or those of a plural


def all_words() -> dict[str, bool]:
    """Every English text that the window translates, and whether it is a plural's."""
    words = dict.fromkeys(words_of_resources(), False)
    for path in (*sorted(APP.rglob("*.py")), *sorted(AUDIT.glob("audit*.py"))):
        words.update(dict.fromkeys(words_in(path), False))
    for path in sorted(APP.rglob("*.py")):
        words.update(dict.fromkeys(plurals_in(path), True))
    return {word: is_plural for word, is_plural in words.items() if LETTERS.search(PLACE.sub("", word)) or word in ONLY_ORDER}


def words_of_resources() -> Iterator[str]:
    """What is shown of the files that Waggle brings."""
    for model in json.loads((RESOURCES / "models.json").read_text(encoding="utf-8")):
        yield model["good_at"]
    for curves in json.loads((RESOURCES / "measured_curves.json").read_text(encoding="utf-8")):
        yield curves["source"]
    for line in (RESOURCES / "specialties.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)["title"]


def words_in(path: Path) -> Iterator[str]:
    """The words of one source file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    raises, constants = ONLY_IN_TERMINALS.isdisjoint((path, *path.parents)), _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in WORDS:
                yield from _literals(node.args[0])
            if TASKS in path.parents:
                yield from (
                    word
                    for keyword in node.keywords
                    if keyword.arg in ("title", "model_hint")
                    for word in _literals(keyword.value)
                )
            if raises and ERRORS.search(called):
                for argument in (*node.args[:3], *(keyword.value for keyword in node.keywords if keyword.arg == "advice")):
                    yield from _literals(constants.get(getattr(argument, "id", ""), argument))
        elif isinstance(node, ast.Assign) and TASKS in path.parents and _is_titles(node):
            yield from (word for value in node.value.values for word in _literals(value))
        elif isinstance(node, ast.ClassDef) and node.name == FAULTS:
            for member in node.body:
                yield from _literals(member.value) if isinstance(member, ast.Assign) else ()
    if GUI in path.parents:
        for statement in tree.body:
            yield from _words_of_table(statement)


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The values of a module's constants, by name."""
    pairs = [(statement.targets[0], statement.value) for statement in tree.body if isinstance(statement, ast.Assign)]
    return {name.id: value for name, value in pairs if isinstance(name, ast.Name)}


def sentences_put_together(path: Path) -> list[int]:
    """The lines of errors whose words are an f-string, so that nobody can translate them."""
    if not ONLY_IN_TERMINALS.isdisjoint((path, *path.parents)):
        return []
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    errors = [call for call in calls if ERRORS.search(getattr(call.func, "id", getattr(call.func, "attr", "")))]
    return [call.lineno for call in errors for argument in call.args[:2] if _has_words(argument)]


def _has_words(node: ast.expr) -> bool:
    """Whether this is an f-string with words of its own."""
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return any(isinstance(part, ast.Constant) and LETTERS.search(str(part.value)) for part in parts)


def _is_titles(node: ast.Assign) -> bool:
    """Whether these are the titles of a shipped swarm's specialties."""
    return isinstance(node.value, ast.Dict) and [getattr(target, "id", "") for target in node.targets] == ["titles"]


def plurals_in(path: Path) -> Iterator[str]:
    """The words for many of one source file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in PLURALS:
            for argument in node.args[2:3]:
                yield from _literals(argument)


def _literals(node: ast.expr) -> Iterator[str]:
    """A literal, or both branches of `a if b else c`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _literals(node.body)
        yield from _literals(node.orelse)


def _words_of_table(statement: ast.stmt) -> Iterator[str]:
    """Words of a module's constants that begin like a sentence; icons, colours and keys do not."""
    name = (
        statement.targets[0]
        if isinstance(statement, ast.Assign)
        else statement.target
        if isinstance(statement, ast.AnnAssign)
        else None
    )
    node = getattr(statement, "value", None)
    if not isinstance(name, ast.Name) or not TABLES.match(name.id) or node is None:
        return
    if isinstance(node, ast.Dict):
        node = ast.Tuple(elts=[*node.values], ctx=ast.Load())
    for part in ast.walk(node):
        words = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        if re.match(r"[A-Z][a-z]+(?:[ .…,-]|$)", words) and words not in ICONS and not words.startswith("Ctrl"):
            yield words


def read(path: Path) -> dict[str, Translation]:
    """The translations of a file, by English; an unfinished one is empty."""
    entries = {}
    for message in ET.parse(path).getroot().iter("message"):
        translation = message.find("translation")
        assert translation is not None
        forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
        entries[message.findtext("source", "")] = tuple(forms) if all(forms) else ()
    return entries


def write(path: Path, entries: dict[str, Translation], plurals: set[str]) -> None:
    """Replace a file, sorted by English, so that changes are easy to compare."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<!DOCTYPE TS>",
        f'<TS version="2.1" language="{path.stem}" sourcelanguage="en">',
        f"<context><name>{CONTEXT}</name>",
    ]
    for english, forms in sorted(entries.items()):
        mark = "" if forms else ' type="unfinished"'
        if english in plurals:
            inside = "".join(f"<numerusform>{escape(form)}</numerusform>" for form in forms or ("",) * FORMS[path.stem])
            lines.append(
                f'<message numerus="yes"><source>{escape(english)}</source><translation{mark}>{inside}</translation></message>'
            )
        else:
            lines.append(
                f"<message><source>{escape(english)}</source><translation{mark}>{escape(''.join(forms))}</translation></message>"
            )
    path.write_text("\n".join((*lines, "</context>", "</TS>")) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    used, ill = all_words(), False
    for path in sorted(APP.rglob("*.py")):
        for line in sentences_put_together(path):
            ill = True
            sys.stdout.write(f"{path.relative_to(ROOT)}:{line}: an f-string cannot be translated; say it as a Message\n")
    for path in sorted(CATALOGS.glob("*.ts")):
        for kind, keys in faults(path, used).items():
            ill = ill or bool(keys)
            for key in sorted(keys):
                sys.stdout.write(f"{path.name}: {kind}: {key!r}\n")
        if "--check" not in arguments:
            entries = read(path)
            write(path, {key: entries.get(key, ()) for key in used}, _plurals(used))
    return 1 if ill else 0


def faults(path: Path, used: dict[str, bool]) -> dict[str, set[str]]:
    """What is wrong with a translation file, by the kind of fault, for the words of `all_words`."""
    entries, plurals = read(path), _plurals(used)
    return {
        "missing": used.keys() - entries.keys(),
        "stale": entries.keys() - used.keys(),
        "unfinished": {key for key in used.keys() & entries.keys() if not entries[key]},
        "other forms or places": {key for key, forms in entries.items() if not _fits(key, forms, path.stem, plurals)},
    }


def _plurals(used: dict[str, bool]) -> set[str]:
    return {word for word, is_plural in used.items() if is_plural}


def _fits(english: str, forms: Translation, language: str, plurals: set[str]) -> bool:
    """Whether there are as many forms as the language has, with the places of the English; "only you" needs no amount."""
    number = FORMS[language] if english in plurals else 1
    return not forms or (len(forms) == number and all(_places(form) | {"%n"} == _places(english) | {"%n"} for form in forms))


def _places(words: str) -> set[str]:
    return set(PLACE.findall(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
