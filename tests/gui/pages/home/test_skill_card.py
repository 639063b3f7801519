"""Test that the specialties stand on Home while the first test fills them."""

from msgspec.structs import replace
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gui.recorded import SPECIALTIES, ready
from waggle.gui.charts.painted.skill_comb import NAMED
from waggle.gui.pages.home.skill_card import SkillCard
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.state import State

TESTED = State(ready=ready(round=0), phase="contributing", test=events.HeldOutProgress(done=3, total=90))


def test_the_specialties_stand_there_while_the_first_test_fills_them(theme: Theme, qtbot: QtBot) -> None:
    room = QWidget()
    qtbot.addWidget(room)
    card = SkillCard(theme)
    card.setParent(room)
    card.resize(700, 300)
    card.show_state(TESTED)
    assert not card.isHidden()
    assert card._key.words() == "filled in after this test"
    assert card.comb.accessibleDescription().count("not tested yet") == len(SPECIALTIES)
    card.show_state(replace(TESTED, test=None))
    assert card.isHidden(), "nothing is solved"
    many = tuple(events.SpecialtyInfo(dataset=f"d{i}", title=f"Specialty {i}") for i in range(NAMED + 1))
    card.show_state(replace(TESTED, ready=ready(round=0, specialties=many)))
    assert card.isHidden(), "cells without names or figures say nothing"
