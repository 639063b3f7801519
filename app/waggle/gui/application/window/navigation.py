"""Around the pages: the navigation rail beside them, and the status bar with the status sentence below."""

from collections.abc import Callable

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QFrame,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
)

from waggle.gui.i18n.formatting import plural, size, tr
from waggle.gui.i18n.translator import is_right_to_left
from waggle.gui.pages import PAGES
from waggle.gui.state import shortcuts
from waggle.gui.state.notifications import warning_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, edges, restyle, row
from waggle.gui.widgets.painted_widgets import Chip, Icon, Logo
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.figures.current import speed
from waggle.protocol.state import HALTED_PHASES, State
from waggle.protocol.text.status_text import sentence

MARK, BESIDE = 30, 6  # pixels: side of the logo, and margin beside a page's button in the compact form
NAMED = 43  # pixels at a text size of 100%: the least height of a compact button with its name
LEAST = 24  # pixels: the least height of a button that can be clicked
SIDE = 16  # pixels: horizontal margin of the status bar
APART = "\u2003\u2002"  # between two figures
SIGN_INK = {"accent": "accent_line", "plain": "text_soft", "peer": "peer", "bad": "bad"}


class RailButton(QPushButton):
    """A page's icon and name; in the compact form the name stands under the icon.

    Not a tool button, which Qt would draw in both forms: a screen reader calls those check boxes.
    """

    def __init__(self, theme: Theme, icon: str, words: str, keys: str = "") -> None:
        super().__init__()
        self.setCheckable(True)
        self.setAutoExclusive(True)  # a screen reader calls it one of several
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._theme, self._icon, self._words, self._compact, self._bare = theme, icon, words, False, False
        self._keys = keys
        self.setAccessibleName(words)
        self.setProperty("kind", "rail")
        theme.changed.connect(self._tint)
        self.toggled.connect(self._tint)
        self.set_compact(False)

    def set_compact(self, compact: bool) -> None:
        self._compact = compact
        restyle(self, "compact", compact)
        self.set_height(self.preferred_height())
        self._tint()

    def preferred_height(self) -> int:
        """Height in pixels where there is room."""
        return self._theme.px(52 if self._compact else 40)

    def set_height(self, height: int) -> None:
        """May be below the preferred height (large text in a low window); too low, only the icon is shown."""
        bare = self._compact and height < self._theme.px(NAMED)
        size = self._theme.size
        self.setFixedSize(
            size["icon"] + 26 if bare else size["rail_compact"] - 2 * BESIDE if self._compact else size["rail"] - 24, height
        )
        if bare != self._bare:
            self._bare = bare
            self._tint()

    def _tint(self) -> None:
        chosen, side = self.isChecked(), self._theme.size["icon"]
        gap = 0 if self._compact else 8
        self.setFont(self._theme.font("tag" if self._compact else "heading" if chosen else "strong"))
        room = self.width() - (2 if self._compact else side + gap + 30)  # inside edges, padding and icon
        label = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, room)
        self.setText(label)
        is_cut = label != self._words or self._bare
        set_tip(self, f"{self._words}  {self._keys}".strip() if self._keys or is_cut else "")
        self.setAccessibleDescription(self._keys)  # without it, Qt gives a screen reader the tooltip, which says the name again
        self.setIcon(self._theme.icon(self._icon, "accent_text" if chosen else "text_soft", side, gap))
        self.setIconSize(QSize(side + gap, side))

    def paintEvent(self, event: QPaintEvent) -> None:
        """In the compact form the style draws the ground only."""
        if not self._compact:
            super().paintEvent(event)
            return
        option, painter = QStyleOptionButton(), QStylePainter(self)
        self.initStyleOption(option)
        option.text, option.icon = "", QIcon()
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        side, line = self.iconSize().height(), 0 if self._bare else self.fontMetrics().height()
        top = (self.height() - side - line) // 2
        self.icon().paint(painter, (self.width() - side) // 2, top, side, side)
        if line:
            painter.setPen(self._theme.colour("text" if self.isChecked() else "text_soft"))
            painter.drawText(QRect(0, top + side, self.width(), line), Qt.AlignmentFlag.AlignCenter, self.text())


class NavigationRail(QFrame):
    """The pages by name: at the top those a person watches, at the foot Settings and Help. `chosen` carries the page's id."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("rail")
        self.setProperty("side", "right" if is_right_to_left() else "left")
        self.setAccessibleName(tr("Pages; arrow keys go up and down"))
        self._theme = theme
        self._name = text(theme, "Waggle", "heading")
        self._buttons: dict[str, RailButton] = {}
        group = QButtonGroup(self)
        for place, (page, entry) in enumerate(PAGES.items(), 1):
            keys = shortcuts.native_text(shortcuts.page(place))
            self._buttons[page] = button = RailButton(theme, entry.icon or page, tr(entry.title), keys)
            button.clicked.connect(self._chooser(page))
            group.addButton(button)
        above = [button for page, button in self._buttons.items() if not PAGES[page].at_foot]
        below = [button for page, button in self._buttons.items() if PAGES[page].at_foot]
        self._mark_row = row(Logo(theme, MARK), self._name, None, gap=10)
        self._head = as_widget(self._mark_row)
        self._box: QBoxLayout = column(self._head, *above, None, *below)
        self._area = ScrollArea(self._box, "rail_area")
        self.setLayout(column(self._area))
        self.set_compact(False)

    def set_compact(self, compact: bool) -> None:
        self._compact = compact
        self._name.setVisible(not compact)
        self._box.setSpacing(2 if compact else 4)
        for button in self._buttons.values():
            button.set_compact(compact)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Shrink the buttons so that all pages fit into a window of any height; below LEAST they scroll.

        Before a button loses its name, the logo goes.
        """
        buttons, side = self._buttons.values(), BESIDE if self._compact else 12
        room = {is_whole: self._room_for_a_button(is_whole=is_whole) for is_whole in (True, False)}
        enough = self._theme.px(NAMED if self._compact else LEAST)
        is_whole = room[True] >= enough or room[False] < enough
        self._head.setVisible(is_whole)
        top, bottom = self._ends(is_whole=is_whole)
        self._box.setContentsMargins(*edges(side, top, side - 1, bottom))
        for button in buttons:
            button.set_height(max(LEAST, min(button.preferred_height(), room[is_whole])))
        self._mark_row.setContentsMargins(*edges((button.width() - MARK) // 2 if self._compact else 8, 0, 0, 12))
        scrolls = room[is_whole] < LEAST
        bar = self._area.verticalScrollBar().sizeHint().width() if scrolls else 0
        # Not its own width: Qt lays nothing out again that changes its own size while it is shown. The line lies outside.
        self._area.setFixedWidth(button.width() + 2 * side - 1 + bar)

    def _ends(self, *, is_whole: bool) -> tuple[int, int]:
        """Margins above and below."""
        return (16, 12) if is_whole else (6, 6)

    def _room_for_a_button(self, *, is_whole: bool) -> int:
        """Height in pixels for each button, with the logo or without it."""
        count = len(self._buttons)
        head = MARK + 12 + self._box.spacing() if is_whole else 0
        return (self.height() - sum(self._ends(is_whole=is_whole)) - head - count * self._box.spacing()) // count

    def select_page(self, page: str) -> None:
        self._buttons[page].setChecked(True)

    def _chooser(self, page: str) -> Callable[[], None]:
        return lambda: self.chosen.emit(page)


class StatusBar(QFrame):
    """Status sentence on the left, figures on the right; a notice takes the place of both for a moment.

    The figures are one label: whenever a widget appears or disappears, Qt lays the whole window out again.

    Home says the sentence itself; of it, only the word for the state stands here while there is no figure.

    `home_wanted`: go to Home, which shows what to do about a problem and the whole text of a warning that is cut here.
    """

    home_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("status")
        self._sign = Icon(theme, "save", "text_soft", 14)
        self._word = ElidedLabel(theme, role="label")
        self._word.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)  # the state is never cut
        self._says = ElidedLabel(theme, role="small", tone="text_soft")
        self._home = Button(theme, tr("Go to Home"), "link")
        self._home.clicked.connect(self.home_wanted)
        self._notice = Chip(theme)
        self._mark = Chip(theme, "", "peer", "play")
        self._figures = ElidedLabel(theme, role="small", tone="text_faint", right=True)
        self._figures.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._compact = self._problem = self._is_said = False
        self._page, self._warning = "home", ""
        self._sentence = as_widget(row(self._sign, self._word, self._says))
        parts = (self._sentence, self._notice, self._home, None, self._mark, 8, self._figures)
        self.setLayout(row(*parts, margins=(SIDE, 0, SIDE, 0)))
        self.setFixedHeight(theme.size["status"])
        self.show_notice("")
        self.show_run_label("")

    def set_compact(self, compact: bool) -> None:
        self._compact = compact

    def show_notice(self, words: str, sign: str = "warn") -> None:
        """Show a notice; empty words remove it. `sign` is the icon: "warn" for a failure, "check" for a success, or empty."""
        self._notice.say(words, "accent" if sign == "warn" else "plain", sign)
        self._notice.setVisible(bool(words))
        self._figures.setVisible(not words)
        self._show_sentence()
        self._show_way_home()

    def _show_sentence(self) -> None:
        """Home says the sentence itself, and a notice takes its place."""
        self._sentence.setVisible(not self._is_said and self._notice.isHidden())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_way_home()

    def _show_way_home(self) -> None:
        """Offer the link to Home for a problem, and for a warning that is cut here."""
        chip = self._notice
        room = self.width() - 2 * SIDE - (self._mark.sizeHint().width() + 2 * 8 if not self._mark.isHidden() else 0)
        cut = not chip.isHidden() and chip.accessibleName() == self._warning and chip.sizeHint().width() > room
        self._home.setVisible((self._problem or cut) and self._page != "home")

    def is_read(self) -> bool:
        """Whether the mouse is over the notice."""
        return self._notice.underMouse()

    def show_run_label(self, words: str) -> None:
        """Label an unusual run, such as a replay; empty removes the label."""
        self._mark.setVisible(bool(words))
        self._mark.say(words, "peer", "play")

    def show_service(self, service: bool) -> None:
        """Label an engine that runs as a service: it was there before the window, and keeps running after it."""
        self.show_run_label(tr("Keeps running without this window") if service else "")
        set_tip(self._mark, tr("No window started the engine, so none stops it. Pausing holds as ever.") if service else "")

    def show_state(self, state: State, page: str) -> None:
        status = sentence(state)
        self._page, self._problem = page, status.action == "copy_report"
        self._warning = warning_words(state.warnings[0]) if state.warnings else ""
        words_shown, at_home = status_figures(state), page == "home"
        known = [words for words in words_shown[at_home:] if words]  # Home says the peers
        self._is_said = at_home and bool(known)
        self._show_sentence()
        self._show_way_home()
        self._sign.show_icon(status.sign, SIGN_INK[status.tone])
        self._word.say(tr(status.word))
        self._word.setVisible(at_home or not status.says.startswith(status.word))  # else it is said twice
        words = (
            f"{tr(status.says).removesuffix('.')}. {tr(status.detail)}"
            if state.phase in ("preparing", "paused", "waiting")
            else tr(status.says)
        )
        self._says.say("" if at_home else words)
        self._figures.say(APART.join(known[:1] if self._compact else known))


def status_figures(state: State) -> tuple[str, str, str, str]:
    """Peers, tokens per second, bytes per second up and down, as text; empty where unknown or zero."""
    if state.ready is None or state.phase in ("preparing", "problem", "stopped"):
        return "", "", "", ""
    peers = plural(len(state.members), "%n peer", "%n peers") if state.reach != "solo" else ""
    tokens = speed(state) if state.phase not in HALTED_PHASES else None
    rate = plural(round(tokens), "%n token/s", "%n tokens/s") if tokens else ""
    if not (state.up or state.down):
        return peers, rate, "", ""
    return peers, rate, f"\u2191 {size(state.up)}/s", f"\u2193 {size(state.down)}/s"
