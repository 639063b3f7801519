"""Models of the hub as the window offers them: Waggle's suggestions, and what a search brought, with whether they fit."""

from collections.abc import Iterable

from msgspec.structs import replace

from waggle.core.message import NOTHING, Message
from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared.suggested_models import SuggestedModel, suggested_models
from waggle.models.storage.hub_search import HubModel
from waggle.protocol.events_models import ModelOffer


def suggested(machine: DeviceCapacity | None, chosen: Settings) -> tuple[ModelOffer, ...]:
    """Waggle's suggestions, smallest first; whether they fit once this computer has been measured."""
    if machine is None:
        return tuple(offer_of(model) for model in suggested_models())
    judged = model_fit.suggestions(machine, chosen)
    best = model_fit.first_choice(judged)
    return tuple(replace(offer_of(model, verdict), recommended=model is best) for model, verdict in judged)


def offer_of(model: SuggestedModel, verdict: model_fit.FitVerdict | None = None) -> ModelOffer:
    """One suggestion."""
    return ModelOffer(
        name=model.name,
        title=model.title,
        licence=model.licence,
        gated=model.gated,
        weights=model.weights,
        bytes=model.download,
        good_at=Message(model.good_at),
        fits=verdict.fits if verdict else None,
        fit=verdict.sentence if verdict else NOTHING,
    )


def of_hub(
    models: Iterable[HubModel], machine: DeviceCapacity | None, suggestions: Iterable[ModelOffer]
) -> tuple[ModelOffer, ...]:
    """What a search found. A model that Waggle suggests is offered as its suggestion.

    Of others only what is certainly too large is known not to fit: the rest is told by the configuration.
    """
    known = {offer.name: offer for offer in suggestions}
    return tuple(
        replace(known[model.name], downloads=model.downloads) if model.name in known else _offer_from_hub(model, machine)
        for model in models
    )


def _offer_from_hub(model: HubModel, machine: DeviceCapacity | None) -> ModelOffer:
    too_large = _too_large(model, machine)
    return ModelOffer(
        name=model.name,
        licence=model.licence,
        gated=model.gated,
        weights=_weights(model),
        bytes=model.size,
        downloads=model.downloads,
        quantised=model.quantised,
        fits=False if too_large else None,
        fit=too_large,
    )


def _weights(model: HubModel) -> int:
    """The hub counts numbers as they are stored, several in one where they are quantised: then nobody knows."""
    return 0 if model.quantised else model.weights


def _too_large(model: HubModel, machine: DeviceCapacity | None) -> Message:
    if machine is None or model.quantised or not model.weights:
        return NOTHING
    return model_fit.too_large(machine, model.weights)
