#!/usr/bin/env python3
"""Measures the window and writes window.json beside this file; run it in the development environment, with nothing else running.

    PYTHONPATH=app python tests/measured/window.py --minutes 60 --soak-minutes 120 --pictures

A part of no minutes is left out, and keeps the figures that it had. Where other work cannot be kept away, `chrt --rr 1` before it
gives its processes the processor first, as on an idle computer; the figures say so.

A timer that is due each millisecond looks how long the thread of the window did not come back to it: as time, and as work of
that thread alone, which a busy computer changes less. Of the longest it says what it was: work, pages of memory that were read
from the disk, or other programs on its processor.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keep

ROOT = keep.ROOT


def main() -> int:
    made = argparse.ArgumentParser()
    made.add_argument("--minutes", type=float, default=5.0, help="of the replay that looks for blocks, on an idle computer")
    made.add_argument("--soak-minutes", type=float, default=5.0, help="of the replay with dialogs under qasync")
    made.add_argument("--pictures", action="store_true", help="take the whole matrix of pictures too, which takes minutes")
    chosen = made.parse_args()
    keep.require_clean()
    figures: dict[str, object] = {"contrast_min": round(_contrast(), 2)}
    if chosen.minutes:
        figures |= _watched(chosen.minutes)
    if chosen.soak_minutes:
        figures |= _soaked(chosen.soak_minutes)
    if chosen.pictures:
        figures["screenshots"] = _pictures()
    script = Path(__file__).resolve()
    before = json.loads(script.with_suffix(".json").read_text())["figures"]  # of the parts that were left out now
    keep.write(script, dict(sorted((before | figures).items())))
    return 0


def _watched(minutes: float) -> dict[str, object]:
    """The start, the rest and the replay of a window."""
    load = round(os.getloadavg()[0], 1)
    starts = []
    for _ in range(4):  # the first one warms the disk's cache
        began = time.monotonic()
        _said(_seen("start"))
        starts.append((time.monotonic() - began) * 1000)
    idle = json.loads(_said(_seen("idle")))
    replay = json.loads(_said(_seen("replay", 60 * minutes)))
    return {
        "load_average_before": load, "real_time": os.sched_getscheduler(0) != os.SCHED_OTHER,
        "window_ms_warm": round(min(starts[1:])), "idle_cpu_percent": round(idle, 2),
        "replay_hours": round(minutes / 60, 2), "peers": replay["peers"], "unnamed_widgets": replay["unnamed"],
        "gui_block_ms_worst": round(replay["block_ms"], 1), "gui_work_ms_worst": round(replay["work_ms"], 1),
        "gui_blocks_over_50_ms": replay["long_turns"], "gui_works_over_50_ms": replay["long_works"],
        "gui_block_worst_was": replay["block_was"],
        "replay_memory_growth_mb": round(replay["memory_growth_mb"], 1), "replay_handles_growth": replay["handles_growth"],
    }  # fmt: skip


def _soaked(minutes: float) -> dict[str, object]:
    soak = json.loads(_said(_seen("soak", 60 * minutes)))
    return {
        "soak_hours": round(minutes / 60, 2), "soak_crashes": 0, "soak_dialogs": soak["dialogs"], "soak_tasks": soak["tasks"],
        "soak_hung_tasks": soak["hung_tasks"], "soak_memory_growth_mb": round(soak["memory_growth_mb"], 1),
        "soak_handles_growth": soak["handles_growth"],
    }  # fmt: skip


def _seen(*words: object) -> "subprocess.Popen[str]":
    """A window in a process of its own; see window_seen.py."""
    environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "PYTHONPATH": str(ROOT / "app")}
    command = [sys.executable, str(Path(__file__).with_name("window_seen.py")), *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def _said(process: "subprocess.Popen[str]") -> str:
    """What it prints last; a crash of it ends the measurement."""
    said = process.communicate()[0]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return said.strip().splitlines()[-1]


def _contrast() -> float:
    """The lowest contrast of any words on any ground they may stand on, over all themes."""
    sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests")]
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from gui.theme.test_theme import FLOORS, ratio
    from waggle.gui.theme.theme import tokens

    words = [(ink, grounds) for ink, grounds, floor in FLOORS if floor >= 4.5]
    return min(
        ratio(colours[ink], colours[ground])
        for colours in tokens().colour.values()
        for ink, grounds in words
        for ground in grounds
    )


def _pictures() -> int:
    with tempfile.TemporaryDirectory() as folder:
        places = os.pathsep.join((str(ROOT / "app"), str(ROOT / "tests")))
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "PYTHONPATH": places}
        subprocess.run([sys.executable, "-m", "pictures.matrix", folder], env=environment, check=True, capture_output=True)
        return sum(1 for path in Path(folder).glob("*@*.png"))


if __name__ == "__main__":
    raise SystemExit(main())
