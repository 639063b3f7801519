"""The audit's findings about every dataset, as they ship with Waggle: they decide what a charter may name."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from waggle.core import paths
from waggle.core.errors import CharterError
from waggle.core.message import NOTHING, Figure, Message, unpacked_message
from waggle.tasks.specialties.interface import Difficulty


class AuditHeading(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of the file."""

    reasoning_gym: str  # the version that was audited
    python: str


class LevelTruth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the truth audit counted in one level."""

    checked: int  # keys that an independent check could judge
    false: int
    constant: float  # mean reward of the constant answer that earns most


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: one dataset with its default settings. A charter may name it if `listed`, in levels without false keys.

    A level that is not in `truth` is unchecked, too.
    """

    dataset: str
    listed: bool
    reasons: tuple[Message, ...] = ()  # against it, in words
    longest: int = 0  # characters of the longest texts that its scorer judges at once
    question_seconds: float = 0.0  # processor time of making one
    slowest_seconds: float = 0.0  # processor time of the slowest answer up to that length
    crumb: float = 0.0  # the most it pays for a hostile text, below a full reward
    events: tuple[str, ...] = ()  # audit events its scorer raised over a text
    raised: tuple[str, ...] = ()  # exceptions that its scorer does not catch: such a text earns nothing
    hash_seed_matters: bool = False  # only for information: the child always runs with PYTHONHASHSEED=0
    answers: int = 0  # texts that its scorer read
    truth: Mapping[Difficulty, LevelTruth | Literal["unchecked"]] = {}


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    heading: AuditHeading
    findings: dict[str, AuditFinding]

    def refusal(self, dataset: str, characters: int) -> Message:
        """The reason why a charter with completions of this many characters may not name a dataset; empty if it may."""
        finding = self.findings.get(dataset)
        if finding is None:
            return Message("this Waggle has no such dataset")
        if not finding.listed:
            return finding.reasons[0]
        if characters > finding.longest:
            return Message(
                "its scorer is quick only up to %1 characters, and this charter allows %2",
                Figure(finding.longest),
                Figure(characters),
            )
        return NOTHING

    def is_checked(self, dataset: str, level: Difficulty) -> bool:
        """Whether an independent check computed the answers of a level."""
        return isinstance(self._truth(dataset, level), LevelTruth)

    def false_keys(self, dataset: str, level: Difficulty) -> int:
        """How many keys of a level are known to be false."""
        truth = self._truth(dataset, level)
        return truth.false if isinstance(truth, LevelTruth) else 0

    def _truth(self, dataset: str, level: Difficulty) -> LevelTruth | Literal["unchecked"]:
        finding = self.findings.get(dataset)
        return finding.truth.get(level, "unchecked") if finding else "unchecked"


def read(path: Path) -> Audit:
    """Raises OSError and msgspec.DecodeError."""
    first, *lines = path.read_bytes().splitlines()
    findings = [msgspec.json.decode(line, type=AuditFinding, dec_hook=unpacked_message) for line in lines]
    return Audit(
        heading=msgspec.json.decode(first, type=AuditHeading), findings={finding.dataset: finding for finding in findings}
    )


@functools.cache
def shipped_audit() -> Audit:
    """The audit that came with this Waggle. Raises CharterError."""
    try:
        return read(paths.resources() / "audit.jsonl")
    except (OSError, ValueError) as error:
        raise CharterError("The list of audited specialties cannot be read.", "Install Waggle again.") from error
