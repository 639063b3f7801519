"""Every count of a real engine that shares with another: in a window, by commands, on its page and in its table of rounds."""

import csv
import io
import json
from pathlib import Path

import httpx2
import pytest

from end_to_end.programs import Engine, Seed, running
from gui.conftest import TellWindow
from gui.counts import Surfaces, differences
from network.loopback import free_port
from waggle.cli import main
from waggle.protocol import commands, events
from waggle.protocol.events_identity import DailyTotals
from waggle.protocol.events_models import ModelList
from waggle.protocol.events_swarms import KnownSwarms

QUICK = ("swarm.host=127.0.0.1", "learning.questions=2", "learning.local=1", "learning.held_out_every=1")


def printed(capsys: pytest.CaptureFixture[str], home: Path, *command: str) -> str:
    capsys.readouterr()
    assert main.main(["--home", str(home), *command]) == 0
    return capsys.readouterr().out


@pytest.mark.timeout(600)
def test_a_window_commands_the_page_and_the_table_say_the_same(
    tmp_path: Path, window_told: TellWindow, capsys: pytest.CaptureFixture[str]
) -> None:
    port, home = free_port(), tmp_path / "a"
    with running(Seed(tmp_path / "seed")) as seed:
        settings = (*QUICK, f'swarm.seeds=["{seed.address()}"]')
        with (
            running(Engine(home, *settings, f"web.port={port}")) as engine,
            running(Engine(tmp_path / "b", *settings)) as other,
        ):
            engine.wait(events.RoundCompleted, 180, lambda event: event.summary.external > 0)
            engine.command(commands.Pause)
            engine.wait(events.PhaseChanged, 60, lambda event: event.phase == "paused")
            other.command(commands.Pause)
            other.wait(events.PhaseChanged, 60, lambda event: event.phase == "paused")
            while True:  # until no peer came, went or fetched anything in between, or in the second for which a page is kept
                for command in (commands.QueryDays, commands.QueryHistory, commands.ListModels, commands.ListSwarms):
                    engine.command(command)
                before = engine.state().peers
                table = list(csv.DictReader(io.StringIO(printed(capsys, home, "history"))))
                days = json.loads(printed(capsys, home, "days", "--json"))
                facts = json.loads(printed(capsys, home, "status", "--json"))
                figures = json.loads(httpx2.get(f"http://127.0.0.1:{port}/status.json").raise_for_status().text)["training"]
                metrics = httpx2.get(f"http://127.0.0.1:{port}/metrics").raise_for_status().text
                engine.command(commands.QueryDays)
                story = engine.all_events
                members = len(engine.state().members)
                if engine.state().peers == before and members and members == figures["members"]:
                    break
            assert engine.end() == other.end() == 0
    surfaces = Surfaces(window_told(story))
    counts, contribution, state = surfaces.counts(), surfaces.contribution(), surfaces.state
    assert not differences(counts)
    assert not differences(contribution)
    for kind in (DailyTotals, ModelList, KnownSwarms):
        assert any(isinstance(event, kind) for event in story)

    peers, number, newest = len(state.members), state.round, state.held_out[-1]
    assert counts["peers"]["Swarms"] == peers == 1
    assert (facts["peers"], figures["members"]) == (peers, peers)
    assert f"waggle_node_training_peers {peers}\n" in metrics
    assert (facts["round"], figures["round"]) == (number, number)
    assert f"waggle_node_round {number}\n" in metrics
    assert (facts["held_out"]["right"], figures["held_out"]["right"]) == (newest.right, newest.right)
    assert round(facts["tokens_per_second"], 6) == round(figures["tokens_per_second"], 6)

    (model,) = [each for each in state.models.models if each.active]
    assert model.rounds == len(table) == days["all"]["rounds"] == contribution["rounds ever"]["You"]
    answers = sum(int(row["answers"]) for row in table)
    right = sum(round(float(row["right"]) * int(row["answers"])) for row in table)
    learned = sum(int(row["external_groups"]) for row in table)
    assert answers == days["all"]["answers"] == contribution["answers"]["You"]
    assert right == days["all"]["right"] == contribution["right answers"]["You"]
    assert learned == days["all"]["learned"] == contribution["groups learned from"]["You"]
    assert days["used_by"] == contribution["peers that fetched, ever"]["You"]
    assert len(contribution["Wh today"]) == 3
