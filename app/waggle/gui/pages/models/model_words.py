"""Models in words: their names, facts, and how far the choice of one is."""

from collections.abc import Mapping
from pathlib import Path

from waggle.core.message import Message, as_message, turns_of
from waggle.gui.i18n.formatting import decimal, duration, figure, later, one_line, plural, size, tr, visible
from waggle.protocol.events_models import ModelChoice, ModelDetails, ModelExported, ModelList, ModelOffer

Offers = Mapping[str, ModelOffer]  # Waggle's suggestions by the name of their model
APART = "  ·  "  # between two facts
# What the engine says of a model, and the window in other words.
FITS = "Fits: about %1 answers an hour or more, %2 of %3 GB of memory."
TOO_LARGE = "This model does not fit: it needs at least %1 GB of memory, and Waggle may use %2 GB."
LEAN = "All weights are trained with little memory"
ADAPTERS = ("Adapters (LoRA) are trained", "Adapters (LoRA) are trained over layers in 4 bits")
NEEDS_LICENCE = "%1 is given only to those who accepted its licence."
REFUSED = "Hugging Face refuses %1 to your token."
UNCHECKED = later("Waggle checks first whether it fits")
BILLION, MILLION = 1_000_000_000, 1_000_000


def offers_of(listing: ModelList | None) -> Offers:
    """The suggestions in a list of models, if there is one."""
    return {offer.name: offer for offer in listing.suggested} if listing is not None else {}


def model_name(model: ModelDetails, offers: Offers) -> str:
    """The name of a model on this computer, without its owner."""
    if model.kind == "starter":
        return tr("Starter")
    return _short_name(model.name, offers) if model.kind == "hub" else one_line(Path(model.folder).name)


def _short_name(name: str, offers: Offers) -> str:
    return offer_title(offers[name]) if name in offers else one_line(name.partition("/")[2] or name)


def model_summary(model: ModelDetails, offers: Offers) -> str:
    """Source, size and training of a model, in one line."""
    folder = tr("In %1").replace("%1", one_line(str(Path(model.folder).parent)))
    owner = "" if model.name in offers else one_line(model.name.partition("/")[0])  # not of a suggested model
    hub = f"Hugging Face: {owner}" if owner else "Hugging Face"
    where = {"starter": tr("Comes with Waggle"), "hub": hub, "folder": folder}[model.kind]
    if not model.finished:
        return APART.join((where, _arrived(model, offers[model.name].bytes if model.name in offers else 0)))
    trained = (
        plural(model.rounds, "%n round trained here", "%n rounds trained here") if model.rounds else tr("not trained here yet")
    )
    return APART.join((where, size(model.bytes), trained))


def _arrived(model: ModelDetails, whole: int) -> str:
    """How much of a model was downloaded; `whole`: all of its bytes, 0 if that is not known."""
    if not model.bytes:
        return tr("not downloaded yet")
    if not whole:
        return tr("%1 downloaded so far").replace("%1", size(model.bytes))
    return tr("%1 of %2 downloaded").replace("%1", size(model.bytes)).replace("%2", size(whole))


def fit_parts(fit: str) -> tuple[str, str]:
    """Whether a model fits in one short line; and in full for a tooltip, with how it would be trained."""
    first, *how = turns_of(fit)
    short = _short_fit(first)
    return (short, " ".join(map(tr, (first, *how)))) if short else (tr(first), " ".join(map(tr, how)))


def _short_fit(fit: Message) -> str:
    """Speed and memory, or the memory that lacks; empty for a sentence that has no shorter form."""
    match (fit.id, fit.values):
        case words, _ if words == FITS:
            return tr(Message("%1+ answers an hour, %2 of %3 GB of memory", *fit.values))
        case words, _ if words == TOO_LARGE:
            return tr(Message("Needs at least %1 GB of memory; Waggle may use %2 GB", *fit.values))
    return ""


def fit_label(fit: str) -> str:
    """In a few words that a model fits, and what makes it fit."""
    methods = {value.id for part in turns_of(fit) for value in part.values if isinstance(value, Message)}
    if LEAN in methods:
        return tr("Fits, saving memory")
    return tr("Fits as an adapter") if methods.intersection(ADAPTERS) else tr("Fits")


def storage_words(models: tuple[ModelDetails, ...], free: int) -> str:
    """The disk space that downloaded models take, and what is free."""
    used = sum(model.bytes for model in models if model.kind == "hub")
    if not used:
        return tr("No downloads; %1 are free").replace("%1", size(free))
    return tr("Downloaded models take %1; %2 are free").replace("%1", size(used)).replace("%2", size(free))


