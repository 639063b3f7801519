"""Together: threads that play one round each meet at every call they have in common, so that one batch serves them all.

So N nodes run the very round that an engine runs, and the laboratory decides only who computes when. Answers do not depend on
which thread came first.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from waggle.errors import LabError


class Kind(NamedTuple):
    """What can be answered in one batch: `place` says how early in a round it is asked for."""

    place: int
    name: str
    detail: tuple[Any, ...] = ()


Serve = Callable[[Kind, Mapping[int, Any]], Mapping[int, Any]]


class Together:
    """`serve(kind, {member: request})` answers every member that asks for the same kind of thing at the same time.

    Who asks for something early in a round is served before those who are further on, so that they can catch up.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._changed = threading.Condition()
        self._playing = 0
        self._asked: dict[int, tuple[Kind, Any]] = {}
        self._answers: dict[int, Any] = {}
        self._failed: BaseException | None = None

    def play(self, work: Mapping[int, Callable[[], Any]]) -> dict[int, Any]:
        """Run one callable for each member, each in a thread of its own; raises what any of them raised."""
        self._playing, self._failed = len(work), None
        self._asked, self._answers = {}, {}
        results: dict[int, Any] = {}
        threads = [threading.Thread(target=self._one, args=(member, each, results)) for member, each in work.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failed is not None:
            raise self._failed
        return results

    def ask(self, member: int, kind: Kind, request: Any) -> Any:
        """Wait until everybody who still plays asks for something, then get the answer."""
        with self._changed:
            self._asked[member] = (kind, request)
            self._answer_if_all_asked()
            self._changed.wait_for(lambda: member in self._answers or self._failed is not None)
            if self._failed is not None:
                raise LabError("Another node of this swarm failed.") from self._failed
            return self._answers.pop(member)

    def _one(self, member: int, work: Callable[[], Any], results: dict[int, Any]) -> None:
        try:
            results[member] = work()
        except BaseException as error:  # noqa: BLE001 - handed to whoever called play
            with self._changed:
                self._failed = self._failed or error
        finally:
            with self._changed:
                self._playing -= 1
                self._answer_if_all_asked()
                self._changed.notify_all()

    def _answer_if_all_asked(self) -> None:
        if not self._asked or len(self._asked) < self._playing or self._failed is not None:
            return
        kind = min((kind for kind, _ in self._asked.values()), key=lambda one: (one.place, repr(one)))
        requests = {member: self._asked.pop(member)[1] for member in sorted(self._asked) if self._asked[member][0] == kind}
        try:
            self._answers.update(self._serve(kind, requests))
        except BaseException as error:  # noqa: BLE001 - every thread that waits must hear of it
            self._failed = error
        self._changed.notify_all()
