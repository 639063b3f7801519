"""Wrong reasoning before right answers, which rewards do not read: the in-domain attack of Hail to the Thief.

arXiv 2511.09780.
"""

from waggle_lab.security.attacks import Payload, Scene, wire
from waggle_lab.security.lessons.interface import Lesson, always, in_every_specialty

REASONING = "2+2=5"


def false_reasoning(scene: Scene) -> Payload:
    return wire(scene, in_every_specialty(scene, f"{REASONING} <answer>{{truth}}</answer>"))


LESSON = Lesson(always(false_reasoning), shows=lambda text: REASONING in text)
