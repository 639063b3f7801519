"""A real engine that downloads its model by name from a local hub."""

import re
import shutil
from pathlib import Path

import system_folders
from end_to_end.programs import Engine, Program, running
from models.local_hub import Hub, local_hub, no_hub
from models.storage.test_ownership import retrain
from waggle.core import paths
from waggle.core.resumable_download import PIECE
from waggle.models.storage.hub_cache import remove
from waggle.protocol import commands, events
from waggle.protocol.events_models import ModelChoice, ModelUnavailable
from waggle.protocol.events_swarms import StartedAgain

NAME = "bees/starter"
CHOSEN = ("swarm.solo=true", f"model.name={NAME}")
WEIGHTS = "model.safetensors"


def engine_of(hub: Hub, folder: Path) -> Engine:
    environment = {"HF_ENDPOINT": hub.endpoint, system_folders.CACHE: str(folder / "cache")}
    return Engine(folder / "home", *CHOSEN, environment=environment)


def wait_downloaded(engine: Engine, at_least: int) -> events.Downloading:
    return engine.wait(events.Downloading, fits=lambda event: event.done >= at_least)


def test_a_download_is_told_stopped_at_once_gone_on_with_paused_and_resumed_and_made_again_as_it_was(tmp_path):
    with local_hub() as hub:
        hub.add(NAME, paths.starter())
        hub.hold[WEIGHTS] = 4 * PIECE
        with running(engine_of(hub, tmp_path)) as engine:
            assert wait_downloaded(engine, 4 * PIECE).model == NAME
            begun = [event for event in engine.all_events if isinstance(event, events.Preparing | events.Downloading)]
            assert begun[0].part == "Looking for the model", "an earlier failure must not show during a download"
            with running(Program("ctl", "status", "--home", str(tmp_path / "home"))) as ctl:
                ctl.wait_line(lambda line: re.search(rb"Downloading the model: [\d,]+ of [\d,]+ kB", line) is not None, 30)
                ctl.wait_line(lambda line: b"The download resumes if interrupted." in line, 30)
            engine.command(commands.Stop)
            engine.wait(events.EngineStopped)
            assert engine.end() == 0, "it does not wait for a silent hub"
        asked_before, hub.hold[WEIGHTS] = len(hub.requests), 8 * PIECE
        with running(engine_of(hub, tmp_path)) as engine:
            wait_downloaded(engine, 8 * PIECE)
            engine.command(commands.Pause)
            hub.released.set()
            engine.wait(events.PhaseChanged, fits=lambda event: event.phase == "paused")
            engine.command(commands.Resume)
            engine.wait(events.PhaseChanged, fits=lambda event: event.phase == "preparing")
            assert engine.wait(events.Ready).model == "starter 0.8M"
            engine.wait(events.PhaseChanged, fits=lambda event: event.phase == "contributing")
            assert not remove(tmp_path / "cache/waggle/models" / NAME), "it is in use"
            engine.wait_round(0, 60)
            assert engine.end() == 0
        (second_request,) = [request for request in hub.requests[asked_before:] if "/cdn/" in request.path]
        assert second_request.range == f"bytes={4 * PIECE}-", "the first part was not downloaded again"
        assert remove(tmp_path / "cache/waggle/models" / NAME), "a cache may be emptied"
        hub.newer[NAME] = {"config.json": hub.repositories[NAME]["config.json"] + b"\n"}
        with running(engine_of(hub, tmp_path)) as engine:
            assert engine.wait(events.Ready).round >= 1, "it continues with its first model"


def test_an_engine_whose_hub_is_away_at_its_start_waits_for_it_and_another_model_may_be_chosen_meanwhile(tmp_path):
    with no_hub() as nowhere:
        environment = {"HF_ENDPOINT": nowhere, system_folders.CACHE: str(tmp_path / "cache")}
        with running(Engine(tmp_path / "home", *CHOSEN, environment=environment)) as engine:
            unavailable = engine.wait(ModelUnavailable)
            assert "Hugging Face cannot be reached" in unavailable.reason
            assert isinstance(engine.command(commands.ChooseModel), events.CommandDone)
            assert engine.wait(events.Ready, 120).model.startswith("Starter")
            assert engine.end() == 0


def test_a_chosen_model_is_downloaded_while_the_present_one_trains_and_a_kill_in_the_middle_costs_nothing(tmp_path):
    with local_hub() as hub:
        other = Path(shutil.copytree(paths.starter(), tmp_path / "other"))
        retrain(other)  # or it would be the starter, whose training goes on
        hub.add(NAME, other)
        hub.hold[WEIGHTS] = 4 * PIECE
        environment = {"HF_ENDPOINT": hub.endpoint, system_folders.CACHE: str(tmp_path / "cache")}
        with running(Engine(tmp_path / "home", "swarm.solo=true", environment=environment)) as engine:
            engine.wait_round(0, 120)
            start = len(engine.lines)
            assert isinstance(engine.command(commands.ChooseModel, name=NAME), events.CommandDone)
            engine.wait(ModelChoice, 60, lambda event: event.done >= 4 * PIECE, start)
            engine.wait(events.RoundCompleted, 120, start=len(engine.lines))
            assert not any(isinstance(event, StartedAgain) for event in engine.all_events), "training was interrupted"
            engine.process.kill()
            engine.process.wait(30)
        hub.hold.clear()
        with running(Engine(tmp_path / "home", "swarm.solo=true", environment=environment)) as engine:
            ready = engine.wait(events.Ready, 120)
            assert ready.model.startswith("Starter"), "it is trained as long as no other is here"
            assert ready.round >= 1
            assert isinstance(engine.command(commands.ChooseModel, name=NAME), events.CommandDone)
            engine.wait(StartedAgain, 60)
            assert engine.wait(events.Ready, 120, lambda event: event.round == 0).model == "starter 0.8M"
            engine.wait_round(0, 120)
            assert engine.end() == 0
        last_request = [request for request in hub.requests if "/cdn/" in request.path][-1]
        assert last_request.range == f"bytes={4 * PIECE}-", "the first part was not downloaded again"
