"""What protocol 2 changed: swarms of protocol 1 ended, so that 0.1.0 and this version no longer train together.

Everything else that 0.1.0 wrote must still be read.
"""

from typing import Any

PLACES = {  # of the schema
    "charter.index_cap", "charter.prompt", "charter.protocol", "charter.specialties[].settings",
    "charter.specialties[].settings{key}", "charter.specialties[].settings{}", "charter.specialties[].settings{}[]",
    "command<CreateSwarm>.specialties[][1]", "event<InviteRead>.swarm.specialties[].difficulty",
    "event<SwarmCreated>.swarm.specialties[].difficulty", "event<SwarmsTold>.offers[].samples{key}",
    "event<SwarmsTold>.swarms[].specialties[].difficulty", "announcement.v", "record.groups[]", "record.groups[].index",
    "record.groups[].level", "record.groups[].number", "sheet.v",
    # Announcements of light clients are longer: those whom they name sign that they agreed. Others are as short as before.
    "announcement.consents", "announcement.consents[]", "greeting.announced", "ask<a>.signed", "answer.listed[].signed",
    # The name that a member of a private swarm chose. Announcements without one are as before.
    "announcement.name",
}  # fmt: skip
NAMES = {"protocol"}
FACTS = {"hash of the charter that ships with Waggle", "hash of a private charter", "seeds of questions"}
TYPES = {"announcement", "charter", "record", "sheet"}  # that are refused now
MESSAGES = {  # that carry the protocol's number, or are charters
    "record, unpacked", "sheet, unpacked", "announcement", "announcement in a private swarm", "greeting", "gateway's welcome",
    "client's question 1", "gateway's answer 0", "charter of the swarm that ships with Waggle", "charter of a private swarm",
}  # fmt: skip


def with_real_levels(sample: Any) -> Any:
    """A sample of 0.1.0 with the words for levels that it really wrote, and without the level of each specialty of a swarm.

    A window shows that level in an old recording no more; it is in no other file.
    """
    if isinstance(sample, list):
        return [with_real_levels(item) for item in sample]
    if not isinstance(sample, dict):
        return sample
    changed = {key: with_real_levels(value) for key, value in sample.items() if not (key == "difficulty" and "title" in sample)}
    if isinstance(sample.get("samples"), dict):
        changed["samples"] = {"hard": sample["samples"]["samples"]}
    if changed.get("type") == "CreateSwarm":
        changed["specialties"] = [[dataset, "hard"] for dataset, _ in changed["specialties"]]
    return changed
