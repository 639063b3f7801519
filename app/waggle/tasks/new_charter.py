"""Makes the charter of a new swarm from what a person chose."""

from collections.abc import Mapping, Sequence

import msgspec

from waggle.core.errors import CharterError
from waggle.core.message import Message
from waggle.core.text.legible_name import legible
from waggle.tasks import catalogue
from waggle.tasks.charter import LONGEST_TITLE, MODEL_HINT, Charter, check
from waggle.tasks.question_file.description import QuestionFile
from waggle.tasks.specialties.interface import Difficulty
from waggle.tasks.swarm_presets import SwarmPreset

COMPLETION_CHARACTERS = 1200  # models may think before they answer


def new_charter(
    name: str,
    chosen: Mapping[str, Sequence[Difficulty]],
    *,
    files: Sequence[tuple[str, QuestionFile]] = (),
    model_hint: str = "",
    admission: str = "",
    preset: SwarmPreset | None = None,
) -> Charter:
    """A charter with these difficulties of each dataset, without its digest of questions yet; raises CharterError.

    `files` are people's own questions, each with its title; they may stand beside datasets or alone. `admission` is the public
    key of a private swarm, in hex. `preset` limits answers and groups, and recommends a model where `model_hint` does not.
    """
    titles = {entry.dataset: entry.title for entry in catalogue.catalogue_entries()}
    specialties: list[object] = [
        {"dataset": dataset, "title": titles.get(dataset, dataset)[:LONGEST_TITLE], "levels": levels}
        for dataset, levels in chosen.items()
    ]
    specialties += [
        {"dataset": file.dataset, "title": legible(title)[:LONGEST_TITLE].rstrip(), "file": file} for title, file in files
    ]
    words = legible(name)
    if not words:
        raise CharterError("The swarm needs a name.", "Others see it before they join.")
    fields: dict[str, object] = {
        "name": words, "specialties": specialties, "completion_characters": COMPLETION_CHARACTERS,
    }  # fmt: skip
    if preset is not None:
        fields |= {"completion_characters": preset.completion_characters, "group_size_max": preset.group_size_max}
        model_hint = model_hint or preset.model_hint
    if hint := legible(model_hint):
        fields["model_hint"] = hint
    if admission:
        fields["admission"] = admission
    try:
        charter = msgspec.convert(fields, Charter)
    except msgspec.ValidationError as error:
        raise CharterError(
            Message("A swarm cannot be made of this: %1.", error), Message("A name has 60 characters, a hint %1.", MODEL_HINT)
        ) from error
    check(charter)
    return charter
