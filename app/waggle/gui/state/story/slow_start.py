"""What takes so long while the engine starts, in a sentence for each of its parts."""

from waggle.gui.i18n.formatting import duration, later, tr
from waggle.protocol.events import Preparing

SLOW = 10.0  # seconds of one part from which a person wants to know why
REASONS: dict[str, str] = {
    "Looking for the model": later("Your disk is slow to answer right now."),
    "Starting the answer checker": later("The puzzles load in a sandbox. On a busy computer that can take a minute or two."),
    "Loading the model": later("A large model takes time to read, the first time most of all."),
    "Preparing the model": later("What your model learned is read back and checked."),
    "Joining the swarm": later("Other computers are slow to answer. Training starts even if none does."),
}


def slow_words(preparing: Preparing | None, now: float) -> str:
    """How long the present part takes so far, and why; empty while it is quick."""
    if preparing is None or not preparing.at or preparing.long or now - preparing.at < SLOW:
        return ""
    reason = REASONS.get(preparing.part)
    words = tr("This step has taken %1 so far.").replace("%1", duration(now - preparing.at))
    return f"{words} {tr(reason)}" if reason else words
