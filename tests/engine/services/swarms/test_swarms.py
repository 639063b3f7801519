"""Test creating, listing, choosing and deleting swarms, and that a refused command changes nothing."""

import asyncio
import tomllib
from contextlib import closing

import pytest
from msgspec.structs import replace

from network.loopback import Ear, fresh_identity, options, serving
from waggle.core import paths
from waggle.core.errors import (
    CharterError,
    CheckpointError,
    EngineError,
    HistoryError,
    HubUnavailable,
    IdentityError,
    MemoryShort,
    ModelError,
    QuestionsTooLong,
    SettingsError,
    SwarmError,
    VerifierError,
)
from waggle.core.peer_id import text_of
from waggle.core.settings import LearningSettings, Settings, SwarmSettings, WebSettings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.undo_log import UndoLog
from waggle.engine.services.swarms import swarm_connection, swarms
from waggle.engine.services.swarms.swarms import CurrentSwarm, SwarmService
from waggle.network import joined_swarms
from waggle.network.identity import membership
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.network.messages import invite
from waggle.network.open_node import open_node
from waggle.network.swarm_preview import SwarmPreview
from waggle.network.transport.availability import has_hivemind
from waggle.network.transport.choice import kind_of
from waggle.protocol import commands
from waggle.tasks import audit_results, catalogue
from waggle.tasks import charter as charters
from waggle.tasks.shipped_swarms import first_swarm

LOOPBACK = Settings(swarm=SwarmSettings(host="127.0.0.1"))
OTHER = replace(first_swarm(), name="Another swarm")
NEEDS_HIVEMIND = pytest.mark.skipif(not has_hivemind(), reason="without hivemind, only gateways are asked")


@pytest.fixture
def home(tmp_path):
    new_home = paths.Home(tmp_path / "home").prepare()
    (new_home.charters / f"{OTHER.digest.hex()}.json").write_bytes(charters.encode(OTHER))
    return new_home


@pytest.fixture
def reasons():
    """The reasons for which the engine was asked to restart."""
    return []


def again_to(reasons):
    return lambda reason, back: reasons.append(reason)


def unasked(values):
    """Fails the test if settings are changed."""
    raise AssertionError(values)


def noting(changes):
    """Changes settings, and returns how to undo that."""

    def change(values):
        changes.append(values)
        return lambda: changes.append("taken back")

    return change


async def no_addresses():
    return []


@pytest.fixture
def joined():
    """The swarms that the node has joined, the current one last."""
    return [None]


@pytest.fixture
def known(home, reasons, joined):
    joined_swarms.write(home.swarms, JoinedSwarms(entries=(JoinedSwarm(charter=OTHER.digest.hex()),)))
    return SwarmService(home, LOOPBACK, again_to(reasons), unasked, current=lambda: joined[-1])


async def test_the_shipped_swarms_are_always_known_and_stand_first(known):
    (swarms_event,) = await known.obey(commands.ListSwarms(id="1"))
    assert [(swarm.name, swarm.shipped) for swarm in swarms_event.swarms] == [
        ("First light", True),
        ("First steps", True),
        ("Another swarm", False),
    ]
    assert "bf" in {offer.dataset for offer in swarms_event.offers}
    assert swarms_event.swarms[0].specialties[0].sample


async def test_levels_of_which_nobody_checked_the_answers_are_told(known, monkeypatch):
    shipped = audit_results.shipped_audit()
    truth = {**shipped.findings["bf"].truth, "easy": "unchecked"}
    finding = replace(shipped.findings["bf"], truth=truth)
    monkeypatch.setattr(audit_results, "shipped_audit", lambda: replace(shipped, findings={**shipped.findings, "bf": finding}))
    catalogue.catalogue_entries.cache_clear()
    catalogue._by_dataset.cache_clear()
    try:
        (swarms_event,) = await known.obey(commands.ListSwarms(id="1"))
    finally:
        catalogue.catalogue_entries.cache_clear()
        catalogue._by_dataset.cache_clear()
    unchecked = {offer.dataset: offer.unchecked for offer in swarms_event.offers}
    assert unchecked["bf"] == ("easy",)
    assert unchecked["gcd"] == ()
    details = {specialty.title: specialty.unchecked for specialty in swarms_event.swarms[0].specialties}
    assert (details["Tiny programs"], details["Logic"]) == (("easy",), ())


