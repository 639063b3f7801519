"""Bad input to a real engine: each gives a clear sentence with advice, and nothing is lost."""

import shutil
import socket
import stat
import sys
import time

import pytest

from end_to_end.programs import SLOW, Engine, Program, Seed, running
from waggle.cli import main, remove_data
from waggle.protocol import events

SOLO = "swarm.solo=true"
WHOLE_EXAM = "learning.held_out_questions=30"  # the default


def failure(*settings: str, home) -> events.EngineFailed:
    """The error of an engine with these settings, which then ends with exit code 1."""
    with running(Engine(home, *settings)) as engine:
        failed = engine.wait(events.EngineFailed)
        assert engine.end() == 1
    return failed


@pytest.mark.parametrize(
    ("content", "title", "advice"),
    [
        ("[swarm]\nseed = 1\n", "unknown setting `seed`", "Did you mean seeds?"),
        ("[swarm\n", "The settings file cannot be read.", "Mend that line"),
        ('[swarm]\ncharter = "/nowhere"\n', "The charter /nowhere cannot be opened", "swarm.charter"),
        ('[swarm]\nseeds = ["nonsense"]\nhost = "127.0.0.1"\n', "nonsense", ""),
    ],
)
def test_wrong_settings_are_explained_and_left_as_they_are(tmp_path, content, title, advice):
    (tmp_path / "settings.toml").write_text(content)
    failed = failure(home=tmp_path)
    assert title in failed.title
    assert advice in failed.advice
    assert failed.detail == ""
    assert (tmp_path / "settings.toml").read_text() == content


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other file permissions")
def test_a_home_that_the_engine_makes_is_its_owners_alone(tmp_path):
    failure('swarm.charter="/nowhere"', home=tmp_path / "home")
    assert (tmp_path / "home" / "history.sqlite").exists()
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        failed = failure("swarm.host=127.0.0.1", f"swarm.port={port}", home=tmp_path)
    assert str(port) in failed.title
    assert failed.advice


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    failed = failure(SOLO, home=tmp_path / "file" / "home")
    assert "cannot be used" in failed.title
    assert failed.at == pytest.approx(time.time(), abs=60 * SLOW), "the event has its time"


def test_a_damaged_identity_is_named_and_kept(tmp_path):
    (tmp_path / "identity.key").write_bytes(b"damaged")
    failed = failure(SOLO, home=tmp_path)
    assert "damaged" in failed.title
    assert (tmp_path / "identity.key").read_bytes() == b"damaged"


@pytest.mark.parametrize(
    "settings",
    [
        ('swarm.seeds=["/ip4/127.0.0.1/tcp/9/p2p/12D3KooWF2YgxuQMZ6KgAhjag8CSYehxGyyAapPi4tHGbJfSvfg1"]',),
        ('swarm.gateways=["ws://127.0.0.1:9/gateway"]', "swarm.light=true"),
    ],
)
def test_an_unreachable_seed_or_gateway_stops_nobody_and_is_said(tmp_path, settings):
    with running(Engine(tmp_path, "swarm.host=127.0.0.1", *settings)) as engine:
        engine.wait_round(2, 60)
        reached = engine.wait(events.ReachChanged, 30, lambda event: event.tried > 0)
        assert reached.reach in ("connecting", "alone")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A home with five rounds, played with the default exam, and the exit code of that run. Tests copy it."""
    home = tmp_path_factory.mktemp("played") / "home"
    with running(Engine(home, SOLO, WHOLE_EXAM)) as engine:
        engine.wait_round(4, 60)
        engine.end()
        return home, engine.wait(events.EngineStopped)


def copy_of(home, folder):
    shutil.copytree(home, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))


def test_a_damaged_checkpoint_and_a_damaged_history_lose_nothing_journal_and_record_lead_there(played, tmp_path):
    copy_of(played[0], tmp_path)
    newest, before = sorted((tmp_path / "checkpoints").iterdir(), reverse=True)[:2]
    with (newest / "model.safetensors").open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    (tmp_path / "history.sqlite").write_bytes(b"damage" * 1000)
    with running(Engine(tmp_path, SOLO)) as engine:
        warned = engine.wait(events.Warned)
        assert (
            warned.title
            == f"The history was damaged; {int(newest.name[1:])} rounds of it were rebuilt from the record of events."
        )
        aside = engine.wait(events.CheckpointSetAside)
        assert "model.safetensors was damaged" in aside.reason
        assert engine.wait(events.Ready).round == int(newest.name[1:]) > int(before.name[1:])


def test_a_second_engine_waits_until_the_first_has_left_the_folder_and_as_a_service_is_refused(tmp_path):
    with running(Engine(tmp_path, SOLO)) as first:
        first.wait(events.Ready)
        with running(Program("engine", "--home", str(tmp_path), "--set", SOLO)) as service:
            assert service.end() == 1
            assert any(b"Another engine, or a seed, is running" in line for _, line in service.lines)
        first.wait_round(0, 60)  # before the others wait, for a minute
        with running(Engine(tmp_path, SOLO)) as second, running(Engine(tmp_path, SOLO)) as closed:
            for waiting in (second, closed):
                assert waiting.wait(events.Preparing).part == "Waiting until another engine has left this folder"
            assert closed.end() == 0, "its client has closed, so it exits, too"
            assert len(list((tmp_path / "events").glob("*.jsonl"))) == 1, "it changed the running engine's record"
            assert first.end() == 0
            assert second.wait(events.Ready).round == first.rounds()[-1].round + 1


def test_where_a_seed_works_no_other_does_and_nothing_is_removed_under_it(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(remove_data, "STOP_SECONDS", 0.1)
    with running(Seed(tmp_path)) as seed:
        seed.address()
        before = (tmp_path / "identity.key").read_bytes()
        for words in (["seed"], ["goodbye", "--remove", "all,identity"]):
            assert main.main([*words, "--home", str(tmp_path)]) == 1
            assert capfd.readouterr().err.startswith("waggle: Another engine, or a seed, is running for this folder.\n")
        assert (tmp_path / "identity.key").read_bytes() == before
    assert main.main(["goodbye", "--home", str(tmp_path), "--remove", "all,identity"]) == 0
    assert not tmp_path.exists(), "all that a seed writes is listed"


def test_ctl_says_the_sentence_and_pauses_and_resumes(tmp_path):
    def ctl(*words: str) -> str:
        with running(Program("ctl", "--home", str(tmp_path), *words)) as ctl:
            assert ctl.end() == 0, ctl.errors
        return b"".join(line for _, line in ctl.lines).decode()

    with running(Engine(tmp_path, SOLO)) as engine:
        engine.wait_round(0, 60)
        assert ctl("status").startswith("Training: Training in First light, round ")
        assert ctl("pause").startswith("Paused by you: Paused.")
        assert ctl("pause", "--for", "5m").startswith("Paused by you: Paused until ")
        assert ctl("resume").startswith("Training:")
        assert ctl("stop").startswith("Stopping.")
        assert engine.process.wait(60 * SLOW) == 0


def test_ctl_without_an_engine_says_so(tmp_path):
    with running(Program("ctl", "--home", str(tmp_path), "status")) as ctl:
        assert ctl.end() == 1
    assert b"No engine is running for this folder." in ctl.errors


def test_a_second_run_goes_on_where_the_first_one_stopped(played, tmp_path):
    first, stopped = played
    copy_of(first, tmp_path)
    shutil.rmtree(tmp_path / "events")  # a resume does not need the record
    with running(Engine(tmp_path, SOLO, WHOLE_EXAM)) as engine:
        assert engine.wait(events.Ready).round == stopped.round
