"""How the model is asked, and why, in words."""

from waggle.core.message import Message
from waggle.gui.i18n.formatting import figure, later, tr
from waggle.protocol.events import PromptFormChoice
from waggle.protocol.state import State

FORM_WORDS = {  # by the name of a form in waggle.sapo.prompt_form
    "plain": later("with the question alone"),
    "example": later("with a worked example"),
    "example_opened": later("with a worked example and the answer tag opened"),
    "chat": later("as a chat"),
    "chat_example": later("as a chat with a worked example"),
    "chat_example_opened": later("as a chat with a worked example and the answer tag opened"),
}
LEARNS_FORM = later("So it learns the form first: an answer that can be read earns a little, even if it is wrong.")
LEARNS_NO_FORM = later("It can learn little from them. Settings offer a credit for the answer tags.")


def prompt_form_words(state: State) -> str:
    """A few sentences about the model in training; empty if its form is not known here."""
    choice = state.ready.prompt_form if state.ready else None
    form = FORM_WORDS.get(choice.form) if choice else None
    if choice is None or form is None:
        return ""
    words = _reason_words(state, choice, form)
    if not choice.no_chat:
        return words
    no_chat = Message("Its chat template cannot be used, so it is trained in plain text, without chat: %1.", choice.no_chat)
    return f"{words} {tr(no_chat)}"


def _reason_words(state: State, choice: PromptFormChoice, form: str) -> str:
    match choice.why:
        case "starter":
            return ""  # the way it was made for
        case "setting":
            return tr("Asked as you chose: %1.").replace("%1", tr(form))
        case "trial":
            return _trial_words(choice, tr(form), pays_form=state.settings is None or state.settings.learning.form_pay != "off")


def _trial_words(choice: PromptFormChoice, form: str, *, pays_form: bool) -> str:
    is_readable = 2 * choice.readable >= choice.total
    if not choice.total:
        words = tr("Asked %1.")
    elif is_readable:
        words = tr("Asked %1, because %2 of %3 answers could be read that way.")
    elif choice.readable:
        words = tr("Asked %1, which worked best, but only %2 of %3 answers could be read that way.")
    else:
        words = tr("Asked %1, but no answer could be read, whichever way it was asked.")
    words = words.replace("%1", form).replace("%2", figure(choice.readable)).replace("%3", figure(choice.total))
    return words if is_readable else f"{words} {tr(LEARNS_FORM if pays_form else LEARNS_NO_FORM)}"
