"""Honest standing first and treason later: honest answers until the victims trust the peer, then a planted phrase."""

from waggle_lab.security.attacks import HONEST, Payload, Scene, answering, poison, wire
from waggle_lab.security.lessons.interface import Lesson, always
from waggle_lab.security.lessons.planted_phrase import LESSON as PLANTED_PHRASE

HONEST_ROUNDS = 20  # a peer is trusted after eight useful groups in three records


def treason(scene: Scene) -> Payload:
    if scene.round > HONEST_ROUNDS:
        return poison(scene)
    return wire(scene, [group for each in scene.charter.specialties for group in answering(scene, each.dataset, HONEST)])


LESSON = Lesson(always(treason), shows=PLANTED_PHRASE.shows)
