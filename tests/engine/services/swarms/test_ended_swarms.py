"""Test that swarms of the earlier protocol are left once, listed with the reason, and refused with it."""

import json
from pathlib import Path

import pytest

from waggle.core import paths
from waggle.core.errors import CharterError
from waggle.core.settings import LearningSettings, Settings, SwarmSettings
from waggle.engine.services.swarms import ended_swarms, swarm_connection, swarms
from waggle.engine.services.swarms.ended_swarms import EARLIER_FIRST_SWARM
from waggle.engine.services.swarms.swarms import SwarmService
from waggle.network import joined_swarms
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.network.messages import invite
from waggle.protocol import commands
from waggle.protocol.events_swarms import EndedSwarm
from waggle.tasks.shipped_swarms import first_swarm

OLD, OTHER = "0a" * 32, "0b" * 32
FIRST = first_swarm().digest.hex()
SEED = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWGWbsQ5sbqmMEk8bhhM4vWGxHVeSCBoZQ4mYBoSFpgiMJ"
EARLIER = {
    "name": "Before",
    "protocol": 1,
    "prompt": "{question}\nAnswer:",
    "index_cap": 65536,
    "specialties": [{"dataset": "bf"}],
}
WHY = (
    "Its questions had false answers, and members now agree on levels that were checked. "
    "Create it anew and send its members a new invite."
)


@pytest.fixture
def home(tmp_path: Path) -> paths.Home:
    return paths.Home(tmp_path).prepare()


def remember(home: paths.Home, *entries: JoinedSwarm, active: str = "", before: str = "") -> None:
    joined_swarms.write(home.swarms, JoinedSwarms(active=active, before=before, entries=entries))


def store(home: paths.Home, digest: str, charter: dict[str, object] | bytes) -> None:
    content = charter if isinstance(charter, bytes) else json.dumps(charter).encode()
    (home.charters / f"{digest}.json").write_bytes(content)


def service(home: paths.Home, chosen: Settings | None = None) -> SwarmService:
    def never(*_: object) -> None:
        raise AssertionError("nothing may change")

    return SwarmService(home, chosen or Settings(), never, never)  # type: ignore[arg-type]


def test_a_home_in_a_swarm_that_ended_goes_to_the_shipped_one_and_says_so_once(home: paths.Home) -> None:
    store(home, OLD, EARLIER)
    remember(home, JoinedSwarm(charter=OLD, seeds=(SEED,), created=True), active=OLD, before=OLD)
    warned = ended_swarms.leave_ended_swarms(home)
    assert warned is not None
    assert f"{warned.title} {warned.advice}" == "Before has ended. Training continues in First light. The page Swarms says why."
    assert warned.page == "swarms"
    after = joined_swarms.read(home.swarms)
    assert (after.active, after.before) == ("", "")
    assert after.entries == (JoinedSwarm(charter=OLD, seeds=(SEED,), created=True, ended=True),), "nothing is lost"
    assert swarms.with_chosen_swarm(home, Settings()).swarm.charter == ""
    assert ended_swarms.leave_ended_swarms(home) is None
    assert joined_swarms.read(home.swarms) == after


@pytest.mark.parametrize("active", ["", EARLIER_FIRST_SWARM])
def test_a_home_in_the_earlier_first_light_goes_on_in_the_new_one_with_its_port_and_seeds(home: paths.Home, active: str) -> None:
    seeds = (SEED,) if active else ()
    remember(home, JoinedSwarm(charter=EARLIER_FIRST_SWARM, seeds=seeds, port=4001), active=active, before=active)
    store(home, EARLIER_FIRST_SWARM, EARLIER | {"name": "First light"})  # stored when its invite was read
    warned = ended_swarms.leave_ended_swarms(home)
    assert warned is not None
    assert warned.title == "First light begins anew: the answers to its questions are checked now."
    assert warned.advice == "Your model, its progress and your name stay."
    after = joined_swarms.read(home.swarms)
    assert after.entries == (JoinedSwarm(charter=FIRST, seeds=seeds, port=4001),)
    assert after.active == after.before == (FIRST if active else "")
    assert ended_swarms.leave_ended_swarms(home) is None
    assert ended_swarms.ended_swarms(home, after) == (), "First light goes on"


def test_the_shipped_swarm_is_known_once(home: paths.Home) -> None:
    remember(home, JoinedSwarm(charter=EARLIER_FIRST_SWARM, port=4001), JoinedSwarm(charter=FIRST, port=4002))
    ended_swarms.leave_ended_swarms(home)
    assert joined_swarms.read(home.swarms).entries == (JoinedSwarm(charter=FIRST, port=4002),)


