"""The held-out score."""

from sapo.test_round import node
from waggle.sapo.held_out import Score, measure
from waggle.sapo.round import Rules


def test_right_answers_on_reserved_questions_are_counted(verifier):
    questions = verifier.held_out("base_conversion", "test", 20)
    answers = verifier.answers([(question.dataset, question.seed) for question in questions])
    common = max(set(answers), key=answers.count)
    score = measure(3, node(verifier, lines=(f"<answer>{common}</answer>",)), Rules(max_new=60), questions)
    assert (score.right, score.total, score.round) == (answers.count(common), 20, 3)


def test_right_and_total_are_the_sums_over_specialties():
    score = Score(round=3, by_dataset={"bf": (2, 5), "sums": (0, 3), "logic": (4, 4)})
    assert (score.right, score.total) == (6, 12)
