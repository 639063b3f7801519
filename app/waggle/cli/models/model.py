"""`waggle models`: list the models on this computer and those that Waggle suggests, search the hub, choose or remove one."""

import argparse

import msgspec

from waggle.cli.models.choosing import choose
from waggle.cli.models.deciding import decide
from waggle.cli.shared.engine import ask, engine_runs, status
from waggle.cli.shared.model_argument import model_of
from waggle.cli.shared.options import add_home, add_settings, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths, settings
from waggle.core.errors import EngineError, ModelError
from waggle.core.message import Message, packed_message
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_fit, model_offers
from waggle.engine.services.models.model_list import list_models
from waggle.engine.services.models.models import remove_model
from waggle.engine.services.swarms.better_swarm import swarm_to_begin_in
from waggle.models.storage import hub_search
from waggle.protocol import commands
from waggle.protocol.events_models import HubResults, ModelDetails, ModelList, ModelOffer

NEEDS = {"search": "words", "choose": "a model", "remove": "a model"}
VERBS = ("list", "first", "search", "choose", "cancel", "remove", "anew", "keep")
SEARCH_SECONDS = 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser)
    add_json(parser)
    parser.add_argument(
        "verb", nargs="?", choices=VERBS, default="list",
        help="what to do; first: the one to begin with, in JSON; cancel: stop a download; "
        "anew, keep: decide about a changed model",
    )  # fmt: skip
    parser.add_argument(
        "what", nargs="?", type=text, default="",
        help="search: words; choose: owner/name or an address on the hub, a folder, or `starter`; remove: owner/name",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says. Raises EngineError and ModelError."""
    home = paths.home_in(arguments.home)
    if bool(arguments.what) != (arguments.verb in NEEDS):
        needs = f"needs {NEEDS.get(arguments.verb, 'nothing')}"
        raise EngineError(f"`waggle model {arguments.verb}` {needs} behind it.", "`waggle model --help` explains it.")
    match arguments.verb:
        case "list":
            return _list(home, tuple(arguments.set), as_json=arguments.json)
        case "first":
            return _first(settings.read(home.settings, tuple(arguments.set)))
        case "search":
            return _search(home, arguments.what, as_json=arguments.json)
        case "choose":
            choose(home, ModelSettings() if arguments.what == "starter" else model_of(arguments.what), report=say)
            return 0
        case "remove":
            return _remove(home, arguments.what)
        case "anew" | "keep":
            return decide(home, arguments.verb)
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


def _list(home: paths.Home, overrides: tuple[str, ...], *, as_json: bool) -> int:
    if engine_runs(home) and not overrides:
        answers = ask(home, commands.ListModels(id=commands.new_id()), SEARCH_SECONDS)
        listed = next(answer for answer in answers if isinstance(answer, ModelList))
    else:
        chosen = settings.read(home.settings, overrides)
        listed = list_models(home, chosen, model_fit.measure_machine(chosen))
    here = {model.name for model in listed.models}
    suggested = [offer for offer in listed.suggested if offer.name not in here]
    if as_json:
        return say_json({"models": listed.models, "suggested": suggested, "folder": listed.cache, "free_bytes": listed.free})
    return say("On this computer:", *map(model_line, listed.models), "", "Suggested:", *map(offer_line, suggested))


def _first(chosen: settings.Settings) -> int:
    judged = model_fit.suggestions(model_fit.measure_machine(chosen), chosen)
    first = model_fit.first_choice(judged)
    offer = next((model_offers.offer_of(model, verdict) for model, verdict in judged if model is first), None)
    if offer is not None:
        offer = msgspec.structs.replace(offer, swarm=swarm_to_begin_in(offer.weights))
    return say(msgspec.json.encode(offer, enc_hook=packed_message).decode())  # for the window, which has its own language


def _search(home: paths.Home, words: str, *, as_json: bool) -> int:
    if engine_runs(home):
        answers = ask(home, commands.SearchModels(id=commands.new_id(), words=words[:100]), SEARCH_SECONDS)
        offers = next(answer.models for answer in answers if isinstance(answer, HubResults))
    else:
        offers = model_offers.of_hub(hub_search.search(words), None, model_offers.suggested(None, settings.Settings()))
    if as_json:
        return say_json(offers)
    return say(*(map(offer_line, offers) if offers else ["Hugging Face has no such model that Waggle can read."]))


def _remove(home: paths.Home, name: str) -> int:
    if paths.expand_user(name).is_absolute():  # as the list names it
        raise ModelError(
            Message("%1 is a folder of yours, which Waggle does not delete.", name), "Choose another model to train."
        )
    if engine_runs(home):
        ask(home, commands.RemoveModel(id=commands.new_id(), name=name))
    elif name == settings.read(home.settings).model.name:
        raise EngineError("This model is chosen.", "Choose another one first.")
    else:
        remove_model(name)
    return say(f"{name} is not on this computer any more. What it learned here is kept.")


def _cancel(home: paths.Home) -> int:
    choice = status(home).choice
    if choice is None or choice.stage == "failed":
        return say("No model is being downloaded.")
    ask(home, commands.CancelChoice(id=commands.new_id()))
    return say("Stopped. What has arrived is kept.")
