#!/usr/bin/env python3
"""Attack live nodes as a stranger would, and write network.json beside this file.

    python3 tests/measured/network.py [FIGURE ...]

Without names, everything is measured anew; with names, only these figures, and the others stay as they are in the file.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import figures_file

# Growth of one node's memory (engine or p2pd, MiB) that one stranger causes in 60 s: one function for each attack.
MEMORY_ATTACKS: dict[str, Callable[[], float]] = {}


def stranger_memory_mib() -> dict[str, float]:
    """The growth by attack; the figure is the largest of them."""
    return {name: round(attack(), 1) for name, attack in MEMORY_ATTACKS.items()}


# One function for each figure, or for each table of them.
FIGURES: dict[str, Callable[[], object]] = {"stranger_memory_mib": stranger_memory_mib}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="*", choices=[*FIGURES, []], help="which ones; all by default")
    chosen = parser.parse_args().figures or list(FIGURES)
    figures_file.require_clean_tree()
    script = Path(__file__).resolve()
    before = json.loads(script.with_suffix(".json").read_text())["figures"] if script.with_suffix(".json").exists() else {}
    figures_file.write(script, before | {name: FIGURES[name]() for name in chosen})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
