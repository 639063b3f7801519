"""What flows between this node and its peers, read off two States that follow each other: who, which way, about what. No Qt."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from waggle.protocol.events import PeerInfo
from waggle.protocol.state import Card, State

Direction = Literal["out", "in", "used"]  # a peer took groups of mine, a peer's groups came, a peer's groups were learned from


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Groups that went one way, all at once: the title of a specialty for each, empty where it is not known."""

    peer: str
    way: Direction
    specialties: tuple[str, ...]


def flows(before: State, after: State) -> tuple[Flow, ...]:
    """What was exchanged in between. A peer's counts of earlier days, told when it is met again, are no flow of now."""
    return (*_taken_flows(before, after), *_arrived(before, after), *_used(before, after))


def _taken_flows(before: State, after: State) -> list[Flow]:
    """A peer takes the groups of a whole round: of so many, if they are as many as I judged last, the specialties are known."""
    mine = _my_last(after)
    flows_out = []
    for peer in after.peers.values():
        known = before.peers.get(peer.id)
        if known is not None and peer is not known and peer.taken > known.taken:
            count = peer.taken - known.taken
            flows_out.append(Flow(peer=peer.id, way="out", specialties=mine if len(mine) == count else ("",) * count))
    return flows_out


def _my_last(state: State) -> tuple[str, ...]:
    mine = [card for card in state.cards if card.mine and all(answer.judged for answer in card.completions)]
    return tuple(card.specialty for card in mine if card.round == mine[0].round)


def _arrived(before: State, after: State) -> list[Flow]:
    if after.cards is before.cards:
        return []
    known = {card.key for card in before.cards}
    return _by_peer("in", [card for card in after.cards if not card.mine and card.key not in known])


def _used(before: State, after: State) -> list[Flow]:
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
    """How long ago a peer was seen, in four steps: 0 now, 3 an hour ago or gone. Coarse, so that few moments change it."""
    if peer.connection == "gone":
        return 3
    gone = now - peer.seen_at
    return 0 if gone < 120 else 1 if gone < 600 else 2 if gone < 3600 else 3
