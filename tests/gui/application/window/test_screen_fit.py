"""The window fits every screen: a scaled laptop screen with a panel, in a process of its own with that screen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCREENS = {
    (1366, 728, 1.5): (911, 485),
    (1366, 728, 1.25): (1093, 582),
    (1024, 572, 1.0): (1024, 572),
    (2560, 1400, 1.0): (2560, 1400),
}
SCRIPT = """
import json
from PySide6.QtWidgets import QApplication
from waggle.gui.application.main import application
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.window.screen_fit import FRAME
from waggle.gui.pages.context import PageContext
from waggle.gui.theme.theme import Theme

app = application()
theme = Theme("light")
theme.apply()
window = MainWindow(PageContext(theme))
window.show()
window.show_page("live")  # on Home, the status bar is hidden until there is something in it
room = window.screen().availableGeometry().size()
window.resize(room - FRAME)
for _ in range(4):
    app.processEvents()
bar, rail = window.status, window.rail
print(json.dumps({
    "screen": room.toTuple(), "window": window.size().toTuple(), "least": window.minimumSize().toTuple(),
    "bar": bar.mapTo(window, bar.rect().bottomRight()).toTuple(), "rail": rail.height(),
    "buttons": [[button.text(), button.mapTo(rail, button.rect().bottomLeft()).y()] for button in rail._buttons.values()],
}))
"""


@pytest.mark.parametrize(("screen", "room"), SCREENS.items(), ids=str)
def test_the_window_fits_a_screen_with_its_status_bar_and_every_name_of_the_rail(
    tmp_path: Path, screen: tuple[int, int, float], room: tuple[int, int]
) -> None:
    width, height, scale = screen
    config = tmp_path / "screen.json"
    config.write_text(json.dumps({"screens": [{"name": "laptop", "x": 0, "y": 0, "width": width, "height": height}]}))
    environment = {
        **os.environ, "QT_QPA_PLATFORM": f"offscreen:configfile={config.name}", "QT_SCALE_FACTOR": str(scale),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    process = subprocess.run(  # in the folder of the file, because Qt takes no path with a colon, as Windows has them
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    report = json.loads(process.stdout.splitlines()[-1])
    assert tuple(report["screen"]) == room
    assert report["least"][0] <= report["window"][0] == room[0] - 16
    assert report["least"][1] <= report["window"][1] == room[1] - 48
    assert report["bar"] == [report["window"][0] - 1, report["window"][1] - 1]
    for name, bottom in report["buttons"]:  # with its name: a bare button would be lower
        assert name
        assert bottom < report["rail"]
