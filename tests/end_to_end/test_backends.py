"""Two backends in one swarm: an engine on MLX that cannot import torch, and one on torch; each continues the other's training."""

import shutil
import sys
from pathlib import Path

import pytest

from end_to_end.programs import WAGGLE, Engine, Seed, running
from end_to_end.test_first_light import LOOPBACK, lessons_from, solved, tail_of
from waggle.protocol import commands, events
from waggle.protocol.events_chat import TurnProgress
from waggle.protocol.events_playground import QuestionAnswered

pytest.importorskip("mlx.core")
WITHOUT_TORCH = (
    sys.executable,
    "-c",
    "import sys; sys.modules['torch'] = None; from waggle.cli.main import main; sys.exit(main(sys.argv[1:]))",
)
FRACTION = "Simplify the fraction 108/120 to its lowest terms. Give only the simplified fraction as your final answer."
DEVICES = ("mlx", "cpu")
BACKENDS = ("MLX", "torch")


def engine(home: Path, device: str, *settings: str) -> Engine:
    return Engine(
        home, LOOPBACK, f"computer.device={device}", "computer.threads=1", *settings,
        command=WITHOUT_TORCH if device == "mlx" else WAGGLE,
    )  # fmt: skip


def play_together(folder: Path, rounds: int, seconds: float) -> dict[str, float]:
    """Let both learn from each other for some rounds; then let each backend continue the other's home."""
    homes = [folder / "mlx", folder / "torch"]
    with running(Seed(folder / "seed")) as seed:
        settings = (f'swarm.seeds=["{seed.address()}"]',)
        with running(engine(homes[0], "mlx", *settings)) as first, running(engine(homes[1], "cpu", *settings)) as second:
            ready = [node.wait(events.Ready, 120) for node in (first, second)]
            assert [event.backend for event in ready] == list(BACKENDS)
            tails = [tail_of(node) for node in (first, second)]
            for learner, other in ((first, tails[1]), (second, tails[0])):
                learner.wait_round(rounds - 1, seconds)
                learner.wait(events.PolicyUpdated, seconds, lambda event, tail=other: taught_by(event, tail))
            used = [lessons_from(first, tails[1]), lessons_from(second, tails[0])]
            saved = [node.rounds()[-1].round + 1 for node in (first, second) if node.end() == 0]
    assert len(saved) == 2
    change_backends(homes, saved)
    return {
        "mixed_swarm_rounds": min(saved),
        "mixed_swarm_external_groups_min": min(used),
        "mixed_swarm_solved_first20_max": max(solved(node.rounds()[:20]) for node in (first, second)),
        "mixed_swarm_solved_last20_min": min(solved(node.rounds()[-20:]) for node in (first, second)),
    }


def taught_by(event: events.PolicyUpdated, tail: bytes) -> bool:
    return any(lesson.key.startswith(tail.hex()) for lesson in event.lessons)


def change_backends(homes: list[Path], saved: list[int]) -> None:
    """Open each home with the other backend, and play one more round."""
    for home, number, device, backend in zip(homes, saved, reversed(DEVICES), reversed(BACKENDS), strict=True):
        with running(engine(home, device, "swarm.solo=true")) as next_engine:
            ready = next_engine.wait(events.Ready, 120)
            assert (ready.backend, ready.round) == (backend, number), "the other backend did not continue the state"
            talk_and_try(next_engine, ready.specialties[0].dataset)
            next_engine.wait_round(number, 120)
            assert not [event for event in next_engine.all_events if isinstance(event, events.CheckpointSetAside)]
            assert next_engine.end() == 0


def talk_and_try(player: Engine, specialty: str) -> None:
    """Ask the current and an earlier model, both loaded beside the one that trains."""
    for number in (0, 1):
        assert isinstance(player.command(commands.SendMessage, 120, words=FRACTION, number=number), events.CommandDone)
        turn = player.wait(TurnProgress, 10, lambda event, number=number: event.number == number and event.turn.finished).turn
        assert all(reply.text for reply in turn.replies)
    assert isinstance(player.command(commands.AskModel, 120, specialty=specialty, number=1), events.CommandDone)
    assert player.wait(QuestionAnswered, 10).answers[0].completion.text


def test_engines_on_two_backends_learn_from_each_other_and_change_places(tmp_path):
    play_together(tmp_path, 3, 400)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_swarm_of_two_backends_climbs(tmp_path, figures):
    """Run by tests/measured/mlx.py."""
    figures.update(play_together(tmp_path, 150, 3000))
    shutil.rmtree(tmp_path)
    assert figures["mixed_swarm_external_groups_min"] >= 30
    assert figures["mixed_swarm_solved_last20_min"] > figures["mixed_swarm_solved_first20_max"]
