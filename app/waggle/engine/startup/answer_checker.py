"""Starts the verifier, and reserves the questions that no round asks."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from waggle.core import paths
from waggle.core.errors import Stopped
from waggle.core.message import Message
from waggle.core.settings import Settings
from waggle.engine.runtime import form_choice
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.startup.host import NodeHost
from waggle.engine.startup.reports import publish_part, report_verifier_restart
from waggle.protocol import events
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.questions import Question
from waggle.tasks.sandbox.verifier import Verifier

SLOW_SECONDS = 20.0  # of the judging process, which starts in two here
SLOW_PART = Message("Starting the answer checker. It gets on slowly, because this computer is busy or its disk is slow")


class _SlowStart:
    """Says once that the judging process starts slowly, and ends its start when the engine stops."""

    def __init__(self, host: NodeHost) -> None:
        self._host, self._is_said = host, False

    def __call__(self, seconds: float) -> None:
        """Called in another thread. Raises Stopped."""
        if self._host.stopped.is_set():
            raise Stopped
        if seconds >= SLOW_SECONDS and not self._is_said:
            self._is_said = True
            self._host.publisher.publish_soon(events.Preparing(part=SLOW_PART, done=1, parts=len(PARTS)))


async def start_verifier(
    charter: Charter, home: paths.Home, chosen: Settings, host: NodeHost, stack: AsyncExitStack
) -> tuple[Verifier, tuple[Question, ...]]:
    files = await asyncio.to_thread(PieceStore(home.questions, charter).files)
    restarted = partial(report_verifier_restart, host.publisher)
    verifier = await asyncio.to_thread(Verifier, charter, files=files, restarted=restarted, waiting=_SlowStart(host))
    stack.callback(verifier.close)
    held_out = await asyncio.to_thread(_check_and_reserve, verifier, charter, chosen.learning.held_out_questions)
    publish_part(host.publisher, 2)  # what startup waits for now, if the model is not open yet
    return verifier, held_out


def _check_and_reserve(verifier: Verifier, charter: Charter, count: int) -> tuple[Question, ...]:
    verifier.check_charter()
    return tuple(
        question for specialty in charter.specialties for question in verifier.held_out(specialty.dataset, "test", count)
    )


def trial_questions(verifier: Verifier, charter: Charter) -> list[Question]:
    """Reserved questions of all specialties, as many of each. A small file of questions may have none: then others of it."""
    each = max(1, form_choice.QUESTIONS // len(charter.specialties))
    names = [specialty.dataset for specialty in charter.specialties]
    return [
        question for name in names for question in verifier.held_out(name, "dev", each) or verifier.held_out(name, "train", each)
    ]
