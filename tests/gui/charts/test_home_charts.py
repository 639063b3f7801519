"""The charts of Home: the curve of scores with what was learned from whom, and the comb of skills."""

from itertools import combinations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF
from pytestqt.qtbot import QtBot

from gui.recorded import START, ready
from waggle.gui.charts.painted.score_curve import ScoreCurve, moved_apart
from waggle.gui.charts.painted.skill_comb import NAMED, SkillComb, name_lines
from waggle.gui.state.measured_curves import all_measured
from waggle.gui.state.story.learning_story import Skill
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.state import State
from waggle.tasks.shipped_swarms import first_steps


def score(number: int, right: int, exam: str = "full") -> events.HeldOutScore:
    return events.HeldOutScore(round=number, at=START, right=right, total=100, exam=exam)


def curve_of(theme: Theme, qtbot: QtBot, state: State) -> ScoreCurve:
    curve = ScoreCurve(theme)
    qtbot.addWidget(curve)
    curve.resize(600, 300)
    curve.show_state(state)
    return curve


def test_each_score_and_first_answer_is_told_where_it_is_drawn(theme: Theme, qtbot: QtBot) -> None:
    aha = events.Aha(round=49, at=START, specialty="Fractions", origin="idotter", name="Brisk Otter")
    curve = curve_of(theme, qtbot, State(ready=ready(), held_out=(score(0, 0), score(100, 40)), ahas=(aha,)))
    top = curve._ticks()[-1]
    assert curve.words_at(curve._at(100, 0.4, top)) == "After 100 rounds: 40 of 100 right"
    middle = curve._at(50, 0.2, top)
    assert curve._aha_points(top) == [middle], "on the curve between two scores"
    assert curve.words_at(middle) == "Fractions: Brisk Otter · idotter was right first"
    assert curve.words_at(QPointF(2, 2)) == ""
    assert "Fractions: Brisk Otter" in curve.accessibleDescription()


@pytest.mark.parametrize(
    ("places", "moved"),
    [((10.0, 40.0), [10.0, 40.0]), ((10.0, 12.0), [10.0, 19.0]), ((50.0, 97.0, 99.0), [50.0, 91.0, 100.0]), ((), [])],
)
def test_first_answers_that_lie_close_are_moved_apart(places: tuple[float, ...], moved: list[float]) -> None:
    assert moved_apart(places, 0.0, 100.0, 9.0) == moved


def test_a_lone_score_shows_how_unsure_it_is(theme: Theme, qtbot: QtBot) -> None:
    curve = curve_of(theme, qtbot, State(ready=ready(), held_out=(score(0, 30), score(50, 50, "other"))))
    picture, top = curve.grab().toImage(), curve._ticks()[-1]
    ground = QColor(picture.pixel(*(round(each) for each in curve._at(25, 0.27, top).toTuple())))
    for place in (curve._at(0, 0.24, top), curve._at(0, 0.38, top), curve._at(50, 0.43, top)):
        assert QColor(picture.pixel(round(place.x()), round(place.y()))) != ground, "a part of its 95% interval"


def test_the_lines_measured_elsewhere_follow_the_model(theme: Theme, qtbot: QtBot) -> None:
    (curves,) = all_measured()
    infos = tuple(
        events.SpecialtyInfo(dataset=each.dataset, title=each.title, levels=each.levels) for each in first_steps().specialties
    )
    known = replace(ready(), model="SmolLM2-135M-Instruct 134.5M", parameters=curves.weights, specialties=infos)
    state = State(ready=known, held_out=(score(0, 5), score(60, 30)))
    curve = curve_of(theme, qtbot, state)
    assert len(curve._references) == 2
    assert "Measured elsewhere, alone" in curve.accessibleDescription()
    curve.show_state(replace(state, ready=replace(known, model="Another 134.5M")))
    assert curve._references == ()
    assert "Measured" not in curve.accessibleDescription()


@pytest.mark.parametrize("count", [1, 5, 9, NAMED + 6])
@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_every_skill_has_a_cell_of_its_own(theme: Theme, qtbot: QtBot, count: int, direction: Qt.LayoutDirection) -> None:
    comb = SkillComb(theme)
    qtbot.addWidget(comb)
    comb.setLayoutDirection(direction)
    comb.resize(520, 200)
    comb.show_skills(
        tuple(Skill(f"Skill {number}", number, 20, "Brisk Otter" if number == 0 else None) for number in range(count))
    )
    centres, radius = [comb.centre(number) for number in range(count)], comb.radius()
    for centre in centres:
        assert radius * 0.86 <= centre.x() <= comb.width() - radius * 0.86
        assert radius <= centre.y() <= comb.height() - radius
    assert all((a - b).manhattanLength() > radius for a, b in combinations(centres, 2))
    assert comb.words_at(centres[0]) == "Skill 0: 0 of 20 right, Brisk Otter was right first"
    assert (centres[0].x() < comb.width() / 2) == (direction == Qt.LayoutDirection.LeftToRight) or count == 1


def test_a_long_name_takes_two_lines_and_is_elided(theme: Theme) -> None:
    metrics = QFontMetricsF(theme.font("caption"))
    room = metrics.horizontalAdvance("Base conversion")
    assert name_lines(metrics, "Base conversion", room + 1, room + 1) == ["Base conversion"]
    assert name_lines(metrics, "Base conversion", room - 1, room + 1) == ["Base", "conversion"]
    lines = name_lines(metrics, "Immeasurably thoughtful arithmetic puzzles", room, room)
    assert len(lines) == 2
    assert all(metrics.horizontalAdvance(line) <= room for line in lines)
    assert lines[-1].endswith("…")


@pytest.mark.parametrize(
    ("origins", "words"),
    [
        ((), ["margin of error"]),
        (("",), ["margin of error", "first right answer, by itself"]),
        (("", "idotter"), ["margin of error", "first right answer, by itself", "a peer was right first"]),
    ],
)
def test_the_key_explains_what_is_drawn_and_nothing_else(
    theme: Theme, qtbot: QtBot, origins: tuple[str, ...], words: list[str]
) -> None:
    ahas = tuple(events.Aha(round=10, at=START, specialty="Fractions", origin=each) for each in origins)
    curve = curve_of(theme, qtbot, State(ready=ready(), held_out=(score(0, 0), score(100, 40)), ahas=ahas))
    assert [meaning for _sign, meaning in curve.key()] == words
