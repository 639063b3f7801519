"""The status in one sentence: what happens, why, and what ends it. The window, the tray and `waggle ctl` show the same."""

import math
import time
from typing import Literal

import msgspec

from waggle.core.message import Figure, Message, counted, in_turn
from waggle.core.text.round_number import round_number
from waggle.protocol import events
from waggle.protocol.events_models import ModelChanged, ModelUnavailable
from waggle.protocol.events_swarms import SwarmUndecided
from waggle.protocol.schedule import ScheduleDecision, Tick, moment
from waggle.protocol.state import STAGES, State
from waggle.protocol.zone import local_time

Tone = Literal["accent", "plain", "peer", "bad"]
Sign = Literal["on", "off", "pause", "warn", "live", "you", "save", "again"]
Action = Literal[
    "pause", "pause_now", "resume", "anyway", "copy_report", "choose_training", "choose_swarm", "choose_model", "none"
]

SAFE = Message("Your model is safe.")
DOING = {
    "draw": Message("picking questions"), "answer": Message("answering"), "judge": Message("judging"),
    "share": Message("sharing"), "gather": Message("gathering"), "learn": Message("learning"),
}  # fmt: skip


TESTING = Message("taking a test")


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """`word` names the status, `says` is the sentence, `detail` the reason and what ends it, `action` the button to offer.

    `why` has every active rule, those that hold back first.
    """

    word: Message
    says: Message
    detail: Message
    tone: Tone
    sign: Sign
    action: Action = "none"
    why: tuple[Tick, ...] = ()


def sentence(state: State) -> Sentence:
    """The sentence for a State. Times in it are those of the engine's zone."""
    text, until = _state_sentence(state), _pause_end_text(state)
    if state.decision is None:
        return text
    why = (msgspec.structs.replace(tick, says=until) if until and tick.rule == "pause" else tick for tick in state.decision.why)
    return msgspec.structs.replace(text, why=tuple(why))


def moment_in(state: State, at: float) -> Message:
    """A time in words, in the engine's zone."""
    local = local_time(state.utc_offset, state.at)
    return moment(at, state.at, lambda each: time.strftime("%H:%M", local(each)), local)


def _state_sentence(state: State) -> Sentence:
    match state.phase:
        case "problem":
            return _problem_sentence(state)
        case "stopped":
            return Sentence(
                word=Message("Stopped"),
                says=Message("Not training."),
                detail=Message("Everything is kept."),
                tone="plain",
                sign="off",
            )
        case "preparing":
            return _preparing_sentence(state)
        case "paused":
            return _paused_sentence(state)
        case "waiting":
            return _waiting_sentence(state)
        case "finishing" | "contributing" if (decision := state.decision) is not None and decision.standing != "contributing":
            return _finishing_sentence(decision)
        case "finishing":
            says = Message("Finishing round %1, then pausing.", round_number(state.round))
            return Sentence(
                word=Message("Finishing"),
                says=says,
                detail=Message("Nothing will be lost."),
                tone="accent",
                sign="on",
                action="pause_now",
            )
        case "contributing":
            return _with_suspended_rules(_contributing_sentence(state), state)


def _paused_sentence(state: State) -> Sentence:
    decision, until = state.decision, _pause_end_text(state)
    says, ends = until or Message("Paused."), Message("Continues when you resume.")
    if decision is not None and decision.standing == "paused":
        says, ends = until or decision.reason, decision.ends
    elif until:
        ends = Message("Training resumes by itself.")
    detail = in_turn(Message("Nothing was lost."), ends)
    return Sentence(word=Message("Paused by you"), says=says, detail=detail, tone="plain", sign="pause", action="resume")


def _pause_end_text(state: State) -> Message | None:
    """When a pause ends; None: it has no end."""
    return Message("Paused until %1.", moment_in(state, state.until)) if state.phase == "paused" and state.until else None


def _waiting_sentence(state: State) -> Sentence:
    decision = state.decision
    says = decision.reason if decision and decision.reason else Message("Waiting for a better moment.")
    if decision and decision.why and decision.why[0].rule == "disk":
        return Sentence(word=Message("Waiting"), says=says, detail=decision.ends, tone="bad", sign="warn")
    detail = in_turn(decision.ends if decision else "", Message("Nothing was lost."))
    return Sentence(word=Message("Waiting"), says=says, detail=detail, tone="plain", sign="pause", action="anyway")


