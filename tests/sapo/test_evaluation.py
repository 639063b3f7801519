"""The held-out score."""

import dataclasses

import numpy as np

from sapo.test_round import node
from waggle.rl.random_streams import uniforms
from waggle.sapo.evaluation import AT_ONCE, Score, exam_of, few_of, measure
from waggle.sapo.fakes import FakePolicy
from waggle.sapo.prompt_form import PLAIN
from waggle.sapo.stages import RoundSettings
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import RIGHT, Completion


def test_right_answers_on_reserved_questions_are_counted(verifier):
    questions = verifier.held_out("base_conversion", "test", 20)
    answers = verifier.answers([question.key for question in questions])
    common = max(set(answers), key=answers.count)
    score = measure(3, node(verifier, lines=(f"<answer>{common}</answer>",)), RoundSettings(max_new=60), questions)
    assert (score.right, score.total, score.round) == (answers.count(common), 20, 3)


def test_questions_longer_than_the_policy_can_read_are_left_out(verifier):
    questions = sorted(verifier.held_out("basic_arithmetic", "test", 20), key=lambda question: len(question.text))
    me = node(verifier)
    context = len(PLAIN.text(questions[9].text)) + 60
    readable = sum(len(PLAIN.text(question.text)) + 60 <= context for question in questions)
    assert 10 <= readable < 20
    assert measure(0, me, RoundSettings(max_new=60, context=context), questions).total == readable


def test_right_and_total_are_the_sums_over_specialties():
    score = Score(round=3, by_dataset={"bf": (2, 5), "sums": (0, 3), "logic": (4, 4)})
    assert (score.right, score.total) == (6, 12)


def test_no_more_are_asked_at_a_time_than_a_round_has_room_for(verifier):
    policy = Listener(("no idea",))
    questions = verifier.held_out("basic_arithmetic", "test", 10)
    measure(0, dataclasses.replace(node(verifier), policy=policy), RoundSettings(questions=2, group_size=2), questions)
    assert [count for count, *_ in policy.calls] == [4, 4, 2]


class Listener(FakePolicy):
    """Records the calls."""

    def __init__(self, lines) -> None:
        super().__init__(lines)
        self.calls = []

    def sample(self, prompts, uniforms, params):
        self.calls.append((len(prompts), params.temperature, params.max_new))
        return super().sample(prompts, uniforms, params)


def test_many_questions_are_asked_in_parts_each_with_noise_of_its_own(verifier):
    questions = [verifier.held_out(name, "test", 1)[0] for name in ("basic_arithmetic", "binary_matrix")] * 50
    first, other = verifier.answers([question.key for question in questions[:2]])
    lines = (f"<answer>{first}</answer>", f"<answer>{other}</answer>")
    policy = Listener(lines)
    me = dataclasses.replace(node(verifier), policy=policy)
    score = measure(7, me, RoundSettings(max_new=60, temperature=0.5), questions)
    assert policy.calls == [(AT_ONCE, 1.0, 60), (100 - AT_ONCE, 1.0, 60)], "whatever training samples at"

    picks = [int(row[0] * 2) for row in uniforms(me.seed, "held_out", 7, 100, 1, 60)]
    assert score.by_dataset == {
        "basic_arithmetic": (picks[::2].count(0), 50),
        "binary_matrix": (picks[1::2].count(1), 50),
    }


def test_an_exam_is_named_by_its_questions():
    questions = [Question(dataset=dataset, seed=1, text=text) for dataset, text in (("a", "1?"), ("a", "2?"), ("b", "1?"))]
    assert exam_of(questions) == exam_of(tuple(questions))
    assert len({exam_of(questions[:1]), exam_of(questions[:2]), exam_of(questions[1:]), exam_of(questions[2:])}) == 4


def test_a_crumb_for_any_text_is_not_right(verifier):
    questions = verifier.held_out("fraction_simplification", "test", 5)
    (verdict, *_) = verifier.judge([(question, Completion(text="<answer>x</answer>", ended=True)) for question in questions])
    assert 0 < verdict.reward < RIGHT
    assert measure(0, node(verifier, lines=("<answer>x</answer>",)), RoundSettings(max_new=40), questions).right == 0


def test_a_few_questions_are_the_first_of_each_specialty():
    questions = [Question(dataset=dataset, seed=seed, text="?") for dataset in ("a", "b", "c") for seed in range(5)]
    few = few_of(questions, 7)
    assert [(question.dataset, question.seed) for question in few] == [(name, seed) for name in "abc" for seed in (0, 1)]
    assert few_of(questions, 1) == tuple(questions[::5]), "no specialty is left out"
    assert few_of(questions, 99) == tuple(questions)
    assert few_of([], 7) == ()


class Stepwise(FakePolicy):
    """Lets one more completion end with every step."""

    def sample(self, prompts, uniforms, params):
        for count in range(1, len(prompts) + 1):
            params.watch(np.empty(0), np.zeros(len(prompts)), np.arange(len(prompts)) < count)
        return super().sample(prompts, uniforms, params)


def test_a_test_tells_how_many_questions_are_answered_so_far(verifier):
    counts, questions = [], verifier.held_out("basic_arithmetic", "test", 6)
    me = dataclasses.replace(node(verifier), policy=Stepwise(("no idea",)))
    measure(0, me, RoundSettings(questions=2, group_size=2), questions, report=lambda *count: counts.append(count))
    assert counts == [(count, 6) for count in range(1, 7)]
