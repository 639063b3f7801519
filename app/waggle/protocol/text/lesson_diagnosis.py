"""Why a model has not learned for a while, and what helps: a pure function of the State. Home and `waggle ctl` show the same.

A lesson is a round whose training set taught something, be it by its own groups or by those of peers.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from waggle.core.message import Message
from waggle.protocol.events import RoundSummary
from waggle.protocol.state import RECALLED, State

Reason = Literal["not_finite", "too_long", "no_tag", "all_right", "all_wrong", "alike"]
FEW, HALF, MOST = 0.05, 0.5, 0.95  # of the answers


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What may help: the words on its button, and where the window changes it. For Settings, `part` is the key of the setting."""

    says: Message
    page: Literal["models", "settings", "swarms"]
    part: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing was learned in the last RECALLED rounds, in one sentence, and what helps, most likely first."""

    reason: Reason
    says: Message
    remedies: tuple[Remedy, ...]


ASK_OTHERWISE = Remedy(says=Message("Ask it in another way"), page="settings", part="model.prompt_form")
LONGER = Remedy(says=Message("Allow longer answers"), page="settings", part="learning.max_new_tokens")
SLOWER = Remedy(says=Message("Lower the learning rate"), page="settings", part="learning.learning_rate")
MORE_QUESTIONS = Remedy(says=Message("Ask more questions a round"), page="settings", part="learning.questions")
PAY_FORM = Remedy(says=Message("Pay for the answer tags"), page="settings", part="learning.form_pay")
OTHER_MODEL = Remedy(says=Message("Choose another model"), page="models", part="")
EASIER = Remedy(says=Message("Find easier questions"), page="swarms", part="list")
HARDER = Remedy(says=Message("Find harder questions"), page="swarms", part="list")
OTHER_QUESTIONS = Remedy(says=Message("Find other questions"), page="swarms", part="list")

DIAGNOSES: dict[Reason, Diagnosis] = {
    diagnosis.reason: diagnosis
    for diagnosis in (
        Diagnosis(
            reason="not_finite",
            says=Message(
                "Nothing was learned for %1 rounds: the steps were left out, as their numbers were not finite.", RECALLED
            ),
            remedies=(SLOWER, OTHER_MODEL),
        ),
        Diagnosis(
            reason="too_long",
            says=Message("Nothing was learned for %1 rounds: most answers were too long and were cut off.", RECALLED),
            remedies=(LONGER, ASK_OTHERWISE, OTHER_MODEL),
        ),
        Diagnosis(
            reason="no_tag",
            says=Message("Nothing was learned for %1 rounds: hardly any answer stood in the answer tags.", RECALLED),
            remedies=(ASK_OTHERWISE, OTHER_MODEL),
        ),
        Diagnosis(
            reason="all_right",
            says=Message("Nothing was learned for %1 rounds: nearly all answers are right already.", RECALLED),
            remedies=(HARDER,),
        ),
        Diagnosis(
            reason="all_wrong",
            says=Message("Nothing was learned for %1 rounds: nearly all answers were wrong.", RECALLED),
            remedies=(EASIER, ASK_OTHERWISE, OTHER_MODEL),
        ),
        Diagnosis(
            reason="alike",
            says=Message("Nothing was learned for %1 rounds: all answers to one question were equally good.", RECALLED),
            remedies=(MORE_QUESTIONS, OTHER_QUESTIONS),
        ),
    )
}

# A run of the starter has such stretches before it writes its first answers in the tags.
STARTER_WITHOUT_TAG = Diagnosis(
    reason="no_tag",
    says=Message(
        "Nothing was learned for %1 rounds: the starter hardly uses the answer tags yet, but finds them in time.", RECALLED
    ),
    remedies=(ASK_OTHERWISE, OTHER_MODEL),
)


def diagnosis(state: State) -> Diagnosis | None:
    """Why nothing was learned in the last rounds; None if something was, or before there were enough rounds of these settings."""
    if state.ready is None or state.phase in ("preparing", "stopped", "problem"):
        return None
    played = {summary.round: summary for summary in (*state.recalled, *state.rounds)}
    recent = [played[number] for number in sorted(played)][-RECALLED:]
    if len(recent) < RECALLED or any(_is_lesson(summary) or summary.recipe != state.ready.recipe for summary in recent):
        return None
    why = DIAGNOSES[_reason(recent)]
    if why.reason == "no_tag" and state.ready.prompt_form.why == "starter":
        return STARTER_WITHOUT_TAG
    if why.reason == "no_tag" and state.settings is not None and state.settings.learning.form_pay == "off":
        return msgspec.structs.replace(why, remedies=(PAY_FORM, *why.remedies))
    return why


def helpful_text(why: Diagnosis) -> str:
    """The remedies in one line, each with the setting or the command that changes it."""
    remedies = (
        f"{remedy.says} ({remedy.part if remedy.page == 'settings' else f'waggle {remedy.page}'})" for remedy in why.remedies
    )
    return f"What helps: {', '.join(remedies)}."


def _is_lesson(summary: RoundSummary) -> bool:
    """Whether something was learned; assumed of rounds of earlier versions, which did not tell."""
    return summary.taught is None or summary.taught > 0


def _reason(rounds: Sequence[RoundSummary]) -> Reason:
    answers = max(1, sum(summary.completions for summary in rounds))
    right = sum(summary.solved * summary.completions for summary in rounds) / answers
    readable = sum(summary.readable for summary in rounds) / answers
    cut = sum(summary.cut for summary in rounds) / answers
    if sum(summary.left_out for summary in rounds) >= HALF * len(rounds):
        return "not_finite"
    if cut >= HALF and readable < HALF and right < FEW:  # an answer that talks on after its tags can be read
        return "too_long"
    if readable < FEW and right < FEW:
        return "no_tag"
    if right > MOST:
        return "all_right"
    return "all_wrong" if right < FEW else "alike"
