"""The reputation of a peer in one sentence. The page Peers and `waggle ctl peers` show the same."""

from typing import Literal

from waggle.core.message import Figure, Message
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
            return Message("You blocked it: nothing is learned from it, and it gets nothing from here.")
        case "muted":
            return Message("You muted it: nothing is learned from it, but it still gets your examples.")
        case "differs":
            return Message("It %1.", peer.refusal)
        case "doubted":
            return Message("It broke a rule (%1): it is asked again in %2.", peer.reason, _duration(peer.doubted_until - now))
        case "trusted":
            return Message("Trusted: %1, %2.", _used_text(peer), _rejected_text(peer))
        case "plain":
            return _plain_text(peer)


def _plain_text(peer: PeerInfo) -> Message:
    if peer.barren:
        return Message(
            "It is asked like any stranger: most of its examples that were tried here taught nothing, %1.", _rejected_text(peer)
        )
    if peer.received:
        return Message("It is asked like any stranger: %1 so far, %2.", _used_text(peer), _rejected_text(peer))
    if peer.groups_pulled:
        return Message("It takes examples from here; none of its own has come yet.")
    return Message("Nothing was exchanged with it yet.")


def _used_text(peer: PeerInfo) -> Message:
    if peer.used <= peer.useful < peer.received:  # the others were right or wrong throughout, so there was nothing to learn
        return Message(
            "your model could learn from %1 of its %2 examples, as the others were all right or all wrong, and used %3",
            Figure(peer.useful),
            Figure(peer.received),
            Figure(peer.used),
        )
    return Message("your model used %1 of its %2 examples", Figure(peer.used), Figure(peer.received))


def _rejected_text(peer: PeerInfo) -> Message:
    return Message("%1 broke a rule", Figure(peer.rejected)) if peer.rejected else Message("none broke a rule")


def _duration(seconds: float) -> Message:
    if seconds < 90:
        return Message("%1 s", max(1, round(seconds)))
    if seconds < 5400:
        return Message("%1 min", round(seconds / 60))
    return Message("%1 h", round(seconds / 3600))
