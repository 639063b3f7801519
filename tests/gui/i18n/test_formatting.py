"""Numbers, times and untrusted text as a person reads them."""

import pytest

from waggle.gui.i18n.formatting import HIDDEN, NEWLINE, ago, duration, figure, one_line, plural, reward, size, visible
from waggle.protocol.events import UNTAGGED, ShownCompletion


@pytest.mark.parametrize(("seconds", "words"), [(0, "now"), (40, "40 s ago"), (120, "2 min ago"), (3000, "50 min ago")])
def test_ago_is_coarse(seconds: float, words: str) -> None:
    assert ago(10_000.0, 10_000.0 + seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(40, "40 s"), (720, "12 min"), (4800, "1 h 20 min"), (7200, "2 h"), (273_600, "3 d 4 h")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("number", "words"), [(800, "800 bytes"), (3100, "3.1 kB"), (38_000, "38 kB"), (1_200_000, "1.2 MB")])
def test_sizes(number: float, words: str) -> None:
    assert size(number) == words


def test_plurals_carry_thousands() -> None:
    assert plural(1, "%n peer", "%n peers") == "1 peer"
    assert plural(1248, "%n peer", "%n peers") == "1,248 peers"
    assert figure(1248) == "1,248"


@pytest.mark.parametrize(
    ("value", "reason", "words"),
    [
        (1.0, "right", "right"),
        (0.0, "no answer tag", "no answer tag"),
        (0.25, "close", "0.25  close"),
        (0.0, UNTAGGED, "right, wrong format"),
    ],
)
def test_a_reward_has_its_reason(value: float, reason: str, words: str) -> None:
    assert reward(ShownCompletion(text="", judged=True, reward=value, reason=reason)) == words


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200B, 0x200F, 0xFEFF, 0x061C, 0x85, 0xE0041, 0xD800, 0x2028])
def test_hidden_characters_become_a_sign(code: int) -> None:
    assert visible(f"a{chr(code)}b") == f"a{HIDDEN}b"


def test_control_characters_become_pictures_of_themselves() -> None:
    assert visible("\x00\x1b\x7f\n") == f"\u2400\u241b\u2421{NEWLINE}"


def test_text_keeps_its_length_up_to_a_cap() -> None:
    assert len(visible("a\u202eb\n")) == 4
    assert len(visible("x" * 100_000)) == 4000


def test_headings_are_one_line() -> None:
    assert one_line("two\n  lines\u202e") == f"two lines{HIDDEN}"