async def test_choosing_writes_the_choice_and_starts_again_there(home, known, reasons):
    assert await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex())) == ()
    assert reasons == ["Going to Another swarm."]
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.charter == OTHER.digest.hex()


async def test_a_swarm_that_cannot_be_joined_is_left_for_the_one_before(home, known):
    await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex()))
    (step,) = swarms.undo_steps(home, LOOPBACK)  # as after a start in between
    step.undo()
    assert swarms.with_chosen_swarm(home, LOOPBACK) == LOOPBACK
    assert not swarms.undo_steps(home, LOOPBACK), "there is nothing before that"


@pytest.mark.parametrize(
    ("failure", "to_blame"),
    [(SwarmError, True), (CharterError, True), (VerifierError, True), (QuestionsTooLong, True), (ZeroDivisionError, True)]
    + [(kind, False) for kind in (MemoryShort, ModelError, HubUnavailable, CheckpointError, HistoryError, IdentityError)],
)
async def test_a_swarm_chosen_before_a_start_is_left_for_what_may_be_its_fault_alone(home, known, failure, to_blame):
    await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex()))
    undo_log = UndoLog()
    undo_log.add(swarms.undo_steps(home, LOOPBACK))
    assert bool(undo_log.undo(failure)) == to_blame
    assert joined_swarms.read(home.swarms).active == ("" if to_blame else OTHER.digest.hex())


async def test_a_swarm_in_which_a_round_was_played_is_gone_back_to_and_one_in_which_none_was_is_not(home, known, reasons):
    third = replace(first_swarm(), name="A third swarm")
    (home.charters / f"{third.digest.hex()}.json").write_bytes(charters.encode(third))
    joined_swarms.write(home.swarms, joined_swarms.read(home.swarms).with_entry(JoinedSwarm(charter=third.digest.hex())))
    for digest in (OTHER.digest.hex(), third.digest.hex()):
        await known.obey(commands.ChooseSwarm(id="1", charter=digest))
    swarms.return_to_previous_swarm(home)
    assert joined_swarms.read(home.swarms).active == "", "nobody ever played in the second one"
    await known.obey(commands.ChooseSwarm(id="2", charter=OTHER.digest.hex()))
    there = SwarmService(home, swarms.with_chosen_swarm(home, LOOPBACK), again_to(reasons), unasked)
    there.mark_played()
    assert not swarms.undo_steps(home, LOOPBACK)
    await there.obey(commands.ChooseSwarm(id="3", charter=third.digest.hex()))
    swarms.return_to_previous_swarm(home)
    assert joined_swarms.read(home.swarms).active == OTHER.digest.hex()


async def test_another_swarm_that_is_chosen_as_the_first_round_ends_is_none_in_which_it_was_played(home, known):
    await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex()))
    known.mark_played()
    swarms.return_to_previous_swarm(home)
    assert joined_swarms.read(home.swarms).active == ""


async def test_another_swarm_that_is_chosen_while_this_one_is_asked_for_its_addresses_stays_chosen(home, known):
    has_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def addresses():
        has_asked.set()
        await may_answer.wait()
        return ["/ip4/192.168.1.2/tcp/4001/p2p/x"]

    joining = asyncio.create_task(known.store_port(CurrentSwarm(first_swarm(), addresses)))
    await has_asked.wait()
    await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex()))
    may_answer.set()
    await joining
    after = joined_swarms.read(home.swarms)
    assert (after.active, after.entry(first_swarm().digest.hex()).port) == (OTHER.digest.hex(), 4001)


async def test_choosing_where_one_is_does_nothing(known, reasons, joined):
    joined.append(CurrentSwarm(first_swarm(), no_addresses))
    (swarms_event,) = await known.obey(commands.ChooseSwarm(id="1", charter=first_swarm().digest.hex()))
    assert (swarms_event.swarms[0].active, reasons) == (True, [])


