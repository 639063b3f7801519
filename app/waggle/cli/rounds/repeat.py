"""`waggle repeat`: play a run again from its file and compare every round, or write that file."""

import argparse
import contextlib
import tempfile
from pathlib import Path

import msgspec

from waggle import node
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.errors import HistoryError
from waggle.core.message import Message
from waggle.core.settings import ModelSettings
from waggle.core.text.round_number import round_number
from waggle.engine.runtime import model_source
from waggle.engine.storage import run_file
from waggle.engine.storage.run_file import RunFile

DIFFERENT = 1  # exit code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("file", type=text, metavar="FILE", help="of a run")
    parser.add_argument("--write", action="store_true", help="write the run of this home to a new FILE, instead of playing it")


def run(arguments: argparse.Namespace) -> int:
    """Write a run, or play it; then the exit code is 1 if anything differs. Raises HistoryError, EngineError and OSError.

    It is played in a folder that is removed afterwards, unless `--home` names a new one.
    """
    path = paths.expand_user(Path(arguments.file))
    if arguments.write:
        written = run_file.run_of(paths.home_in(arguments.home))
        run_file.write(path, written)
        facts = {"file": str(path), "rounds": len(written.rounds), "weights": written.weights}
        return say_json(facts) if arguments.json else say(f"Written to {path}: {len(written.rounds)} rounds, and no key.")
    run_before = run_file.read(path)
    with contextlib.ExitStack() as stack:
        folder = arguments.home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waggle-")))
        home = paths.Home(paths.expand_user(folder).absolute())
        if home.model.history.exists():
            raise HistoryError(Message("%1 has rounds already.", home.root), "Name a new folder with --home.")
        report = _differences_of_computers(run_before)
        if not arguments.json:
            say(*report)
        first, played = _play(run_before, home, quiet=arguments.json)
        place = model_source.home_of(home, _model_of(run_before))
        has_same_weights = not first and run_file.weights_of(place) == (len(run_before.rounds), run_before.weights)
        has_same_scores = not first and _are_same_scores(run_before, place)
    is_same = has_same_weights and has_same_scores
    if arguments.json:
        say_json(
            {
                "same": is_same, "rounds": played, "first_difference": first or None, "same_held_out": has_same_scores,
                "same_weights": has_same_weights, "other_computer": report,
            }
        )  # fmt: skip
    elif first:
        say(first)
    else:
        say(
            f"All {played} rounds are the same.",
            "The held-out scores are the same." if has_same_scores else "The held-out scores differ.",
            "The weights are the same, to the last bit." if has_same_weights else "The weights differ.",
        )
    return 0 if is_same else DIFFERENT


def _play(before: RunFile, home: paths.Home, *, quiet: bool) -> tuple[str, int]:
    """Play until a round differs; return how it differs, empty if none does, and how many rounds are the same."""
    same = 0
    with node.run(home.root, {**node.AT_ANY_TIME, **before.settings}, until_round=len(before.rounds)) as running:
        for now, then in zip(running.rounds(), before.rounds, strict=False):  # in this order, the engine ends by itself
            ready = running.state.ready
            if ready is not None and (ready.base, ready.charter) != (before.base, before.charter):
                return "It is not the same model, or not the same swarm.", same
            if differences := run_file.differences(then, now):
                return f"Round {round_number(then.round)} differs: {', '.join(differences)}.", same
            same += 1
            if not quiet:
                say(f"round {round_number(now.round)}: the same, reward {now.reward:.3f}")
    return ("" if same == len(before.rounds) else f"It ended after {same} rounds."), same


def _model_of(before: RunFile) -> ModelSettings:
    names = {key.partition(".")[2]: value for key, value in before.settings.items() if key.startswith("model.")}
    return msgspec.convert(names, ModelSettings)


def _are_same_scores(before: RunFile, place: paths.Home) -> bool:
    """Whether the scores are the same that both have: larger models are measured by time."""
    now = {score.round: run_file.lasting_score(score) for score in run_file.read_rounds(place)[1]}
    return all(now.get(score.round, score) == score for score in before.held_out)


def _differences_of_computers(before: RunFile) -> list[str]:
    """What is other here than where the run was written, and may make other figures."""
    here = {"system": run_file.machine(), **run_file.versions()}
    there = {"system": before.machine, **before.libraries}
    return [f"{name}: {here.get(name, 'none')} here, {was} there" for name, was in there.items() if here.get(name) != was]
