"""What a lesson is: records that a hostile node sends, and how to see that a victim learned them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from waggle.sapo.fakes import FakeSwarm
from waggle.sapo.interfaces import Swarm
from waggle.tasks.rollout_group import TAGS
from waggle_lab.security.attacks import Attack, Scene, answering

WRONG = "<answer>no</answer>"
HALF = 4  # right completions of a group, and wrong ones: the right ones get the largest advantage that a group can give


@dataclass(frozen=True)
class Lesson:
    """`make` gives the attack of one hostile node, which may read the groups of others in its swarm; it has a number among them.

    `shows` says whether a victim's own completion shows what the lesson teaches; asked in one `dataset` only, if it is given.
    `one_key`: all hostile nodes have the same key.
    """

    make: Callable[[Swarm, int], Attack]
    shows: Callable[[str], bool]
    dataset: str = ""
    one_key: bool = False


def always(attack: Attack) -> Callable[[Swarm, int], Attack]:
    """The same attack for each hostile node, which reads nothing."""
    return lambda _swarm, _number: attack


def apart(lesson: Lesson, number: int) -> Attack:
    """The attack of a lesson for a node that reads nothing of others."""
    return lesson.make(FakeSwarm(), number)


def in_every_specialty(scene: Scene, text: str) -> list[Any]:
    """Raw groups, one for each specialty: half of the completions are this text (see `answering`), half are wrong."""
    texts = [text] * HALF + [WRONG] * HALF
    return [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)]


def beside(text: str) -> str:
    """What a completion says beside its answer; nothing if it has no answer in tags."""
    head, opening, rest = text.partition(TAGS[0])
    _answer, closing, tail = rest.partition(TAGS[1])
    return head + tail if opening and closing else ""
