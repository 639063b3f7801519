"""The connection to the chosen swarm: joins it, and converts its news into events."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol, assert_never

import msgspec
from msgspec.structs import replace

from waggle.core import damaged_file, paths
from waggle.core.errors import CharterError, EngineError, SettingsError, SwarmError
from waggle.core.message import Figure, Message
from waggle.core.peer_id import peer_id_of, text_of
from waggle.core.settings import Settings
from waggle.engine.runtime import round_events
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.services.swarms import ended_swarms
from waggle.engine.storage import noise_salt
from waggle.engine.storage.stored_swarm import known_charter
from waggle.network.exchange.outbox_log import OutboxLog, readable, written_by_hand
from waggle.network.identity import membership
from waggle.network.identity.keys import Identity, load_or_create, name_of
from waggle.network.leaderboard.exchange import AnswerSheetExchange
from waggle.network.limits.rate_limits import RateLimit
from waggle.network.limits.reputation import Choice, PeerReputation
from waggle.network.messages import events as news
from waggle.network.messages.clock_skew import ENOUGH
from waggle.network.messages.comparison import Comparison
from waggle.network.messages.options import SwarmOptions
from waggle.network.open_node import open_node
from waggle.network.questions_download import download_questions
from waggle.network.solo_node import SoloNode
from waggle.network.transport.choice import fetch_charter, kind_of
from waggle.network.web.server import WebServer
from waggle.network.web.statistics import SwarmStatistics
from waggle.network.web.training_status import TrainingStatus
from waggle.protocol import events, events_leaderboard, peer_names
from waggle.protocol.events_outbox import SentMessage
from waggle.sapo.interfaces import Swarm
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.sandbox.verifier import Verifier

ENTRANTS = 100  # of a private swarm, in one event
LONGEST_MESSAGE = 250_000  # characters of a sent message: all messages together go into one line
SHOWN_RATE, SHOWN_BURST = 0.25, 20.0  # external groups with their texts, per second and at once: a person reads no more
HASH = re.compile(r"[0-9a-f]{64}")


class SwarmConnection(Swarm, Protocol):
    """A node as the engine uses it: the swarm that a round sees, and what the person and the settings decide about it."""

    @property
    def outbox(self) -> OutboxLog:
        """The newest messages that left this computer."""
        ...

    @property
    def leaderboard(self) -> AnswerSheetExchange | None:
        """The comparison of models; None if there are no others to compare with."""
        ...

    def run(self) -> Awaitable[None]:
        """Wait until the node ends; raise what failed in its background work."""
        ...

    def addresses(self) -> Awaitable[list[str]]:
        """Where others reach this node, the most useful address first."""
        ...

    def limit(self, rate: float | None) -> None:
        """Limit payloads to `rate` bytes per second, each way; None: no limit."""
        ...

    @property
    def is_limited(self) -> bool:
        """Whether something had to wait for the limit just now."""
        ...

    @property
    def is_away(self) -> bool:
        """Whether the network process ended and has not started again."""
        ...

    def choose(self, peer_id: bytes, choice: Choice) -> None:
        """Mute or block a peer, or neither (""). Raises EngineError if there are no peers."""
        ...


def options_of(home: paths.Home, chosen: Settings, key: bytes = b"", charter: str = "", member_name: str = "") -> SwarmOptions:
    """The network options for the swarm of this charter (its hash in hex).

    `key` is the key of a private swarm, `member_name` the name that the person chose there.
    """
    return SwarmOptions(
        host=chosen.swarm.host,
        port=chosen.swarm.port,
        seeds=chosen.swarm.seeds,
        lan=chosen.swarm.lan,
        upnp=chosen.swarm.upnp,
        through=chosen.swarm.through,
        key=key,
        member_name=member_name,
        web_host=chosen.web.host,
        web_port=chosen.web.port or None,
        class_page=chosen.web.class_page,
        gateway=chosen.web.gateway,
        gateways=chosen.swarm.gateways,
        light=chosen.swarm.light,
        leaderboard=chosen.swarm.leaderboard,
        known_peers=home.swarm(named if HASH.fullmatch(named := chosen.swarm.charter) else "").known_peers,
        reputation_file=home.reputation,
        home_salt=noise_salt.salt_of(home),
        questions_folder=home.questions,
        scores_file=home.swarm(charter).scores if charter else None,
    )


async def charter_of(home: paths.Home, chosen: Settings) -> Charter:
    """The charter that the settings name: the default, a file, or a hash. Raises CharterError and SwarmError.

    One named by its hash ships with Waggle, or is fetched from the seeds once, checked, and stored; not by a node that is alone,
    which opens no network.
    """
    named = chosen.swarm.charter
    if not named:
        return shipped_swarms.first_swarm()
    if not HASH.fullmatch(named):
        return charters.read(Path(os.path.expanduser(named)))
    if not shipped_swarms.shipped_swarm(named):
        ended_swarms.require_current(home, named)
    try:
        return known_charter(home, named)
    except CharterError:  # not stored yet, or damaged: fetch it
        if chosen.swarm.solo:
            raise
    path = home.swarm(named).charter_file
    charter = await fetch_charter(options_of(home, chosen), load_or_create(home.identity), bytes.fromhex(named))
    with suppress(OSError):  # a full disk: the next start fetches it again
        if path.exists():
            damaged_file.set_aside(path)
        paths.write_atomically(path, charters.encode(charter))
    return charter


async def download_missing_questions(
    home: paths.Home, chosen: Settings, charter: Charter, identity: Identity, limit: float | None,
    report: Callable[[int, int], None],
) -> None:  # fmt: skip
    """Download the charter's own questions if they are not here; see `download_questions`. Raises SwarmError."""
    if chosen.swarm.solo:
        if await asyncio.to_thread(PieceStore(home.questions, charter).missing):
            raise SwarmError(
                Message("The questions of %1 are not on this computer, and it trains alone.", charter.name),
                "Turn off “Train alone” in Settings until members have sent them.",
            )
        return
    digest = charter.digest.hex()
    options = options_of(home, chosen, membership.read_key(home.swarm(digest).key), digest)
    await download_questions(options, identity, charter, limit=limit, report=report)


