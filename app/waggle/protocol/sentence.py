"""One sentence, everywhere: what is happening, why, and what ends it. The window, the tray and `waggle ctl` all say this."""

import math
import time
from collections.abc import Callable
from typing import Literal

import msgspec

from waggle.protocol import events as e
from waggle.protocol.state import STAGES, State

Tone = Literal["accent", "plain", "peer", "bad"]
Sign = Literal["on", "off", "pause", "warn", "live", "you", "save"]
Action = Literal["pause", "pause_now", "resume", "copy_report", "none"]

DOING = {"draw": "drawing questions", "answer": "answering", "judge": "judging", "share": "sharing", "gather": "gathering",
         "learn": "learning"}  # fmt: skip


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """`word` names the state, `says` is the sentence, `detail` the reason and what ends it, `action` the one button."""

    word: str
    says: str
    detail: str
    tone: Tone
    sign: Sign
    action: Action = "none"


def sentence(state: State, clock: Callable[[float], str] = lambda at: time.strftime("%H:%M", time.localtime(at))) -> Sentence:
    """The sentence for a State; `clock` writes a moment as a time of day."""
    match state.phase:
        case "problem":
            return _problem(state)
        case "stopped":
            return Sentence(word="Stopped", says="Not contributing.", detail="Everything is kept.", tone="plain", sign="off")
        case "preparing":
            return _preparing(state)
        case "paused":
            until = f"Paused until {clock(state.until)}." if state.until else "Paused."
            what = "the download" if state.downloading else f"round {state.round}"
            detail = f"Nothing was lost; {what} goes on when you resume."
            return Sentence(word="Paused by you", says=until, detail=detail, tone="plain", sign="pause", action="resume")
        case "finishing":
            says = f"Finishing round {state.round}, then pausing."
            return Sentence(
                word="Finishing", says=says, detail="Nothing will be lost.", tone="accent", sign="on", action="pause_now"
            )
        case "contributing":
            return _contributing(state)


def _problem(state: State) -> Sentence:
    if state.problem is not None:
        says, detail = state.problem.title, state.problem.advice or "Everything up to the last checkpoint is kept."
    elif state.gone is not None:
        says = f"The engine ended unexpectedly (code {state.gone.code})."
        detail = "It is being started again from the last checkpoint."
    else:
        says, detail = "Something went wrong.", "Everything up to the last checkpoint is kept."
    return Sentence(word="Problem", says=says, detail=detail, tone="bad", sign="warn", action="copy_report")


def _preparing(state: State) -> Sentence:
    if state.downloading is not None:
        return _downloading(state.downloading)
    if state.preparing is None:
        return Sentence(
            word="Preparing", says="Starting the engine.", detail="This takes a few seconds.", tone="plain", sign="save"
        )
    part = state.preparing
    detail = f"Step {part.done + 1} of {part.parts}. Contribution starts by itself."
    return Sentence(word="Preparing", says=f"{part.part}.", detail=detail, tone="plain", sign="save")


def _downloading(event: e.Downloading) -> Sentence:
    left = "" if event.seconds_left is None else f", {_span(event.seconds_left)}"
    says = f"Downloading the model: {event.done / 1e6:.0f} of {event.total / 1e6:.0f} MB{left}."
    detail = "Resumes if interrupted. Contribution starts by itself."
    return Sentence(word="Preparing", says=says, detail=detail, tone="plain", sign="save", action="pause")


def _span(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def _contributing(state: State) -> Sentence:
    swarm = state.ready.swarm if state.ready else "the swarm"
    says = f"Answering questions for {swarm}, round {state.round}."
    doing = DOING[state.stage or STAGES[0]]
    if state.reach == "connecting":
        tried = f"tried {state.seeds_tried} addresses" if state.seeds_tried else "just started"
        return Sentence(
            word="Connecting", says=says, detail=f"Looking for peers ({tried}); your model trains meanwhile.", tone="plain",
            sign="live", action="pause",
        )  # fmt: skip
    if state.reach == "alone" or (state.reach == "connected" and not state.members):
        who = "No one else is here." if state.reach == "alone" else "You are connected, but nobody has shared anything yet."
        detail = f"{who} You are training on your own; peers join automatically."
        return Sentence(word="Alone", says=says, detail=detail, tone="plain", sign="you", action="pause")
    if state.reach == "solo":
        detail = f"Your model is {doing}, on this computer only. It stops when you pause."
        return Sentence(word="Contributing", says=says, detail=detail, tone="accent", sign="on", action="pause")
    peers = "1 peer" if len(state.members) == 1 else f"{len(state.members)} peers"
    detail = f"Your model is {doing}, with {peers}. It stops when you pause."
    return Sentence(word="Contributing", says=says, detail=detail, tone="accent", sign="on", action="pause")
