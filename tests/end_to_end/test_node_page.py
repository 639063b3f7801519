"""The status page of a real engine: a model that trains alone is seen to train, and a restart forgets none of its curve."""

import json
from pathlib import Path

import httpx2

from end_to_end.programs import Engine, running
from network.loopback import free_port
from waggle.core.text.round_number import round_number
from waggle.protocol import commands, events

QUICK = ("swarm.host=127.0.0.1", "learning.questions=1", "learning.local=1", "learning.held_out_questions=1",
         "learning.held_out_every=1")  # fmt: skip


def read(port: int, path: str = "/") -> str:
    return httpx2.get(f"http://127.0.0.1:{port}{path}").raise_for_status().text


def test_the_page_of_a_lone_engine_shows_its_own_rounds_and_so_does_that_of_one_without_a_network(tmp_path: Path) -> None:
    port = free_port()
    settings = (*QUICK, f"web.port={port}")
    with running(Engine(tmp_path, *settings)) as engine:
        engine.wait(events.Ready, 120)
        engine.wait_round(2, 120)
        engine.command(commands.Pause)
        engine.wait(events.PhaseChanged, fits=lambda event: event.phase == "paused")
        ready, state = engine.state().ready, engine.state()
        page, metrics, figures = read(port), read(port, "/metrics"), json.loads(read(port, "/status.json"))["training"]
    summary = state.rounds[-1]
    assert [number for number, _ in figures["rewards"]] == [each.round for each in state.rounds]
    assert (figures["round"], figures["phase"], figures["members"]) == (state.round, "paused", 0)
    assert (figures["reward"], figures["entropy"]) == (summary.reward, summary.metrics.entropy)
    assert figures["memory"] == summary.memory > 10e6
    score = figures["held_out"]
    assert {each["title"] for each in score["specialties"]} == {each.title for each in ready.specialties}
    assert sum(each["total"] for each in score["specialties"]) == score["total"]
    assert f"Paused in round {round_number(state.round)}." in page
    assert "Nobody else has shared anything lately." in page
    assert "Nobody yet." not in page
    assert '<polyline class="reward"' in page
    assert f'fingerprint="{ready.node[-8:]}"' in metrics
    assert f"waggle_node_round {state.round}\n" in metrics
    assert 'waggle_node_phase{phase="paused"} 1' in metrics
    with running(Engine(tmp_path, *settings, "swarm.solo=true")) as engine:
        engine.wait(events.Ready, 120)
        engine.command(commands.Resume)  # a pause outlasts a restart
        engine.wait_round(summary.round + 1, 120)
        later = json.loads(read(port, "/status.json"))["training"]
        assert "This node trains alone by choice." in read(port)
        assert 'waggle_node_company{company="solo"} 1' in read(port, "/metrics")
    assert later["rewards"][: len(figures["rewards"])] == figures["rewards"]
    assert later["company"] == "solo"