@pytest.mark.parametrize(
    ("settings", "error", "title"),
    [
        (Settings(swarm=SwarmSettings(charter="ff" * 32)), EngineError, "cannot be chosen"),
        (Settings(learning=LearningSettings(specialties=("chess",))), SettingsError, "has no specialty chess"),
    ],
)
async def test_what_the_settings_rule_out_is_not_chosen(home, known, reasons, settings, error, title):
    with pytest.raises(error, match=title):
        await SwarmService(home, settings, again_to(reasons), unasked).obey(
            commands.ChooseSwarm(id="1", charter=OTHER.digest.hex())
        )
    assert (joined_swarms.read(home.swarms).active, reasons) == ("", [])


async def test_a_swarm_nobody_ever_saw_cannot_be_chosen(known):
    with pytest.raises(SwarmError) as refused:
        await known.obey(commands.ChooseSwarm(id="1", charter="ee" * 32))
    assert (refused.value.title, refused.value.advice) == ("This swarm is not known here.", "Open its invite first.")


async def test_a_swarm_that_was_only_looked_at_before_the_engine_started_again_is_not_joined_without_its_invite(home, known):
    third = replace(first_swarm(), name="A third swarm")
    (home.charters / f"{third.digest.hex()}.json").write_bytes(charters.encode(third))
    with pytest.raises(SwarmError, match="looked at before the engine started again"):
        await known.obey(commands.ChooseSwarm(id="1", charter=third.digest.hex()))
    assert joined_swarms.read(home.swarms).active == ""


async def test_a_swarm_is_forgotten_but_not_the_one_that_is_taken_part_in(home, known, joined):
    joined.append(CurrentSwarm(OTHER, no_addresses))
    with pytest.raises(EngineError, match="taken part in now"):
        await known.obey(commands.ForgetSwarm(id="1", charter=OTHER.digest.hex()))
    joined.append(CurrentSwarm(first_swarm(), no_addresses))
    (swarms_event,) = await known.obey(commands.ForgetSwarm(id="2", charter=OTHER.digest.hex()))
    assert [swarm.name for swarm in swarms_event.swarms] == ["First light", "First steps"]


def test_nobody_goes_back_to_a_swarm_that_is_forgotten(home):
    forgotten, chosen = "ab" * 32, OTHER.digest.hex()
    known = JoinedSwarms(active=chosen, before=forgotten, entries=(JoinedSwarm(charter=forgotten), JoinedSwarm(charter=chosen)))
    joined_swarms.write(home.swarms, known.without(forgotten))
    swarms.return_to_previous_swarm(home)
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.charter == chosen, "not the one that is open to all"
    assert swarms.undo_steps(home, LOOPBACK) == []


@pytest.mark.parametrize("chosen_before", [True, False])
async def test_a_swarm_that_is_being_joined_or_is_joined_next_is_not_forgotten(home, known, joined, chosen_before):
    digest = OTHER.digest.hex()
    membership.write_key(home.swarm(digest).key, membership.new_key())
    await known.obey(commands.ChooseSwarm(id="1", charter=digest))
    if chosen_before:  # the engine has started again, and is not there yet
        chosen = swarms.with_chosen_swarm(home, LOOPBACK)
        known = SwarmService(home, chosen, again_to([]), unasked, current=lambda: joined[-1])
    with pytest.raises(EngineError, match="taken part in now"):
        await known.obey(commands.ForgetSwarm(id="2", charter=digest))
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.charter == digest
    assert home.swarm(digest).key.exists()
    joined.append(CurrentSwarm(OTHER, no_addresses))
    await known.obey(commands.ChooseSwarm(id="3", charter=first_swarm().digest.hex()))
    known = SwarmService(home, swarms.with_chosen_swarm(home, LOOPBACK), again_to([]), unasked)
    await known.obey(commands.ForgetSwarm(id="4", charter=digest))
    assert not home.swarm(digest).key.exists()


