"""`waggle status` and `waggle why`: what a running engine does, and why."""

import argparse
import time
from collections.abc import Iterable

from waggle.cli.shared.engine import status
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.confidence_interval import interval_of
from waggle.core.peer_id import with_fingerprint
from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.figures.current import newest_score, speed
from waggle.protocol.peer_names import own_name
from waggle.protocol.schedule import Tick
from waggle.protocol.state import State
from waggle.protocol.text.activity_text import weather
from waggle.protocol.text.lesson_diagnosis import diagnosis, helpful_text
from waggle.protocol.text.status_text import Sentence, sentence
from waggle.protocol.text.swarm_suggestion import command_line, suggestion
from waggle.protocol.zone import time_there

MARKS = {True: "+", False: "-", None: "?"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the status, or for `why` its reasons alone. Raises EngineError if no engine runs."""
    state = status(paths.home_in(arguments.home))
    if arguments.json:
        return say_json(reasons(state) if arguments.command == "why" else facts(state))
    return say(explain(state, time.time()) if arguments.command == "why" else describe(state, time.time()))


def describe(state: State, now: float) -> str:
    """The State in words: the same sentence as in the window, and the figures behind it."""
    summary = sentence(state)
    lines = [*_sentence_lines(summary), *_zone_lines(state, now)]
    if state.reach == "connected":  # else the sentence says all
        lines.append(weather(state, now))
    lines += _rule_lines([tick for tick in summary.why if tick.passes is not None])
    if unknown := sum(tick.passes is None for tick in summary.why):
        rules = "1 rule that this computer cannot check" if unknown == 1 else f"{unknown} rules that this computer cannot check"
        lines.append(f"  {MARKS[None]} {rules}: `waggle why` names them.")
    lines += _reason_lines(state)
    if (better := _suggestion(state)) is not None:
        lines.append(command_line(better))
    if state.changed:
        lines.append("`waggle ctl anew` begins anew, `waggle ctl keep` keeps the old one.")
    if state.unavailable:
        lines.append("`waggle model choose starter` trains the starter, `waggle model choose MODEL` another one.")
    if state.undecided:
        lines.append("`waggle swarm join SWARM` chooses a swarm, `waggle ctl set swarm.solo=true` trains alone meanwhile.")
        lines += [f"  {name}" for name in state.undecided.known]
    if state.ready:
        name = with_fingerprint(own_name(state.ready), state.ready.node)
        lines.append(f"{name}, {state.ready.model} on {state.ready.device} ({state.ready.device_reason}).")
    if state.rounds:
        last = state.rounds[-1]
        lines.append(f"Last round: reward {last.reward:.3f}, {last.solved:.1%} right, {last.external} groups from peers.")
    if (score := newest_score(state)) is not None:
        low, high = interval_of(score.right, score.total)
        first = "a first " if score.early else ""
        interval = f"95% interval: {low:.0%} to {high:.0%}"
        lines.append(f"Held-out score: {score.right} of {first}{score.total} after round {score.round}, {interval}.")
    if state.after_restart:
        lines.append(f"Waits for the engine's next start: {', '.join(state.after_restart)}.")
    return "\n".join(lines)


def _suggestion(state: State) -> SwarmSuggestion | None:
    return suggestion(state, enabled=state.settings is None or state.settings.window.suggest_swarm)


def explain(state: State, now: float) -> str:
    """What the engine does and the reasons for it: every rule, and why it learns little, if it does."""
    summary = sentence(state)
    lines = [*_sentence_lines(summary), *_zone_lines(state, now), *_rule_lines(summary.why), *_reason_lines(state)]
    return "\n".join(lines)


def _sentence_lines(summary: Sentence) -> list[str]:
    return [f"{summary.word}: {summary.says}", summary.detail]


def _zone_lines(state: State, now: float) -> list[str]:
    """That the engine is in another time zone, if it is."""
    there = time_there(state.utc_offset, now)
    return [f"Times are those where the engine runs: it is {there} there."] if there else []


def _rule_lines(ticks: Iterable[Tick]) -> list[str]:
    return [f"  {MARKS[tick.passes]} {tick.says}" for tick in ticks]


def _reason_lines(state: State) -> list[str]:
    """What holds this computer back or keeps it awake, and why it learns little, if it does."""
    lines = [f"{guard.says} {guard.ends}" for guard in state.guards]
    if state.awake is not None:
        chosen = "as computer.keep_awake says"
        lines.append(
            f"This computer is kept awake, {chosen}."
            if state.awake.holds
            else f"This computer cannot be kept awake, {chosen}: {state.awake.trouble}."
        )
    if (why := diagnosis(state)) is not None:
        lines += [why.says, helpful_text(why)]
    return lines


def reasons(state: State) -> dict[str, object]:
    """What `explain` says, as facts."""
    summary, why = sentence(state), diagnosis(state)
    return {
        "phase": state.phase, "word": summary.word, "says": summary.says, "detail": summary.detail, "rules": summary.why,
        "utc_offset": state.utc_offset,
        "guards": state.guards, "awake": state.awake,
        "learning": None if why is None else f"{why.says} {helpful_text(why)}",
    }  # fmt: skip


def facts(state: State) -> dict[str, object]:
    """What `describe` says, as facts."""
    ready, better = state.ready, _suggestion(state)
    last = (state.rounds or (None,))[-1]
    return {
        **reasons(state), "seq": state.seq, "at": state.at, "until": state.until, "round": state.round, "stage": state.stage,
        "name": ready and ready.name, "member_name": ready and ready.member_name,
        "node": ready and ready.node, "swarm": ready and ready.swarm,
        "charter": ready and ready.charter, "model": ready and ready.model, "device": ready and ready.device,
        "reach": state.reach, "address": state.address, "peers": len(state.members), "last_round": last,
        "held_out": newest_score(state), "tokens_per_second": speed(state), "energy": state.energy,
        "better_swarm": better, "changed_model": state.changed, "undecided_swarm": state.undecided,
        "unavailable_model": state.unavailable,
        "after_restart": state.after_restart, "saved_round": state.saved_round,
    }  # fmt: skip
