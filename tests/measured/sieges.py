#!/usr/bin/env python3
"""Let hostile nodes teach and attack in the ways of people who choose, and write sieges.json; standard library only.

    python3 tests/measured/sieges.py [lessons] [network]

lessons   six honest starters learn in a simulated swarm while two hostile nodes teach them something beside right answers; the
          long answers also without the bounds on peers
network   six honest starters learn over real hivemind while two hostile nodes attack the network below and beside Python; the
          eclipse also with six hostile nodes of eight, more than the replicas of an entry

Finished sieges are saved in sieges/, so the command continues where it was stopped; sieges.json has what is finished. What the
attackers paid stands beside what the victims paid, against the same honest nodes without an attack. `zeros` are sums over all
sieges: code that ran, crashes, wrong answers accepted, honest groups lost, and calls at a bystander that hostile nodes named.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import figures_file

FOLDER = Path(__file__).with_suffix("")
LESSON_ROUNDS, SEEDS = 60, "0,1"
NETWORK_ROUNDS = 4
NETWORK = ("none", "stalled streams", "named bystanders", "eclipse")
NOTHING = {"--attacks": "", "--lessons": "", "--bounds": "", "--seeds": ""}
ZEROS = ("code_executions", "crashes", "wrong_answers_accepted", "honest_groups_lost", "bystander_calls")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=("lessons", "network"), help="both by default")
    parts = parser.parse_args().parts or ["lessons", "network"]
    figures_file.require_clean_tree()
    lessons = {key: value for key, value in NOTHING.items() if key != "--lessons"}
    if "lessons" in parts:
        lessons |= {"--hostile": "2", "--lesson-rounds": str(LESSON_ROUNDS)}
        play(lessons | {"--lesson-seeds": SEEDS})
        play(lessons | {"--lesson-seeds": "0", "--lessons": "long answers", "--lesson-bounds": "default-unbounded"})
    if "network" in parts:
        play(NOTHING | {"--attacks": ",".join(NETWORK), "--hostile": "2", "--rounds": str(NETWORK_ROUNDS)})
        play(NOTHING | {"--attacks": "none,eclipse", "--hostile": "6", "--rounds": str(NETWORK_ROUNDS)})
    write()
    return 0


def play(options: dict[str, str]) -> None:
    words = [word for pair in options.items() for word in pair]
    command = ["packaging/dev.py", "lab", "hostile", "--out", str(FOLDER.relative_to(figures_file.ROOT)), "--resume", *words]
    subprocess.check_call([sys.executable, *command], cwd=figures_file.ROOT)


def write() -> None:
    """Write what is finished, with the prices that the laboratory computes."""
    sieges = [json.loads(line) for line in (FOLDER / "sieges.jsonl").read_text().splitlines()]
    figures = {
        "zeros": {name: sum(siege.get(name) or 0 for siege in sieges) for name in ZEROS},
        "sieges": len(sieges),
        "prices": json.loads(prices()),
    }
    commits = sorted({siege["commit"] for siege in sieges})
    figures_file.write(Path(__file__).resolve(), figures, commit=", ".join(commits))


def prices() -> str:
    """The comparisons of all finished sieges, as JSON, by the project's own Python."""
    program = (
        "import sys, msgspec; from pathlib import Path; from waggle.practice.results import Book; "
        "from waggle_lab.security.sieges.siege import Siege; from waggle_lab.security.sieges.price_table import comparisons; "
        "print(msgspec.json.encode(comparisons(Book(Path(sys.argv[1]), Siege).runs)).decode())"
    )
    python = figures_file.ROOT / ".venv/bin/python"
    environment = {"PYTHONPATH": str(figures_file.ROOT / "app"), "PATH": "/usr/bin:/bin"}
    return subprocess.check_output([python, "-c", program, str(FOLDER / "sieges.jsonl")], text=True, env=environment)


if __name__ == "__main__":
    raise SystemExit(main())
