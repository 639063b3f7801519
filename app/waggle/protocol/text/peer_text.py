"""The reputation of a peer in one sentence. The page Peers and `waggle ctl peers` show the same."""

from typing import Literal

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


def standing_text(peer: PeerInfo, now: float) -> str:
    """The sentence, with the figures behind it."""
    match standing(peer, now):
        case "blocked":
            return "You blocked it: nothing is learned from it, and it gets nothing from here."
        case "muted":
            return "You muted it: nothing is learned from it, but it still gets your groups."
        case "differs":
            return f"It {peer.refusal}."
        case "doubted":
            return f"It broke a rule ({peer.reason}): it is asked again in {_duration(peer.doubted_until - now)}."
        case "trusted":
            return f"Trusted: {_usefulness_text(peer)}, {_rejected_text(peer)}."
        case "plain":
            return _plain_text(peer)


def _plain_text(peer: PeerInfo) -> str:
    if peer.barren:
        return f"It is asked like any stranger: most of its groups that were tried here taught nothing, {_rejected_text(peer)}."
    if peer.received:
        return f"It is asked like any stranger: {_usefulness_text(peer)} so far, {_rejected_text(peer)}."
    if peer.groups_pulled:
        return "It takes groups from here; none of its own has come yet."
    return "Nothing was exchanged with it yet."


def _usefulness_text(peer: PeerInfo) -> str:
    return f"{peer.useful:,} of its {peer.received:,} groups {'was' if peer.useful == 1 else 'were'} of use"


def _rejected_text(peer: PeerInfo) -> str:
    return f"{peer.rejected:,} broke a rule" if peer.rejected else "none broke a rule"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