def chosen_specialties(chosen: Settings, charter: Charter) -> tuple[str, ...]:
    """The datasets that this node draws questions from; empty: all of the charter. Raises SettingsError.

    The settings name each by its title or its dataset.
    """
    known = charter.datasets_by_name()
    for name in chosen.learning.specialties:
        if name.casefold() not in known:
            raise SettingsError(
                Message("%1 has no specialty %2.", charter.name, name),
                Message("learning.specialties may name %1.", ", ".join(specialty.title for specialty in charter.specialties)),
            )
    return tuple(known[name.casefold()] for name in chosen.learning.specialties)


async def join(
    home: paths.Home,
    chosen: Settings,
    charter: Charter,
    identity: Identity,
    verifier: Verifier,
    publisher: EventPublisher,
    stack: AsyncExitStack,
    is_paused: Callable[[], bool] = lambda: False,
    training: Callable[[], TrainingStatus | None] = lambda: None,
    invite: Callable[[Sequence[str]], str] = lambda addresses: "",
    member_name: str = "",
) -> SwarmConnection:
    """Join the swarm; `stack` leaves it. Raises SwarmError if the network cannot start at all.

    `training` returns what the status page shows of this node's own model. Who trains alone has that page, too. `invite` writes
    an invite with these addresses for the page of a class; `member_name` is the name that the person chose in this swarm.
    """
    if chosen.swarm.solo:
        publisher.publish(events.ReachChanged(reach="solo", peers=0))
        if chosen.web.port:
            statistics = SwarmStatistics(charter)
            page = WebServer(lambda: statistics.status((), training()))
            stack.push_async_callback(page.close)
            await page.start(chosen.web.host, chosen.web.port)
        return SoloNode()
    titles = round_events.Titles(charter)
    digest = charter.digest.hex()
    key, me = membership.read_key(home.swarm(digest).key), text_of(identity.peer_id)
    options = options_of(home, chosen, key, digest, member_name)
    read = RateLimit(SHOWN_RATE, SHOWN_BURST)

    def report(item: news.NetworkEvent) -> None:
        if isinstance(item, news.DuplicateIdentity):
            noise_salt.forget(home)
        publisher.publish_soon(event_from_news(item, titles, me, lambda: read.allows(b"")))

    node = open_node(options, charter, identity, verifier, report, is_paused=is_paused, training=training, invite=invite)
    stack.push_async_callback(node.close)
    await node.start()
    if kind_of(options).joins_through == "gateways" and not options.gateways:
        publisher.publish(
            events.Warned(
                title=Message("This computer takes part through gateways alone, and none is named."),
                advice=Message("Your model trains on its own. Name the gateway of a member in Settings."),
            )
        )
    return node


def choose_peer(swarm: SwarmConnection, peer: str, choice: Choice) -> None:
    """Mute, block or accept a peer, named by its id in base58. Raises EngineError for an invalid id, or without peers."""
    try:
        peer_id = peer_id_of(peer)
    except ValueError as error:
        raise EngineError(Message("%1 is no peer's id.", peer), "Copy it whole: `waggle ctl peers` lists them.") from error
    swarm.choose(peer_id, choice)


def sent_messages(swarm: SwarmConnection, peers: peer_names.Peers) -> tuple[SentMessage, ...]:
    """The last messages that left this computer, newest first, in readable form; very long ones are cut.

    Receivers are named as `peers` name them.
    """
    return tuple(
        SentMessage(
            at=message.at,
            kind=message.kind,
            to=_receiver(message.to, peers) if message.to else "",
            size=len(message.content),
            text=readable(message)[:LONGEST_MESSAGE],
            yours=written_by_hand(message),
        )
        for message in swarm.outbox.newest()
    )


def _receiver(peer_id: bytes, peers: peer_names.Peers) -> str:
    text = text_of(peer_id)
    return f"{peer_names.name_in(peers, text, name_of(peer_id))} ({text})"


