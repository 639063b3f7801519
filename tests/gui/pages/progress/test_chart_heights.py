"""Progress: its two charts grow with the page, and shrink with it."""

from gui.conftest import TellWindow
from pictures.screenshots import Story
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.pages.progress.page import ProgressPage


def test_the_charts_take_a_good_part_of_any_page_and_the_head_of_the_next_is_seen(window_told: TellWindow, story: Story) -> None:
    window = window_told(story)
    window.show_page("progress")
    page = window.pages.of(ProgressPage)
    heights = []
    for size in ((1024, 640), (1440, 900), (2560, 1440), (1440, 900), (1024, 640)):
        window.resize(*size)
        screenshot_when_still(window)
        assert page._score_chart is not None
        heights.append(page._score_chart.height())
        view_height = page._charts.viewport().height()
        charts = page._held_card.height() + page._reward_card.height()
        assert charts > view_height / 2, size
        assert page.wide or page._beside_pins.geometry().bottom() + 40 < view_height, size
    assert heights[0] < heights[1] < heights[2]
    assert heights == heights[::-1]
