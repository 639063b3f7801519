#!/usr/bin/env python3
"""Run Waggle on Windows' own Python under Wine, and write windows.json beside this file and pictures into windows/.

    sudo WAGGLE_WINDOWS_RIG=FOLDER .venv/bin/python tests/measured/windows.py [--again | --failed] [PART ...]

It builds the Windows in FOLDER if there is none (5 GB, from Debian's and Python's packages) and runs tests/windows part by part.
Results stay in FOLDER, and what has one is not run again: run again, the command goes on where it ended or where a suite
took longer than its time. With `--again` all is run anew; named parts are run alone and anew; with `--failed`, of their tests
only those that have not passed. Each figure that was measured at another commit than that of the file says so. A failure
there is laid to Wine, with the reason, or to Waggle. What Wine cannot show is said in tests/windows/rig.py.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import figures_file

TESTS = figures_file.ROOT / "tests"
# not this folder, which has a windows.py
sys.path[:1] = [str(TESTS), str(figures_file.ROOT / "app"), str(figures_file.ROOT / "packaging")]

from windows.conftest import FOLDER, KEEP  # noqa: E402
from windows.reasons import OURS, reason  # noqa: E402
from windows.remaining import Results  # noqa: E402
from windows.test_suites import SUITES  # noqa: E402

PICTURES = Path(__file__).with_suffix("")
PARTS = {
    "waggle": "tests/windows/test_windows.py",
    **{suite: f"tests/windows/test_suites.py::test_what_applies_of_a_suite_passes_there[{suite}]" for suite in SUITES},
    "installer": "tests/windows/test_frozen.py",
}
FAILED, NOT_FINISHED, COUNTED = "failed ", "not finished ", ("tests_passed", "tests_failed")


def main() -> int:
    """Exit status 1 if a part is not finished."""
    figures_file.require_clean_tree()
    parser = argparse.ArgumentParser()
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--again", action="store_true", help="run every part anew")
    which.add_argument("--failed", action="store_true", help="run anew only what has not passed")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"run only these, anew: {', '.join(PARTS)}")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"no part: {', '.join(sorted(unknown))}")
    state = Path(os.environ[FOLDER], "measured")
    state.mkdir(parents=True, exist_ok=True)
    commit = figures_file.source_commit()
    for name in options.parts or PARTS:
        if options.parts or options.again or options.failed:
            forget(state, name, only_failed=options.failed)
        if not is_finished(measured(state, name)):
            measure(state, name, commit)
            record(state, commit)
    return 0 if record(state, commit) else 1


def record(state: Path, commit: str) -> bool:
    """Write what is known by now, and whether that is everything."""
    results = {name: measured(state, name) for name in PARTS}
    PICTURES.mkdir(exist_ok=True)
    for picture in (figures_file.ROOT / "build/windows").glob("*.png"):
        shutil.copyfile(picture, PICTURES / picture.name)
    figures_file.write(Path(__file__), merged(results) | measured_elsewhere(results, commit), commit=commit)
    return all(map(is_finished, results.values()))


def measure(state: Path, name: str, commit: str) -> None:
    """Run a part in a process of its own, and keep what it measured."""
    output = state / "figures.json"
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "windows", PARTS[name], "--figures", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(figures_file.ROOT / "app"), KEEP: "1"}
    code = subprocess.call(command, cwd=figures_file.ROOT, env=environment)
    figures = json.loads(output.read_text()) if output.exists() else {}
    if code and not any(key.startswith(FAILED) for key in figures):
        figures[f"{NOT_FINISHED}{name}"] = f"pytest's exit status {code}"
    (state / f"{file_name(name)}.json").write_text(json.dumps({"commit": commit, "figures": figures}))


def forget(state: Path, name: str, *, only_failed: bool) -> None:
    """Run a part anew the next time, and each test of a suite, or each that has not passed."""
    (state / f"{file_name(name)}.json").unlink(missing_ok=True)
    for results in Path(os.environ[FOLDER]).glob(f"root/prefix/drive_c/results/{file_name(name)}.jsonl"):
        results.with_suffix(".txt").unlink(missing_ok=True)  # why tests failed
        if only_failed:
            Results(results).forget_failed()
        else:
            results.unlink()


def measured(state: Path, name: str) -> dict[str, Any]:
    """The commit and the figures of a part; empty before it was run."""
    path = state / f"{file_name(name)}.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def file_name(name: str) -> str:
    return name.replace("/", "-")


def is_finished(result: dict[str, Any]) -> bool:
    return "figures" in result and not any(key.startswith(NOT_FINISHED) for key in result["figures"])


def merged(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures of all parts; the reasons of failures as they are known now."""
    figures = dict[str, Any]()
    for result in results.values():
        part = result.get("figures", {})
        figures |= part | {name: figures.get(name, 0) + part[name] for name in COUNTED if name in part}
    figures |= {name: reason(name) or OURS for name in figures if name.startswith(FAILED)}
    figures |= {f"{NOT_FINISHED}{name}": "not run" for name, result in results.items() if not result}
    return figures | {"failures_of_waggle": list(figures.values()).count(OURS)}


def measured_elsewhere(results: dict[str, dict[str, Any]], commit: str) -> dict[str, str]:
    commits = {name: result.get("commit", "") for name, result in results.items()}
    return {f"commit of {name}": measured_at for name, measured_at in commits.items() if measured_at not in ("", commit)}


if __name__ == "__main__":
    sys.exit(main())
