"""What `waggle top` shows above everything else: words to read, and the choice of a pause."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from waggle.protocol.commands import Pause

FRAME = """
    align: center middle;
    & > * {
        width: auto; min-width: 24; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; background: $background;
        border: round $primary; border-title-color: $foreground; border-title-style: bold;
    }
"""


class Notice(ModalScreen[None]):
    """Words, until a key is pressed that closes them."""

    DEFAULT_CSS = f"""
    Notice {{ {FRAME} }}
    Notice VerticalScroll {{ scrollbar-size: 0 1; }}
    Notice Static {{ width: auto; max-width: 72; }}
    Notice.-narrow VerticalScroll, Notice.-narrow Static {{ width: 100%; }}
    """
    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,space,question_mark", "dismiss", "Close")]

    def __init__(self, title: Content, words: Content) -> None:
        super().__init__()
        self._heading, self._words = title, words

    def compose(self) -> ComposeResult:
        with VerticalScroll() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = "Esc"
            yield Static(self._words, markup=False)


class PauseChoice(ModalScreen[Pause | None]):
    """The ways to pause, of which one may be chosen."""

    DEFAULT_CSS = f"""
    PauseChoice {{ {FRAME} }}
    PauseChoice OptionList, PauseChoice OptionList:focus {{
        width: auto; border: none; padding: 0; background: $background; background-tint: $background 0%;
        & > .option-list--option-highlighted {{ background: $primary; color: ansi_bright_white; text-style: bold; }}
        &:nocolor > .option-list--option-highlighted {{ text-style: bold underline; }}
    }}
    """
    AUTO_FOCUS = "OptionList"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,p", "dismiss", "Close")]

    def __init__(self, ways: Sequence[tuple[str, Pause]]) -> None:
        super().__init__()
        self._ways = ways

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = "Pause"
            frame.border_subtitle = "Enter, Esc"
            yield OptionList(*(Option(Content(words)) for words, _ in self._ways), markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._ways[event.option_index][1])
