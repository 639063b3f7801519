"""Cards in columns of equal width."""

import pytest
from PySide6.QtWidgets import QApplication, QFrame

from waggle.gui.widgets.containers.card_grid import CardGrid


@pytest.mark.parametrize("width", [1200, 900])
def test_few_cards_stand_in_the_columns_of_many(qapp: QApplication, width: int) -> None:
    places = []
    for count in (6, 1, 2):
        cards = [QFrame() for _ in range(count)]
        grid = CardGrid(330)
        grid.resize(width, 400)
        grid.show_cards(cards)
        grid.grab()
        places.append([(card.x(), card.width()) for card in cards])
    of_many, of_one, of_two = places
    assert (of_one, of_two) == (of_many[:1], of_many[:2])
