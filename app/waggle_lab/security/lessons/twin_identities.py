"""Two nodes with one key that say different things about the same questions: a planted phrase, and false reasoning."""

from waggle.sapo.interfaces import Swarm
from waggle_lab.security.attacks import PHRASE, Attack, poison
from waggle_lab.security.lessons.false_reasoning import REASONING, false_reasoning
from waggle_lab.security.lessons.interface import Lesson


def twin(_swarm: Swarm, number: int) -> Attack:
    return (poison, false_reasoning)[number % 2]


LESSON = Lesson(twin, shows=lambda text: PHRASE.strip() in text or REASONING in text, one_key=True)
