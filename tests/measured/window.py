#!/usr/bin/env python3
"""Measure the window, and write window.json beside this file; run it in the development environment, on an idle computer.

    PYTHONPATH=app python tests/measured/window.py --minutes 60 --soak-minutes 120 --pictures

A part with 0 minutes is left out, and keeps its figures. If the computer cannot be idle, put `chrt --rr 1` before the command:
its processes then get the processor first, as on an idle computer; the figures say so.

A timer that is due every millisecond measures how long the GUI thread did not return to it: in time, and in work of that thread
alone, which depends less on other programs. For the longest block it records the cause: work, pages of memory that were read from
disk, or other programs on the processor.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import figures_file

ROOT = figures_file.ROOT


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="length of the replay that looks for blocks, on an idle computer"
    )
    parser.add_argument("--soak-minutes", type=float, default=5.0, help="length of the replay with dialogs under qasync")
    parser.add_argument("--pictures", action="store_true", help="also take the whole matrix of pictures, which takes minutes")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    figures: dict[str, object] = {"contrast_min": round(_contrast(), 2)}
    figures |= _count_words()
    figures |= _measure_pages()
    if options.minutes:
        figures |= _measure_replay(options.minutes)
    if options.soak_minutes:
        figures |= _measure_soak(options.soak_minutes)
    if options.pictures:
        figures["screenshots"] = _pictures()
    script = Path(__file__).resolve()
    before = json.loads(script.with_suffix(".json").read_text())["figures"]  # for the parts that are left out
    figures_file.write(script, dict(sorted((before | figures).items())))
    return 0


def _count_words() -> dict[str, object]:
    """Count words without a translation, patterns that read English, and the shapes of pasted links that are read.

    A pattern reads English if it holds a word of four letters. Those that typeset the questions of exams, which are English in
    every language, are left out.
    """
    sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "app"), str(ROOT / "tests/network/messages")]
    import translations
    from test_pasted_invite import PRIVATE, SHAPES

    from waggle.core.errors import SwarmError
    from waggle.network.messages import invite, pasted_invite

    def is_taken(text: str) -> bool:
        try:
            return pasted_invite.read(text) == PRIVATE
        except SwarmError:
            return False

    used = translations.all_words()
    missing = {path: translations.faults(path, used) for path in translations.CATALOGS.glob("*.ts")}
    link = invite.write(PRIVATE)
    return {
        "strings": len(used),
        "strings_not_translated": sum(len(faults["missing"] | faults["unfinished"]) for faults in missing.values()),
        "parsed_sentences": sum(map(_patterns_of_english, (ROOT / "app/waggle/gui").rglob("*.py"))),
        "link_shapes": len(SHAPES), "links_taken": sum(is_taken(shape(link)) for shape in SHAPES.values()),
    }  # fmt: skip


def _patterns_of_english(path: Path) -> int:
    if path.name == "typesetting.py":
        return 0
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    patterns = [call.args[0] for call in calls if ast.unparse(call.func).startswith("re.") and call.args]
    return sum(bool(re.search("[A-Za-z]{4}", ast.unparse(pattern))) for pattern in patterns if isinstance(pattern, ast.Constant))


def _measure_pages() -> dict[str, object]:
    """Measure the first opening of each page, in a process of its own three times, and what a mouse cannot reach."""
    ahead, at_once = _openings(ahead=True), _openings(ahead=False)
    return {
        "first_open_ms": ahead, "first_open_ms_max": max(ahead.values()), "first_open_at_once_ms": at_once,
        "unreachable_controls": json.loads(_last_line(_start_window("reach"))),
    }  # fmt: skip


def _openings(*, ahead: bool) -> dict[str, float]:
    """The CPU milliseconds of each page: the least of three, because other programs only add to them."""
    runs = [json.loads(_last_line(_start_window("opening", int(ahead)))) for _ in range(3)]
    return {page: min(run[page] for run in runs) for page in runs[0]}


def _measure_replay(minutes: float) -> dict[str, object]:
    """Measure a window while it starts, while it idles, and during a replay."""
    load = round(os.getloadavg()[0], 1)
    start_ms = []
    for _ in range(4):  # the first start warms the disk cache
        began = time.monotonic()
        _last_line(_start_window("start"))
        start_ms.append((time.monotonic() - began) * 1000)
    idle = json.loads(_last_line(_start_window("idle")))
    replay = json.loads(_last_line(_start_window("replay", 60 * minutes)))
    return {
        "load_average_before": load, "real_time": os.sched_getscheduler(0) != os.SCHED_OTHER,
        "window_ms_warm": round(min(start_ms[1:])), "idle_cpu_percent": round(idle, 2),
        "replay_hours": round(minutes / 60, 2), "peers": replay["peers"], "unnamed_widgets": replay["unnamed"],
        "gui_block_ms_worst": round(replay["block_ms"], 1), "gui_work_ms_worst": round(replay["work_ms"], 1),
        "gui_blocks_over_50_ms": replay["long_turns"], "gui_works_over_50_ms": replay["long_works"],
        "gui_block_worst_was": replay["block_was"],
        "replay_memory_growth_mb": round(replay["memory_growth_mb"], 1), "replay_handles_growth": replay["handles_growth"],
    }  # fmt: skip


def _measure_soak(minutes: float) -> dict[str, object]:
    soak = json.loads(_last_line(_start_window("soak", 60 * minutes)))
    return {
        "soak_hours": round(minutes / 60, 2), "soak_crashes": 0, "soak_dialogs": soak["dialogs"], "soak_tasks": soak["tasks"],
        "soak_hung_tasks": soak["hung_tasks"], "soak_memory_growth_mb": round(soak["memory_growth_mb"], 1),
        "soak_handles_growth": soak["handles_growth"],
    }  # fmt: skip


def _start_window(*words: object) -> "subprocess.Popen[str]":
    """Start a window in a process of its own; see window_process.py."""
    environment = {
        "QT_QPA_PLATFORM": "offscreen",
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT / "app"), str(ROOT / "tests"))),
    }
    command = [sys.executable, str(Path(__file__).with_name("window_process.py")), *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def _last_line(process: "subprocess.Popen[str]") -> str:
    """The last line that a process prints; raises CalledProcessError if it crashes."""
    output = process.communicate()[0]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return output.strip().splitlines()[-1]


def _contrast() -> float:
    """The lowest contrast of any text on any of its backgrounds, over all themes."""
    sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests")]
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from gui.theme.test_theme import FLOORS, ratio
    from waggle.gui.theme.theme import tokens

    text_colours = [(colour, backgrounds) for colour, backgrounds, floor in FLOORS if floor >= 4.5]
    return min(
        ratio(colours[colour], colours[background])
        for colours in tokens().colour.values()
        for colour, backgrounds in text_colours
        for background in backgrounds
    )


def _pictures() -> int:
    with tempfile.TemporaryDirectory() as folder:
        places = os.pathsep.join((str(ROOT / "app"), str(ROOT / "tests")))
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "PYTHONPATH": places}
        subprocess.run([sys.executable, "-m", "pictures.matrix", folder], env=environment, check=True, capture_output=True)
        return sum(1 for path in Path(folder).glob("*@*.png"))


if __name__ == "__main__":
    raise SystemExit(main())
