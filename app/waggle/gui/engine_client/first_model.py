"""Which real model this computer can train well, found by a process of its own: torch has no place in the window."""

from waggle.gui.engine_client.line_process import output_of
from waggle.protocol.events_models import ModelOffer, read_first_model


async def first_model() -> ModelOffer | None:
    """The model, if there is one. A failure is no news: then there is none."""
    output = await output_of("model", "first")
    return next(filter(None, map(read_first_model, output.lines)), None)
