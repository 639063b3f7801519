"""Test that what a person asks for is of this moment: export, chat and Try it have the last finished round, also after a kill."""

import hashlib
from pathlib import Path

from end_to_end.programs import Engine, running
from waggle.cli import main
from waggle.core import paths
from waggle.models.backend import open_policy
from waggle.models.shared import weight_files
from waggle.models.storage import checkpoint, training_journal
from waggle.protocol import commands, events
from waggle.protocol.events_chat import ChatOffer, TurnProgress
from waggle.protocol.events_models import ModelExported
from waggle.protocol.events_playground import QuestionAnswered

ALONE = (
    "swarm.solo=true", "computer.threads=1", "model.precision=float32", "model.prompt_form=example_opened",
    "learning.form_pay=on",
)  # fmt: skip


def test_what_a_person_asks_for_is_of_now_while_rounds_are_played_in_a_pause_and_after_a_kill(tmp_path, capsys):
    home = tmp_path / "home"
    with running(Engine(home, *ALONE)) as engine:
        engine.wait(events.PolicyUpdated, 120, lambda event: event.round >= 2 and event.step >= 2)
        playing = export(engine, tmp_path / "playing")
        engine.command(commands.Pause)
        paused = export(engine, tmp_path / "paused")
        now = paused.rounds
        assert now == engine.rounds()[-1].round + 1, "every finished round is in it"
        assert (playing.not_now, paused.not_now) == ("", "")
        assert f"| rounds trained | {now} |" in (tmp_path / "paused/README.md").read_text()
        newest = checkpoint.rounds(home / "checkpoints")
        assert newest < playing.rounds <= now, "no checkpoint has it"
        ask_everywhere(engine, now)
        assert main.main(["export", str(tmp_path / "command"), "--home", str(home)]) == 0
        assert f": {now} rounds of training.\n" in capsys.readouterr().out, "the engine writes it for the command, too"
        assert checkpoint.rounds(home / "checkpoints") == newest, "none was written for it"
        assert not list((home / "checkpoints").glob(".writing-*"))
        engine.kill()
    learned = learn_again(home, newest)
    assert weights_of(tmp_path / "paused") == weights_of(tmp_path / "command") == learned[now]
    assert weights_of(tmp_path / "playing") == learned[playing.rounds]
    assert len(set(learned.values())) > 1, "it learned something"
    assert main.main(["export", str(tmp_path / "saved"), "--home", str(home)]) == 0
    output = capsys.readouterr().out
    assert f": {newest} round" in output
    assert f"{now - newest} later round" in output
    with running(Engine(home, *ALONE)) as engine:
        engine.wait(events.PhaseChanged, 60, lambda event: event.phase == "paused")
        starting = export(engine, tmp_path / "starting")
        assert (starting.rounds, starting.not_now) == (newest, "Waggle is still starting.")
        engine.command(commands.Resume)
        assert engine.wait(events.Ready, 60).round == now, "no round was lost"
        engine.command(commands.Pause)
        restarted = export(engine, tmp_path / "restarted")
        ask_everywhere(engine, restarted.rounds)
        engine.kill()
    relearned = learn_again(home, checkpoint.rounds(home / "checkpoints"))
    assert weights_of(tmp_path / "restarted") == relearned[restarted.rounds]
    assert relearned.items() >= {number: weights for number, weights in learned.items() if number in relearned}.items()


def export(engine: Engine, folder: Path) -> ModelExported:
    engine.command(commands.ExportModel, 60, path=str(folder))
    return engine.wait(ModelExported, fits=lambda event: event.path == str(folder))


def ask_everywhere(engine: Engine, now: int) -> None:
    """Chat and Try it answer as the model after `now` rounds."""
    engine.command(commands.OfferChat)
    assert engine.wait(ChatOffer).moments[-1] == now
    engine.command(commands.SendMessage, 60, words="Simplify the fraction 25/35.", number=0)
    turn = engine.wait(TurnProgress, fits=lambda event: event.turn.finished).turn
    assert ([reply.rounds for reply in turn.replies], turn.not_now) == ([now, 0], "")
    engine.command(commands.AskModel, 60, specialty="bf", number=7)
    tried = engine.wait(QuestionAnswered)
    assert (tried.answers[-1].rounds, tried.not_now) == (now, "")


def learn_again(home: Path, newest: int) -> dict[int, str]:
    """The digest of the weights after each round from the checkpoint on, learned from the journal in this process."""
    policy = open_policy(paths.starter(), device="cpu", threads=1).policy
    base, root = checkpoint.base_of(paths.starter()), home / "checkpoints"
    saved, aside = checkpoint.load_newest(root, policy, base)
    assert (saved.round, aside) == (newest, [])
    digests = {newest: digest(policy.weights())}
    for entry in training_journal.entries(root, newest, base):
        training_journal.learn_again(policy.step, entry)
        digests[entry.saved.round] = digest(policy.weights())
    return digests


def weights_of(folder: Path) -> str:
    return digest(weight_files.load(folder / weight_files.WEIGHTS))


def digest(weights: checkpoint.Arrays) -> str:
    return hashlib.sha256(b"".join(weights[name].tobytes() for name in sorted(weights))).hexdigest()
