"""The usage profile: how much of this computer is used, as Quiet, Balanced or Full."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from waggle.core.settings import Settings, profile_of, profiles
from waggle.core.system.machine import usable_cores
from waggle.gui.i18n.formatting import later, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import SegmentedControl
from waggle.gui.widgets.layout import row
from waggle.gui.widgets.text import ElidedLabel, set_tip
from waggle.protocol.state import State

PROFILES = {"quiet": later("Quiet"), "balanced": later("Balanced"), "full": later("Full")}
PROFILE_WORDS = {
    "quiet": later("Uses a quarter of the processor's cores, at least one, and gives way to other programs."),
    "balanced": later("Half of the cores, at least one. Large programs may start a little slower."),
    "full": later("Everything this computer has. For when you do not need it otherwise."),
}


def threads_of(settings: Settings, cores: int) -> int:
    """How many cores these settings use."""
    return min(cores, settings.computer.threads or max(1, cores // 4))


def threads_now(state: State) -> int:
    """How many cores the engine uses now; 0 without one. The settings are newer than what the engine said when it started."""
    if state.ready is None:
        return 0
    return threads_of(state.settings, state.ready.cores) if state.settings else state.ready.threads


def cores_in_use(state: State) -> str:
    """The cores that the engine uses, and all of them; empty without one."""
    if state.ready is None:
        return ""
    words = tr("%1 of %2 cores") if state.ready.cores > 1 else tr("%1 of %2 core")
    return words.replace("%1", str(threads_now(state))).replace("%2", str(state.ready.cores))


class UsageProfile(QWidget):
    """Choice of a profile; `chosen` carries its settings. Other settings are shown as "set by hand"."""

    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._cores = usable_cores()
        self._segments = SegmentedControl(theme, [tr(words) for words in PROFILES.values()], tr("Use of this computer"))
        for name, part in zip(PROFILES, self._segments.parts(), strict=True):
            set_tip(part, tr(PROFILE_WORDS[name]))
        self._segments.chosen.connect(self._choose)
        self._by_hand = ElidedLabel(theme, "", "small", "text_faint")
        self._by_hand.hide()
        self.setLayout(row(self._by_hand, self._segments, gap=10))

    def show_settings(self, settings: Settings, cores: int) -> None:
        self._cores = cores or self._cores
        name = profile_of(settings, self._cores)
        self._segments.mark(list(PROFILES).index(name) if name in PROFILES else None)
        self._by_hand.say("" if name in PROFILES else tr("set by hand"))
        self._by_hand.setVisible(name not in PROFILES)

    def _choose(self, place: int) -> None:
        self.chosen.emit(profiles(self._cores)[list(PROFILES)[place]])
