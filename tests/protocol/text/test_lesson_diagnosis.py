"""Test why nothing was learned, and what helps, by a table of runs."""

import pytest
from msgspec.structs import replace

from protocol.text.test_status_text import READY
from waggle.core.settings import LearningSettings, Settings
from waggle.protocol import events
from waggle.protocol.state import RECALLED, State, apply
from waggle.protocol.text.lesson_diagnosis import DIAGNOSES, diagnosis, helpful_text

ANSWERS = 64  # a round
RECIPE = "a recipe"


def round_of(number: int, **figures: object) -> events.RoundSummary:
    """A round without a lesson: answers that could be read, half of them right."""
    usual: dict[str, object] = {"reward": 0.5, "solved": 0.5, "readable": 60, "taught": 0, "recipe": RECIPE}
    return events.RoundSummary(round=number, at=1.0, seconds=1.0, completions=ANSWERS, **(usual | figures))


def state_after(rounds: int = RECALLED, before: tuple[events.RoundSummary, ...] = (), **figures: object) -> State:
    """The State after so many equal rounds, folded from the events of an engine; `before` it started, others were played."""
    trial = events.PromptFormChoice(form="chat", why="trial")
    state = apply(State(), replace(READY, recipe=RECIPE, round=len(before), prompt_form=trial))
    state = apply(state, events.PhaseChanged(phase="contributing", round=len(before)))
    state = apply(state, events.RoundsRecalled(rounds=before))
    for number in range(len(before), len(before) + rounds):
        state = apply(state, events.RoundCompleted(summary=round_of(number, **figures)))
    return state


TABLE = [
    ({"solved": 0.0, "readable": 0}, "no_tag"),
    ({"solved": 0.0, "readable": 2, "cut": 20}, "no_tag"),
    ({"solved": 0.0, "readable": 0, "cut": 60}, "too_long"),
    ({"solved": 0.0, "readable": 30, "cut": 34}, "too_long"),
    ({"solved": 0.0, "readable": 60}, "all_wrong"),
    ({"solved": 0.0, "readable": 60, "cut": 64}, "all_wrong"),
    ({"solved": 0.03, "readable": 60, "cut": 3}, "all_wrong"),
    ({"solved": 1.0, "readable": 64}, "all_right"),
    ({"solved": 0.97, "readable": 63, "cut": 64}, "all_right"),
    ({}, "alike"),
    ({"cut": 64}, "alike"),
    ({"solved": 0.0, "readable": 0, "left_out": True}, "not_finite"),
    ({"left_out": True}, "not_finite"),
]


@pytest.mark.parametrize(("figures", "reason"), TABLE)
def test_each_run_without_a_lesson_has_its_reason_and_something_that_helps(figures, reason):
    why = diagnosis(state_after(**figures))
    assert why is not None
    assert why.reason == reason
    assert why.remedies
    assert why.says.startswith("Nothing was learned for 20 rounds: ")


def test_the_table_has_every_reason():
    assert {reason for _, reason in TABLE} == DIAGNOSES.keys()


def test_one_lesson_of_anybody_is_enough():
    """`taught` counts groups of peers, too: a swarm may teach a model whose own answers are all wrong."""
    state = state_after(RECALLED - 1, solved=0.0, readable=0)
    assert diagnosis(state) is None, "not for so long yet"
    taught = apply(state, events.RoundCompleted(summary=round_of(RECALLED - 1, solved=0.0, readable=0, external=4, taught=1)))
    for number in range(RECALLED, 2 * RECALLED - 1):
        assert diagnosis(taught) is None
        taught = apply(taught, events.RoundCompleted(summary=round_of(number)))
    assert diagnosis(taught) is None
    assert diagnosis(apply(taught, events.RoundCompleted(summary=round_of(2 * RECALLED)))) is not None


def test_a_step_that_was_left_out_is_no_lesson_though_groups_would_have_taught():
    assert diagnosis(state_after(taught=0, left_out=True)).reason == "not_finite"


def test_rounds_before_a_restart_count_as_long_as_nothing_else_was_chosen():
    before = tuple(round_of(number, solved=0.0) for number in range(RECALLED - 5))
    assert diagnosis(state_after(5, before, solved=0.0)).reason == "all_wrong"
    assert diagnosis(state_after(4, before, solved=0.0)) is None
    other = tuple(replace(summary, recipe="another form") for summary in before)
    assert diagnosis(state_after(5, other, solved=0.0)) is None, "what was chosen may help: let it show"


def test_what_was_chosen_takes_the_sentence_away_at_once():
    state = state_after(solved=0.0)
    assert diagnosis(state) is not None
    assert diagnosis(apply(state, replace(READY, recipe="another form", round=RECALLED))) is None


def test_of_rounds_of_earlier_versions_nothing_is_said():
    assert diagnosis(state_after(taught=None)) is None


@pytest.mark.parametrize("phase", ["preparing", "stopped", "problem"])
def test_nothing_is_said_while_nothing_is_trained(phase):
    assert diagnosis(replace(state_after(), phase=phase)) is None


def test_a_pause_does_not_hide_it():
    assert diagnosis(replace(state_after(), phase="paused")) is not None


def test_who_does_not_pay_for_tags_is_offered_to():
    state = replace(state_after(solved=0.0, readable=0), settings=Settings(learning=LearningSettings(form_pay="off")))
    assert diagnosis(state).remedies[0].part == "learning.form_pay"


def test_of_the_starter_that_is_said_to_pass():
    state = state_after(solved=0.0, readable=0)
    starter = replace(state, ready=replace(state.ready, prompt_form=events.PromptFormChoice()))
    assert "the starter hardly uses the answer tags yet" in diagnosis(starter).says
    assert diagnosis(starter).remedies


def test_in_a_terminal_each_remedy_names_its_setting_or_its_command():
    why = diagnosis(state_after(solved=0.0, readable=0, cut=64))
    assert helpful_text(why) == (
        "What helps: Allow longer answers (learning.max_new_tokens), Ask it in another way (model.prompt_form), "
        "Choose another model (waggle models)."
    )
