"""The list of swarms is rebuilt from the other files of a home, at a start and in the middle of a run, also after a kill."""

import itertools
import json
import os
import shutil

import pytest
from msgspec.structs import replace

from killing import killed_after
from waggle.core import paths
from waggle.core.settings import Settings
from waggle.engine.services.swarms import ended_swarms, swarm_recovery, swarms
from waggle.engine.services.swarms.swarms import ASK_MESSAGE, SwarmService
from waggle.network import joined_swarms
from waggle.network.identity import membership
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.protocol import commands, json_lines
from waggle.protocol.state import Snapshot, State
from waggle.tasks import charter as charters
from waggle.tasks.shipped_swarms import first_steps, first_swarm

KEY = bytes(range(32))
PRIVATE = replace(first_swarm(), name="Anna's home", admission=membership.public_key_of(KEY))
PUBLIC = replace(first_swarm(), name="Another swarm")
DIGEST, OTHER = PRIVATE.digest.hex(), PUBLIC.digest.hex()
FIRST, STEPS = first_swarm().digest.hex(), first_steps().digest.hex()
OLD = "0a" * 32


@pytest.fixture
def home(tmp_path):
    return paths.Home(tmp_path / "home").prepare()


def store(home, charter=PRIVATE):
    (home.charters / f"{charter.digest.hex()}.json").write_bytes(charters.encode(charter))
    if charter.is_private:
        membership.write_key(home.swarm(charter.digest.hex()).key, KEY)


def record_ready(home, charter, name="20260101T000000-000001.jsonl"):
    """A record of events in which the engine was in this swarm."""
    ready = json.loads(READY) | {"charter": charter}
    state = json_lines.line(Snapshot(state=State())).replace(b'"ready":null', b'"ready":' + json.dumps(ready).encode())
    (home.events / name).write_bytes(state)


READY = json.dumps(
    {
        "type": "Ready", "protocol": 2, "version": "0.1.0", "node": "x", "name": "Brisk Otter", "swarm": "s", "charter": FIRST,
        "specialties": [], "model": "Starter", "model_note": "", "backend": "torch", "device": "cpu", "device_reason": "",
        "threads": 1, "cores": 1, "round": 0, "completions": 0, "group_size": 2, "parameters": 1,
    }
)  # fmt: skip


def test_a_new_home_gets_an_empty_list_so_that_a_missing_one_was_lost(home):
    assert swarm_recovery.recover(home) is None
    assert joined_swarms.read(home.swarms) == JoinedSwarms()
    store(home)  # an invite was looked at, and its swarm not joined
    assert swarm_recovery.recover(home) is None
    assert not joined_swarms.read(home.swarms).undecided


@pytest.mark.parametrize("content", [b"", b"[]", b"\0" * 300, b'{"entries": [{"charter": 7}]}'])
def test_a_damaged_list_is_set_aside_and_rebuilt_and_nobody_guesses_where_to_train(home, content):
    store(home)
    store(home, PUBLIC)
    home.swarms.write_bytes(content)
    warned = swarm_recovery.recover(home)
    assert warned is not None
    assert warned.advice == "The old one is kept beside it as swarms.damaged."
    assert (home.root / "swarms.damaged").read_bytes() == content
    known = joined_swarms.read(home.swarms)
    assert {entry.charter for entry in known.entries} == {DIGEST, OTHER}
    assert known.undecided
    assert swarm_recovery.recover(home) is None, "it is said once"


@pytest.mark.parametrize("trace", ["charter", "key", "addresses", "scores", "record"])
def test_any_trace_of_another_swarm_is_enough_to_ask(home, trace):
    match trace:
        case "charter":
            (home.charters / f"{DIGEST}.json").write_bytes(b"")
        case "key":
            membership.write_key(home.swarm(DIGEST).key, KEY)
        case "addresses":
            home.swarm(DIGEST).known_peers.write_text("[]")
        case "scores":
            home.swarm(DIGEST).scores.write_bytes(b"")
        case "record":
            record_ready(home, DIGEST)
    assert swarm_recovery.recover(home) is not None
    assert joined_swarms.read(home.swarms).undecided


