"""The held-out score."""

from sapo.test_round import node
from waggle.sapo.held_out import measure
from waggle.sapo.round import Rules


def test_right_answers_on_reserved_questions_are_counted(verifier):
    questions = verifier.held_out("base_conversion", "test", 20)
    answers = verifier.answers([(question.dataset, question.seed) for question in questions])
    common = max(set(answers), key=answers.count)
    score = measure(3, node(verifier, lines=(f"<answer>{common}</answer>",)), Rules(max_new=60), questions)
    assert (score.right, score.total, score.round) == (answers.count(common), 20, 3)
