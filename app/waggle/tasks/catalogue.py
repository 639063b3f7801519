"""What a new swarm can be made of: every audited dataset in up to three difficulties, in words for people.

`packaging/specialties.py` writes the file with those of reasoning-gym. Waggle's own describe themselves.
"""

import functools
from collections.abc import Mapping

import msgspec

from waggle.core import paths
from waggle.core.errors import CharterError
from waggle.tasks import audit_results
from waggle.tasks.specialties import waggle_datasets
from waggle.tasks.specialties.interface import Dataset, Difficulty, Setting, Topic

SAMPLES = range(2, 14)  # seeds of the questions of which the shortest is shown


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One difficulty of a dataset, with a sample question."""

    settings: Mapping[str, Setting]
    sample: str
    checked: bool = False  # whether the truth audit computed its answers by another way


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset. The nine of the swarm that ships with Waggle are those the starter has met, in their easy form."""

    dataset: str
    title: str
    topic: Topic
    levels: Mapping[Difficulty, Level]

    @property
    def unchecked(self) -> tuple[Difficulty, ...]:
        """The levels of which nobody checked the answers."""
        return tuple(difficulty for difficulty, level in self.levels.items() if not level.checked)


@functools.cache
def catalogue_entries() -> tuple[CatalogueEntry, ...]:
    """Every entry, those of reasoning-gym first; raises CharterError."""
    try:
        lines = (paths.resources() / "specialties.jsonl").read_bytes().splitlines()
        entries = tuple(msgspec.json.decode(line, type=CatalogueEntry) for line in lines)
    except (OSError, ValueError) as error:
        raise CharterError("The list of specialties cannot be read.", "Install Waggle again.") from error
    audited = {name for name, finding in audit_results.shipped_audit().findings.items() if finding.listed}
    own = (_entry(name, dataset) for name, dataset in waggle_datasets().items() if name in audited)
    return tuple(map(_with_checks, (*entries, *own)))


def _with_checks(entry: CatalogueEntry) -> CatalogueEntry:
    audit = audit_results.shipped_audit()
    levels = {
        difficulty: msgspec.structs.replace(level, checked=audit.is_checked(entry.dataset, difficulty))
        for difficulty, level in entry.levels.items()
    }
    return msgspec.structs.replace(entry, levels=levels)


def _entry(name: str, dataset: Dataset) -> CatalogueEntry:
    levels = {
        difficulty: Level(settings=settings, sample=_sample(dataset, settings)) for difficulty, settings in dataset.levels.items()
    }
    return CatalogueEntry(dataset=name, title=dataset.title, topic=dataset.topic, levels=levels)


def _sample(dataset: Dataset, settings: Mapping[str, Setting]) -> str:
    return min((dataset.entry(seed, settings).question for seed in SAMPLES), key=len)


def level_of(dataset: str, difficulty: Difficulty) -> Level | None:
    """A level of a dataset; None if the catalogue has none."""
    entry = _by_dataset().get(dataset)
    return entry.levels.get(difficulty) if entry else None


@functools.cache
def _by_dataset() -> dict[str, CatalogueEntry]:
    return {entry.dataset: entry for entry in catalogue_entries()}