async def test_an_invite_names_useful_addresses_and_says_how_far_it_reaches(home, known, joined, tmp_path):
    mine = text_of(fresh_identity(tmp_path, "mine").peer_id)

    async def addresses():
        return [f"/ip4/{host}/tcp/4001/p2p/{mine}" for host in ("127.0.0.1", "192.168.1.7")]

    joined.append(CurrentSwarm(first_swarm(), addresses))
    await known.store_port(joined[-1])
    (invite_event,) = await known.obey(commands.WriteInvite(id="1"))
    assert invite.read(invite_event.link).seeds == (f"/ip4/192.168.1.7/tcp/4001/p2p/{mine}",)
    assert invite_event.reach.startswith("This invite works only on your own network")
    assert joined_swarms.read(home.swarms).entry(first_swarm().digest.hex()).port == 4001, "so that the invite stays true"


async def test_alone_by_choice_nobody_is_invited(home, reasons):
    current, chosen = CurrentSwarm(first_swarm(), no_addresses), Settings(swarm=SwarmSettings(solo=True))
    alone = SwarmService(home, chosen, again_to(reasons), unasked, current=lambda: current)
    with pytest.raises(EngineError, match="chosen to be alone"):
        await alone.obey(commands.WriteInvite(id="1"))


async def test_whoever_was_alone_by_choice_and_joins_others_is_alone_no_more_and_again_where_that_fails(home, tmp_path):
    """The dialog says so before. A swarm without other members, such as a new one, does not end solo training."""
    solo = replace(LOOPBACK, swarm=replace(LOOPBACK.swarm, solo=True))
    entry = JoinedSwarm(
        charter=OTHER.digest.hex(), seeds=(f"/ip4/192.0.2.1/tcp/4001/p2p/{text_of(fresh_identity(tmp_path, 'other').peer_id)}",)
    )
    changed, back = [], []
    known = SwarmService(home, solo, lambda reason, go_back: back.append(go_back), noting(changed))
    joined_swarms.write(home.swarms, JoinedSwarms(entries=(replace(entry, seeds=()),)))
    (swarms_event,) = await known.obey(commands.ListSwarms(id="1"))
    assert not any(swarm.ends_solo for swarm in swarms_event.swarms)
    await known.obey(commands.ChooseSwarm(id="2", charter=entry.charter))
    assert changed == []
    joined_swarms.write(home.swarms, JoinedSwarms(entries=(entry,)))
    (swarms_event,) = await known.obey(commands.ListSwarms(id="3"))
    assert [swarm.ends_solo for swarm in swarms_event.swarms] == [False, False, True]
    await known.obey(commands.ChooseSwarm(id="4", charter=entry.charter))
    assert changed == [{"swarm.solo": False}]
    back[-1]()
    assert changed[1:] == ["taken back"]
    assert swarms.with_chosen_swarm(home, solo) == solo


@pytest.mark.parametrize(("report_blocker", "error"), [("settings.toml", SettingsError), ("swarms.json.new", SwarmError)])
async def test_where_either_half_of_a_choice_cannot_be_written_neither_is(home, reasons, tmp_path, report_blocker, error):
    friend = f"/ip4/192.0.2.1/tcp/4001/p2p/{text_of(fresh_identity(tmp_path, 'friend').peer_id)}"
    joined_swarms.write(home.swarms, JoinedSwarms(entries=(JoinedSwarm(charter=OTHER.digest.hex(), seeds=(friend,)),)))
    with closing(EventPublisher(home.events)) as publisher:
        choices = LiveSettings(home.settings, ("swarm.solo=true",), publisher)
        known = SwarmService(home, choices.now, again_to(reasons), choices.change)
        (home.root / report_blocker).mkdir()
        with pytest.raises(error):
            await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex()))
    assert (joined_swarms.read(home.swarms).active, choices.now.swarm.solo, reasons) == ("", True, [])
    assert report_blocker == "settings.toml" or not tomllib.loads(home.settings.read_text()), (
        "what held for one run was not written down"
    )


