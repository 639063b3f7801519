"""Which of some paths, dropped or chosen by a person, may be files of questions."""

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from waggle.gui.i18n.formatting import later, one_line, tr

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
MOST_FILES = 4  # in one swarm
LONGEST_PATH = 4096  # characters, as in a command
ACCEPTED_FILES = later("Waggle takes files of questions: JSON lines (.jsonl) or tables (.csv), up to four.")


def has_known_ending(path: str) -> bool:
    return len(path) <= LONGEST_PATH and PurePath(path).suffix.casefold() in ENDINGS


def question_files(paths: Iterable[str]) -> tuple[Sequence[str], str]:
    """The absolute paths that may be files of questions, at most MOST_FILES, and what to say about the others; empty: nothing."""
    all_paths = list(dict.fromkeys(paths))
    suitable = [path for path in all_paths if os.path.isabs(path) and has_known_ending(path) and not os.path.isdir(path)]
    unsuitable = [path for path in all_paths if path not in suitable]
    if unsuitable or not all_paths:
        name = one_line(os.path.basename(unsuitable[0].rstrip("/\\")))[:60] if unsuitable else ""
        words = tr("%1 is no file of questions.").replace("%1", name) if name and len(unsuitable) == 1 else ""
        return suitable[:MOST_FILES], f"{words} {tr(ACCEPTED_FILES)}".strip()
    return suitable[:MOST_FILES], tr("A swarm has at most four files of questions.") if len(suitable) > MOST_FILES else ""
