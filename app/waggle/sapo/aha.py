"""The "aha": a node's first right answer in a specialty, and whose right answers there it had learned from before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from waggle.sapo.round import Judged, Learned
from waggle.tasks.group import RIGHT


@dataclass(frozen=True)
class Aha:
    """`learned_from` is the origin whose success there was trained on last before this; None: nobody's."""

    dataset: str
    round: int
    learned_from: bytes | None


class Ahas:
    """Watches the stages of one node's rounds. `known` names specialties whose first success lies in the past.

    `taught_by` says of each specialty whose right answer was learned from last.
    """

    def __init__(self, known: Iterable[str] = (), taught_by: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._known = set(known)
        self.taught_by = dict(taught_by)

    def judged(self, stage: Judged) -> tuple[Aha, ...]:
        """The first successes of a round."""
        found = []
        for group in stage.groups:
            dataset = group.question.dataset
            if dataset not in self._known and max(group.rewards) >= RIGHT:
                self._known.add(dataset)
                found.append(Aha(dataset, stage.round, self.taught_by.get(dataset)))
        return tuple(found)

    def learned(self, stage: Learned, own: bytes) -> None:
        """Remember whose right answers were made likelier; `own` is this node's origin."""
        for lesson in stage.lessons:
            origin = lesson.group.group.origin
            helped = any(
                effect > 0 and reward >= RIGHT for effect, reward in zip(lesson.effects, lesson.group.rewards, strict=True)
            )
            if origin != own and helped:
                self.taught_by[lesson.group.question.dataset] = origin
