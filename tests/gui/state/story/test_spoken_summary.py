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
    (
        rounds(ended(11, 59_950.0)),
        "Round 11: 16 of 64 right in Fractions and Logic. 2 examples learned from peers. "
        "The reward is 0.40.",
    ),
    (
        rounds(ended(11, 59_950.0, completions=7232)),
        "Round 11: 1,808 of 7,232 right in Fractions and Logic. 2 examples learned from peers. The reward is 0.40.",
    ),
    (
        rounds(EARLIER, ended(11, 59_950.0, external=0, reward=0.5)),
        "Round 11: 16 of 64 right in Fractions and Logic. Nothing learned from peers. "
        "The reward is 0.50, up from 0.40.",
    ),
    (
        rounds(EARLIER, ended(11, 59_945.0, external=1), ended(12, 59_990.0, external=0, by_specialty={"A": 0, "B": 0, "C": 0})),
        "Last minute: 2 rounds, 32 of 128 right in Fractions, Logic, A and 2 more. "
        "1 example learned from peers. The reward stays near 0.40.",
    ),
    (
        rounds(EARLIER, ended(11, 59_950.0, reward=0.1, by_specialty={}), reach="solo",
               ahas=(events.Aha(round=11, at=1.0, specialty="Logic"), events.Aha(round=3, at=1.0, specialty="Old"))),
        "Round 11: 16 of 64 right. The reward is 0.10, down from 0.40. "
        "A first right answer in Logic.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("state", "words"), TABLE)
def test_the_digest_says_what_was_asked_what_was_right_what_came_and_what_changed(state: State, words: str) -> None:
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
    assert not any("Round 11" in words for words in announcements)
    choices.set({"window.read_out": True})
    for moment in (NOW, NOW + 20, NOW + 31, NOW + 61, NOW + 200):
        now[0] = moment
        window.redraw()
    about_rounds = [words.partition(":")[0] for words in announcements if " right in " in words]
    assert about_rounds == ["Round 11", "Round 12"]
