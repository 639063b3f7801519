"""Text of strangers is painted as plain text, with the right span highlighted."""

import pytest
from PySide6.QtGui import QFontMetricsF

from waggle.gui.i18n.formatting import tooltip_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.typeset.highlighted_text import HighlightedText, break_lines, excerpt_of, span_layout, units


def test_short_text_is_left_alone() -> None:
    assert excerpt_of("so <answer>3</answer>", 11, 1, 60, tail=False) == ("so <answer>3</answer>", 11)


def test_a_span_behind_the_end_is_brought_into_sight() -> None:
    text = "x" * 200 + "<answer>3/7</answer>"
    excerpt, start = excerpt_of(text, 208, 3, 60, tail=False)
    assert excerpt[start : start + 3] == "3/7"
    assert len(excerpt) <= 62
    assert excerpt.startswith("\u2026 ")


def test_what_is_being_written_shows_its_end() -> None:
    excerpt, _ = excerpt_of("a" * 100 + "end", 0, 0, 20, tail=True)
    assert excerpt.endswith("end")


@pytest.mark.parametrize(("text", "count"), [("abc", 3), ("a\U0001f41db", 4), ("", 0)])
def test_lengths_are_counted_as_qt_counts(text: str, count: int) -> None:
    assert units(text) == count


def test_a_span_after_a_bee_is_still_on_its_text(theme: Theme) -> None:
    text = "\U0001f41d <answer>7</answer>"
    layout = span_layout(theme, text, text.index("7"), 1, role="mono", match="match")
    span = layout.formats()[-1]
    assert (span.start, span.length) == (text.index("7") + 1, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("<answer>0 0 0 0 0 3 3 3 3 3</answer>", "</answer>"),
        ("<answer>16</answer></answer></answer>", "</answer>"),
        ("First the tens, then the ones: <answer>", "<answer>"),
        ("x" * 40, "x" * 10),
        ("\U0001f41d" * 3 + " <answer>0123456789</answer>", "</answer>"),
    ],
)
def test_lines_break_after_a_space_or_before_a_tag(theme: Theme, text: str, second: str) -> None:
    layout = span_layout(theme, text, 0, 0, role="mono", match="match")
    width = QFontMetricsF(theme.font("mono")).horizontalAdvance("x" * 30) + 1
    assert break_lines(layout, text, width, 2, 18) == units(text)
    flat = text.encode("utf-16-le")
    assert flat[layout.lineAt(1).textStart() * 2 :].decode("utf-16-le") == second


def test_markup_stays_text(theme: Theme) -> None:
    widget = HighlightedText(theme, 2)
    widget.resize(300, 40)
    widget.say("<b>bold</b><img src='http://x/y.png'>\u202e", 3, 4)
    assert widget.accessibleName().startswith("<b>bold</b><img")
    assert "\u202e" not in widget.accessibleName()
    assert not widget.grab().isNull()


@pytest.mark.parametrize("text", ["", "\u0300" * 500, "\ud800", "a" * 5000, "\u05d0\u05d1 <answer>\u05d2</answer>", "\n" * 50])
def test_no_text_breaks_the_painting(theme: Theme, text: str) -> None:
    widget = HighlightedText(theme, 2)
    widget.resize(120, 40)
    widget.say(text, 4900, 50)
    assert not widget.grab().isNull()


def test_what_is_cut_is_whole_in_the_tooltip(theme: Theme) -> None:
    widget = HighlightedText(theme, 1)
    widget.resize(300, widget.height())
    long = "So it is <b>.\n" + "step by step " * 20 + "<answer>3/7</answer>"
    for text, tooltip in ((long, tooltip_text(long)), ("<answer>3/7</answer>", "")):
        widget.say(text, text.index("3/7"), 3)
        widget.grab()
        assert widget.toolTip() == tooltip


def test_tooltips_never_become_rich_text() -> None:
    assert tooltip_text("<a href='x'>y</a>").endswith(">&lt;a href=&#x27;x&#x27;&gt;y&lt;/a&gt;</span>")
    assert tooltip_text("1 & 2") == "1 & 2"