def _finishing_sentence(decision: ScheduleDecision) -> Sentence:
    """For a pause or rule that waits for the end of the step in progress."""
    paused = decision.standing == "paused"
    return Sentence(
        word=Message("Finishing"),
        says=Message("Finishing this step, then pausing.") if paused else Message("Finishing this step, then waiting."),
        detail=Message("Nothing will be lost.") if paused else decision.reason, tone="accent", sign="on",
        action="resume" if paused else "anyway",
    )  # fmt: skip


def _with_suspended_rules(status: Sentence, state: State) -> Sentence:
    """Add until when the rules are suspended."""
    decision = state.decision
    if decision is None or decision.anyway_until is None or not any(tick.passes is False for tick in decision.why):
        return status
    wait = Message("Your rules wait until %1.", moment_in(state, decision.anyway_until))
    return msgspec.structs.replace(status, detail=in_turn(status.detail, wait))


def _problem_sentence(state: State) -> Sentence:
    if state.problem is not None:
        says, detail = state.problem.title, state.problem.advice or SAFE
    elif state.gone is not None:
        return _gone_sentence(state.gone)
    else:
        says, detail = Message("Something went wrong."), SAFE
    return Sentence(word=Message("Problem"), says=says, detail=detail, tone="bad", sign="warn", action="copy_report")


def _gone_sentence(gone: events.EngineGone) -> Sentence:
    """For an engine that will be there again without anybody doing anything."""
    if gone.host:
        word, says = Message("Reconnecting"), Message("The connection to %1 broke.", gone.host)
        detail = in_turn(Message("Waggle keeps trying."), SAFE)
    else:
        word, says = Message("Restarting"), Message("Training stopped unexpectedly.")
        if abs(gone.code) in events.KILLED:
            says = Message("Your computer stopped the training, probably because memory ran short.")
        soon = counted(
            round(gone.wait), "Training starts again by itself in a second.", "Training starts again by itself in %n seconds."
        )
        detail = in_turn(soon if gone.wait >= 1 else Message("Training starts again by itself."), SAFE)
    return Sentence(word=word, says=says, detail=detail, tone="plain", sign="again", action="copy_report")


def _preparing_sentence(state: State) -> Sentence:
    if state.changed is not None:
        return _changed_model_sentence(state.changed)
    if state.undecided is not None:
        return undecided_swarm_sentence(state.undecided)
    if state.unavailable is not None:
        return unavailable_model_sentence(state.unavailable)
    decision, starts, paused = state.decision, Message("Training starts automatically."), False
    if decision is not None and decision.standing == "paused":
        starts, paused = in_turn(decision.reason, decision.ends), True
    if state.downloading is not None:
        return _downloading_sentence(state.downloading, starts, "resume" if paused else "pause")
    if state.preparing is None:
        return Sentence(
            word=Message("Getting ready"),
            says=Message("Starting Waggle."),
            detail=Message("This takes a few seconds."),
            tone="plain",
            sign="on",
        )
    action: Action = "resume" if paused else "pause" if state.preparing.long else "none"
    return Sentence(
        word=Message("Getting ready"),
        says=Message("%1.", state.preparing.part),
        detail=starts,
        tone="plain",
        sign="on",
        action=action,
    )


def _changed_model_sentence(event: ModelChanged) -> Sentence:
    if not event.fits:
        words = counted(
            event.rounds,
            "Your %n round of training cannot continue with the new version. Start over, or put the old files back.",
            "Your %n rounds of training cannot continue with the new version. Start over, or put the old files back.",
        )
    elif event.is_whole:
        words = counted(
            event.rounds,
            "Your %n round of training can continue from its own saved weights, or you start over with the new version.",
            "Your %n rounds of training can continue from their own saved weights, or you start over with the new version.",
        )
    else:
        words = counted(
            event.rounds,
            "Take your %n round along to the new version, or start over from it.",
            "Take your %n rounds along to the new version, or start over from it.",
        )
    detail = in_turn(Message("Training is on hold."), words, Message("Nothing is deleted."))
    says = Message("%1 has changed since you trained it.", event.model.partition("/")[2] or event.model)
    return Sentence(
        word=Message("Waiting for you"), says=says, detail=detail, tone="plain", sign="warn", action="choose_training",
    )  # fmt: skip


def undecided_swarm_sentence(event: SwarmUndecided) -> Sentence:
    """The question in which swarm to train."""
    says = {
        "unknown": Message("Waggle cannot tell which of your swarms you trained in."),
        "unusable": event.reason,
        "failed": Message("%1 cannot be joined now.", event.name or Message("The swarm that you chose")),
    }[event.why]
    rest = Message("What your model learned is kept. Choose a swarm, or train alone for now.")
    detail = in_turn(event.advice if event.why == "unusable" else "", rest)
    return Sentence(
        word=Message("Waiting for you"), says=says, detail=detail, tone="plain", sign="warn", action="choose_swarm",
    )  # fmt: skip


