"""The small charts of Progress: the reward of each specialty of the present swarm, on one scale."""

from collections.abc import Callable

from PySide6.QtCore import QPointF, Qt
from pytestqt.qtbot import QtBot

from gui.recorded import START, ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.charts.painted.specialty_curves import SpecialtyCurves
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.state import chart_series
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.state import AnyEvent


def summary(number: int, rewards: dict[str, float]) -> events.RoundSummary:
    at = START + 60.0 * number
    return events.RoundSummary(round=number, at=at, reward=0.1, solved=0.1, seconds=50.0, completions=64, by_specialty=rewards)


def test_a_specialty_has_values_where_it_was_asked_about_and_its_mean_over_those() -> None:
    rounds = [summary(number, {"Even": 1.0, **({"Sometimes": 0.3} if number % 5 == 0 else {})}) for number in range(11)]
    curves = chart_series.specialty_rewards(rounds)
    assert [place for place, _ in curves["Sometimes"]] == [0, 5, 10]
    assert {round(reward, 3) for _, reward in curves["Sometimes"]} == {0.3}
    assert len(curves["Even"]) == 11


def test_a_page_shows_those_of_the_present_swarm_in_its_order(window_told: Callable[..., MainWindow], qtbot: QtBot) -> None:
    titles = [each.title for each in ready().specialties][:3]
    rewards = dict.fromkeys(reversed(titles), 0.25) | {"Of another swarm": 0.9}
    story: list[AnyEvent] = [ready(round=0), events.PhaseChanged(phase="contributing", round=0)]
    story += [events.RoundCompleted(summary=summary(number, rewards)) for number in range(20)]
    window = window_told(story)
    window.show_page("progress")
    page = window.pages.of(ProgressPage)
    qtbot.waitUntil(page._curves_card.isVisible)
    words = page._curves.accessibleDescription().split("; ")
    assert words == [f"{title}: from 0.25 to 0.25" for title in titles]
    assert page._about_curves.words() == "What your model's answers earn. All on one scale, up to 0.25"


def test_every_specialty_has_a_place_of_its_own_from_the_side_where_reading_begins(theme: Theme, qtbot: QtBot) -> None:
    charts = SpecialtyCurves(theme)
    qtbot.addWidget(charts)
    charts.resize(600, 10)
    charts.show_curves({f"T{number}": [(0, 0.1), (9, 0.2)] for number in range(5)}, 10)
    places = [charts.place_of(number) for number in range(5)]
    assert all(charts.rect().toRectF().contains(place) for place in places)
    assert not any(a.intersects(b) for number, a in enumerate(places) for b in places[:number])
    assert charts.words_at(places[3].center()) == "T3: from 0.10 to 0.20"
    charts.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    assert charts.words_at(QPointF(595, 5)) == "T0: from 0.10 to 0.20"
    assert charts.words_at(QPointF(5, 5)) != "T0: from 0.10 to 0.20"
