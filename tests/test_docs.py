"""Check that the links, paths, commands and settings in the documentation exist."""

import re
import shlex
from pathlib import Path

import dev
import msgspec
import pytest

from waggle.cli import main as cli
from waggle.core import settings
from waggle.core.errors import SettingsError
from waggle_lab import __main__ as laboratory

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")],
    key=lambda page: page.relative_to(ROOT),
)
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
ADDING = sorted((ROOT / "docs/adding").glob("*.md"))
COMMAND = re.compile(r"(?:python3 packaging/dev\.py run|^waggle|`waggle)(?=[ `\n])([^`\n|]*)", re.MULTILINE)
LABORATORY_COMMAND = re.compile(r"(?:python3 packaging/dev\.py lab|`waggle-lab) ([^`\n|]*)")
DEVELOPER_COMMAND = re.compile(r"packaging/dev\.py ([a-z]+)")
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)")

CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|toml|txt|json|jsonl|yml|svg|containerfile))")
SETTING = re.compile(r"([a-z]+)\.([a-z_]+)(?:=.*)?")
# Folders to which paths on a page are relative: a page writes `sapo/round.py` for app/waggle/sapo/round.py.
BASES = ("", "app", "app/waggle", "app/waggle/network", "packaging", "resources", "tests")
# Files that Waggle or a build writes, or that are part of a model.
WRITTEN = {"state.json", "runs.jsonl", "report.html", "dist/"} | {
    "config.json", "generation_config.json", "tokenizer.json", "vocab.json", "merges.txt",
}  # fmt: skip
TO_BE_WRITTEN = re.compile(r"^`([^`]+)`:\n\n```python", re.MULTILINE)  # files that the reader of a page writes

# As listed by `waggle --help`.
DOORS = {name for action in cli.parser()._actions if isinstance(action.choices, dict) for name in action.choices}

FILE_NAME = re.compile(r"(?<![\w./*-])([a-z_0-9]+(?:/[a-z_0-9]+)*\.py)\b")
WRITTEN_BY_PYTHON = {"sitecustomize.py"}  # a name that Python itself looks for

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def heading_anchors(page: Path) -> set[str]:
    """The anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pages
def test_every_link_leads_somewhere(page):
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in heading_anchors(target), f"{path}#{anchor}"


@pages
def test_every_command_is_one_that_waggle_knows(page):
    for command in COMMAND.findall(page.read_text(encoding="utf-8")):
        words = [word for word in shlex.split(command, comments=True) if word != "..."]
        if words == ["--version"] or "NAME" in words:  # argparse exits there; or the reader chooses the name
            continue
        if len(words) == 1 and words[0] in DOORS:  # named in a sentence, without its arguments
            continue
        arguments = cli.parser().parse_args(cli._with_invite(words))
        assert callable(arguments.run)


@pages
def test_every_command_of_the_laboratory_is_one_that_it_knows(page):
    for command in LABORATORY_COMMAND.findall(page.read_text(encoding="utf-8")):
        name, *options = [word for word in shlex.split(command, comments=True) if word != "..."]
        if name != "NAME" and options:
            laboratory.parser_of(name).parse_args(options)
        assert name == "NAME" or name in laboratory.COMMANDS


@pages
def test_every_developer_command_exists(page):
    named = set(DEVELOPER_COMMAND.findall(page.read_text(encoding="utf-8")))
    assert named <= set(DEVELOPER_COMMAND.findall(dev.__doc__))


@pages
def test_every_path_in_code_marks_exists(page):
    text = page.read_text(encoding="utf-8")
    to_be_written = set(TO_BE_WRITTEN.findall(text))
    for code in CODE.findall(text):
        path = code.split("#")[0]
        names = path.split("/")
        if (
            not PATH.fullmatch(path)
            or path in WRITTEN | to_be_written
            or any(name.split(".")[0] in ("NAME", "HASH") for name in names)
        ):
            continue
        is_there = any((ROOT / base / path).exists() for base in BASES)
        assert is_there or ("/" not in path[:-1] and any((ROOT / "app").rglob(path.rstrip("/")))), path


@pages
def test_every_setting_exists(page):
    sections = {field.name for field in msgspec.structs.fields(settings.Settings)}
    for code in CODE.findall(page.read_text(encoding="utf-8")):
        setting = SETTING.fullmatch(code)
        if setting and setting[1] in sections and setting[2] not in ("py", "json"):
            key = f"{setting[1]}.{setting[2]}"
            assert exists(key), key


def exists(key: str) -> bool:
    try:
        settings.value_of(settings.Settings(), key)
    except SettingsError:
        return False
    return True


def test_the_index_names_every_page_of_documentation():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / path).resolve() for path, _ in LINK.findall(index)}
    assert {page for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"} <= linked
    assert {ROOT / "docs/decisions/README.md", ROOT / "docs/adding/README.md"} <= linked


def test_decisions_are_numbered_and_listed():
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    for number, page in enumerate(DECISIONS, 1):
        title, *lines = page.read_text(encoding="utf-8").splitlines()
        assert page.name.startswith(f"{number:04}-")
        heading = re.fullmatch(r"# (\d+)\. (.+)", title)
        assert heading
        assert int(heading[1]) == number
        assert f"| {number} | [{heading[2]}]({page.name}) |" in index
        assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]
        assert any(line.startswith("Status: ") for line in lines)


def test_every_page_about_adding_something_is_listed():
    index = (ROOT / "docs/adding/README.md").read_text(encoding="utf-8")
    assert {page.name for page in ADDING if page.name != "README.md"} <= {path for path, _ in LINK.findall(index)}


def test_the_glossary_has_one_line_for_each_term():
    rows = re.findall(r"^\| (?!term |---)([^|]+) \|", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    terms = [term.strip() for row in rows for term in row.split(",")]
    assert len(terms) == len(set(terms))


def missing_files(source: Path) -> set[str]:
    """The Python files named in a source file that are neither beside it nor in a package, the laboratory or the root."""
    folders = (source.parent, ROOT / "app/waggle", ROOT / "app/waggle_lab", ROOT)
    named = set(FILE_NAME.findall(source.read_text(encoding="utf-8"))) - WRITTEN_BY_PYTHON
    return {name for name in named if not any((folder / name).exists() for folder in folders)}


@pytest.mark.parametrize("room", sorted(path for path in (ROOT / "app").glob("*/*") if path.is_dir()), ids=lambda room: room.name)
def test_every_file_that_the_code_names_exists(room):
    assert {source: names for source in room.rglob("*.py") if (names := missing_files(source))} == {}


def test_a_file_that_has_moved_is_missed(tmp_path):
    (tmp_path / "beside.py").write_text("", encoding="utf-8")
    (tmp_path / "source.py").write_text('"""See beside.py, core/paths.py and policy/elsewhere.py."""', encoding="utf-8")
    assert missing_files(tmp_path / "source.py") == {"policy/elsewhere.py"}