@NEEDS_HIVEMIND
async def test_an_invite_to_the_swarm_of_now_leads_to_others_unless_its_computers_are_known(home, reasons, tmp_path):
    mine, friend, peer = (
        f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, name).peer_id)}" for name in ("mine", "friend", "peer")
    )

    async def addresses():
        return [mine]

    light = CurrentSwarm(first_swarm(), addresses)
    service = SwarmService(home, LOOPBACK, again_to(reasons), unasked, current=lambda: light)
    met = home.swarm("").known_peers
    met.write_text(f'["{peer}"]')

    async def leads_to_others(*seeds):
        link = invite.write(invite.Invite(charter=first_swarm().digest, seeds=seeds))
        (read,) = await service.obey(commands.ReadInvite(id="1", link=link))
        assert read.swarm.active
        return read.leads_to_others

    assert not await leads_to_others(mine), "an invite of one's own leads nowhere"
    assert not await leads_to_others(peer, friend), "the peer knows the friend"
    assert await leads_to_others(friend)
    assert await service.obey(commands.ChooseSwarm(id="2", charter=first_swarm().digest.hex())) == ()
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.seeds == (friend,)
    assert not await leads_to_others(friend)


async def test_whoever_goes_back_to_the_shipped_swarm_finds_those_again_who_invited_there(home, reasons, tmp_path):
    first = first_swarm().digest.hex()
    friend = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'friend').peer_id)}"
    link = invite.write(invite.Invite(charter=first_swarm().digest, seeds=(friend,)))
    joining = SwarmService(home, LOOPBACK, again_to(reasons), unasked)
    await joining.obey(commands.ReadInvite(id="1", link=link))
    await joining.obey(commands.ChooseSwarm(id="2", charter=first))
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.seeds == (friend,)
    joined_swarms.write(home.swarms, joined_swarms.read(home.swarms).with_entry(JoinedSwarm(charter=OTHER.digest.hex())))
    elsewhere = SwarmService(home, LOOPBACK, again_to(reasons), unasked)  # the engine starts again with every choice
    await elsewhere.obey(commands.ChooseSwarm(id="3", charter=OTHER.digest.hex()))
    assert swarms.with_chosen_swarm(home, LOOPBACK).swarm.seeds == ()
    solo = replace(LOOPBACK, swarm=replace(LOOPBACK.swarm, solo=True))
    changed = []
    back = SwarmService(home, solo, again_to(reasons), noting(changed))
    (swarms_event,) = await back.obey(commands.ListSwarms(id="4"))
    assert [swarm.ends_solo for swarm in swarms_event.swarms] == [True, False, False]
    await back.obey(commands.ChooseSwarm(id="5", charter=first))
    assert (swarms.with_chosen_swarm(home, LOOPBACK).swarm.seeds, changed) == ((friend,), [{"swarm.solo": False}])


@pytest.mark.parametrize("remembered", [True, False])
async def test_how_many_were_there_is_remembered_from_the_last_time_that_anybody_answered(home, known, monkeypatch, remembered):
    if not remembered:
        joined_swarms.write(home.swarms, JoinedSwarms())
    previews = [SwarmPreview(OTHER, True, 3), SwarmPreview(None, False, 0), SwarmPreview(OTHER, True, 5)]

    async def visit(*_, **__):
        return previews.pop(0)

    monkeypatch.setattr(swarms, "preview_swarm", visit)
    seed = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(home.root, 'seed').peer_id)}"
    link = invite.write(invite.Invite(charter=OTHER.digest, seeds=(seed,)))
    for members in (3, 3, 5):
        await known.obey(commands.ReadInvite(id="1", link=link))
        if not remembered:
            await known.obey(commands.ChooseSwarm(id="2", charter=OTHER.digest.hex()))
        (swarms_event,) = await known.obey(commands.ListSwarms(id="3"))
        assert swarms_event.swarms[-1].members == members


@pytest.mark.parametrize("link", ["", "https://example.org", "waggle://join?charter=1", "waggle://join?charter=" + "ab" * 32])
async def test_a_link_that_is_none_is_refused_before_anybody_is_asked(known, link):
    with pytest.raises(SwarmError):
        await known.obey(commands.ReadInvite(id="1", link=link))


async def test_a_swarm_is_created_with_questions_that_all_agree_on(home, known):
    command = commands.CreateSwarm(id="1", name="Two laptops", specialties=(("bf", "easy"),))
    created, swarms_event = await known.obey(command)
    stored_charter = charters.read(home.charters / f"{created.swarm.charter}.json")
    assert len(stored_charter.questions_digest) == 64
    assert [swarm.name for swarm in swarms_event.swarms] == ["First light", "First steps", "Another swarm", "Two laptops"]


