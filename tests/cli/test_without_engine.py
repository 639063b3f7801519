"""Where no engine runs, commands change the home, and the next engine finds what was chosen."""

import json

import pytest

import system_folders
from waggle.cli.main import main
from waggle.core import paths, settings
from waggle.core.peer_id import text_of
from waggle.engine.control import server
from waggle.engine.storage.history import History
from waggle.engine.storage.pause_request import PauseRequest
from waggle.network import joined_swarms
from waggle.network.identity import keys
from waggle.network.limits import reputation_file
from waggle.protocol import events
from waggle.tasks.shipped_swarms import first_steps


@pytest.fixture
def home(tmp_path):
    return paths.Home(tmp_path / "home").prepare()


def run(home, *words):
    return main(["--home", str(home.root), *words])


def test_a_pause_is_for_the_next_engine(home, capsys):
    assert run(home, "pause", "--for", "1h") == 0
    assert capsys.readouterr().out == "No engine is running. The next one starts paused.\n"
    wishes = PauseRequest(home.root / "asked.json").wishes
    assert wishes.paused
    assert wishes.until == pytest.approx(wishes.asked_at + 3600)
    assert run(home, "resume") == 0
    assert not PauseRequest(home.root / "asked.json").wishes.paused


def test_a_peer_is_blocked_for_the_next_engine_and_listed(home, tmp_path, capsys):
    peer = text_of(keys.load_or_create(tmp_path / "other.key").peer_id)
    assert run(home, "block", peer) == 0
    assert "You blocked it" in capsys.readouterr().out
    assert [each.choice for each in reputation_file.read(home.reputation)] == ["blocked"]
    assert run(home, "welcome", peer) == 0
    assert run(home, "peers", "--json") == 0
    assert [each["choice"] for each in json.loads(capsys.readouterr().out.splitlines()[-1])] == [""]
    assert run(home, "mute", "nobody") == 1
    assert "nobody is no peer's id." in capsys.readouterr().err


def test_damaged_reputations_are_not_overwritten_by_a_choice(home, tmp_path, capsys):
    home.reputation.write_bytes(b"{")
    assert run(home, "block", text_of(keys.load_or_create(tmp_path / "other.key").peer_id)) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert home.reputation.read_bytes() == b"{"


def test_a_swarm_is_joined_left_and_forgotten(home, capsys):
    assert run(home, "join", "First steps") == 1, "nobody said yes"
    assert joined_swarms.read(home.swarms).active == ""
    assert run(home, "join", "First steps", "--yes") == 0
    assert "The next engine joins First steps." in capsys.readouterr().out
    assert joined_swarms.read(home.swarms).active == first_steps().digest.hex()
    assert run(home, "join", "First steps") == 0, "it is chosen already, so nobody is asked"
    assert run(home, "leave") == 0
    assert settings.read(home.settings).swarm.solo
    assert run(home, "join", "First steps", "--yes") == 0
    assert not settings.read(home.settings).swarm.solo
    assert run(home, "create", "--name", "Ours", "--specialty", "bf:easy", "--json") == 0
    charter = json.loads(capsys.readouterr().out.splitlines()[-1])["charter"]
    assert run(home, "swarm", "forget", charter, "--yes") == 0
    assert charter not in {entry.charter for entry in joined_swarms.read(home.swarms).entries}
    assert run(home, "swarm", "forget", first_steps().digest.hex(), "--yes") == 1, "the next engine is in it"


def test_a_swarm_that_the_settings_fix_is_not_left_behind_by_a_join(home, capsys):
    settings.change(home.settings, {"swarm.charter": "ab" * 32})
    assert run(home, "join", "First steps", "--yes") == 1
    assert "names the swarm" in capsys.readouterr().err


