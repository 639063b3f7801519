"""First successes: a node's first right answer in a specialty, and the peer whose right answers there it learned from before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from waggle.sapo.stages import Judged, Learned
from waggle.tasks.rollout_group import RIGHT


@dataclass(frozen=True)
class FirstSuccess:
    """A first right answer. `learned_from` is the origin whose right answer was trained on last before it; None: no peer's."""

    dataset: str
    round: int
    learned_from: bytes | None


class FirstSuccessTracker:
    """Finds first successes in the stages of one node's rounds.

    `known` names the specialties that had their first success before; `taught_by` maps any other to the origin whose right
    answer was trained on last.
    """

    def __init__(self, known: Iterable[str] = (), taught_by: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._known = set(known)
        self._taught_by = dict(taught_by)

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self._known)

    @property
    def taught_by(self) -> Mapping[str, bytes]:
        return MappingProxyType(self._taught_by)

    def find(self, stage: Judged) -> tuple[FirstSuccess, ...]:
        """Return the first successes of a round."""
        successes = []
        for group in stage.groups:
            dataset = group.question.dataset
            if dataset not in self._known and max(group.rewards) >= RIGHT:
                self._known.add(dataset)
                successes.append(FirstSuccess(dataset, stage.round, self._taught_by.get(dataset)))
        return tuple(successes)

    def record_lessons(self, stage: Learned, own: bytes) -> dict[str, bytes]:
        """Record whose right answers became likelier, and return the new entries: dataset -> origin.

        `own` is this node's origin. A specialty that had its first success is not recorded any more.
        """
        taught = {}
        for lesson in stage.lessons:
            dataset, origin = lesson.group.question.dataset, lesson.group.group.origin
            helped = any(
                effect > 0 and reward >= RIGHT for effect, reward in zip(lesson.effects, lesson.group.rewards, strict=True)
            )
            if helped and origin != own and dataset not in self._known:
                taught[dataset] = origin
        new = {dataset: origin for dataset, origin in taught.items() if self._taught_by.get(dataset) != origin}
        self._taught_by |= new
        return new