@pytest.mark.parametrize("light", [True, False], ids=["told to", "with no other way in"])
async def test_through_a_gateway_a_swarm_is_looked_at_joined_and_others_are_invited(home, reasons, tmp_path, verifier, light):
    private = replace(OTHER, name="Ours", admission=membership.public_key_of(key := membership.new_key()))
    own = fresh_identity(tmp_path, "lender")
    lender = open_node(options(web_port=0, gateway=True, key=key), private, own, verifier, Ear())
    try:
        await lender.start()
        gateway = f"ws://127.0.0.1:{lender.web.port}/gateway#{text_of(own.peer_id)}"
        link = invite.write(invite.Invite(charter=private.digest, gateways=(gateway,), key=key))
        known = SwarmService(home, Settings(swarm=SwarmSettings(light=light)), again_to(reasons), unasked, lambda: light)
        (looked,) = await known.obey(commands.ReadInvite(id="1", link=link))
        assert (looked.swarm.name, looked.answered, looked.swarm.private) == ("Ours", True, True)
        await known.obey(commands.ChooseSwarm(id="2", charter=private.digest.hex()))
    finally:
        await lender.close()
    assert home.swarm(private.digest.hex()).key.read_bytes() == key
    chosen = swarms.with_chosen_swarm(home, Settings(swarm=SwarmSettings(light=light)))
    assert (chosen.swarm.charter, chosen.swarm.gateways) == (private.digest.hex(), (gateway,))
    kind = kind_of(swarm_connection.options_of(home, chosen))
    assert kind.joins_through == "gateways", "whatever its settings say of all swarms"
    current = CurrentSwarm(private, no_addresses)
    member = SwarmService(home, chosen, again_to(reasons), unasked, current=lambda: current)
    (written,) = await member.obey(commands.WriteInvite(id="3"))
    assert written.link == link


@NEEDS_HIVEMIND
async def test_where_a_gateway_alone_answers_it_is_the_way_in_until_a_seed_answers_too(home, known, tmp_path, verifier):
    own = fresh_identity(tmp_path, "lender")
    lender = open_node(options(web_port=0, gateway=True), OTHER, own, verifier, Ear())
    try:
        await lender.start()
        gateway = f"ws://127.0.0.1:{lender.web.port}/gateway#{text_of(own.peer_id)}"
        dead = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(own.peer_id)}"
        for seed, light in ((dead, True), ((await lender.addresses())[0], False)):
            link = invite.write(invite.Invite(charter=OTHER.digest, seeds=(seed,), gateways=(gateway,)))
            (looked,) = await known.obey(commands.ReadInvite(id="1", link=link))
            assert looked.answered
            await known.obey(commands.ChooseSwarm(id="2", charter=OTHER.digest.hex()))
            kind = kind_of(swarm_connection.options_of(home, swarms.with_chosen_swarm(home, LOOPBACK)))
            assert kind.joins_through == ("gateways" if light else "seeds")
    finally:
        await lender.close()


def test_gateways_of_the_settings_or_of_an_invite_to_a_swarm_created_here_make_nobody_a_light_client(home, known):
    gateway = "wss://example.org/gateway"
    entry = JoinedSwarm(charter=OTHER.digest.hex(), created=True)
    for known_entry in (entry, replace(entry, gateways=(gateway,)), replace(entry, created=False)):
        joined_swarms.write(home.swarms, JoinedSwarms(entries=(known_entry,), active=known_entry.charter))
        chosen = swarms.with_chosen_swarm(home, replace(LOOPBACK, swarm=replace(LOOPBACK.swarm, gateways=(gateway,))))
        assert chosen.swarm.gateways == (gateway,), "it stands in the invites that are written here"
        assert not chosen.swarm.light


@NEEDS_HIVEMIND
async def test_who_goes_through_gateways_into_one_swarm_can_look_at_another_by_its_seeds_unless_told_not_to(
    home, reasons, tmp_path
):
    seed = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'seed').peer_id)}"
    link = invite.write(invite.Invite(charter=bytes(32), seeds=(seed,)))
    through = replace(LOOPBACK, swarm=replace(LOOPBACK.swarm, light=True))
    for light, title in ((False, "Nobody answers"), (True, "takes part through gateways alone")):
        with pytest.raises(SwarmError, match=title):
            await SwarmService(home, through, again_to(reasons), unasked, lambda light=light: light).obey(
                commands.ReadInvite(id="1", link=link)
            )


