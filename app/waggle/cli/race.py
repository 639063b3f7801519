"""`waggle race`: two small practice swarms on this computer, as JSON lines."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, metavar="N", help="(default: 80)")
    parser.add_argument("--nodes", type=int, metavar="N", help="of each swarm (default: 4)")
    parser.add_argument("--seed", type=int, metavar="N", help="(default: a new one each time)")
    parser.add_argument("--stdio", action="store_true", help="exit when stdin ends")


def run(arguments: argparse.Namespace) -> int:
    """Run one race. Returns the exit code. Raises LabError if there are no nodes or no rounds."""
    from waggle.practice import race

    return race.run(arguments.rounds, arguments.nodes, seed=arguments.seed, stdio=arguments.stdio)
