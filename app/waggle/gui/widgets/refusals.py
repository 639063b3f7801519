"""Errors of the engine in words, said once: where a person asked, or else in a notice."""

from PySide6.QtWidgets import QWidget

from waggle.core.errors import WaggleError
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.widgets.containers.scroll_anchor import is_in_view
from waggle.gui.widgets.text import announce


def refusal_words(error: WaggleError) -> str:
    """The title and advice of an error, in the window's language."""
    return visible(f"{tr(error.title)} {tr(error.advice)}".strip())


def announce_refusal(error: WaggleError, shown_in: QWidget, client: EngineClient) -> None:
    """Announce an error that a widget shows now; if nobody can see that, have it shown in a notice."""
    if is_in_view(shown_in) and not shown_in.window().isMinimized():
        announce(shown_in, refusal_words(error))
    else:
        client.refused.emit(error.title, error.advice)
