"""`waggle race`: two small practice swarms on this computer, as JSON lines."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, metavar="N", help="(default: 80)")
    parser.add_argument("--nodes", type=int, metavar="N", help="of each swarm (default: 4)")
    parser.add_argument("--seed", type=int, metavar="N", help="(default: another one each time)")
    parser.add_argument("--stdio", action="store_true", help="leave when stdin ends")


def run(arguments: argparse.Namespace) -> int:
    """Race once; returns the exit code. Raises LabError where there is nobody to race, or no round."""
    from waggle.practice import race

    return race.run(arguments.rounds, arguments.nodes, seed=arguments.seed, stdio=arguments.stdio)
