"""Writes invites: which addresses they name, in which order, and from where they work."""

import ipaddress
from collections.abc import Sequence

from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import EngineError, SwarmError
from waggle.core.message import Message
from waggle.core.settings import Settings, WebSettings
from waggle.engine.services.swarms import swarm_connection
from waggle.network.identity import membership
from waggle.network.messages import invite
from waggle.network.messages.addresses import host_of, is_address, is_gateway
from waggle.network.transport import peer_cache
from waggle.network.web import class_page
from waggle.protocol import events_swarms
from waggle.tasks.charter import Charter

MAX_OWN_ADDRESSES, MAX_OTHER_ADDRESSES = 4, 4  # in an invite; others' are for times when this computer is off
ANY_ADDRESS = ("0.0.0.0", "::")


def written_invite(
    home: paths.Home, chosen: Settings, charter: Charter, addresses: Sequence[str]
) -> events_swarms.InviteWritten:  # fmt: skip
    """An invite to this swarm with these addresses of the node. Raises EngineError and SwarmError."""
    digest = charter.digest
    own = _addresses_for_invite(addresses, near_first=chosen.swarm.lan)
    known = peer_cache.read(swarm_connection.options_of(home, chosen).known_peers)
    others = filter(is_address, (*chosen.swarm.seeds, *known))  # without an engine, nobody has checked the settings
    further = [address for address in others if address not in own and not _is_loopback(address)]
    seeds = tuple(dict.fromkeys([*own, *further[:MAX_OTHER_ADDRESSES]]))
    gateways = tuple(filter(is_gateway, dict.fromkeys((*_own_gateways(chosen.web, own), *chosen.swarm.gateways))))
    gateways = gateways[: invite.MAX_GATEWAYS]
    if not seeds and not gateways:
        raise EngineError("No address is known yet at which others could reach you.", "Try again in a moment.")
    key = membership.read_key(home.swarm(digest.hex()).key) if charter.is_private else b""
    link = invite.write(invite.Invite(charter=digest, seeds=seeds, gateways=gateways, key=key))
    written = events_swarms.InviteWritten(charter=digest.hex(), link=link, reach=_reach((*seeds, *gateways)))
    if not (addresses and chosen.web.class_page and chosen.web.port):
        return written
    host = "127.0.0.1" if chosen.web.host in ANY_ADDRESS else chosen.web.host
    return replace(
        written, class_page=f"http://{host}:{chosen.web.port}{class_page.CLASS}",
        join_page=class_page.address(chosen.web.host, chosen.web.port, addresses),
    )  # fmt: skip


def link_of_invite(home: paths.Home, chosen: Settings, charter: Charter, addresses: Sequence[str]) -> str:
    """The link of such an invite; empty while none can be written."""
    try:
        return written_invite(home, chosen, charter, addresses).link if addresses else ""
    except (EngineError, SwarmError):  # the page that shows it says that there is none yet
        return ""


def _own_gateways(web: WebSettings, own: Sequence[str]) -> list[str]:
    """The URLs of this node's own gateway; none if it listens on one address only, as it does behind a web server."""
    if not web.gateway or not web.port or web.host not in ANY_ADDRESS:
        return []
    straight = {
        host_of(address): address.rpartition("/")[2]
        for address in own
        if "/p2p-circuit/" not in address and not _is_loopback(address)
    }
    family = ipaddress.ip_address(web.host).version  # a listener on all addresses of one family gets no connections of the other
    hosts = {host: peer for host, peer in straight.items() if host is not None and host.version == family}
    form = "[{}]" if family == 6 else "{}"
    return [f"ws://{form.format(host)}:{web.port}/gateway#{peer}" for host, peer in hosts.items()]


def _is_loopback(address: str) -> bool:
    host = host_of(address)
    return host is not None and host.is_loopback


def _addresses_for_invite(addresses: Sequence[str], *, near_first: bool) -> list[str]:
    """The most useful addresses for others: public ones before local ones, or behind them; loopback if there is nothing else."""
    known = [address for address in addresses if is_address(address)]
    useful = [address for address in known if not _is_loopback(address)] or known
    return sorted(useful, key=lambda address: _is_near(address) != near_first)[:MAX_OWN_ADDRESSES]


def _is_near(address: str) -> bool:
    """Whether only computers of the same network can call it."""
    host = host_of(address)
    return host is not None and not host.is_global and "/p2p-circuit/" not in address


def _reach(addresses: tuple[str, ...]) -> Message:
    """From where an invite with these addresses works, in words."""
    hosts = [host_of(address) for address in addresses]
    if any(host is None or host.is_global for host in hosts):
        return Message("It works from anywhere.")
    if all(host is not None and host.is_loopback for host in hosts):
        return Message("It works on this computer only.")
    return Message(
        "This invite works only on your own network, such as your Wi-Fi at home: "
        "Waggle found no address that can be reached from outside."
    )
