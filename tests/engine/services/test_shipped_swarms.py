"""First steps, the other shipped swarm: chosen without an invite or a file, invited to, and left for First light."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.services.swarms.test_swarms import LOOPBACK, again_to, unasked
from network.loopback import fresh_identity, serving
from waggle.core import paths
from waggle.core.settings import LearningSettings, ModelSettings, Settings, SwarmSettings
from waggle.engine.services.swarms import ended_swarms, swarm_connection, swarms
from waggle.engine.services.swarms.better_swarm import better_swarm_for_choice
from waggle.engine.services.swarms.swarms import CurrentSwarm, SwarmService
from waggle.network import joined_swarms
from waggle.network.joined_swarms import MAX_SWARMS, JoinedSwarm, JoinedSwarms
from waggle.network.messages import invite
from waggle.protocol import commands
from waggle.tasks.charter import encode
from waggle.tasks.shipped_swarms import first_steps, first_swarm

LIGHT, STEPS = first_swarm().digest.hex(), first_steps().digest.hex()
SEED = "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"
SMOLLM2 = ModelSettings(name="HuggingFaceTB/SmolLM2-135M-Instruct")


@pytest.fixture
def home(tmp_path: Path) -> paths.Home:
    return paths.Home(tmp_path / "home").prepare()


def service(home: paths.Home, reasons: list[str] | None = None, current: CurrentSwarm | None = None) -> SwarmService:
    reasons = [] if reasons is None else reasons
    return SwarmService(home, swarms.with_chosen_swarm(home, LOOPBACK), again_to(reasons), unasked, current=lambda: current)


async def no_addresses() -> list[str]:
    return []


async def test_both_are_listed_first_on_a_new_home_and_say_for_whom_they_are(home: paths.Home) -> None:
    (known,) = await service(home).obey(commands.ListSwarms(id="1"))
    assert [(swarm.name, swarm.shipped, swarm.known) for swarm in known.swarms] == [
        ("First light", True, True),
        ("First steps", True, True),
    ]
    assert known.swarms[1].model_hint == "Small language models"


async def test_first_steps_is_chosen_without_an_invite_and_its_charter_comes_from_no_file(home: paths.Home) -> None:
    reasons: list[str] = []
    assert await service(home, reasons).obey(commands.ChooseSwarm(id="1", charter=STEPS)) == ()
    assert reasons == ["Going to First steps."]
    chosen = swarms.with_chosen_swarm(home, LOOPBACK)
    assert chosen.swarm.charter == STEPS
    assert await swarm_connection.charter_of(home, chosen) == first_steps()
    assert not list(home.charters.iterdir())


async def test_leaving_it_leads_back_to_first_light_as_on_a_new_home(home: paths.Home) -> None:
    await service(home).obey(commands.ChooseSwarm(id="1", charter=STEPS))
    there = service(home, current=CurrentSwarm(first_steps(), no_addresses))
    await there.obey(commands.ChooseSwarm(id="2", charter=LIGHT))
    assert joined_swarms.read(home.swarms).active == ""
    assert swarms.with_chosen_swarm(home, LOOPBACK) == LOOPBACK


async def test_a_first_steps_that_cannot_start_is_left_for_the_swarm_before(home: paths.Home) -> None:
    await service(home).obey(commands.ChooseSwarm(id="1", charter=STEPS))
    (step,) = swarms.undo_steps(home, LOOPBACK)
    step.undo()
    assert swarms.with_chosen_swarm(home, LOOPBACK) == LOOPBACK


async def test_it_needs_no_place_in_a_full_list(home: paths.Home) -> None:
    others = tuple(JoinedSwarm(charter=f"{place:064x}") for place in range(MAX_SWARMS))
    joined_swarms.write(home.swarms, JoinedSwarms(entries=others))
    await service(home).obey(commands.ChooseSwarm(id="1", charter=STEPS))
    assert joined_swarms.read(home.swarms) == JoinedSwarms(active=STEPS, entries=others)
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.charter == STEPS


async def test_its_port_is_stored_so_that_invites_stay_valid(home: paths.Home) -> None:
    async def address() -> list[str]:
        return ["/ip4/127.0.0.1/tcp/4001/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"]

    joined_swarms.write(home.swarms, JoinedSwarms(active=STEPS))
    await service(home).store_port(CurrentSwarm(first_steps(), address))
    entry = joined_swarms.read(home.swarms).entry(STEPS)
    assert entry is not None
    assert entry.port == 4001


async def test_an_invite_to_it_brings_its_members_and_is_written_there(home: paths.Home, tmp_path: Path) -> None:
    async with serving(fresh_identity(tmp_path, "seed"), first_steps()) as address:
        link = invite.write(invite.Invite(charter=first_steps().digest, seeds=(address,)))
        newcomer = service(home)
        (read,) = await newcomer.obey(commands.ReadInvite(id="1", link=link))
        assert (read.swarm.name, read.swarm.shipped, read.answered) == ("First steps", True, True)
        await newcomer.obey(commands.ChooseSwarm(id="2", charter=STEPS))
        assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.seeds == (address,)

        async def own_addresses() -> list[str]:
            return [SEED]

        there = service(home, current=CurrentSwarm(first_steps(), own_addresses))
        (written,) = await there.obey(commands.WriteInvite(id="3"))
        assert invite.read(written.link).charter == first_steps().digest


@pytest.mark.parametrize(
    ("specialties", "named", "changes"),
    [(("aiw",), STEPS, []), (("bf",), STEPS, [{"learning.specialties": None}]), (("bf",), LIGHT, [])],
)
def test_specialties_that_the_shipped_swarm_has_stay_chosen(
    specialties: tuple[str, ...], named: str, changes: list[object]
) -> None:
    changed: list[object] = []
    chosen = Settings(learning=LearningSettings(specialties=specialties), swarm=SwarmSettings(charter=named))
    ended_swarms.drop_other_specialties(chosen, lambda values: (changed.append(values), lambda: None)[1])
    assert changed == changes


@pytest.mark.parametrize(
    ("active", "model", "named"),
    [
        ("", SMOLLM2, "First steps"),
        (LIGHT, SMOLLM2, "First steps"),
        ("", ModelSettings(), None),
        (STEPS, SMOLLM2, None),
        ("", ModelSettings(name="HuggingFaceTB/SmolLM3-3B"), None),
        ("", ModelSettings(name="nobody/unknown"), None),
        ("", ModelSettings(folder="/nowhere"), None),
    ],
)
def test_a_chosen_small_language_model_is_suggested_first_steps_in_first_light_alone(
    home: paths.Home, active: str, model: ModelSettings, named: str | None
) -> None:
    joined_swarms.write(home.swarms, JoinedSwarms(active=active))
    better = better_swarm_for_choice(home, LOOPBACK, model)
    assert (better.name if better else None) == named


def test_in_a_swarm_of_ones_own_nothing_is_suggested(home: paths.Home) -> None:
    other = replace(first_swarm(), name="Another swarm")
    (home.charters / f"{other.digest.hex()}.json").write_bytes(encode(other))
    joined_swarms.write(home.swarms, JoinedSwarms(active=other.digest.hex(), entries=(JoinedSwarm(charter=other.digest.hex()),)))
    assert better_swarm_for_choice(home, LOOPBACK, SMOLLM2) is None
