"""The comparison of models on Progress: charts, the leaderboard, texts without data, and taking part."""

import pytest
from PySide6.QtWidgets import QLabel

from gui.conftest import TellWindow
from waggle.core.settings import Settings, SwarmSettings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.charts.plotted.leaderboard_chart import LeaderboardChart
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol.commands import ChangeSettings
from waggle.protocol.events import SettingsChanged
from waggle.protocol.events_leaderboard import Entrant, ModelsCompared, ScoreCurve, ScorePoint
from waggle.protocol.state import AnyEvent

PLACES = tuple(ScorePoint(round=number, right=right, total=16, nodes=1) for number, right in ((3, 1), (9, 8)))


def compared(*kinds: bool, models: tuple[str, str] = ("Starter", "Starter"), ranked: bool = False) -> ModelsCompared:
    entrants = tuple(
        Entrant(id=name, name=name, model=model, round=9, together=True, right=8, total=16, mine=name == "Calm Wren")
        for name, model in zip(("Brisk Otter", "Calm Wren"), models, strict=True)
    )
    curves = tuple(ScoreCurve(model=model, together=kind, points=PLACES) for model in dict.fromkeys(models) for kind in kinds)
    return ModelsCompared(curves=curves, entrants=entrants if ranked else (), ranked=ranked, sheets=4, since=0.0)


def chosen(*, on: bool = True, solo: bool = False) -> SettingsChanged:
    return SettingsChanged(settings=Settings(swarm=SwarmSettings(leaderboard=on, solo=solo)))


def opened(window: MainWindow) -> ProgressPage:
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    page._compared.setChecked(True)
    return page


def visible_words(page: ProgressPage) -> str:
    labels, lines = page._comparison.findChildren(QLabel), page._comparison.findChildren(ElidedLabel)
    texts = [(label, label.text()) for label in labels] + [(line, line.words()) for line in lines]
    return "\n".join(words for widget, words in texts if widget.isVisibleTo(page))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (chosen(on=False), "Nothing is compared yet: take part"),
        (chosen(), "You take part. Your model's first answers"),
        (chosen(on=False, solo=True), "there is nobody to compare with"),
    ],
)
def test_where_nothing_is_compared_yet_the_page_says_why(
    window_told: TellWindow, written: list[AnyEvent], event, words: str
) -> None:
    page = opened(window_told([*written, event]))
    assert words in visible_words(page)
    assert "Leaderboard" not in visible_words(page)
    assert page._comparison._switch.isVisibleTo(page) is not event.settings.swarm.solo


def test_one_takes_part_by_a_button_and_stops_by_it(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told([*written, chosen(on=False)])
    page, commands = opened(window), []
    page.commanded.connect(commands.append)
    page._comparison._switch.click()
    window._store.take(chosen())
    window._store.flush()
    page._comparison._switch.click()
    assert [command.values for command in commands if isinstance(command, ChangeSettings)] == [
        {"swarm.leaderboard": True}, {"swarm.leaderboard": False},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "words"),
    [((True, False), "with the 95% interval"), ((True,), "Nobody who trains it alone"), ((False,), "Nobody who trains it with")],
)
def test_both_sides_are_drawn_and_a_missing_one_is_said(
    window_told: TellWindow, written: list[AnyEvent], kinds: tuple[bool, ...], words: str
) -> None:
    page = opened(window_told([*written, chosen(), compared(*kinds)]))
    assert words in visible_words(page)
    chart = page._comparison._cards[0]._chart
    assert chart is not None
    assert [label.words.split()[-1] for _, label in chart._labels] == ["50%"] * len(kinds)
    assert "nobody is ranked" in visible_words(page)


def test_members_of_a_private_swarm_are_ranked_and_oneself_is_marked(window_told: TellWindow, written: list[AnyEvent]) -> None:
    page = opened(window_told([*written, chosen(), compared(True, ranked=True)]))
    words = visible_words(page)
    assert "Calm Wren · alm Wren (you)" in words
    assert "8 of 16" in words
    assert "nobody is ranked" not in words


def test_table_and_comparison_take_turns(window_told: TellWindow, written: list[AnyEvent]) -> None:
    page = opened(window_told([*written, chosen()]))
    page._as_table.setChecked(True)
    assert not page._compared.isChecked()
    page._compared.setChecked(True)
    assert not page._as_table.isChecked()
    assert not page._axis.isVisible()
    page._compared.setChecked(False)
    assert page._axis.isVisible()


def test_charts_take_the_colours_of_a_system_that_became_dark(
    window_told: TellWindow, written: list[AnyEvent], theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    theme.use("system")
    window = window_told([*written, chosen(), compared(True, False)])
    page = opened(window)
    (chart,) = page.findChildren(LeaderboardChart)
    assert chart.backgroundBrush().color() == theme.colour("surface")
    theme.mode = "dark"  # as if the system had become so: none can be had in a test
    theme.changed.emit()
    assert chart.backgroundBrush().color() == theme.colour("surface")
    theme.use("light")
