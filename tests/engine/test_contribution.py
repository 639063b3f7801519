"""Test one run of the engine: a choice that cannot start is undone, and a failure beside the preparation is told."""

import time
from functools import partial

import pytest

from waggle.core import paths
from waggle.core.errors import MemoryShort, ModelError, ModelMissing, QuestionsTooLong, Stopped, SwarmError
from waggle.engine import computer_watch, contribution
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_MODEL, NOT_CAUSED_BY_SWARM, UndoLog, UndoStep
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.startup.host import NodeHost
from waggle.engine.storage.pause_request import PauseRequest
from waggle.engine.system.memory_backoff import MAX_HALVINGS, MemoryBackoff
from waggle.protocol.schedule import Wishes
from waggle.rl.batch import nothing


@pytest.fixture(autouse=True)
def no_priority(monkeypatch) -> None:
    """A changed priority would last for all later tests."""
    monkeypatch.setattr(contribution, "set_priority", lambda _: True)


@pytest.fixture
async def process(tmp_path):
    """What lives as long as the engine's process."""
    home = paths.Home(tmp_path).prepare()
    publisher = EventPublisher(home.events)
    live_settings = LiveSettings(home.settings, (), publisher)
    yield contribution.ProcessResources(
        home,
        live_settings,
        publisher,
        CommandQueue(),
        MemoryBackoff(home, ""),
        PauseRequest(),
        UndoLog(),
        ChoiceDownload(publisher),
    )
    publisher.close()


def ends_with(error: Exception):
    async def contribute(*_: object) -> str:
        raise error

    return contribute


@pytest.mark.parametrize("error", [MemoryShort("The model ran out of memory."), ModelError("It is not there.")])
async def test_what_cannot_begin_is_taken_back_also_for_want_of_memory(process, monkeypatch, error):
    went_back = []
    process.undo_log.add(UndoStep(partial(went_back.append, choice)) for choice in ("first choice", "second choice"))
    monkeypatch.setattr(contribution, "_play_until_stopped", ends_with(error))
    assert await contribution.contribute(process, "") == "Going back."
    assert (went_back, process.undo_log.steps) == (["second choice", "first choice"], [])
    assert process.backoff.parts == 1, "what is gone back to fitted as it was"
    assert process.publisher.state.warnings[0].title == error.title


@pytest.mark.parametrize(
    ("error", "undone"),
    [
        (ModelMissing("Hugging Face has lost a file of it."), ["model"]),
        (SwarmError("The port is taken."), ["swarm"]),
        (QuestionsTooLong("The questions are longer than what it reads."), ["swarm", "model"]),
    ],
)
async def test_what_has_nothing_to_do_with_a_failure_stays_chosen(process, monkeypatch, error, undone):
    went_back = []
    process.undo_log.add(
        [
            UndoStep(lambda: went_back.append("model"), NOT_CAUSED_BY_MODEL),
            UndoStep(lambda: went_back.append("swarm"), NOT_CAUSED_BY_SWARM),
        ]
    )
    monkeypatch.setattr(contribution, "_play_until_stopped", ends_with(error))
    assert await contribution.contribute(process, "")
    assert (went_back, len(process.undo_log.steps)) == (undone, 2 - len(undone))
    if undone != ["model"]:
        return
    with pytest.raises(ModelMissing):
        await contribution.contribute(process, "")
    assert went_back == ["model"], "another swarm would not help"


async def test_where_nothing_was_chosen_memory_is_spared_until_there_are_no_smaller_parts(process, monkeypatch):
    monkeypatch.setattr(contribution, "_play_until_stopped", ends_with(MemoryShort("The model ran out of memory.")))
    for times in range(MAX_HALVINGS):
        assert await contribution.contribute(process, "")
        assert process.backoff.parts == 2 << times
    with pytest.raises(MemoryShort):
        await contribution.contribute(process, "")


async def test_a_fault_beside_a_preparation_that_it_ends_is_told(process, monkeypatch):
    def blind() -> None:
        raise OSError(24, "Too many open files")

    async def prepare(_home: object, _chosen: object, host: NodeHost, *_: object) -> None:
        await host.stopped.wait()
        raise Stopped

    monkeypatch.setattr(computer_watch, "SensorReader", blind)
    monkeypatch.setattr(contribution, "prepare_node", prepare)
    with pytest.raises(OSError, match="Too many open files"):
        await contribution._play_until_stopped(process, "")


async def test_a_lifecycle_that_failed_decides_nothing_when_its_pause_ends(process, monkeypatch):
    backoffs = []

    class Watched(Lifecycle):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            backoffs.append(self)

    async def prepare(*_: object, **__: object) -> None:
        assert not backoffs[0]._timer.cancelled()
        raise ModelMissing("Hugging Face has lost a file of it.")

    monkeypatch.setattr(contribution, "Lifecycle", Watched)
    monkeypatch.setattr(contribution, "prepare_node", prepare)
    now = time.time()
    process.pause_request.save(Wishes(paused=True, until=now + 3600, asked_at=now))
    process.undo_log.add([UndoStep(nothing)])
    assert await contribution.contribute(process, ""), "it goes back"
    assert backoffs[0].stopped.is_set()
    assert backoffs[0]._timer.cancelled()
    assert process.pause_request.wishes.paused, "which holds for the next one"
