"""Why a charter is refused is told in German too, whatever a stranger wrote into it, and at once."""

import time
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from waggle.errors import CharterError
from waggle.gui import language
from waggle.gui.words import told
from waggle.tasks import charter as charters

SECONDS = 1.0  # of the processor: many times what any sentence takes
HOSTILE = " sets ".join("a" * 107) + " of ".join("a" * 161) + " to ".join("a" * 161)  # where each part of a pattern may end


@pytest.fixture(autouse=True)
def german(qapp: QApplication) -> Iterator[None]:
    language.use("de")
    yield
    language.use("en")


@pytest.mark.parametrize("words", [HOSTILE, "This takes" + " days" * 390], ids=["one pattern's parts", "patterns in patterns"])
def test_no_sentence_takes_long_to_be_found(words: str) -> None:
    began = time.process_time()
    assert told(words)
    assert time.process_time() - began < SECONDS


def test_what_a_stranger_wrote_into_a_charter_is_quoted_in_short() -> None:
    with pytest.raises(CharterError) as refused:
        charters.decode(charters.encode(charters.first_swarm())[:-1] + b',"%s":1}' % HOSTILE.encode())
    assert len(refused.value.title) < 200
    assert told(refused.value.title).startswith("Diese Charta lässt sich nicht lesen: ")
