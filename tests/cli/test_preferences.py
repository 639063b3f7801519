"""`waggle get`, `set` and `settings`: types and ranges are checked, and errors say what a setting takes."""

import json
from pathlib import Path

import msgspec
import pytest

from waggle.cli.main import main
from waggle.cli.preferences.meanings import MEANINGS
from waggle.cli.preferences.types import setting_type, setting_types, value_text
from waggle.core import paths, settings
from waggle.core.errors import SettingsError
from waggle.core.settings import Settings


def run(home, *words):
    return main(["--home", str(home), *words])


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("computer.cpu_percent", "50", 50),
        ("when.only_on_power", "off", False),
        ("when.only_on_power", "Yes", True),
        ("learning.learning_rate", "1e-5", 1e-5),
        ("learning.temperature", "2", 2.0),
        ("learning.rule", "dapo", "dapo"),
        ("swarm.seeds", "/ip4/192.0.2.1/tcp/1/p2p/a, /dns4/b", ("/ip4/192.0.2.1/tcp/1/p2p/a", "/dns4/b")),
        ("swarm.seeds", '["a"]', ("a",)),
        ("when.not_while", "blender", ("blender",)),
        ("swarm.charter", "123", "123"),
        ("computer.cpu_percent", "", None),
    ],
)  # fmt: skip
def test_a_value_is_read_as_its_setting_takes_it(key, text, value):
    assert setting_type(key).parse(text) == value


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("computer.cpu_percent=500", "It is a whole number from 5 to 100. The default is 100."),
        ("computer.cpu_percent=half", "It is a whole number from 5 to 100."),
        ("computer.cpu_percent=true", "It is a whole number from 5 to 100."),
        ("learning.temperature=0", "It is a number above 0 to 4."),
        ("learning.rule=best", "It is one of dapo, dr_grpo"),
        ("when.only_on_power=maybe", "It is true or false. The default is true."),
        ("when.week=#", "days of 24 hours"),
        ("cpu_percent=5", "Did you mean computer.cpu_percent"),
        ("computer.cpupercent=5", "Did you mean computer.cpu_percent"),
        ("nothing.at=all", "`waggle settings` lists all of them."),
        ("learning.local=0", ""),
        ("swarm.port", "is not of the form section.name=value"),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right_and_nothing_changes(tmp_path, capsys, assignment, says):
    words = [assignment, *(["learning.external=0"] if not says else [])]
    assert run(tmp_path, "set", "swarm.lan=true", *words) == 1
    assert (says or "cannot both be 0") in " ".join(capsys.readouterr().err.split())
    assert settings.read(tmp_path / "settings.toml") == Settings()


def test_what_is_set_is_got_and_an_empty_value_is_the_default(tmp_path, capsys):
    assert run(tmp_path, "set", "swarm.port=4001", "swarm.lan=on") == 0
    assert "No engine is running: the next one has these settings." in capsys.readouterr().err
    assert run(tmp_path, "get", "swarm.port") == 0
    assert capsys.readouterr().out == "4001\n"
    assert run(tmp_path, "get", "swarm.port", "swarm.lan", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"swarm.port": 4001, "swarm.lan": True}
    assert run(tmp_path, "set", "swarm.port=") == 0
    assert settings.read(tmp_path / "settings.toml").swarm.port == 0


def test_a_model_that_is_set_is_chosen_as_by_models_choose(tmp_path, capsys):
    assert run(tmp_path, "set", "model.folder=/nowhere") == 1
    assert f"There is no model in {Path('/nowhere').absolute()}" in capsys.readouterr().err
    assert run(tmp_path, "set", "model.folder=/nowhere", "model.name=a/b") == 1
    assert run(tmp_path, "set", f"model.folder={paths.starter()}") == 0
    assert settings.read(tmp_path / "settings.toml").model.folder == str(paths.starter())
    assert run(tmp_path, "set", "model.folder=") == 0
    assert settings.read(tmp_path / "settings.toml").model.folder == ""


def test_the_reference_has_every_setting_with_its_type_range_default_value_and_meaning(tmp_path, capsys):
    run(tmp_path, "set", "learning.group_size=4")
    capsys.readouterr()
    assert run(tmp_path, "settings", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    fields = {
        f"{section.name}.{field.name}"
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(section.type)
    }
    assert rows.keys() == fields == MEANINGS.keys()
    assert rows["learning.group_size"] == {
        "name": "learning.group_size", "type": "a whole number from 2 to 16", "default": 8, "value": 4, "at_once": False,
        "meaning": "Answers to each question.",
    }  # fmt: skip
    assert run(tmp_path, "settings", "web") == 0
    assert "web.port = 0 (the default)\n  The port of the status page." in capsys.readouterr().out
    assert run(tmp_path, "settings", "nothing") == 1


@pytest.mark.parametrize("setting", [*setting_types()], ids=lambda setting: setting.key)
def test_every_default_can_be_written_and_read(setting):
    text = value_text(setting.default)
    if text != "(none)":
        assert setting.parse(text) == setting.default
    with pytest.raises(SettingsError):
        setting_type(f"{setting.key}_")