def offer_title(offer: ModelOffer) -> str:
    """The name of a model of the hub, without its owner."""
    return one_line(offer.title or offer.name.partition("/")[2] or offer.name)


def offer_size(offer: ModelOffer) -> str:
    """Parameters and download of a model of the hub."""
    facts = []
    if offer.weights >= BILLION:
        facts.append(tr("%1 billion parameters").replace("%1", decimal(offer.weights / BILLION, 1)))
    elif offer.weights:
        facts.append(tr("%1 million parameters").replace("%1", figure(max(1, round(offer.weights / MILLION)))))
    if offer.bytes:
        facts.append(tr("%1 to download").replace("%1", size(offer.bytes)))
    return APART.join(facts) or tr("Size not known yet")


def offer_terms(offer: ModelOffer) -> str:
    """Licence, form and popularity of a model of the hub, as far as they are known."""
    facts = [_licence_name(offer.licence)] if offer.licence else []
    if offer.quantised:
        facts.append(tr("quantised"))
    if offer.downloads:
        facts.append(plural(offer.downloads, "%n download", "%n downloads"))
    return APART.join(facts)


def _licence_name(licence: str) -> str:
    """A licence as its authors write it; the hub writes known ones in small letters."""
    known = ("Apache-2.0", "BSD-3-Clause", "CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-SA-4.0", "GPL-3.0", "MIT", "OpenRAIL")
    return next((name for name in known if name.lower() == licence), one_line(licence))


def chosen_name(choice: ModelChoice, offers: Offers) -> str:
    """The name of a model that was chosen."""
    return _short_name(choice.name, offers) if choice.name else one_line(Path(choice.folder).name) or tr("Starter")


def needs_licence(choice: ModelChoice | None) -> bool:
    """Whether the choice failed because the licence of the model was not accepted."""
    return choice is not None and choice.stage == "failed" and as_message(choice.title).id == NEEDS_LICENCE


def lacks_access(choice: ModelChoice) -> bool:
    """Whether the choice failed because the hub gives this model only to some accounts, such as those with its licence."""
    return choice.stage == "failed" and as_message(choice.title).id in (NEEDS_LICENCE, REFUSED)


def choice_title(choice: ModelChoice, offers: Offers) -> str:
    """How far a choice is, in a few words."""
    match choice.stage:
        case "failed" if as_message(choice.title).id == NEEDS_LICENCE:
            words = tr("Accept the licence of %1 first")
        case "failed" if as_message(choice.title).id == REFUSED:
            words = tr("Hugging Face refuses %1 to your token")
        case "failed":
            words = tr("Waggle could not switch to %1")
        case "checking":
            words = tr("Checking %1")
        case "converting":
            words = tr("Converting %1")
        case _:
            words = tr("Downloading %1") if choice.total else tr("Looking up %1 on Hugging Face")
    return words.replace("%1", chosen_name(choice, offers))


def failure_words(choice: ModelChoice | None) -> str:
    """Why a choice failed, in one sentence beside the model; empty if it did not."""
    if choice is None or choice.stage != "failed":
        return ""
    return tr("Its licence is not accepted yet.") if needs_licence(choice) else visible(tr(choice.title))


def choice_progress(choice: ModelChoice) -> str:
    """How much has arrived, and how long the rest takes; or why the choice failed."""
    if choice.stage == "failed":
        return visible(f"{tr(choice.title)} {tr(choice.advice)}".strip())
    if choice.stage == "checking" or not choice.total:
        return ""
    words = tr("%1 of %2").replace("%1", size(choice.done)).replace("%2", size(choice.total))
    if choice.seconds_left is None or choice.done >= choice.total:
        return words
    return words + tr(", about %1 left").replace("%1", duration(choice.seconds_left))


def unchanged_words(model: str) -> str:
    """What the engine trains meanwhile; empty while none is open."""
    return tr("%1 keeps training until the new model is ready.").replace("%1", one_line(model)) if model else ""


def exported_words(exported: ModelExported) -> str:
    """What an export contains, in one to three sentences."""
    words = plural(exported.rounds, "Written to %1: %n round of training.", "Written to %1: %n rounds of training.")
    words = words.replace("%1", exported.path)
    if exported.gguf:
        words += " " + tr("Programs to chat in, such as LM Studio and Ollama, open %1 there.").replace("%1", exported.gguf)
    elif exported.no_gguf:
        words += " " + tr("Programs to chat in, such as LM Studio and Ollama, do not know models like this one.")
    if exported.not_now:
        words += f" {tr('This is the newest saved state.')} {tr(exported.not_now)}"
    return words
