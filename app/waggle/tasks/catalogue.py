"""What a new swarm can be made of: every audited dataset in up to three difficulties, in words for people.

`packaging/specialties.py` writes the file with those of reasoning-gym. Waggle's own describe themselves.
"""

import functools
from collections.abc import Mapping, Sequence

import msgspec

from waggle.core import paths
from waggle.core.errors import CharterError
from waggle.tasks import audit_results
from waggle.tasks.charter import LONGEST_TITLE, MODEL_HINT, Charter, Specialty, check
from waggle.tasks.specialties import waggle_datasets
from waggle.tasks.specialties.interface import Dataset, Difficulty, Setting, Topic

FOR_ANY_MODEL = "{question}\nWrite the final answer between <answer> and </answer>.\nAnswer:"  # the starter needs no instructions
FOR_ANY_MODEL_CHARACTERS = 1200  # of a completion, where models may think before they answer
SAMPLES = range(2, 14)  # seeds of the questions of which the shortest is shown


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One difficulty of a dataset, with a sample question."""

    settings: Mapping[str, Setting]
    sample: str


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset. The nine of the swarm that ships with Waggle are those the starter has met, in their easy form."""

    dataset: str
    title: str
    topic: Topic
    levels: Mapping[Difficulty, Level]


@functools.cache
def catalogue_entries() -> tuple[CatalogueEntry, ...]:
    """Every entry, those of reasoning-gym first; raises CharterError."""
    try:
        lines = (paths.resources() / "specialties.jsonl").read_bytes().splitlines()
        entries = tuple(msgspec.json.decode(line, type=CatalogueEntry) for line in lines)
    except (OSError, ValueError) as error:
        raise CharterError("The list of specialties cannot be read.", "Install Waggle again.") from error
    audited = {name for name, finding in audit_results.shipped_audit().findings.items() if finding.listed}
    return *entries, *(_entry(name, dataset) for name, dataset in waggle_datasets().items() if name in audited)


def _entry(name: str, dataset: Dataset) -> CatalogueEntry:
    levels = {
        difficulty: Level(settings=settings, sample=_sample(dataset, settings)) for difficulty, settings in dataset.levels.items()
    }
    return CatalogueEntry(dataset=name, title=dataset.title, topic=dataset.topic, levels=levels)


def _sample(dataset: Dataset, settings: Mapping[str, Setting]) -> str:
    return min((dataset.entry(seed, settings).question for seed in SAMPLES), key=len)


def charter_of(name: str, chosen: Sequence[tuple[str, str]], *, model_hint: str = "", admission: str = "") -> Charter:
    """A charter with these (dataset, difficulty) pairs, without its digest of questions yet; raises CharterError.

    `admission` is the public key of a private swarm, in hex.
    """
    entries = {entry.dataset: entry for entry in catalogue_entries()}
    chosen_specialties = []
    for dataset, difficulty in chosen:
        entry = entries.get(dataset)
        level = entry.levels.get(difficulty) if entry else None  # type: ignore[call-overload]
        if entry is None or level is None:
            raise CharterError(f"There is no specialty {dataset} of difficulty {difficulty}.", "Choose from the list.")
        title, settings = entry.title[:LONGEST_TITLE], dict(level.settings)
        chosen_specialties.append(Specialty(dataset=dataset, title=title, settings=settings))
    words = " ".join(name.split())
    if not words:
        raise CharterError("The swarm needs a name.", "Others see it before they join.")
    fields: dict[str, object] = {"name": words, "specialties": chosen_specialties}
    if hint := " ".join(model_hint.split()):
        fields |= {"model_hint": hint, "prompt": FOR_ANY_MODEL, "completion_characters": FOR_ANY_MODEL_CHARACTERS}
    if admission:
        fields["admission"] = admission
    try:
        charter = msgspec.convert(fields, Charter)
    except msgspec.ValidationError as error:
        raise CharterError(
            f"A swarm cannot be made of this: {error}.", f"A name has 60 characters, a hint {MODEL_HINT}."
        ) from error
    check(charter)
    return charter


def recognise(specialty: Specialty) -> tuple[str, str]:
    """The difficulty of a charter's specialty and a sample question; empty if its settings are none of the catalogue's."""
    for entry in catalogue_entries():
        if entry.dataset == specialty.dataset:
            for difficulty, level in entry.levels.items():
                if level.settings == specialty.settings:
                    return difficulty, level.sample
    return "", ""
