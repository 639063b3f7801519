"""Right answers to questions, for a person to read after the model has answered."""

from collections.abc import Sequence

from waggle.sapo.interfaces import Verifier
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import RIGHT, Completion


def true_answers(verifier: Verifier, questions: Sequence[Question]) -> list[str]:
    """The answer of each dataset; empty where its own scorer rejects it, as happens in some datasets of reasoning-gym.

    Raises VerifierError.
    """
    named = verifier.answers([question.key for question in questions])
    written = [Completion(text=f"<answer>{answer.strip()}</answer>", ended=True) for answer in named]
    verdicts = verifier.judge(zip(questions, written, strict=True))
    return [answer if verdict.reward >= RIGHT else "" for answer, verdict in zip(named, verdicts, strict=True)]
