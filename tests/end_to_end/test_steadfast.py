"""A real engine pauses and resumes by itself: for a chosen program, for a daily energy budget, for a full disk."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from end_to_end.programs import Engine, running
from waggle.core import settings
from waggle.protocol import commands, events
from waggle.protocol.text.status_text import sentence

SOON = 60.0
SMALL = 24 << 20  # bytes: a few checkpoints of the starter model


def waits(engine: Engine, start: int) -> events.PhaseChanged:
    return engine.wait(events.PhaseChanged, SOON, lambda event: event.phase == "waiting", start)


def goes_on(engine: Engine, start: int) -> None:
    engine.wait(events.PhaseChanged, SOON, lambda event: event.phase == "contributing", start)
    engine.wait(events.RoundCompleted, SOON, start=start)


@pytest.mark.skipif(sys.platform != "linux", reason="gives a program a name with a symbolic link")
def test_it_changes_its_limits_alive_waits_for_a_chosen_program_or_tomorrow_s_energy_and_goes_on_by_itself(tmp_path):
    game = tmp_path / "waggle-game"
    shutil.copy("/bin/sleep", game)
    home = tmp_path / "home"
    with running(Engine(home, "swarm.solo=true")) as engine:
        engine.wait(events.RoundCompleted, SOON)
        values = {
            "when.not_while": ("Waggle-Game.exe",),
            "computer.cpu_percent": 50,
            "computer.threads": 1,
            "computer.priority": "low",
        }
        assert isinstance(engine.command(commands.ChangeSettings, values=values), events.CommandDone)
        assert psutil.Process(engine.process.pid).nice() == 10
        assert settings.read(home / "settings.toml").computer.cpu_percent == 50
        refused = engine.command(commands.ChangeSettings, values={"when.idle_minutes": 9999})
        assert isinstance(refused, events.CommandRefused)
        assert "when.idle_minutes" in refused.title

        place = len(engine.lines)
        playing = subprocess.Popen([game, "600"])
        try:
            waits(engine, place)
            decision = engine.wait(events.RulesChecked, SOON, lambda event: event.decision.standing == "waiting", place).decision
            assert (decision.reason, decision.ends) == ("Waggle-Game.exe is running.", "Starts when it is closed.")
            place = len(engine.lines)
        finally:
            playing.kill()
            playing.wait()
        goes_on(engine, place)

        place = len(engine.lines)
        engine.command(commands.ChangeSettings, values={"computer.watts": 5000.0, "when.kwh_a_day": 0.01})
        waits(engine, place)
        decision = engine.wait(events.RulesChecked, SOON, lambda event: event.decision.standing == "waiting", place).decision
        assert decision.reason.startswith("Today's energy is used up")
        place = len(engine.lines)
        engine.command(commands.ChangeSettings, values={"when.kwh_a_day": 50.0})
        goes_on(engine, place)
        assert engine.end() == 0


@pytest.mark.privileged
def test_a_full_disk_is_named_waited_for_and_costs_no_round(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    if (
        sys.platform != "linux"
        or os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(home)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("needs root on Linux, to mount a small disk")
    try:
        with running(Engine(home, "swarm.solo=true")) as engine:
            engine.wait(events.CheckpointSaved, SOON)
            place = len(engine.lines)
            fill(home / "full")
            waits(engine, place)
            current = sentence(engine.state())
            assert "could not be saved" in current.says or "cannot be written" in current.says
            assert "Make room on the disk" in current.detail
            place = len(engine.lines)
            (home / "full").unlink()
            goes_on(engine, place)
            assert engine.end() == 0
            numbers = [round_.round for round_ in engine.rounds()]
            assert numbers == list(range(len(numbers))), "a round was lost"
        with running(Engine(home, "swarm.solo=true")) as next_engine:
            assert next_engine.wait(events.Ready, SOON).round == len(numbers)
    finally:
        subprocess.run(["umount", "-l", str(home)], check=False)


def fill(path: Path) -> None:
    """Fill the disk to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:  # no room for a piece of this size
                continue
