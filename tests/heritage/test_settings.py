"""A settings file of 0.1.0 says now what it said then."""

import json
import shutil
import tomllib
from pathlib import Path

import msgspec

from waggle.core import settings

HERE = Path(__file__).parent / "0.1.0"
CHOSEN = json.loads((HERE / "settings.json").read_text("utf-8"))


def test_every_value_is_kept() -> None:
    read = settings.read(HERE / "settings.toml")
    values = {key: settings.value_of(read, key) for key in CHOSEN}
    assert json.loads(msgspec.json.encode(values)) == CHOSEN


def test_a_change_leaves_all_others_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    shutil.copyfile(HERE / "settings.toml", path)
    settings.change(path, {"computer.threads": 2})
    before, after = (tomllib.loads(file.read_text("utf-8")) for file in (HERE / "settings.toml", path))
    before["computer"]["threads"] = 2
    assert after == before
