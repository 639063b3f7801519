"""The charts on real screens: how wide their lines are on one that is twice as dense."""

import json
import os
import subprocess
import sys
from pathlib import Path

import waggle

SCRIPT = """
from PySide6.QtCore import Qt
from waggle.gui.app import application
from waggle.gui.charts import Band, Chart
from waggle.gui.look import Look

app = application()
chart = Chart(Look("light"), "chart", shows_axis=True)
chart.resize(300, 200)
chart.move(10, 10)
chart.show()
app.processEvents()
chart.begin(1.0, percent=True, x=(0.0, 3.0), axis="round")
chart.band(Band(1.0, 2.0, "pause"), named=False)
chart.line([0, 1, 2], [0, 1, 0], "peer", Qt.PenStyle.DashLine, width=2.6, dots=False)


def say():
    app.processEvents()
    grid, region, line, _dot = chart.getPlotItem().items
    print(chart.devicePixelRatioF(), grid.opts["pen"].widthF(), region.lines[0].pen.widthF(), line.opts["pen"].widthF())


say()
chart.move(1400, 10)
say()
chart.begin(1.0, percent=True, x=(0.0, 3.0), axis="round")
chart.band(Band(1.0, 2.0, "pause"), named=False)
chart.line([0, 1, 2], [0, 1, 0], "peer", Qt.PenStyle.DashLine, width=2.6, dots=False)
say()
chart.move(10, 10)
say()
"""


def test_lines_are_as_wide_on_a_dense_screen(tmp_path: Path) -> None:
    plain = {"y": 0, "width": 1280, "height": 800, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    screens = [{"name": "plain", "x": 0, **plain}, {"name": "dense", "x": 1280, **plain}]
    configured = tmp_path / "screens.json"
    configured.write_text(json.dumps({"synchronousWindowSystemEvents": False, "windowFrameMargins": True, "screens": screens}))
    platform = f"offscreen:configfile={configured}"
    env = {
        **os.environ,
        "QT_QPA_PLATFORM": platform,
        "QT_SCREEN_SCALE_FACTORS": "plain=1;dense=2",
        "PYTHONPATH": str(Path(waggle.__file__).parents[1]),
    }
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=60, check=True)
    on_plain, on_dense = "1.0 1.0 1.0 2.6", "2.0 2.0 2.0 5.2"
    assert ran.stdout.splitlines() == [on_plain, on_dense, on_dense, on_plain]