@pytest.mark.parametrize(("last", "active"), [(FIRST, ""), (STEPS, STEPS), (ended_swarms.EARLIER_FIRST_SWARM, "")])
def test_whoever_only_knew_shipped_swarms_stays_in_theirs(home, last, active):
    record_ready(home, last)
    home.swarm(STEPS).known_peers.write_text("[]")
    home.swarms.write_bytes(b"")
    assert swarm_recovery.recover(home) is not None
    known = joined_swarms.read(home.swarms)
    assert (known.active, known.before, known.undecided) == (active, active, False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_between_any_two_operations_leaves_a_home_that_asks(home, tmp_path):
    store(home)
    home.swarms.write_bytes(b"{")
    for operations in itertools.count():
        copy = paths.Home(shutil.copytree(home.root, tmp_path / f"copy-{operations}"))
        was_killed = killed_after(operations, lambda copy=copy: swarm_recovery.recover(copy))
        swarm_recovery.recover(copy)
        known = joined_swarms.read(copy.swarms)
        assert (known.undecided, [entry.charter for entry in known.entries]) == (True, [DIGEST]), operations
        assert [path.read_bytes() for path in copy.root.glob("swarms.damaged*")] == [b"{"], operations
        if not was_killed:
            break
    assert operations > 5


@pytest.mark.parametrize("content", [b"", None])
@pytest.mark.parametrize("writes", ["mark_played", "list"])
async def test_a_list_that_is_lost_during_a_run_is_written_again_as_it_was(home, content, writes):
    store(home)
    before = JoinedSwarms(active=DIGEST, before="", entries=(JoinedSwarm(charter=DIGEST, created=True, port=4001),))
    joined_swarms.write(home.swarms, before)
    service = SwarmService(home, swarms.with_chosen_swarm(home, Settings()), lambda *_: None, lambda _: lambda: None)
    home.swarms.unlink() if content is None else home.swarms.write_bytes(content)
    if writes == "list":
        await service.obey(commands.ListSwarms(id="1"))
        assert joined_swarms.read(home.swarms) == before
    else:
        service.mark_played()
        assert joined_swarms.read(home.swarms) == replace(before, before=DIGEST)
    assert swarm_recovery.recover(home) is None


@pytest.mark.parametrize(
    ("chosen", "before", "asks"),
    [
        (DIGEST, "", True),
        (DIGEST, OTHER, True),
        (OTHER, "", False),
        (OTHER, DIGEST, False),
        (STEPS, "", False),
        ("0c" * 32, "", True),
    ],
)
def test_after_a_failure_nobody_goes_back_to_where_more_people_may_come(home, chosen, before, asks):
    store(home)
    store(home, PUBLIC)
    joined_swarms.write(home.swarms, JoinedSwarms(active=chosen, before=before))
    assert swarms.return_to_previous_swarm(home) == (ASK_MESSAGE if asks else None)
    known = joined_swarms.read(home.swarms)
    assert (known.undecided, known.active) == (asks, chosen if asks else before)


async def test_an_answer_that_fails_leads_back_to_the_question(home):
    store(home, PUBLIC)
    home.swarms.write_bytes(b"")
    swarm_recovery.recover(home)
    service = SwarmService(home, swarms.with_chosen_swarm(home, Settings()), lambda *_: None, lambda _: lambda: None)
    await service.obey(commands.ChooseSwarm(id="1", charter=OTHER))
    assert not joined_swarms.read(home.swarms).undecided
    (step,) = swarms.undo_steps(home, Settings())
    assert step.undo() == ASK_MESSAGE
    assert joined_swarms.read(home.swarms).undecided


@pytest.mark.parametrize("sign", ["key", "charter"])
def test_a_private_swarm_that_ended_is_not_left_for_an_open_one(home, sign):
    earlier = {"name": "Before", "protocol": 1, "specialties": []} | ({"admission": "ab" * 32} if sign == "charter" else {})
    (home.charters / f"{OLD}.json").write_text(json.dumps(earlier))
    if sign == "key":
        membership.write_key(home.swarm(OLD).key, KEY)
    joined_swarms.write(home.swarms, JoinedSwarms(active=OLD, before=OLD, entries=(JoinedSwarm(charter=OLD),)))
    warned = ended_swarms.leave_ended_swarms(home)
    assert warned is not None
    assert (warned.title, warned.advice) == ("Swarms that you know have ended.", "The page Swarms says why.")
    assert joined_swarms.read(home.swarms).active == OLD, "the engine asks"
