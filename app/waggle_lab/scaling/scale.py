"""`waggle-lab scale`: what taking part costs a node, in real swarms on this computer and in simulated ones up to 10,000 nodes."""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from waggle.core.errors import LabError
from waggle_lab.argument_types import real
from waggle_lab.scaling.scale_simulated import Cost, simulate

SECONDS = 6.0  # of a round in small swarms; in larger ones as many as this computer needs
EACH_S = 0.34  # of a round, for each node
LIMIT_S = 1200.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--real", default="none", help="sizes of real swarms as well: Linux, and root for a loopback of their own (default: none)"
    )
    parser.add_argument("--simulated", default="8,16,32,64,100,1000,10000", help="sizes of simulated swarms")
    parser.add_argument("--rounds", type=int, default=4, help="measured, after others in which the swarm settles")
    parser.add_argument(
        "--churn", type=real(0, 1), default=0.01, help="share of nodes replaced by new ones each round, in one more table"
    )
    parser.add_argument("--out", type=Path, help="write the figures to this file as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print two tables, and write the figures where asked to. Raises LabError, OSError."""
    sizes, counts = _sizes(arguments.real), _sizes(arguments.simulated)
    if arguments.rounds < 1:
        raise LabError("At least one round is measured.", "Raise --rounds.")
    if arguments.out:
        arguments.out.open("ab").close()  # a place that cannot be written is told before anything is measured
    real = {count: play_real(count, arguments.rounds) for count in sizes}
    for count, one in real.items():
        _say(
            f"real      {count:6}  {one['kb']:7.0f} kB  {one['packets']:6.0f} packets  {one['cpu_s']:6.3f} s CPU  "
            f"half reached in {_rounds(one['half'])}"
        )
    payload_kb = next(iter(real.values()))["payload_kb"] if real else 22.2
    still = simulate(counts, rounds=arguments.rounds, payload_kb=payload_kb, seconds=SECONDS, churn=0.0)
    moving = simulate(counts, rounds=arguments.rounds, payload_kb=payload_kb, seconds=SECONDS, churn=arguments.churn)
    for words, costs in (("simulated", still), ("churning", moving)):
        for count, cost in costs.items():
            _say(f"{words:9} {count:6}  {_told(cost)}")
    if arguments.out:
        arguments.out.write_text(json.dumps(figures(real, still, moving), indent=2) + "\n", encoding="utf-8")
    return 0


def play_real(count: int, rounds: int) -> dict[str, float]:
    """One real swarm in a network namespace of its own; raises LabError where that cannot be made."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        raise LabError("Real swarms are measured on Linux only.", "Leave out --real.")
    seconds = max(SECONDS, EACH_S * count)
    command = (
        sys.executable,
        "-m",
        "waggle_lab.scaling.scale_real",
        str(count),
        "--rounds",
        str(rounds),
        "--seconds",
        str(seconds),
    )
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        advice = "It needs root." if why.startswith("unshare: ") else ""
        raise LabError(f"The real swarm of {count} could not be measured: {why}", advice)
    return {name: float(value) for name, value in json.loads(done.stdout.splitlines()[-1]).items()}


def figures(real: dict[int, dict[str, float]], still: dict[int, Cost], moving: dict[int, Cost]) -> dict[str, object]:
    """As documents quote them."""
    return {
        "kb_per_node_round": {
            "real": {str(count): round(one["kb"], 1) for count, one in real.items()},
            "simulated": {str(count): round(cost.kb, 1) for count, cost in still.items()},
            "simulated_under_churn": {str(count): round(cost.kb, 1) for count, cost in moving.items()},
        },
        "kb_all_gather": {"simulated": {str(count): round(cost.kb_all_gather, 1) for count, cost in still.items()}},
        "packets_per_node_round": {str(count): round(one["packets"]) for count, one in real.items()},
        "cpu_s_per_node_round": {str(count): round(one["cpu_s"], 3) for count, one in real.items()},
        "payloads_per_node_round": {
            "real": {str(count): round(one["payloads"], 2) for count, one in real.items()},
            "simulated": {str(count): round(cost.payloads, 2) for count, cost in still.items()},
        },
        "rounds_to_half": {
            "real": {str(count): round(one["half"]) for count, one in real.items()},
            "simulated": {str(count): cost.half for count, cost in still.items()},
            "simulated_under_churn": {str(count): cost.half for count, cost in moving.items()},
            "simulated_if_one_in_four_learns": {str(count): cost.half_by_few for count, cost in still.items()},
            "simulated_under_churn_if_one_in_four_learns": {str(count): cost.half_by_few for count, cost in moving.items()},
        },
        "shards": {str(count): {key: round(value, 1) for key, value in asdict(cost).items()} for count, cost in moving.items()},
    }


def _told(cost: Cost) -> str:
    return (
        f"{cost.kb:7.0f} kB  {cost.calls:6.0f} calls    {cost.payloads:4.1f} payloads  "
        f"shard {cost.shard:4.0f}  all-gather {cost.kb_all_gather:9.0f} kB  "
        f"half reached in {_rounds(cost.half)} ({_rounds(cost.half_by_few)} if one in four learns)"
    )


def _rounds(count: float) -> str:
    return f"{count:.0f} rounds" if count >= 0 else "more rounds than were played"


def _sizes(words: str) -> list[int]:
    if words == "none":
        return []
    sizes = [int(word) if word.strip().isdecimal() else 0 for word in words.split(",")]
    if min(sizes) < 1:
        raise LabError(f"{words} are no sizes.", "Write them as 8,16,32.")
    return sizes


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
