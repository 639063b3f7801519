"""Files that are registered by being in a folder: those that cannot be used are named in the error."""

import sys
from pathlib import Path

import pytest

from waggle.core.errors import ExtensionError
from waggle.core.module_names import load


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def make(:\n", "SyntaxError"), ("import no_such_module\n", "no_such_module"), ("RULE = 1 / 0\n", "division by zero"),
        ("OTHER = 1\n", "has no attribute 'make'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    (tmp_path / "broken_extension.py").write_text(source, "utf-8")
    monkeypatch.setattr("waggle.rl.update_rules.__path__", [str(tmp_path)])
    with pytest.raises(ExtensionError) as error:
        load("waggle.rl.update_rules", "broken_extension", "make")
    sys.modules.pop("waggle.rl.update_rules.broken_extension", None)
    assert error.value.title.startswith("rl/update_rules/broken_extension.py cannot be used: ")
    assert reason in error.value.title
