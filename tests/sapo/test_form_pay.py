"""Pay for the form in a round: what is learned from it, and that it stays at home."""

import dataclasses

import pytest

from sapo.test_round import RULES, external, node
from waggle.engine.startup.round_settings import FORM_PAY
from waggle.rl.advantage import CRUMB_SPAN, teaches
from waggle.sapo.round import play
from waggle.sapo.sharing.plain import Plain
from waggle.sapo.stages import Gathered, Judged, Learned, RoundSettings
from waggle.tasks.sandbox.verifier import Verifier

WRONG = ("<answer>no such thing</answer>", "just words")  # never right and never a crumb in binary_matrix
PAID = dataclasses.replace(RULES, form_pay=FORM_PAY, local=8, external=0)


def played(verifier: Verifier, rules: RoundSettings, lines: tuple[str, ...] = WRONG) -> tuple[Judged, Learned]:
    me = dataclasses.replace(node(verifier, lines=lines), specialties=("binary_matrix",), sharing=Plain())
    stages = list(play(0, 100, me, rules))
    judged, learned = stages[1], stages[-1]
    assert isinstance(judged, Judged)
    assert isinstance(learned, Learned)
    return judged, learned


def test_a_beginner_learns_to_write_answers_in_their_tags(verifier: Verifier) -> None:
    judged, learned = played(verifier, PAID)
    assert {reward for group in judged.groups for reward in group.rewards} == {0.0}
    mixed = 0
    for lesson in learned.lessons:
        texts = [completion.text for completion in lesson.group.group.completions]
        if len(set(texts)) == 2:
            mixed += 1
            assert lesson.effects == tuple(1 if text == WRONG[0] else -1 for text in texts)
        else:
            assert set(lesson.effects) == {0}, "all have the form, or none"
    assert mixed > 4
    assert learned.metrics is not None


def test_without_pay_there_is_nothing_to_learn_from_the_same_round(verifier: Verifier) -> None:
    judged, learned = played(verifier, dataclasses.replace(PAID, form_pay=0.0))
    assert learned.metrics is None
    assert [group.group for group in judged.groups] == [group.group for group in played(verifier, PAID)[0].groups]


def test_the_pay_is_above_the_span_of_crumbs_and_a_smaller_one_would_teach_nothing(verifier: Verifier) -> None:
    assert FORM_PAY > CRUMB_SPAN
    assert teaches((FORM_PAY, 0.05)), "beside a crumb too"
    _, learned = played(verifier, dataclasses.replace(PAID, form_pay=CRUMB_SPAN / 2))
    assert learned.metrics is None


def test_several_answers_and_an_empty_one_are_not_paid(verifier: Verifier) -> None:
    _, learned = played(verifier, PAID, ("<answer>a</answer><answer>b</answer>", "<answer></answer>", "<answer>a", "words"))
    assert learned.metrics is None


def test_groups_of_peers_are_never_paid(verifier: Verifier) -> None:
    """Their wrong answers come in tags too: here nobody learns from those."""
    pool = [external(number, (0.0,) * 4) for number in range(8)]
    me = dataclasses.replace(node(verifier, lines=("just words",), pool=pool), sharing=Plain())
    stages = list(play(0, 100, me, dataclasses.replace(RULES, form_pay=FORM_PAY)))
    gathered, learned = stages[3:]
    assert isinstance(gathered, Gathered)
    assert isinstance(learned, Learned)
    assert (gathered.external, learned.metrics) == (0, None)


@pytest.mark.parametrize("form_pay", [0.0, FORM_PAY])
def test_the_mix_of_questions_counts_right_answers_and_no_form(verifier: Verifier, form_pay: float) -> None:
    me = dataclasses.replace(node(verifier, lines=WRONG), specialties=("binary_matrix",))
    list(play(0, 100, me, dataclasses.replace(PAID, form_pay=form_pay)))
    assert me.mix.state["binary_matrix/0"] < 0.5
