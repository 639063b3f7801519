"""The summary of the last minute: at most one a minute, and announced only if the setting is on."""

import pytest
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import PageContext
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.state.story.spoken_summary import last_minute_rounds, summary_text
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.state import State

NOW = 60_030.0  # half a minute into a minute


def ended(number: int, at: float, **changes: object) -> events.RoundSummary:
    summary = events.RoundSummary(
        round=number, at=at, reward=0.4, solved=0.25, seconds=5.0, completions=64, external=2,
        by_specialty={"Fractions": 0.5, "Logic": 0.3},
    )  # fmt: skip
    return replace(summary, **changes)  # type: ignore[arg-type]


def rounds(*summaries: events.RoundSummary, **changes: object) -> State:
    known: dict[str, object] = {"ready": ready(), "phase": "contributing", "reach": "connected", "rounds": summaries}
    return State(**{**known, **changes})  # type: ignore[arg-type]


EARLIER = ended(10, 59_000.0)
TABLE = [
    (State(), ""),
    (rounds(ended(1, 60_010.0)), ""),
    (rounds(ended(11, 59_950.0)), "Round 12: 25% right, 2 examples from peers."),
    (rounds(EARLIER, ended(11, 59_950.0, external=0)), "Round 12: 25% right, nothing from peers."),
    (
        rounds(EARLIER, ended(11, 59_945.0, external=1), ended(12, 59_990.0, external=0, completions=192, solved=0.5)),
        "Rounds 12 to 13: 44% right, 1 example from peers.",
    ),
    (
        rounds(ended(1011, 59_950.0), reach="solo", ahas=(events.Aha(round=1011, at=1.0, specialty="Logic"),)),
        "Round 1,012: 25% right.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("state", "words"), TABLE)
def test_the_digest_says_how_many_rounds_what_was_right_and_what_came(state: State, words: str) -> None:
    assert summary_text(state, NOW) == words


def test_within_one_minute_it_does_not_change() -> None:
    state = rounds(EARLIER, ended(11, 59_950.0), ended(12, 60_002.0), ended(13, 60_031.0))
    assert (
        [summary.round for summary in last_minute_rounds(state, NOW)]
        == [summary.round for summary in last_minute_rounds(state, NOW + 29)]
        == [11]
    )
    assert [summary.round for summary in last_minute_rounds(state, NOW + 30)] == [12, 13]


def test_it_is_read_out_only_when_asked_once_a_minute_and_never_twice(
    theme: Theme, qtbot: QtBot, announcements: list[str]
) -> None:
    current, choices = StateStore(), SettingsStore(None)
    now = [NOW]
    current._clock = lambda: now[0]
    window = MainWindow(PageContext(theme, store=current, settings=choices))
    qtbot.addWidget(window)
    window.show()
    announcements.clear()
    current.state = rounds(EARLIER, ended(11, 59_950.0), ended(12, 60_002.0))
    window.redraw()
    assert not any("Round 12" in words for words in announcements)
    choices.set({"window.read_out": True})
    for moment in (NOW, NOW + 20, NOW + 31, NOW + 61, NOW + 200):
        now[0] = moment
        window.redraw()
    about_rounds = [words.partition(":")[0] for words in announcements if "% right, " in words]
    assert about_rounds == ["Round 12", "Round 13"]
