"""Which reputations changed since the last look, so that the window gets only changes."""

import msgspec

from waggle.network.limits.reputation import PeerReputation, ReputationTable

CONTACT_S = 15.0  # minimum between two reports of a peer that was merely seen or pinged


class ReputationChanges:
    """Compares a table with what was reported of it before. Belongs to one thread."""

    def __init__(self, table: ReputationTable) -> None:
        self._table = table
        # Peers of an earlier run are reported once they do something, those about which a person decided at once: the person
        # must be able to find them.
        self._reported = {peer.id: peer for peer in table if not peer.choice}

    def since_last(self) -> list[PeerReputation]:
        """Every peer whose reputation changed since the last call."""
        current = {peer.id: peer for peer in self._table}
        self._reported = {peer_id: peer for peer_id, peer in self._reported.items() if peer_id in current}
        changed = [peer for peer in current.values() if _is_change(self._reported.get(peer.id), peer)]
        self._reported.update((peer.id, peer) for peer in changed)
        return changed


def _is_change(before: PeerReputation | None, after: PeerReputation) -> bool:
    """Whether more than a sign of life changed since the last report, or that was a while ago."""
    if before is after:
        return False
    if before is None or after.seen_at - before.seen_at >= CONTACT_S:
        return True
    return msgspec.structs.replace(after, seen_at=before.seen_at, delay_ms=before.delay_ms or after.delay_ms) != before
