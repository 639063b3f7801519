"""Logging to stderr in one format; stdout belongs to events."""

import logging
import sys

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def start(level: str = "WARNING") -> None:
    """Send every log line of this process to stderr."""
    logging.basicConfig(stream=sys.stderr, level=level, format=FORMAT, force=True)
