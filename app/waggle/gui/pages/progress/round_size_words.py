"""How much a round asks of the model, and why answers may have so many tokens, in words."""

from waggle.gui.i18n.formatting import figure, later, plural, tr
from waggle.protocol.state import State

WHY_LENGTH = {  # by the reason for the answer length
    "setting": later("as you chose"),
    "usual": later("as usual for this kind of model"),
    "trial": later("as much as its readable answers need"),
    "raised": later("raised, because many answers were cut off"),
}


def round_size_words(state: State) -> str:
    """One sentence; empty if the engine does not run yet, or is of a version that did not tell."""
    ready = state.ready
    if ready is None or not ready.questions or not ready.answer_length.tokens:
        return ""
    questions = plural(ready.questions, "A round asks %n question", "A round asks %n questions")
    words = tr("%1, and %2 answers to each, of at most %3 tokens: %4.").replace("%1", questions)
    why = tr(WHY_LENGTH[ready.answer_length.why])
    return words.replace("%2", figure(ready.group_size)).replace("%3", figure(ready.answer_length.tokens)).replace("%4", why)