def event_from_news(
    item: news.NetworkEvent, titles: round_events.Titles, me: str = "", has_room: Callable[[], bool] = lambda: True
) -> events.EngineEvent | events_leaderboard.ComparingEvent:
    """The event for one piece of news. `has_room` is called for each external group, and decides whether its texts go along."""
    match item:
        case news.GroupsArrived():
            read = [group for group in item.groups if has_room()]
            return events.PeerGroupsArrived(
                origin=text_of(item.origin), name=name_of(item.origin), round=item.round, model=item.model,
                groups=round_events.shown_groups(read, titles), more=len(item.groups) - len(read),
            )  # fmt: skip
        case news.RecordRejected():
            return events.RecordRejected(origin=text_of(item.origin), reason=item.reason, count=item.count)
        case news.ReputationsLost():
            return events.Warned(
                title=Message("What was known of peers could not be read: whom you muted or blocked counts again."),
                advice=Message(
                    "Choose again on the page Peers. The old file is kept beside it; its name begins with standings.damaged."
                ),
            )
        case news.PeerChanged():
            return events.PeerChanged(peer=peer_info(item.peer))
        case news.ReachChanged():
            return events.ReachChanged(reach=item.reach, peers=item.peers, tried=item.tried, address=item.address, way=item.way)
        case news.NetworkRestarted():
            return events.PartRestarted(part="network", reason=item.reason)
        case news.TrafficMeasured():
            return events.TrafficMeasured(up=item.up, down=item.down)
        case news.GatewayHidesPeers():
            return events.Warned(
                title=Message(
                    "The gateway %1 shows %2 of %3 members that another one shows.", item.address, item.listed, item.known
                ),
                advice=Message(
                    "It may be cut off, or hide them. Yours are put together from all gateways; add one of another operator."
                ),
            )
        case news.ClockSkewed():
            advice = Message("Set the clock by the network: answers that seem too old or too new are refused by others.")
            span = _span(abs(item.seconds))
            if item.agreeing < ENOUGH:
                return events.Warned(
                    title=Message("This computer's clock and that of another one differ by %1: one of the two is wrong.", span),
                    advice=Message("If it is this one, set it by the network. Answers that seem too old or too new are refused."),
                )
            title = (
                Message("This computer's clock is %1 slow.", span)
                if item.seconds > 0
                else Message("This computer's clock is %1 fast.", span)
            )
            return events.Warned(title=title, advice=advice)
        case news.LeaderboardChanged():
            return _comparison_event(item.comparison, me)
        case news.DuplicateIdentity():
            return events.Warned(
                title=Message("Another computer takes part with this node's identity, and the two hold each other back."),
                advice=Message(
                    "Give one of them an identity of its own: Start over on the page You, or `waggle identity renew`."
                ),
                page="you",
            )
        case news.OwnSeed():
            return events.Warned(
                title=Message("The seed %1 has this node's own identity, so it cannot be called.", item.address),
                advice=Message(
                    "If it is another computer, one of the two is a copy. "
                    "Give one of them an identity of its own: Start over on the page You, or `waggle identity renew`."
                ),
                page="you",
            )
        case _:
            assert_never(item)


def _comparison_event(comparison: Comparison, me: str) -> events_leaderboard.ModelsCompared:
    """Convert a comparison for the window. Of a public swarm it contains this node's own entry only."""
    entrants = [entrant for entrant in comparison.entrants if comparison.ranked or entrant.id == me][:ENTRANTS]
    return events_leaderboard.ModelsCompared(
        curves=msgspec.convert(comparison.curves, tuple[events_leaderboard.ScoreCurve, ...], from_attributes=True),
        entrants=tuple(
            replace(msgspec.convert(entrant, events_leaderboard.Entrant, from_attributes=True), mine=entrant.id == me)
            for entrant in entrants
        ),
        ranked=comparison.ranked,
        sheets=comparison.sheets,
        since=comparison.since,
    )


def peer_info(peer: PeerReputation) -> events.PeerInfo:
    """A peer as events have it."""
    return events.PeerInfo(
        id=text_of(peer.id),
        name=peer.chosen_name or peer.name,
        connection=peer.connection,
        model=peer.model,
        reason=peer.reason,
        refusal=peer.refusal,
        doubted_until=peer.doubted_until,
        trusted=peer.trusted,
        barren=peer.barren,
        choice=peer.choice,
        round=peer.round,
        received=peer.received,
        useful=peer.useful,
        used=peer.used,
        groups_pulled=peer.taken,
        rejected=peer.rejected,
        mean_reward=peer.mean_reward,
        delay_ms=peer.delay_ms,
        seen_at=peer.seen_at,
    )


def _span(seconds: float) -> Message:
    if seconds >= 2 * 86_400:
        return Message("%1 days", Figure(seconds / 86_400))
    if seconds >= 2 * 3600:
        return Message("%1 hours", Figure(seconds / 3600))
    if seconds >= 2 * 60:
        return Message("%1 minutes", Figure(seconds / 60))
    return Message("%1 seconds", Figure(seconds))
