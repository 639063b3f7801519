"""The status in one sentence: what happens, why, and what ends it. The window, the tray and `waggle ctl` show the same."""

import math
from typing import Literal

import msgspec

from waggle.protocol import events
from waggle.protocol.events_models import ModelChanged, ModelUnavailable
from waggle.protocol.events_swarms import SwarmUndecided
from waggle.protocol.schedule import Clock, ScheduleDecision, Tick, moment, time_of_day
from waggle.protocol.state import STAGES, State

Tone = Literal["accent", "plain", "peer", "bad"]
Sign = Literal["on", "off", "pause", "warn", "live", "you", "save"]
Action = Literal[
    "pause", "pause_now", "resume", "anyway", "copy_report", "choose_training", "choose_swarm", "choose_model", "none"
]

KILLED = (9, 137)  # exit codes of a killed process, as Qt and as shells report them
SAFE = "Your model is safe: everything up to the last saved round is kept."
DOING = {"draw": "picking questions", "answer": "answering", "judge": "judging", "share": "sharing", "gather": "gathering",
         "learn": "learning"}  # fmt: skip


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """`word` names the status, `says` is the sentence, `detail` the reason and what ends it, `action` the button to offer.

    `why` has every active rule, those that hold back first.
    """

    word: str
    says: str
    detail: str
    tone: Tone
    sign: Sign
    action: Action = "none"
    why: tuple[Tick, ...] = ()


def sentence(state: State, clock: Clock = time_of_day) -> Sentence:
    """The sentence for a State. `clock` formats unix seconds as a time of day."""
    text, until = _state_sentence(state, clock), _pause_end_text(state, clock)
    if state.decision is None:
        return text
    why = (msgspec.structs.replace(tick, says=until) if until and tick.rule == "pause" else tick for tick in state.decision.why)
    return msgspec.structs.replace(text, why=tuple(why))


def _state_sentence(state: State, clock: Clock) -> Sentence:
    match state.phase:
        case "problem":
            return _problem_sentence(state)
        case "stopped":
            return Sentence(word="Stopped", says="Not training.", detail="Everything is kept.", tone="plain", sign="off")
        case "preparing":
            return _preparing_sentence(state)
        case "paused":
            return _paused_sentence(state, clock)
        case "waiting":
            return _waiting_sentence(state)
        case "finishing" | "contributing" if (decision := state.decision) is not None and decision.standing != "contributing":
            return _finishing_sentence(decision)
        case "finishing":
            says = f"Finishing round {state.round}, then pausing."
            return Sentence(
                word="Finishing", says=says, detail="Nothing will be lost.", tone="accent", sign="on", action="pause_now"
            )
        case "contributing":
            return _with_suspended_rules(_contributing_sentence(state), state, clock)


def _paused_sentence(state: State, clock: Clock) -> Sentence:
    decision, until = state.decision, _pause_end_text(state, clock)
    says, ends = until or "Paused.", "goes on when you resume"
    if decision is not None and decision.standing == "paused":
        says, ends = until or decision.reason, decision.ends[:1].lower() + decision.ends[1:].removesuffix(".")
    elif until:
        ends = "goes on then, or when you resume"
    what = "the download" if state.downloading else "it" if state.preparing else f"round {state.round}"
    detail = f"Nothing was lost; {what} {ends}."
    return Sentence(word="Paused by you", says=says, detail=detail, tone="plain", sign="pause", action="resume")


def _pause_end_text(state: State, clock: Clock) -> str:
    """When a pause ends, in the reader's time zone, which may not be the engine's; empty: it has no end."""
    return f"Paused until {moment(state.until, state.at, clock)}." if state.phase == "paused" and state.until else ""


def _waiting_sentence(state: State) -> Sentence:
    decision = state.decision
    says = decision.reason if decision and decision.reason else "Waiting for a better moment."
    if decision and decision.why and decision.why[0].rule == "disk":
        return Sentence(word="Waiting", says=says, detail=decision.ends, tone="bad", sign="warn")
    detail = f"{decision.ends if decision else ''} Nothing was lost.".strip()
    return Sentence(word="Waiting", says=says, detail=detail, tone="plain", sign="pause", action="anyway")


def _finishing_sentence(decision: ScheduleDecision) -> Sentence:
    """For a pause or rule that waits for the end of the step in progress."""
    paused = decision.standing == "paused"
    return Sentence(
        word="Finishing", says=f"Finishing this step, then {'pausing' if paused else 'waiting'}.",
        detail="Nothing will be lost." if paused else decision.reason, tone="accent", sign="on",
        action="resume" if paused else "anyway",
    )  # fmt: skip


def _with_suspended_rules(status: Sentence, state: State, clock: Clock) -> Sentence:
    """Add until when the rules are suspended."""
    decision = state.decision
    if decision is None or decision.anyway_until is None or not any(tick.passes is False for tick in decision.why):
        return status
    return msgspec.structs.replace(
        status, detail=f"{status.detail} Your rules wait until {moment(decision.anyway_until, state.at, clock)}."
    )


def _problem_sentence(state: State) -> Sentence:
    if state.problem is not None:
        says, detail = state.problem.title, state.problem.advice or SAFE
    elif state.gone is not None and state.gone.host:
        says, detail = f"The connection to {state.gone.host} broke.", f"Waggle keeps trying. {SAFE}"
    elif state.gone is not None:
        says = "Training stopped unexpectedly."
        if abs(state.gone.code) in KILLED:
            says = "The system stopped the training, probably because memory ran short."
        detail = f"It starts again by itself. {SAFE}"
    else:
        says, detail = "Something went wrong.", SAFE
    return Sentence(word="Problem", says=says, detail=detail, tone="bad", sign="warn", action="copy_report")


