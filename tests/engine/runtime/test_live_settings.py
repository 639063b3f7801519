"""Test settings that change while the engine runs."""

import tomllib

import pytest

from waggle.core.errors import SettingsError
from waggle.core.settings import read
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings


@pytest.fixture
async def publisher(tmp_path):
    publisher = EventPublisher(tmp_path)
    yield publisher
    publisher.close()


async def test_a_change_is_kept_applied_and_told(tmp_path, publisher):
    path = tmp_path / "settings.toml"
    choices = LiveSettings(path, (), publisher)
    choices.begin()
    assert publisher.state.settings == choices.now
    applied = []
    choices.call_on_change(lambda now: applied.append(now) or ("computer.priority",))
    choices.change({"when.idle_minutes": 5, "computer.priority": "normal"})
    assert applied == [choices.now] == [read(path)]
    assert publisher.state.settings == choices.now
    assert choices.now.when.idle_minutes == 5
    assert publisher.state.after_restart == ("computer.priority",), "what could not be applied is named"


async def test_what_waits_for_the_next_start_is_named_until_it_is_taken_back(tmp_path, publisher):
    choices = LiveSettings(tmp_path / "settings.toml", (), publisher)
    choices.change({"computer.device": "cpu", "swarm.port": 4001})
    assert publisher.state.after_restart == ("swarm.port", "computer.device")
    choices.change({"computer.device": None})
    assert publisher.state.after_restart == ("swarm.port",)


async def test_a_refused_change_is_neither_applied_nor_told(tmp_path, publisher):
    choices = LiveSettings(tmp_path / "settings.toml", (), publisher)
    before = publisher.state
    with pytest.raises(SettingsError):
        choices.change({"when.idle_minutes": -1})
    assert publisher.state == before


async def test_the_latest_word_wins_over_the_command_line(tmp_path, publisher):
    choices = LiveSettings(tmp_path / "settings.toml", ("when.idle_minutes=9", "swarm.port=4001"), publisher)
    choices.change({"when.idle_minutes": 5})
    assert (choices.now.when.idle_minutes, choices.now.swarm.port) == (5, 4001)
    assert read(tmp_path / "settings.toml").swarm.port == 0


@pytest.mark.parametrize("path_content", ["# nothing yet\n", "[swarm]\nsolo = true\nseeds = []\n"])
async def test_a_change_that_is_taken_back_leaves_the_file_and_the_command_line_as_they_were(tmp_path, publisher, path_content):
    path = tmp_path / "settings.toml"
    path.write_text(path_content)
    choices = LiveSettings(path, ("swarm.solo=true", "swarm.port=4001"), publisher)
    back = choices.change({"swarm.solo": False, "swarm.seeds": None})
    choices.change({"when.idle_minutes": 5})
    assert not choices.now.swarm.solo
    back()
    assert (choices.now.swarm.solo, choices.now.swarm.port, choices.now.when.idle_minutes) == (True, 4001, 5)
    assert tomllib.loads(path.read_text()) == tomllib.loads(path_content) | {"when": {"idle_minutes": 5}}


def test_what_changes_while_something_comes_to_be_holds_for_it_too(tmp_path, publisher):
    choices = LiveSettings(tmp_path / "settings.toml", (), publisher)
    choices.begin()
    choices.change({"computer.cpu_percent": 30})  # a download takes its time
    computers = []

    def hold(now):
        computers.append(now.computer.cpu_percent)
        return ("computer.priority",) if now.computer.priority == "normal" else ()

    choices.apply(hold)
    choices.change({"computer.cpu_percent": 60, "computer.priority": "normal"})
    assert computers == [30, 60]
    assert publisher.state.after_restart == ("computer.priority",)
