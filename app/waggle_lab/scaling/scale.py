"""`waggle-lab scale`: measure what taking part costs a node, in real and in simulated swarms of up to 10,000 nodes."""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from waggle.core.errors import LabError
from waggle_lab.argument_types import real
from waggle_lab.scaling.scale_simulated import NodeCost, simulate

MIN_ROUND_S = 6.0  # length of a round in small swarms
ROUND_S_PER_NODE = 0.34  # in larger swarms a round is longer, because this computer has to play all nodes
TIMEOUT_S = 1200.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--real", default="none", help="sizes of real swarms; needs Linux, and root for network namespaces (default: none)"
    )
    parser.add_argument("--simulated", default="8,16,32,64,100,1000,10000", help="sizes of simulated swarms")
    parser.add_argument("--rounds", type=int, default=4, help="rounds to measure, after others in which the swarm settles")
    parser.add_argument(
        "--churn", type=real(0, 1), default=0.01, help="share of nodes replaced by new ones each round, in a second simulation"
    )
    parser.add_argument("--out", type=Path, help="write the figures to this file as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, and write the figures to --out. Raises LabError, OSError."""
    sizes, counts = _sizes(arguments.real), _sizes(arguments.simulated)
    if arguments.rounds < 1:
        raise LabError("At least one round must be measured.", "Raise --rounds.")
    if arguments.out:
        arguments.out.open("ab").close()  # fail before measuring if the file cannot be written
    real = {count: play_real(count, arguments.rounds) for count in sizes}
    for count, measured in real.items():
        _say(
            f"real      {count:6}  {measured['kb']:7.0f} kB  {measured['packets']:6.0f} packets  {measured['cpu_s']:6.3f} s CPU  "
            f"half reached in {_rounds_text(measured['half'])}"
        )
    payload_kb = next(iter(real.values()))["payload_kb"] if real else 22.2
    static = simulate(counts, rounds=arguments.rounds, payload_kb=payload_kb, seconds=MIN_ROUND_S, churn=0.0)
    churning = simulate(counts, rounds=arguments.rounds, payload_kb=payload_kb, seconds=MIN_ROUND_S, churn=arguments.churn)
    for label, costs in (("simulated", static), ("churning", churning)):
        for count, cost in costs.items():
            _say(f"{label:9} {count:6}  {_cost_text(cost)}")
    if arguments.out:
        arguments.out.write_text(json.dumps(figures(real, static, churning), indent=2) + "\n", encoding="utf-8")
    return 0


def play_real(count: int, rounds: int) -> dict[str, float]:
    """Measure one real swarm in a network namespace of its own; raises LabError if that fails."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        raise LabError("Real swarms are measured on Linux only.", "Leave out --real.")
    seconds = max(MIN_ROUND_S, ROUND_S_PER_NODE * count)
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
    process = subprocess.run(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command],
        capture_output=True, text=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or [f"it exited with {process.returncode}"])[-1]
        advice = "It needs root." if reason.startswith("unshare: ") else ""
        raise LabError(f"The real swarm of {count} could not be measured: {reason}", advice)
    return {name: float(value) for name, value in json.loads(process.stdout.splitlines()[-1]).items()}


def figures(real: dict[int, dict[str, float]], static: dict[int, NodeCost], churning: dict[int, NodeCost]) -> dict[str, object]:
    """The figures that documents may quote."""
    return {
        "kb_per_node_round": {
            "real": {str(count): round(measured["kb"], 1) for count, measured in real.items()},
            "simulated": {str(count): round(cost.kb, 1) for count, cost in static.items()},
            "simulated_under_churn": {str(count): round(cost.kb, 1) for count, cost in churning.items()},
        },
        "kb_all_gather": {"simulated": {str(count): round(cost.kb_all_gather, 1) for count, cost in static.items()}},
        "packets_per_node_round": {str(count): round(measured["packets"]) for count, measured in real.items()},
        "cpu_s_per_node_round": {str(count): round(measured["cpu_s"], 3) for count, measured in real.items()},
        "payloads_per_node_round": {
            "real": {str(count): round(measured["payloads"], 2) for count, measured in real.items()},
            "simulated": {str(count): round(cost.payloads, 2) for count, cost in static.items()},
        },
        "rounds_to_half": {
            "real": {str(count): round(measured["half"]) for count, measured in real.items()},
            "simulated": {str(count): cost.half for count, cost in static.items()},
            "simulated_under_churn": {str(count): cost.half for count, cost in churning.items()},
            "simulated_if_one_in_four_learns": {str(count): cost.half_by_few for count, cost in static.items()},
            "simulated_under_churn_if_one_in_four_learns": {str(count): cost.half_by_few for count, cost in churning.items()},
        },
        "shards": {str(count): {key: round(value, 1) for key, value in asdict(cost).items()} for count, cost in churning.items()},
    }


def _cost_text(cost: NodeCost) -> str:
    return (
        f"{cost.kb:7.0f} kB  {cost.calls:6.0f} calls    {cost.payloads:4.1f} payloads  "
        f"shard {cost.shard:4.0f}  all-gather {cost.kb_all_gather:9.0f} kB  "
        f"half reached in {_rounds_text(cost.half)} ({_rounds_text(cost.half_by_few)} if one in four learns)"
    )


def _rounds_text(count: float) -> str:
    return f"{count:.0f} rounds" if count >= 0 else "more rounds than were played"


def _sizes(text: str) -> list[int]:
    if text == "none":
        return []
    sizes = [int(word) if word.strip().isdecimal() else 0 for word in text.split(",")]
    if min(sizes) < 1:
        raise LabError(f"{text} are not sizes of swarms.", "Write them as 8,16,32.")
    return sizes


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
