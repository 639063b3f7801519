"""The question which model to train, where the chosen one cannot be had: the engine asks, and trains no other by itself."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from waggle.core.errors import ModelMissing, Stopped
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.startup_parts import PARTS
from waggle.protocol import events

FOLDER_SECONDS = 5.0  # until a folder is looked for again: a disk is connected in a moment
HUB_SECONDS = 60.0  # until the hub is asked again for a model that it does not hand out


async def model_or_question(
    chosen: ModelSettings, find: Callable[[], Awaitable[Path]], publisher: EventPublisher, stopped: asyncio.Event
) -> Path:
    """The folder that `find` returns. While it raises ModelMissing, ask, and look again and again until the engine stops.

    Raises Stopped.
    """
    while True:
        try:
            folder = await find()
        except ModelMissing as error:
            question = publisher.state.unavailable
            if question is None or question.reason != error.title:
                publisher.publish(model_source.unavailable(chosen, error))
        else:
            if publisher.state.unavailable is not None:
                publisher.publish(events.Preparing(part=PARTS[0], done=0, parts=len(PARTS)))
            return folder
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), HUB_SECONDS if chosen.name else FOLDER_SECONDS)
            raise Stopped