def unavailable_model_sentence(event: ModelUnavailable) -> Sentence:
    """The question what to train instead of a model that cannot be had now."""
    looks = Message("Waggle looks again every few seconds and continues by itself. What your model learned is kept.")
    asks = Message("Waggle tries again every minute and continues by itself. What your model learned is kept.")
    rest = looks if event.folder else asks
    return Sentence(
        word=Message("Waiting for you"), says=Message("Your model is not available right now."),
        detail=in_turn(event.reason, event.advice, rest), tone="plain", sign="warn",
        action="choose_model",
    )  # fmt: skip


def _downloading_sentence(event: events.Downloading, starts: Message, action: Action) -> Sentence:
    part = part_text(event.done, event.total)
    says = Message("Downloading the model: %1.", part)
    if event.seconds_left is not None:
        says = Message("Downloading the model: %1, %2 left.", part, duration_text(event.seconds_left))
    detail = in_turn(Message("The download resumes if interrupted."), starts)
    return Sentence(word=Message("Getting ready"), says=says, detail=detail, tone="plain", sign="save", action=action)


def part_text(done: int, total: int) -> Message:
    """How much of a download is here; not "0 of 0 MB" of a small one, nor all of one of which a part is missing."""
    if total < 10e6:
        return Message("%1 of %2 kB", Figure(done / 1e3), Figure(total / 1e3))
    return Message("%1 of %2 MB", Figure(done // 1_000_000), Figure(math.ceil(total / 1e6)))


def duration_text(seconds: float) -> Message:
    """A time in words that is rounded up."""
    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return Message("less than a minute")
    return Message("about %1 min", minutes) if minutes < 90 else Message("about %1 h", Figure(minutes / 60))


def _contributing_sentence(state: State) -> Sentence:
    swarm = state.ready.swarm if state.ready else Message("the swarm")
    says = Message("Training in %1, round %2.", swarm, round_number(state.round))
    if not state.round and state.stage is None:  # the first test comes before the first round
        says = Message("Training in %1 begins in a moment.", swarm)
    if state.takes_first_test:
        says = Message("Training in %1 begins after a first test.", swarm)
    status = _company_sentence(state, says)
    if state.takes_first_test:
        return msgspec.structs.replace(status, word=Message("Testing"), tone="accent", sign="on")
    return status


def _company_sentence(state: State, says: Message) -> Sentence:
    """With whom this node trains, or what keeps it from the others."""
    doing = TESTING if state.test is not None else DOING[state.stage or STAGES[0]]
    addresses = counted(state.seeds_tried, "%n address", "%n addresses")
    if state.reach == "connecting":
        looks = Message("Looking for peers (tried %1).", addresses) if state.seeds_tried else Message("Looking for peers.")
        detail = _differing_peers_text(state) or in_turn(looks, Message("Training does not wait for them."))
        return Sentence(word=Message("Connecting"), says=says, detail=detail, tone="plain", sign="live", action="pause")
    if state.reach == "alone" or (state.reach == "connected" and not state.members):
        nobody = Message("You're the only one here. Invite someone.")
        if state.seeds_tried:  # whether others are there is not known
            nobody = Message("Nobody answers (tried %1): the others may be off, or a firewall is in the way.", addresses)
        silent = Message("Nobody else is sharing right now, so you train alone.")
        detail = _differing_peers_text(state) or (nobody if state.reach == "alone" else silent)
        return Sentence(word=Message("Alone"), says=says, detail=detail, tone="plain", sign="you", action="pause")
    if state.reach == "solo":
        detail = Message("Your model is %1, on this computer only.", doing)
        return Sentence(word=Message("Training"), says=says, detail=detail, tone="accent", sign="on", action="pause")
    peers = counted(len(state.members), "%n peer", "%n peers")
    detail = Message("Your model is %1, with %2.", doing, peers)
    return Sentence(word=Message("Training"), says=says, detail=detail, tone="accent", sign="on", action="pause")


def _differing_peers_text(state: State) -> Message | None:
    """For swarms in which every peer that answers runs another version or charter. Its page shows what each says."""
    if not any(peer.refusal for peer in state.peers.values()):
        return None
    return Message("Those who answer cannot train with this Waggle: the page Peers says why. You are training on your own.")
