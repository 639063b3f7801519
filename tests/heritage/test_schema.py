"""Names and forms of 0.1.0 in files, messages and commands are still the same: see schema.py for what that covers.

Nothing here is to be recorded anew when a test fails. Where a name has to change, what has the old name must still be read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heritage import protocol_2
from heritage.schema import schema

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "0.1.0" / "schema.json").read_text("utf-8"))
LOWEST, HIGHEST = ("gt", "ge", "min_length"), ("lt", "le", "max_length")


@pytest.fixture(scope="module")
def now() -> dict[str, dict[str, Any]]:
    decoded: dict[str, dict[str, Any]] = json.loads(json.dumps(schema()))
    return decoded


def test_what_files_hold_is_still_read(now: dict[str, dict[str, Any]]) -> None:
    assert _unexpected(_differences(RECORDED["files"], now["files"])) == []


def test_messages_between_nodes_are_the_same(now: dict[str, dict[str, Any]]) -> None:
    assert _unexpected(_differences(RECORDED["messages"], now["messages"], exactly=True)) == []


def test_protocol_2_changed_what_is_listed_and_no_more(now: dict[str, dict[str, Any]]) -> None:
    in_files = _differences(RECORDED["files"], now["files"])
    in_messages = _differences(RECORDED["messages"], now["messages"], exactly=True)
    assert {_place(difference) for difference in (*in_files, *in_messages)} == protocol_2.PLACES


def test_names_that_others_know_are_the_same(now: dict[str, dict[str, Any]]) -> None:
    names = RECORDED["names"].keys() - protocol_2.NAMES
    assert {name: now["names"].get(name) for name in names} == {name: RECORDED["names"][name] for name in names}
    assert (RECORDED["names"]["protocol"], now["names"]["protocol"]) == ("1", "2")


def test_files_of_a_home_have_the_same_names(now: dict[str, dict[str, Any]]) -> None:
    for kind, patterns in RECORDED["home"].items():
        assert set(patterns) <= set(now["home"].get(kind, ())), kind


def test_tables_of_the_history_are_the_same(now: dict[str, dict[str, Any]]) -> None:
    assert {table: now["history"].get(table) for table in RECORDED["history"]} == RECORDED["history"]


def test_commands_take_the_same_options(now: dict[str, dict[str, Any]]) -> None:
    for command, options in RECORDED["command line"].items():
        assert set(options) <= set(now["command line"].get(command, ())), command


def test_a_difference_is_noticed() -> None:
    """Each of these would break a file or a node of 0.1.0."""
    files, messages = RECORDED["files"], RECORDED["messages"]
    renamed_class = {place.replace("<Ready>", "<EngineReady>"): entry for place, entry in files.items()}
    renamed_field = {place.replace("settings.swarm", "settings.network"): entry for place, entry in files.items()}
    other_default = files | {"settings.window.close_to_tray": files["settings.window.close_to_tray"] | {"default": False}}
    learning = files["settings.learning"]
    other_default_of_a_section = files | {"settings.learning": learning | {"default": learning["default"] | {"local": 8}}}
    fewer_words = files | {"settings.learning.rule": {"default": "grpo", "any": [{"kind": "word", "words": ["dapo", "grpo"]}]}}
    tighter = files | {"settings.swarm.port": {"default": 0, "any": [{"kind": "int", "ge": 1024, "le": 65535}]}}
    demanded = files | {"checkpoint.method": files["checkpoint.method"] | {"required": True}}
    demanded_anew = files | {"checkpoint.seed": {"required": True, "any": [{"kind": "int"}]}}
    for changed in (
        renamed_class,
        renamed_field,
        other_default,
        other_default_of_a_section,
        fewer_words,
        tighter,
        demanded,
        demanded_anew,
    ):
        assert list(_differences(files, changed))
    reordered = messages | {"hello": {"any": [messages["hello"]["any"][0] | {"order": ["nonce", "peer_id"]}]}}
    looser = messages | {"answer.blob": {"default": "", "any": [{"kind": "bytes"}]}}
    longer = messages | {"sheet.more": {"default": 0, "any": [{"kind": "int"}]}}
    for changed in (reordered, looser, longer):
        assert list(_differences(messages, changed, exactly=True))


def test_what_was_added_is_no_difference() -> None:
    files = RECORDED["files"]
    added = files | {
        "settings.learning.sharing": {"default": "usual", "any": [{"kind": "word", "words": ["usual"]}]},
        "event<SharingChosen>.name": {"required": True, "any": [{"kind": "text"}]},
    }
    learning = files["settings.learning"]
    added |= {"settings.learning": learning | {"default": learning["default"] | {"sharing": "usual"}}}
    more_words = {"default": "grpo", "any": [{"kind": "word", "words": ["dapo", "dr_grpo", "gspo", "grpo", "ppo"]}]}
    assert list(_differences(files, added | {"settings.learning.rule": more_words})) == []


def _unexpected(differences: Iterator[str]) -> list[str]:
    """The differences that protocol 2 does not explain."""
    return [difference for difference in differences if _place(difference) not in protocol_2.PLACES]


def _place(difference: str) -> str:
    return difference.partition(" ")[0]


def _differences(recorded: dict[str, Any], now: dict[str, Any], *, exactly: bool = False) -> Iterator[str]:
    """What of 0.1.0 is not read any more; `exactly`: nor must anything be written that 0.1.0 does not read."""
    for place, old in recorded.items():
        new = now.get(place)
        if new is None:
            yield f"{place} is gone"
            continue
        if "default" in old and (new.get("required") or not _is_default_still(new.get("default"), old["default"])):
            yield f"{place} was {old['default']!r} where nothing was said, and is not any more"
        for form in old["any"]:
            if not any(_covers(other, form, exactly=exactly) for other in new["any"]):
                yield f"{place} was {form}, now {new['any']}"
    known = {place.rpartition(".")[0] for place in recorded}
    for place in now.keys() - recorded.keys():
        parent = place.rpartition(".")[0]
        if parent not in known:  # inside something that is new as a whole
            continue
        if now[place].get("required"):
            yield f"{place} is demanded, and 0.1.0 never wrote it"
        if exactly and any("strict" in form for form in recorded.get(parent, {"any": []})["any"]):
            yield f"{place} is written, and 0.1.0 refuses it"


def _is_default_still(new: Any, old: Any) -> bool:
    """Whether a default is what it was; that of an object may have fields that are new."""
    if isinstance(new, dict) and isinstance(old, dict):
        return all(name in new and _is_default_still(new[name], value) for name, value in old.items())
    return bool(new == old)


def _covers(new: dict[str, Any], old: dict[str, Any], *, exactly: bool) -> bool:
    """Whether whatever had the old form has the new one as well."""
    order = new.get("order", [])[: len(old.get("order", []))]
    if order != old.get("order", []):
        return False
    if exactly:
        return {**new, "order": order} == {**old, "order": order}
    rest = {"kind", "tag", "tag_field", "length"}
    return (
        all(new.get(key) == old.get(key) for key in rest)
        and set(old.get("words", ())) <= set(new.get("words", ()))
        and all(bound not in new or (bound in old and new[bound] <= old[bound]) for bound in LOWEST)
        and all(bound not in new or (bound in old and new[bound] >= old[bound]) for bound in HIGHEST)
        and new.get("pattern") in (None, old.get("pattern"))
        and not ("strict" in new and "strict" not in old)
    )