def test_who_one_is_can_be_renewed(home, capsys):
    before = keys.load_or_create(home.identity).peer_id
    assert run(home, "identity", "renew") == 1
    assert keys.load_or_create(home.identity).peer_id == before
    assert run(home, "identity", "renew", "--yes") == 0
    assert keys.load_or_create(home.identity).peer_id != before
    assert run(home, "identity", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["node"] == text_of(keys.load_or_create(home.identity).peer_id)


def test_a_model_of_the_hub_is_removed_but_not_the_chosen_one(home, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    for name in ("bees/small", "bees/chosen"):
        (paths.models() / name).mkdir(parents=True)
    settings.change(home.settings, {"model.name": "bees/chosen"})
    assert run(home, "models", "remove", "bees/small") == 0
    assert run(home, "models", "remove", "bees/chosen") == 1
    assert [path.name for path in (paths.models() / "bees").iterdir()] == ["chosen"]


def test_days_are_those_of_the_history(home, capsys):
    assert run(home, "days") == 0
    assert capsys.readouterr().out == "Nothing was contributed here yet.\n"
    history = History(home.model.history)
    history.save_round(events.RoundSummary(round=0, at=1_772_000_000.0, reward=0.5, solved=0.25, seconds=60.0, completions=64))
    history.close()
    assert run(home, "days", "--json") == 0
    totals = json.loads(capsys.readouterr().out)["all"]
    assert (totals["rounds"], totals["answers"], totals["right"]) == (1, 64, 16)


@pytest.mark.parametrize("words", [["status"], ["why"], ["stop"], ["sent"], ["try"], ["chat", "hello"], ["models", "cancel"]])
def test_what_needs_an_engine_says_how_to_start_one(home, capsys, words):
    assert run(home, *words) == 1
    assert "No engine is running for this folder.\n        Start one with `waggle engine`." in capsys.readouterr().err


@pytest.mark.parametrize("words", [["pause"], ["swarms"], ["block", "12D3KooWDHeRk8J6AhoMXYPqAtzi6y2U9JCJ6oFo9twJkekVoMC6"]])
def test_a_home_whose_engine_is_just_starting_is_left_alone(home, capsys, words):
    lock = server.claim_home(home)
    try:
        assert run(home, *words) == 1
    finally:
        lock.release()
    assert "Another engine, or a seed, is running for this folder." in capsys.readouterr().err


def test_a_class_is_created_and_entered_once_its_choices_were_read(home, capsys):
    assert run(home, "create", "--preset", "classroom", "--name", "7b") == 1, "nobody said yes"
    choices = capsys.readouterr().err
    assert "Arithmetic, Calendar, Decimals, Fractions, Logic" in choices
    assert "a page for a projector" in choices
    assert joined_swarms.read(home.swarms).entries == ()
    assert run(home, "create", "--preset", "classroom", "--name", "7b", "--as", "Teacher", "--yes") == 0
    charter = capsys.readouterr().out.strip()
    entry = joined_swarms.read(home.swarms).entry(charter)
    assert (joined_swarms.read(home.swarms).active, entry.for_class, entry.member_name) == (charter, True, "Teacher")
    assert run(home, "join", charter, "--as", "Teacher") == 0, "nothing changes, so nobody is asked"
    assert run(home, "join", charter, "--as", "Ms Lee", "--yes") == 0
    assert joined_swarms.read(home.swarms).entry(charter).member_name == "Ms Lee"


def test_an_invite_is_written_to_a_file_and_drawn(home, tmp_path, monkeypatch, capsys):
    peer = text_of(keys.load_or_create(tmp_path / "other.key").peer_id)
    settings.change(home.settings, {"swarm.seeds": (f"/ip4/192.0.2.1/tcp/4001/p2p/{peer}",)})
    assert run(home, "invite", "--file", str(tmp_path / "ours.waggle"), "--qr") == 0
    *code, link = capsys.readouterr().out.splitlines()
    assert (tmp_path / "ours.waggle").read_text() == f"{link}\n"
    assert len(code) > 20
    assert {len(line) for line in code} == {len(code[0])}
