"""Renames and removals are tried again on Windows, where a virus scanner may have the file open, and nowhere else."""

import ast
import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

import waggle
from waggle.core.system import file_moves

BY_HAND = {  # a module's own functions, and methods of paths
    "os": {"rename", "replace", "renames", "unlink", "remove"},
    "shutil": {"rmtree", "move"},
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


@pytest.fixture
def held_up(monkeypatch):
    """Make one of Python's functions fail a few times, as it does on Windows while another program has a file open."""

    def hold_up(owner, name, times, *, error=errno.EACCES):
        real, calls = getattr(owner, name), []

        def busy(*arguments, **named):
            calls.append(arguments)
            if len(calls) <= times:
                raise OSError(error, os.strerror(error))
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, busy)
        return calls

    return hold_up


MOVES = {
    "rename": (os, "rename", lambda path: file_moves.rename(path, path.with_name("other"))),
    "replace": (os, "replace", lambda path: file_moves.replace(path, path.with_name("other"))),
    "unlink": (Path, "unlink", file_moves.unlink),
}


@pytest.mark.parametrize("move", MOVES)
def test_on_windows_what_is_held_up_is_tried_again(file, held_up, monkeypatch, move):
    owner, name, act = MOVES[move]
    monkeypatch.setattr(file_moves, "WINDOWS", True)
    calls = held_up(owner, name, 3)
    act(file)
    assert len(calls) == 4
    assert not file.exists()


@pytest.mark.parametrize("move", MOVES)
def test_elsewhere_a_refusal_is_final(file, held_up, monkeypatch, move):
    owner, name, act = MOVES[move]
    monkeypatch.setattr(file_moves, "WINDOWS", False)
    calls = held_up(owner, name, 1)
    with pytest.raises(PermissionError):
        act(file)
    assert len(calls) == 1


def test_what_stays_in_use_is_an_error_in_the_end_and_other_errors_at_once(file, held_up, monkeypatch):
    monkeypatch.setattr(file_moves, "WINDOWS", True)
    monkeypatch.setattr(file_moves, "PATIENCE_SECONDS", 0.05)
    calls = held_up(os, "rename", 1000)
    with pytest.raises(PermissionError):
        file_moves.rename(file, file.with_name("other"))
    assert 1 < len(calls) < 10
    with pytest.raises(FileNotFoundError):
        file_moves.replace(file.with_name("nothing"), file)
    file_moves.unlink(file.with_name("nothing"), missing_ok=True)


def test_a_folder_is_removed_although_a_file_in_it_is_read_for_a_moment(tmp_path, held_up, monkeypatch):
    folder = tmp_path / "folder"
    for name in ("a/b", "a/c"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setattr(file_moves, "WINDOWS", True)
    held_up(shutil, "rmtree", 2)
    file_moves.remove_tree(folder, ignore_errors=True)
    assert not folder.exists()
    file_moves.remove_tree(folder, ignore_errors=True)
    with pytest.raises(FileNotFoundError):
        file_moves.remove_tree(folder)


@pytest.mark.skipif(os.name != "nt", reason="elsewhere an open file can be renamed")
@pytest.mark.parametrize("move", ["rename", "unlink"])
def test_an_open_file_is_waited_for(file, move):
    other = file.open("rb")  # as a scanner opens it: it may not be renamed or removed meanwhile
    with pytest.raises(PermissionError):
        os.rename(file, file.with_name("at once"))
    threading.Timer(0.3, other.close).start()
    MOVES[move][2](file)
    assert not file.exists()


def test_no_other_module_renames_or_removes_by_hand():
    by_hand = []
    package = Path(waggle.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_by_hand(node, node.func):
                by_hand.append(f"{path.relative_to(package)}:{node.lineno}")
    ours = [place for place in by_hand if place.startswith(("core/system/file_moves.py", "core\\system\\file_moves.py"))]
    assert len(ours) == 5, "the test reads calls"
    at_once = [place for place in by_hand if place.startswith(("core/log.py", "core\\log.py"))]  # a line of the log waits
    assert not set(by_hand) - {*ours, *at_once}


def _is_by_hand(call: ast.Call, function: ast.Attribute) -> bool:
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if owner in BY_HAND:
        return function.attr in BY_HAND[owner]
    if owner in ("file_moves", "dataclasses", "structs"):
        return False
    # a path's `replace` has one argument, a text's has two; the window has a widget with a `rename`
    of_path = function.attr == "unlink" or (function.attr in ("replace", "rename") and len(call.args) == 1 and not call.keywords)
    return of_path and "gui" not in ast.unparse(function) and ast.unparse(function) != "self._top.rename"
