"""`waggle model`: list the models on this computer and those that Waggle suggests, search the hub, choose a model to train."""

import argparse
import sys
import time

import msgspec

from waggle.cli import ctl
from waggle.cli.shared.model_argument import model_of
from waggle.cli.shared.options import add_home, add_settings, text
from waggle.core import paths, settings
from waggle.core.errors import EngineError, ModelError
from waggle.core.settings import ModelSettings
from waggle.engine.control import server
from waggle.engine.runtime import model_fit, model_offers, model_source
from waggle.engine.services.better_swarm import better_swarm_for_choice, swarm_to_begin_in
from waggle.engine.services.model_list import list_models
from waggle.engine.system.opening_note import OpeningNote
from waggle.models.storage import hub_search
from waggle.protocol import commands
from waggle.protocol.events_models import ModelChoice, ModelDetails, ModelOffer
from waggle.protocol.state import State
from waggle.protocol.swarm_suggestion import command_line

VERBS = ("list", "first", "search", "choose", "cancel")
POLL_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    parser.add_argument("verb", choices=VERBS, help="what to do; first: the one to begin with, in JSON; cancel: stop a download")
    parser.add_argument(
        "what", nargs="?", type=text, default="",
        help="search: words; choose: owner/name or an address on the hub, a folder, or `starter`",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says. Raises EngineError and ModelError."""
    home = paths.home_in(arguments.home)
    if bool(arguments.what) != (arguments.verb in ("search", "choose")):
        needs = (
            "needs a model" if arguments.verb == "choose" else "needs words" if arguments.verb == "search" else "needs nothing"
        )
        raise EngineError(f"`waggle model {arguments.verb}` {needs} behind it.", "`waggle model --help` explains it.")
    match arguments.verb:
        case "list":
            return _list(home, settings.read(home.settings, tuple(arguments.set)))
        case "first":
            return _first(settings.read(home.settings, tuple(arguments.set)))
        case "search":
            offers = model_offers.of_hub(hub_search.search(arguments.what), None)
            return _print(*(map(offer_line, offers) if offers else ["The hub has no such model that Waggle can read."]))
        case "choose":
            return _choose(home, ModelSettings() if arguments.what == "starter" else model_of(arguments.what))
        case _:
            return _cancel(home)


def offer_line(offer: ModelOffer) -> str:
    """A model of the hub in one line."""
    facts = (
        f"{offer.weights / 1e6:,.0f} million parameters" if offer.weights else "",
        f"{offer.bytes / 1e6:,.0f} MB" if offer.bytes else "",
        offer.licence,
        "needs an account" if offer.gated else "",
        "quantised" if offer.quantised else "",
    )
    return f"{offer.name}: {', '.join(filter(None, facts))}. {offer.good_at} {offer.fit}".strip()


def model_line(model: ModelDetails) -> str:
    """A model on this computer in one line."""
    facts = (
        "chosen" if model.active else "",
        f"{model.bytes / 1e6:,.0f} MB" if model.bytes else "",
        "" if model.finished else "not complete",
        f"{model.rounds} round{'' if model.rounds == 1 else 's'} trained here" if model.rounds else "",
    )
    return f"{model.name or model.folder or 'starter'}: {', '.join(filter(None, facts))}. {model.fit}".strip()


def _list(home: paths.Home, chosen: settings.Settings) -> int:
    listed = list_models(home, chosen, model_fit.measure_machine(chosen))
    here = {model.name for model in listed.models}
    suggested = [offer_line(offer) for offer in listed.suggested if offer.name not in here]
    return _print("On this computer:", *map(model_line, listed.models), "", "Suggested:", *suggested)


def _first(chosen: settings.Settings) -> int:
    judged = model_fit.suggestions(model_fit.measure_machine(chosen), chosen)
    first = model_fit.first_choice(judged)
    offer = next((model_offers.offer_of(model, verdict) for model, verdict in judged if model is first), None)
    if offer is not None:
        offer = msgspec.structs.replace(offer, swarm=swarm_to_begin_in(offer.weights))
    return _print(msgspec.json.encode(offer).decode())


def _choose(home: paths.Home, model: ModelSettings) -> int:
    if not server.is_running(home):
        _require_possible(model)
        OpeningNote(home).forget_failure()
        settings.change(home.settings, {"model.name": model.name or None, "model.folder": model.folder or None})
        return _print(f"The next engine trains {model.name or model.folder or 'the starter'}.", *_suggestion(home, model))
    ctl.ask(home, commands.ChooseModel(id=commands.new_id(), name=model.name, folder=model.folder))
    reported = ""
    while (choice := _under_way(ctl.status(home), model)) is not None:
        if choice.stage == "failed":
            raise ModelError(choice.title, choice.advice)
        if (words := _progress(choice)) != reported:
            reported = words
            _print(words)
        time.sleep(POLL_SECONDS)
    now = settings.read(home.settings).model
    if (now.name, now.folder) != (model.name, model.folder):
        raise ModelError("The choice was cancelled, or another one took its place.", "What has arrived is kept.")
    return _print("Chosen.", *_suggestion(home, model))


def _suggestion(home: paths.Home, model: ModelSettings) -> list[str]:
    """A sentence that names a swarm that suits the chosen model better, if there is one."""
    chosen = settings.read(home.settings)
    better = better_swarm_for_choice(home, chosen, model) if chosen.window.suggest_swarm else None
    return [command_line(better)] if better is not None else []


def _cancel(home: paths.Home) -> int:
    choice = ctl.status(home).choice
    if choice is None or choice.stage == "failed":
        return _print("No model is being downloaded.")
    ctl.ask(home, commands.CancelChoice(id=commands.new_id()))
    return _print("Stopped. What has arrived is kept.")


def _require_possible(model: ModelSettings) -> None:
    """Raise ModelError if a folder has no model, or a name cannot be one."""
    if model.name:
        model_source.is_here(model.name)
    else:
        model_source.require_here(model)


def _under_way(state: State, model: ModelSettings) -> ModelChoice | None:
    choice = state.choice
    return choice if choice is not None and (choice.name, choice.folder) == (model.name, model.folder) else None


def _progress(choice: ModelChoice) -> str:
    if choice.stage == "checking":
        return "Checking it."
    if choice.stage == "converting":
        return f"Converting: {100 * choice.done // max(1, choice.total)}%"
    return f"Downloading: {100 * choice.done // choice.total}%" if choice.total else "Asking the hub."


def _print(*lines: str) -> int:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 0
