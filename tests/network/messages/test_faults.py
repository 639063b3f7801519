"""The reasons of a refused message are members of one enum: the page Peers translates them, and a free text it could not."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import waggle.network

REFUSE = {"BadRecord", "ForgedAnnouncement", "_reject"}


def free_texts(source: str) -> Iterator[str]:
    """The calls that refuse a message with a text of their own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in REFUSE and any(isinstance(each, (ast.JoinedStr, ast.Constant)) for each in node.args):
                yield ast.unparse(node)


def test_no_message_is_refused_with_a_free_text() -> None:
    files = list(Path(waggle.network.__file__).parent.rglob("*.py"))
    assert len(files) > 50
    assert [text for path in files for text in free_texts(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("call", ['BadRecord("too green")', 'errors.BadRecord(f"{colour}")', 'self._reject(origin, "too green")'])
def test_a_free_text_is_found(call: str) -> None:
    assert list(free_texts(call))
