"""A swarm in words, for a terminal. The sentences about joining are those of the window."""

from waggle.core.message import plain
from waggle.protocol.events_swarms import InviteRead, SwarmDetails
from waggle.protocol.text.privacy_text import SHARED, STAYS
from waggle.protocol.text.swarm_text import CLASS_NAMES, CLASS_PAGE, UNCHECKED
from waggle.tasks.catalogue import catalogue_entries
from waggle.tasks.swarm_presets import CLASSROOM

MODEL_STAYS = "Your model keeps what it learned"
COME_BACK = "You can come back at any time."
ENDS_SOLO = "You chose to train on this computer only: going there ends that."
PRIVATE = "It is private: whoever has the link can join, and a link cannot be taken back."
OPEN = "It is open to everybody."


def described(swarm: SwarmDetails) -> str:
    """A swarm's name and specialties, on one line each, with the first question of each file."""
    lines = [f"{swarm.name}{' (private)' if swarm.private else ''}"]
    for specialty in swarm.specialties:
        if specialty.questions:
            lines.append(f"  {specialty.title}: {specialty.questions} own questions, {specialty.grader_title}")
            lines += [f"    {plain(' '.join(sample.split()))}" for sample in specialty.samples]
        else:
            lines.append(f"  {specialty.title}: {', '.join(specialty.levels)}")
    return "\n".join(lines)


def listed(swarm: SwarmDetails, *, engine: bool = True) -> str:
    """A swarm in a list: what it is, and the hash by which it is joined."""
    active = ["The engine is in it." if engine else "The next engine is in it."] if swarm.active else []
    return "\n  ".join([described(swarm), *active, swarm.charter])


def members_words(swarm: SwarmDetails, read: InviteRead | None) -> str:
    """How many computers are there, as far as that is known."""
    there = f"{swarm.members} computer{' is' if swarm.members == 1 else 's are'} there now."
    if read is not None and read.answered:
        return there if swarm.members else "It answers; nobody has announced anything just now."
    if read is not None:
        return "Nobody answered at its addresses just now, but it was met before."
    if swarm.shipped and not swarm.members:
        return "It comes with Waggle. Nobody has been asked yet who is there."
    there = f"{swarm.members} computer{' was' if swarm.members == 1 else 's were'} there when last asked."
    return there if swarm.members else "Nobody has been asked yet who is there."


def name_words(name: str) -> str:
    """Which name the members of a private swarm see."""
    return f"Its members see you as {plain(name)}." if name else "Its members see the name of your key; --as chooses another."


def class_words() -> str:
    """What the preset for a class chooses, before anything is created. The sentences are those of the window."""
    catalogue_titles = {entry.dataset: entry.title for entry in catalogue_entries()}
    asks = ", ".join(catalogue_titles[dataset] for dataset, _ in CLASSROOM.specialties)
    return "\n".join(
        (
            f"It asks easy questions that a class can check: {asks}.",
            f"Rounds are short: at most {CLASSROOM.group_size_max} answers to a question, of {CLASSROOM.completion_characters} "
            "characters. The recommended model is the starter that comes with Waggle.",
            PRIVATE,
            str(CLASS_PAGE),
            str(CLASS_NAMES),
        )
    )


def before_joining(
    swarm: SwarmDetails, present: SwarmDetails | None, read: InviteRead | None, *, solo: bool, name: str | None = None
) -> str:
    """What the window shows before it joins a swarm: what it is, who is there, what leaves this computer, and what changes."""
    lines = [described(swarm), "", members_words(swarm, read)]
    if any(specialty.unchecked for specialty in swarm.specialties):
        lines.append(f"Answers not verified: {UNCHECKED}")
    if swarm.model_hint:
        lines.append(f"Recommended model: {' '.join(swarm.model_hint.split())}")
    lines += [f"You will share: {SHARED}", f"Stays here: {STAYS}", PRIVATE if swarm.private else OPEN]
    if swarm.private:
        lines.append(name_words(swarm.member_name if name is None else name))
    if present is not None and present.private and not swarm.private and not solo:
        lines.append(f"More people can take part than where you are now: {present.name} is private.")
    if solo:
        lines.append(ENDS_SOLO)
    return "\n".join([*lines, f"{MODEL_STAYS}. {COME_BACK}"])
