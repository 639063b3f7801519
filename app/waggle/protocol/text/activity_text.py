"""The activity of the swarm in one line, in words of the weather: how much is shared, and its trend."""

from waggle.protocol.state import State

EARLY, SPAN = 2, 10  # minutes until there is a forecast, and a trend
LIVELY, BUSY = 1.0, 30.0  # groups a minute that reach this computer
CHANGE = 1.5  # times as many groups as before are a trend


def weather(state: State, now: float) -> str:
    """One sentence about the last minutes before unix time `now`. It counts the groups that arrive at this node."""
    if state.phase == "preparing":
        if state.waits_for_choice:
            return "No forecast yet: the engine waits for your choice."
        return "No forecast yet: the engine is still starting."
    if state.ready is None or state.phase in ("problem", "stopped"):
        return "No forecast: the engine is not running."
    match state.reach:
        case "solo":
            return "No weather: this swarm is this computer only."
        case "connecting":
            return "No forecast yet: still looking for peers."
        case "alone":
            return "Nobody answers." if state.seeds_tried else "You are the only one here."
        case "connected":
            return _rate_sentence(state, now)


def _rate_sentence(state: State, now: float) -> str:
    count = len(state.members)
    if not count:
        return "Calm: you are connected, but nobody has shared anything yet."
    here = "1 peer" if count == 1 else f"{count} peers"
    assert state.ready is not None
    minutes = int((now - state.ready.at) // 60)
    if minutes < EARLY:
        return f"{here} online."
    span = min(SPAN, minutes)
    rate = _groups_between(state, now, span, 0) / span
    if rate < 0.1:
        return f"Calm: {here}, hardly anything new arrives."
    word = "Busy" if rate >= BUSY else "Lively" if rate >= LIVELY else "Quiet"
    groups = f"about {rate:.0f} groups a minute" if rate >= 1.5 else "about one group a minute" if rate >= 0.75 else (
        "less than one group a minute")  # fmt: skip
    return f"{word}: {here}, {groups}{_trend_text(state, now, minutes)}."


def _trend_text(state: State, now: float, minutes: int) -> str:
    """Compare the last five minutes with the five before; empty if that is too early."""
    if minutes < SPAN:
        return ""
    before, after = _groups_between(state, now, SPAN, SPAN // 2), _groups_between(state, now, SPAN // 2, 0)
    if after > CHANGE * before:
        return ", and rising"
    return ", and falling" if before > CHANGE * after else ", steady"


def _groups_between(state: State, now: float, first: int, last: int) -> int:
    """The groups that arrived from `first` to `last` whole minutes ago, without the current minute."""
    minute = int(now // 60)
    return sum(groups for at, groups in state.arrivals if minute - first <= at < minute - last)
