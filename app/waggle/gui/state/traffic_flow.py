"""Groups exchanged between this node and its peers, derived from two consecutive States. No Qt."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from waggle.protocol.events import PeerInfo
from waggle.protocol.state import Card, State

Direction = Literal["out", "in", "used"]  # a peer took our groups, a peer's groups arrived, we trained on a peer's groups


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Groups that went one way at once: a specialty's title for each, empty where unknown."""

    peer: str
    way: Direction
    specialties: tuple[str, ...]


def flows(before: State, after: State) -> tuple[Flow, ...]:
    """What was exchanged in between. Totals of earlier days, which arrive with a returning peer, are not counted."""
    return (*_outgoing_flows(before, after), *_incoming_flows(before, after), *_used_flows(before, after))


def _outgoing_flows(before: State, after: State) -> list[Flow]:
    """A peer takes the groups of a whole round: if as many as in our last one, their specialties are known."""
    mine = _my_last(after)
    flows_out = []
    for peer in after.peers.values():
        known = before.peers.get(peer.id)
        if known is not None and peer is not known and peer.groups_pulled > known.groups_pulled:
            count = peer.groups_pulled - known.groups_pulled
            flows_out.append(Flow(peer=peer.id, way="out", specialties=mine if len(mine) == count else ("",) * count))
    return flows_out


def _my_last(state: State) -> tuple[str, ...]:
    mine = [card for card in state.cards if card.mine and all(answer.judged for answer in card.completions)]
    return tuple(card.specialty for card in mine if card.round == mine[0].round)


def _incoming_flows(before: State, after: State) -> list[Flow]:
    if after.cards is before.cards:
        return []
    known = {card.key for card in before.cards}
    return _by_peer("in", [card for card in after.cards if not card.mine and card.key not in known])


def _used_flows(before: State, after: State) -> list[Flow]:
    if after.cards is before.cards:
        return []
    learned = {card.key for card in before.cards if card.effects}
    fresh = [card for card in after.cards if not card.mine and any(card.effects) and card.key not in learned]
    return _by_peer("used", fresh)


def _by_peer(way: Direction, cards: Sequence[Card]) -> list[Flow]:
    by_peer: dict[str, list[str]] = {}
    for card in cards:
        by_peer.setdefault(card.origin, []).append(card.specialty)
    return [Flow(peer=peer, way=way, specialties=tuple(specialties)) for peer, specialties in by_peer.items()]


def silence_level(peer: PeerInfo, now: float) -> int:
    """How long ago a peer was seen: 0 within 2 minutes, up to 3 for over an hour or gone. Coarse, so it rarely changes."""
    if peer.connection == "gone":
        return 3
    gone = now - peer.seen_at
    return 0 if gone < 120 else 1 if gone < 600 else 2 if gone < 3600 else 3
