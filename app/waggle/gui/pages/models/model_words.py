"""Models in words: their names, facts, and how far the choice of one is."""

from pathlib import Path

from waggle.core.message import Message
from waggle.gui.i18n.formatting import decimal, duration, figure, one_line, plural, size, tr, visible
from waggle.protocol.events_models import ModelChoice, ModelDetails, ModelExported, ModelOffer

APART = "  ·  "  # between two facts
FITS = "Fits: about %1 answers an hour, %2 of %3 GB of memory."  # as the engine says it
BILLION, MILLION = 1_000_000_000, 1_000_000


def model_name(model: ModelDetails) -> str:
    """The name of a model on this computer."""
    if model.kind == "starter":
        return tr("Starter")
    return one_line(model.name) if model.kind == "hub" else one_line(Path(model.folder).name)


def model_summary(model: ModelDetails) -> str:
    """Source, size and training of a model, in one line."""
    folder = tr("In %1").replace("%1", one_line(str(Path(model.folder).parent)))
    where = {"starter": tr("Comes with Waggle"), "hub": "Hugging Face", "folder": folder}[model.kind]
    if not model.finished:
        came = tr("%1 of it are here").replace("%1", size(model.bytes)) if model.bytes else tr("not downloaded yet")
        return APART.join((where, came))
    trained = (
        plural(model.rounds, "%n round trained here", "%n rounds trained here") if model.rounds else tr("not trained here yet")
    )
    return APART.join((where, size(model.bytes), trained))


def fit_words(fit: str) -> str:
    """Whether a model fits, below a chip that says so: then only how fast it would be, and in how much memory."""
    if not isinstance(fit, Message) or fit.id != FITS:
        return tr(fit)
    return tr(Message("About %1 answers an hour, %2 of %3 GB of memory", *fit.values))


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
    """Parameters and download of a model of the hub, as far as they are known."""
    facts = []
    if offer.weights >= BILLION:
        facts.append(tr("%1 billion parameters").replace("%1", decimal(offer.weights / BILLION, 1)))
    elif offer.weights:
        facts.append(tr("%1 million parameters").replace("%1", figure(max(1, round(offer.weights / MILLION)))))
    if offer.bytes:
        facts.append(tr("%1 to download").replace("%1", size(offer.bytes)))
    return APART.join(facts)


def offer_terms(offer: ModelOffer) -> str:
    """Licence, form and popularity of a model of the hub, as far as they are known."""
    facts = [one_line(offer.licence)] if offer.licence else []
    if offer.quantised:
        facts.append(tr("quantised"))
    if offer.downloads:
        facts.append(plural(offer.downloads, "%n download", "%n downloads"))
    return APART.join(facts)


def chosen_name(choice: ModelChoice) -> str:
    """The name of a model that was chosen."""
    name = choice.name.partition("/")[2] if choice.name else Path(choice.folder).name
    return one_line(name) or tr("Starter")


def choice_title(choice: ModelChoice) -> str:
    """How far a choice is, in a few words."""
    match choice.stage:
        case "failed":
            words = tr("%1 was not chosen")
        case "checking":
            words = tr("Checking %1")
        case "converting":
            words = tr("Converting %1")
        case _:
            words = tr("Downloading %1") if choice.total else tr("Asking the hub about %1")
    return words.replace("%1", chosen_name(choice))


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
    return tr("You keep training %1 until the new model is here and checked.").replace("%1", one_line(model)) if model else ""


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