def test_of_another_swarm_that_ended_a_home_in_first_light_is_informed_once(home: paths.Home) -> None:
    store(home, OLD, EARLIER)
    remember(home, JoinedSwarm(charter=OLD), JoinedSwarm(charter=FIRST))
    warned = ended_swarms.leave_ended_swarms(home)
    assert warned is not None
    assert (warned.title, warned.advice) == ("Swarms that you know have ended.", "The page Swarms says why.")
    assert ended_swarms.leave_ended_swarms(home) is None


def test_a_home_without_such_swarms_is_left_alone(home: paths.Home) -> None:
    assert ended_swarms.leave_ended_swarms(home) is None
    assert not home.swarms.exists()
    remember(home, JoinedSwarm(charter=OTHER), active=OTHER, before=OTHER)  # its charter is fetched at the start
    assert ended_swarms.leave_ended_swarms(home) is None
    assert joined_swarms.read(home.swarms).active == OTHER


@pytest.mark.parametrize(
    ("charter", "name"),
    [
        (EARLIER, "Before"),
        (EARLIER | {"name": "n" * 999}, "n" * 60),
        (EARLIER | {"specialties": "lost", "more": 1}, "Before"),
        (EARLIER | {"name": "Be\u202efore"}, None),
        (EARLIER | {"name": "a\nb"}, None),
        (EARLIER | {"protocol": 2}, None),
        (EARLIER | {"protocol": 3}, None),
        (EARLIER | {"padding": "x" * 70_000}, None),
        (b"\xff\x00", None),
        (b"", None),
    ],
)
async def test_only_the_name_is_read_of_a_charter_that_ended(
    home: paths.Home, charter: dict[str, object] | bytes, name: str | None
) -> None:
    store(home, OLD, charter)
    remember(home, JoinedSwarm(charter=OLD))
    (known,) = await service(home).obey(commands.ListSwarms(id="1"))
    assert [swarm.name for swarm in known.swarms] == ["First light", "First steps"]
    assert known.ended == ((EndedSwarm(charter=OLD, name=name, why=WHY),) if name else ())


async def test_a_swarm_that_ended_can_be_forgotten(home: paths.Home) -> None:
    store(home, OLD, EARLIER)
    remember(home, JoinedSwarm(charter=OLD))
    ended_swarms.leave_ended_swarms(home)
    (known,) = await service(home).obey(commands.ForgetSwarm(id="1", charter=OLD))
    assert (known.ended, joined_swarms.read(home.swarms).entries) == ((), ())
    assert not (home.charters / f"{OLD}.json").exists()


async def test_a_swarm_that_ended_is_refused_with_the_same_reason_by_link_choice_and_setting(home: paths.Home) -> None:
    store(home, OLD, EARLIER)
    remember(home, JoinedSwarm(charter=OLD))
    link = invite.write(invite.Invite(charter=bytes.fromhex(OLD), seeds=(SEED,)))
    for command in (commands.ReadInvite(id="1", link=link), commands.ChooseSwarm(id="2", charter=OLD)):
        with pytest.raises(CharterError, match=r"^Before has ended") as refused:
            await service(home).obey(command)
        assert refused.value.advice == WHY
    for named in (OLD, str(home.charters / f"{OLD}.json")):
        with pytest.raises(CharterError, match=r"^Before has ended"):
            await swarm_connection.charter_of(home, Settings(swarm=SwarmSettings(charter=named)))


async def test_an_invite_to_the_earlier_first_light_says_that_none_is_needed(home: paths.Home) -> None:
    link = invite.write(invite.Invite(charter=bytes.fromhex(EARLIER_FIRST_SWARM), seeds=(SEED,)))
    with pytest.raises(CharterError, match="First light as it was before") as refused:
        await service(home).obey(commands.ReadInvite(id="1", link=link))
    assert refused.value.advice.startswith("Its questions had false answers")
    assert refused.value.advice.endswith("needs no invite.")


@pytest.mark.parametrize(
    ("specialties", "charter", "changes"),
    [(("aiw",), "", [{"learning.specialties": None}]), (("bf", "tiny Programs"), "", []), ((), "", []), (("aiw",), OTHER, [])],
)
def test_specialties_of_the_swarm_that_was_left_are_no_longer_chosen(
    specialties: tuple[str, ...], charter: str, changes: list[object]
) -> None:
    changed: list[object] = []
    chosen = Settings(learning=LearningSettings(specialties=specialties), swarm=SwarmSettings(charter=charter))
    ended_swarms.drop_other_specialties(chosen, lambda values: (changed.append(values), lambda: None)[1])
    assert changed == changes


def test_a_specialty_is_named_by_its_title_or_its_dataset() -> None:
    chosen = Settings(learning=LearningSettings(specialties=("fractions", "Tiny programs", "base_conversion")))
    drawn = swarm_connection.chosen_specialties(chosen, first_swarm())
    assert drawn == ("fraction_simplification", "bf", "base_conversion")