async def test_where_there_is_no_hivemind_an_invite_without_a_gateway_is_refused_in_words(known, monkeypatch, tmp_path):
    monkeypatch.setattr("waggle.network.swarm_preview.has_hivemind", lambda: False)
    seed = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'seed').peer_id)}"
    link = invite.write(invite.Invite(charter=bytes(32), seeds=(seed,)))
    with pytest.raises(SwarmError, match="takes part through gateways alone, and this invite names none"):
        await known.obey(commands.ReadInvite(id="1", link=link))


@pytest.mark.parametrize(
    ("host", "named"), [("0.0.0.0", ["192.168.1.7"]), ("::", ["[2001:db8::7]"]), ("127.0.0.1", []), ("192.168.1.7", [])]
)
async def test_a_node_that_lends_its_web_port_to_everybody_invites_through_it_too(home, reasons, tmp_path, host, named):
    mine = text_of(fresh_identity(tmp_path, "mine").peer_id)

    async def addresses():
        hosts = ("ip4/127.0.0.1", "ip4/192.168.1.7", "ip6/2001:db8::7")
        return [f"/{host}/tcp/4001/p2p/{mine}" for host in hosts] + [f"/ip4/8.8.8.8/tcp/1/p2p/{mine}/p2p-circuit/p2p/{mine}"]

    web = WebSettings(port=8080, gateway=True, host=host)
    current = CurrentSwarm(first_swarm(), addresses)
    lending = SwarmService(home, replace(LOOPBACK, web=web), again_to(reasons), unasked, current=lambda: current)
    (invite_event,) = await lending.obey(commands.WriteInvite(id="1"))
    assert invite.read(invite_event.link).gateways == tuple(f"ws://{address}:8080/gateway#{mine}" for address in named)


@NEEDS_HIVEMIND
async def test_the_key_of_a_private_swarm_goes_into_its_invite_and_is_kept_by_whoever_joins(home, known, joined, tmp_path):
    private = replace(OTHER, name="Ours", admission=membership.public_key_of(key := membership.new_key()))
    digest, mine = private.digest.hex(), text_of(fresh_identity(tmp_path, "mine").peer_id)
    (home.charters / f"{digest}.json").write_bytes(charters.encode(private))
    link = invite.write(invite.Invite(charter=private.digest, seeds=(f"/ip4/127.0.0.1/tcp/9/p2p/{mine}",), key=key))

    (looked,) = await known.obey(commands.ReadInvite(id="1", link=link))
    assert (looked.swarm.private, looked.answered) == (True, False)
    assert not home.swarm(digest).key.exists(), "looking keeps no key"
    await known.obey(commands.ChooseSwarm(id="2", charter=digest))
    assert home.swarm(digest).key.read_bytes() == key

    async def addresses():
        return [f"/ip4/127.0.0.1/tcp/4001/p2p/{mine}"]

    joined.append(CurrentSwarm(private, addresses))
    (written,) = await known.obey(commands.WriteInvite(id="3"))
    assert invite.read(written.link).key == key
    with pytest.raises(SwarmError, match="its key is not here"):
        await known.obey(commands.ReadInvite(id="4", link=link.partition("#")[0]))


