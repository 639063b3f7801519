"""What a new swarm can be made of: every audited specialty in up to three difficulties, in words for people.

`packaging/specialties.py` writes the file; each sample question in it was made where a node's questions are made.
"""

import functools
from collections.abc import Sequence
from typing import Literal

import msgspec

from waggle.core import paths
from waggle.core.errors import CharterError
from waggle.tasks.charter import LONGEST_TITLE, MODEL_HINT, Charter, Specialty, check
from waggle.tasks.setting_ranges import Setting

FOR_ANY_MODEL = "{question}\nWrite the final answer between <answer> and </answer>.\nAnswer:"  # the starter needs no telling
FOR_ANY_MODEL_CHARACTERS = 1200  # of a completion, where models may think before they answer

Difficulty = Literal["easy", "standard", "hard"]


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """`sample` is a question of this difficulty, `longest` the characters of the longest of a dozen."""

    settings: dict[str, Setting]
    sample: str
    longest: int


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset. The nine of the swarm that ships with Waggle are those the starter has met, in their easy form."""

    dataset: str
    title: str
    topic: str
    levels: dict[Difficulty, Level]


@functools.cache
def shipped() -> tuple[Offer, ...]:
    """All of them; raises CharterError."""
    try:
        lines = (paths.resources() / "specialties.jsonl").read_bytes().splitlines()
        return tuple(msgspec.json.decode(line, type=Offer) for line in lines)
    except (OSError, ValueError) as error:
        raise CharterError("The list of specialties cannot be read.", "Install Waggle again.") from error


def charter_of(name: str, chosen: Sequence[tuple[str, str]], *, model_hint: str = "", admission: str = "") -> Charter:
    """A charter with these (dataset, difficulty) pairs, without its digest of questions yet; raises CharterError.

    `admission` is the public key of a private swarm, in hex.
    """
    known = {offer.dataset: offer for offer in shipped()}
    specialties = []
    for dataset, difficulty in chosen:
        offer = known.get(dataset)
        level = offer.levels.get(difficulty) if offer else None  # type: ignore[call-overload]
        if offer is None or level is None:
            raise CharterError(f"There is no specialty {dataset} of difficulty {difficulty}.", "Choose from the list.")
        specialties.append(Specialty(dataset=dataset, title=offer.title[:LONGEST_TITLE], settings=level.settings))
    words = " ".join(name.split())
    if not words:
        raise CharterError("The swarm needs a name.", "Others see it before they join.")
    fields: dict[str, object] = {"name": words, "specialties": specialties}
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


def recognised(specialty: Specialty) -> tuple[str, str]:
    """The difficulty of a charter's specialty and a sample question, where its settings are one of those offered here."""
    for offer in shipped():
        if offer.dataset == specialty.dataset:
            for difficulty, level in offer.levels.items():
                if level.settings == specialty.settings:
                    return difficulty, level.sample
    return "", ""
