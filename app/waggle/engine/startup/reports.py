"""What the window is told while a node is prepared."""

from waggle.core.message import Message
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.startup_parts import PARTS
from waggle.protocol import events


def publish_part(publisher: EventPublisher, number: int) -> None:
    publisher.publish(events.Preparing(part=PARTS[number], done=number, parts=len(PARTS)))


def publish_replay(publisher: EventPublisher, done: int, total: int) -> None:
    part = Message("Learning again what came after the last checkpoint: %1 of %2 rounds", done, total)
    publisher.publish_soon(events.Preparing(part=part, done=3, parts=len(PARTS), long=True))


def publish_trial(publisher: EventPublisher, done: int, total: int) -> None:
    part = Message("Trying how to ask this model: %1 of %2 ways", done, total)
    publisher.publish_soon(events.Preparing(part=part, done=4, parts=len(PARTS), long=True))


def publish_short(publisher: EventPublisher, what: Message) -> None:
    publisher.publish_soon(events.Warned(title=what, advice=Message("Nothing was lost. Closing other programs makes room.")))


def warn_of_missing_checkpoint(publisher: EventPublisher) -> None:
    publisher.publish_soon(
        events.Warned(
            title=Message("The disk did not take a checkpoint."),
            advice=Message("The journal has every round since the last one. Make room on the disk."),
        )
    )


def report_verifier_restart(publisher: EventPublisher, reason: str) -> None:
    publisher.publish_soon(events.PartRestarted(part="verifier", reason=reason))