def _preparing_sentence(state: State) -> Sentence:
    if state.changed is not None:
        return _changed_model_sentence(state.changed)
    if state.undecided is not None:
        return undecided_swarm_sentence(state.undecided)
    if state.unavailable is not None:
        return unavailable_model_sentence(state.unavailable)
    decision, starts, paused = state.decision, "Training starts automatically.", False
    if decision is not None and decision.standing == "paused":
        starts, paused = f"{decision.reason} {decision.ends}", True
    if state.downloading is not None:
        return _downloading_sentence(state.downloading, starts, "resume" if paused else "pause")
    if state.preparing is None:
        return Sentence(
            word="Preparing", says="Starting the engine.", detail="This takes a few seconds.", tone="plain", sign="save"
        )
    action: Action = "resume" if paused else "pause" if state.preparing.long else "none"
    return Sentence(word="Preparing", says=f"{state.preparing.part}.", detail=starts, tone="plain", sign="save", action=action)


def _changed_model_sentence(event: ModelChanged) -> Sentence:
    rounds = f"The old one was trained for {event.rounds} round{'' if event.rounds == 1 else 's'}."
    if not event.fits:
        rest = "Its training is kept, but cannot continue with these files. Begin anew, or put the old files back."
    elif event.is_whole:
        rest = "Begin anew, or keep the old one, whose weights are saved. Neither training is lost."
    else:
        rest = "Begin anew, or keep what the old one learned, which is then added to the new weights. Neither training is lost."
    return Sentence(
        word="Waiting for you", says=f"{event.model} is no longer the model that was trained here.",
        detail=f"{rounds} {rest}", tone="plain", sign="warn", action="choose_training",
    )  # fmt: skip


def undecided_swarm_sentence(event: SwarmUndecided) -> Sentence:
    """The question in which swarm to train."""
    says = {
        "unknown": "Waggle no longer knows which swarm you are in.",
        "unusable": event.reason,
        "failed": f"{event.name or 'The swarm that you chose'} cannot be joined now.",
    }[event.why]
    rest = "Training is on hold. Choose a swarm, or train alone for now."
    detail = f"{event.advice} {rest}" if event.why == "unusable" else rest
    return Sentence(
        word="Waiting for you", says=says, detail=detail.strip(), tone="plain", sign="warn", action="choose_swarm",
    )  # fmt: skip


def unavailable_model_sentence(event: ModelUnavailable) -> Sentence:
    """The question what to train instead of a model that cannot be had now."""
    rest = "Training goes on by itself once the model is there again. What it learned is kept."
    return Sentence(
        word="Waiting for you", says=event.reason, detail=f"{event.advice} {rest}".strip(), tone="plain", sign="warn",
        action="choose_model",
    )  # fmt: skip


def _downloading_sentence(event: events.Downloading, starts: str, action: Action) -> Sentence:
    remaining = "" if event.seconds_left is None else f", {_duration_text(event.seconds_left)}"
    says = f"Downloading the model: {_part_text(event.done, event.total)}{remaining}."
    detail = f"Resumes if interrupted. {starts}"
    return Sentence(word="Preparing", says=says, detail=detail, tone="plain", sign="save", action=action)


def _part_text(done: int, total: int) -> str:
    """How much of a download is here; not "0 of 0 MB" of a small one, nor all of one of which a part is missing."""
    if total < 10e6:
        return f"{done / 1e3:.0f} of {total / 1e3:.0f} kB"
    return f"{done // 1_000_000} of {math.ceil(total / 1e6)} MB"


def _duration_text(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def _contributing_sentence(state: State) -> Sentence:
    swarm = state.ready.swarm if state.ready else "the swarm"
    says = f"Training in {swarm}, round {state.round}."
    doing = DOING[state.stage or STAGES[0]]
    addresses = "1 address" if state.seeds_tried == 1 else f"{state.seeds_tried} addresses"
    if state.reach == "connecting":
        tried = f"tried {addresses}" if state.seeds_tried else "just started"
        detail = _differing_peers_text(state) or f"Looking for peers ({tried}); your model trains meanwhile."
        return Sentence(word="Connecting", says=says, detail=detail, tone="plain", sign="live", action="pause")
    if state.reach == "alone" or (state.reach == "connected" and not state.members):
        nobody = "You're the only one here. Invite someone to learn together."
        if state.seeds_tried:  # whether others are there is not known
            nobody = f"Nobody answers (tried {addresses}): the others may be off, or a firewall is in the way."
        silent = "Nobody else is sharing right now, so you train alone."
        detail = _differing_peers_text(state) or (nobody if state.reach == "alone" else silent)
        return Sentence(word="Alone", says=says, detail=detail, tone="plain", sign="you", action="pause")
    if state.reach == "solo":
        detail = f"Your model is {doing}, on this computer only."
        return Sentence(word="Training", says=says, detail=detail, tone="accent", sign="on", action="pause")
    peers = "1 peer" if len(state.members) == 1 else f"{len(state.members)} peers"
    detail = f"Your model is {doing}, with {peers}."
    return Sentence(word="Training", says=says, detail=detail, tone="accent", sign="on", action="pause")


def _differing_peers_text(state: State) -> str:
    """For swarms in which every peer that answers runs another version or charter. Its page shows what each says."""
    if not any(peer.refusal for peer in state.peers.values()):
        return ""
    return "Those who answer cannot train with this Waggle: the page Peers says why. You are training on your own."
