"""What this node thinks of a peer, in one sentence. The page Peers and `waggle ctl peers` both say this. Pure."""

from waggle.protocol.events import PeerInfo


def about(peer: PeerInfo, now: float) -> str:
    """The first thing that decides how the peer is treated at unix time `now`, and the figures behind it."""
    if peer.choice == "blocked":
        return "You blocked it: nothing of it is used here, and it gets nothing from here."
    if peer.choice == "muted":
        return "You muted it: nothing of it is used here."
    if peer.refusal:
        return f"It {peer.refusal}."
    if peer.doubted_until > now:
        return f"It broke a rule ({peer.reason}): it is asked again in {_duration(peer.doubted_until - now)}."
    if peer.trusted:
        return f"It is asked first: {_of_use(peer)}, {_refused(peer)}."
    if peer.received:
        return f"It is asked like any stranger: {_of_use(peer)} so far, {_refused(peer)}."
    if peer.taken:
        return "It takes groups from here; none of its own has come yet."
    return "Nothing was exchanged with it yet."


def _of_use(peer: PeerInfo) -> str:
    return f"{peer.useful:,} of its {peer.received:,} groups {'was' if peer.useful == 1 else 'were'} of use"


def _refused(peer: PeerInfo) -> str:
    return f"{peer.rejected:,} {'was' if peer.rejected == 1 else 'were'} refused" if peer.rejected else "none was refused"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
