"""Two backends in one swarm: an engine on MLX that cannot import torch, and one on torch; each goes on where the other was."""

import shutil
import sys
from pathlib import Path

import pytest

from end_to_end.programs import WAGGLE, Engine, Seed, running
from end_to_end.test_first_light import LOOPBACK, lessons_from, solved, tail_of
from waggle.protocol import commands, events
from waggle.protocol.events_chat import TurnGrew
from waggle.protocol.events_playground import QuestionAnswered

pytest.importorskip("mlx.core")
WITHOUT_TORCH = (
    sys.executable,
    "-c",
    "import sys; sys.modules['torch'] = None; from waggle.cli.main import main; sys.exit(main(sys.argv[1:]))",
)
DEVICES = ("mlx", "cpu")
BACKENDS = ("MLX", "torch")


def engine(home: Path, device: str, *settings: str) -> Engine:
    return Engine(
        home, LOOPBACK, f"computer.device={device}", "computer.threads=1", *settings,
        command=WITHOUT_TORCH if device == "mlx" else WAGGLE,
    )  # fmt: skip


def play_together(folder: Path, rounds: int, seconds: float) -> dict[str, float]:
    """Both learn from each other for so many rounds and leave; then each home is gone on with by the other backend."""
    homes = [folder / "mlx", folder / "torch"]
    with running(Seed(folder / "seed")) as seed:
        settings = (f'swarm.seeds=["{seed.address()}"]',)
        with running(engine(homes[0], "mlx", *settings)) as first, running(engine(homes[1], "cpu", *settings)) as second:
            ready = [one.wait(events.Ready, 120) for one in (first, second)]
            assert [one.backend for one in ready] == list(BACKENDS)
            tails = [tail_of(one) for one in (first, second)]
            for one, other in ((first, tails[1]), (second, tails[0])):
                one.wait_round(rounds - 1, seconds)
                one.wait(events.PolicyUpdated, seconds, lambda event, tail=other: taught_by(event, tail))
            used = [lessons_from(first, tails[1]), lessons_from(second, tails[0])]
            saved = [one.rounds()[-1].round + 1 for one in (first, second) if one.end() == 0]
    assert len(saved) == 2
    change_backends(homes, saved)
    return {
        "mixed_swarm_rounds": min(saved),
        "mixed_swarm_external_groups_min": min(used),
        "mixed_swarm_solved_first20_max": max(solved(one.rounds()[:20]) for one in (first, second)),
        "mixed_swarm_solved_last20_min": min(solved(one.rounds()[-20:]) for one in (first, second)),
    }


def taught_by(event: events.PolicyUpdated, tail: bytes) -> bool:
    return any(lesson.key.startswith(tail.hex()) for lesson in event.lessons)


def change_backends(homes: list[Path], saved: list[int]) -> None:
    """Each home is opened by the backend that did not write it, and plays one more round from where it was."""
    for home, number, device, backend in zip(homes, saved, reversed(DEVICES), reversed(BACKENDS), strict=True):
        with running(engine(home, device, "swarm.solo=true")) as again:
            ready = again.wait(events.Ready, 120)
            assert (ready.backend, ready.round) == (backend, number), "the state was not taken over"
            talk_and_try(again, ready.specialties[0].dataset)
            again.wait_round(number, 120)
            assert not [event for event in again.told if isinstance(event, events.CheckpointSetAside)]
            assert again.end() == 0


def talk_and_try(one: Engine, specialty: str) -> None:
    """The model of now and of before are loaded beside the one that plays, and answer both."""
    for number in (0, 1):
        assert isinstance(one.command(commands.Say, 120, words="What is 1/2 + 1/3?", number=number), events.CommandDone)
        turn = one.wait(TurnGrew, 10, lambda event, number=number: event.number == number and event.turn.finished).turn
        assert all(reply.text for reply in turn.replies)
    assert isinstance(one.command(commands.AskModel, 120, specialty=specialty, number=1), events.CommandDone)
    assert one.wait(QuestionAnswered, 10).answers[0].completion.text


def test_engines_on_two_backends_learn_from_each_other_and_change_places(tmp_path):
    play_together(tmp_path, 3, 400)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_swarm_of_two_backends_climbs(tmp_path, figures):
    """What tests/measured/mlx.py runs."""
    figures.update(play_together(tmp_path, 150, 3000))
    shutil.rmtree(tmp_path)
    assert figures["mixed_swarm_external_groups_min"] >= 30
    assert figures["mixed_swarm_solved_last20_min"] > figures["mixed_swarm_solved_first20_max"]