async def test_whoever_joined_where_only_the_web_is_let_through_is_a_full_member_again_where_a_seed_answers(home, tmp_path):
    lost = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'lost').peer_id)}"
    gateway = f"ws://127.0.0.1:9/gateway#{text_of(fresh_identity(tmp_path, 'lender').peer_id)}"
    entry = JoinedSwarm(charter=OTHER.digest.hex(), seeds=(lost,), gateways=(gateway,), only_by_web=True)

    async def starts(entry: JoinedSwarm) -> bool:
        joined_swarms.write(home.swarms, JoinedSwarms(active=entry.charter, entries=(entry,)))
        await swarms.retry_direct_connection(home, LOOPBACK)
        return swarms.with_chosen_swarm(home, LOOPBACK).swarm.light

    assert await starts(entry)
    async with serving(fresh_identity(tmp_path, "seed"), OTHER) as seed:
        assert not await starts(replace(entry, seeds=(lost, seed)))
        assert not joined_swarms.read(home.swarms).entries[0].only_by_web
        by_web = replace(LOOPBACK, swarm=replace(LOOPBACK.swarm, light=True))
        joined_swarms.write(home.swarms, JoinedSwarms(active=entry.charter, entries=(replace(entry, seeds=(seed,)),)))
        await swarms.retry_direct_connection(home, by_web)
        assert swarms.with_chosen_swarm(home, by_web).swarm.light, "whoever chose so stays"


async def test_a_class_is_private_easy_and_short_and_serves_its_page_only_while_one_is_there(home, known, reasons):
    created, _ = await known.obey(commands.CreateSwarm(id="1", name="7b", specialties=(), preset="classroom"))
    charter = charters.read(home.charters / f"{created.swarm.charter}.json")
    assert (charter.is_private, charter.completion_characters, charter.group_size_max) == (True, 400, 8)
    assert {specialty.levels for specialty in charter.specialties} == {("easy",)}
    assert swarms.with_chosen_swarm(home, LOOPBACK).web == WebSettings(), "it is not joined"
    await known.obey(commands.ChooseSwarm(id="2", charter=created.swarm.charter, member_name="Teacher"))
    there = swarms.with_chosen_swarm(home, LOOPBACK)
    assert (there.web.host, there.web.class_page, there.web.gateway, there.swarm.lan) == ("0.0.0.0", True, True, True)
    assert joined_swarms.member_name_in(home.swarms, created.swarm.charter) == "Teacher"
    own = replace(LOOPBACK, web=WebSettings(port=9000))
    assert swarms.with_chosen_swarm(home, own).web == own.web, "who chose web settings keeps them"
    await known.obey(commands.ChooseSwarm(id="3", charter=first_swarm().digest.hex()))
    assert swarms.with_chosen_swarm(home, LOOPBACK).web == WebSettings()


async def test_a_name_can_be_chosen_in_a_private_swarm_alone(home, known):
    with pytest.raises(SwarmError, match="everybody has the name of a key"):
        await known.obey(commands.ChooseSwarm(id="1", charter=OTHER.digest.hex(), member_name="Ada"))
    with pytest.raises(SwarmError, match="everybody has the name of a key"):
        await known.obey(commands.ChooseSwarm(id="2", charter=first_swarm().digest.hex(), member_name="Ada"))
    created, _ = await known.obey(commands.CreateSwarm(id="3", name="7b", specialties=(), preset="classroom"))
    with pytest.raises(SwarmError, match="This name"):
        await known.obey(commands.ChooseSwarm(id="4", charter=created.swarm.charter, member_name="A\u202eda"))
    for name, stored_name in (("Ada", "Ada"), (None, "Ada"), ("", "")):
        await known.obey(commands.ChooseSwarm(id="5", charter=created.swarm.charter, member_name=name))
        assert joined_swarms.member_name_in(home.swarms, created.swarm.charter) == stored_name


@pytest.mark.parametrize(("lan", "first"), [(True, "192.168.1.7"), (False, "8.8.8.8")])
async def test_where_computers_find_each_other_on_the_network_its_addresses_come_first(home, reasons, tmp_path, lan, first):
    mine = text_of(fresh_identity(tmp_path, "mine").peer_id)

    async def addresses():
        return [f"/ip4/{host}/tcp/4001/p2p/{mine}" for host in ("127.0.0.1", "8.8.8.8", "192.168.1.7")]

    near = replace(LOOPBACK, swarm=replace(LOOPBACK.swarm, lan=lan))
    service = SwarmService(home, near, again_to(reasons), unasked, current=lambda: CurrentSwarm(first_swarm(), addresses))
    (written,) = await service.obey(commands.WriteInvite(id="1"))
    assert invite.read(written.link).seeds[0] == f"/ip4/{first}/tcp/4001/p2p/{mine}"
