"""The reputation of a peer in one sentence. The page Peers and `waggle ctl peers` show the same."""

from typing import Literal

from waggle.core.message import Figure, Message, counted, in_turn
from waggle.protocol.events import PeerInfo

Standing = Literal["blocked", "muted", "differs", "doubted", "trusted", "plain"]


def standing(peer: PeerInfo, now: float) -> Standing:
    """What decides how the peer is treated at unix time `now`. A person's choice comes before everything else."""
    if peer.choice:
        return peer.choice
    if peer.refusal:
        return "differs"
    if peer.doubted_until > now:
        return "doubted"
    return "trusted" if peer.trusted else "plain"


def standing_text(peer: PeerInfo, now: float) -> Message:
    """The sentence, with the figures behind it."""
    match standing(peer, now):
        case "blocked":
            return Message("You blocked it: neither of you learns from the other.")
        case "muted":
            return Message("You muted it: nothing is learned from it, but it still gets your examples.")
        case "differs":
            return Message("It %1.", peer.refusal)
        case "doubted":
            return Message("It broke a rule (%1): it is asked again in %2.", peer.reason, _duration(peer.doubted_until - now))
        case "trusted":
            return in_turn(Message("Trusted."), *_exchange_texts(peer))
        case "plain":
            return _plain_text(peer)


def _plain_text(peer: PeerInfo) -> Message:
    if peer.barren:
        barren = Message("It is asked like any stranger: most of its examples that were tried here taught nothing.")
        return in_turn(barren, _rejected_text(peer))
    if peer.received:
        return in_turn(Message("It is asked like any stranger."), *_exchange_texts(peer))
    if peer.groups_pulled:
        return Message("It takes examples from here; none of its own has come yet.")
    return Message("Nothing was exchanged with it yet.")


def exchange_text(peer: PeerInfo) -> Message:
    """What became of its examples, in figures."""
    return in_turn(*_exchange_texts(peer))


def _exchange_texts(peer: PeerInfo) -> tuple[Message, ...]:
    return (*_used_texts(peer), _rejected_text(peer))


def _used_texts(peer: PeerInfo) -> tuple[Message, ...]:
    """How many of its examples were used, and what became of the others: the numbers add up to those received."""
    texts = [Message("Used %1 of its %2 examples.", Figure(peer.used), Figure(peer.received))]
    if peer.used <= peer.useful < peer.received:
        words = counted(
            peer.received - peer.useful,
            "%n had only right or only wrong answers: nothing to learn.",
            "%n had only right or only wrong answers: nothing to learn.",
        )
        texts.append(words)
    if left_out := max(0, min(peer.useful, peer.received) - peer.used):
        texts.append(counted(left_out, "%n was left out.", "%n were left out."))
    return tuple(texts)


def _rejected_text(peer: PeerInfo) -> Message:
    return Message("%1 broke a rule.", Figure(peer.rejected)) if peer.rejected else Message("None broke a rule.")


def _duration(seconds: float) -> Message:
    if seconds < 90:
        return Message("%1 s", max(1, round(seconds)))
    if seconds < 5400:
        return Message("%1 min", round(seconds / 60))
    return Message("%1 h", round(seconds / 3600))
