"""A lesson: one group of a training set as token ids with advantages, ready for the policy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waggle.rl.advantage import gate_external, group_advantages
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, token_weight
from waggle.sapo.seams import Tokens
from waggle.tasks.charter import Charter
from waggle.tasks.group import JudgedGroup


@dataclass(frozen=True)
class Lesson:
    """`effects` says per completion of the group what learning does: 1 likelier, -1 less likely, 0 left alone."""

    group: JudgedGroup
    effects: tuple[int, ...]
    pull: float  # mean of |advantage| over the completions: how strongly this group pulls, whatever its size
    batch: GroupBatch | None  # None where nothing pulls: skipping is exact


def local_lesson(charter: Charter, tokens: Tokens, group: JudgedGroup, sampled: Sequence[Sampled], groups: int) -> Lesson:
    """A group of one's own, with the very tokens that were sampled."""
    return _lesson(charter, tokens, group, [one.tokens for one in sampled], group_advantages(group.rewards), groups)


def external_lesson(charter: Charter, tokens: Tokens, group: JudgedGroup, groups: int, longest: int) -> Lesson:
    """A peer's group, re-encoded with one's own tokens. A completion longer than `longest` tokens is dropped, never cut;
    it keeps its place in the denominator. One that ended by itself gets one's own stop token; a cut one does not."""
    encoded = [
        np.append(tokens.encode(one.text), np.int32(tokens.stop)) if one.ended else tokens.encode(one.text)
        for one in group.group.completions
    ]
    advantages = gate_external(group_advantages(group.rewards))
    fits = np.array([0 < len(ids) <= longest for ids in encoded])
    return _lesson(charter, tokens, group, encoded, np.where(fits, advantages, np.float32(0.0)), groups)


def _lesson(
    charter: Charter, tokens: Tokens, group: JudgedGroup, completions: Sequence[Ids], advantages: Floats, groups: int
) -> Lesson:
    pulls = [int(i) for i in np.flatnonzero(advantages)]
    effects = tuple(int(np.sign(advantage)) for advantage in advantages)
    batch = None
    if pulls:
        weights = token_weight(groups, [len(ids) for ids in completions])
        batch = GroupBatch(
            prompt=tokens.encode(charter.prompt_for(group.question.text)),
            completions=tuple(completions[i].astype(np.int32) for i in pulls),
            advantage=advantages[pulls],
            weight=weights[pulls],
        )
    return Lesson(group=group, effects=effects, pull=float(np.abs(advantages).mean()), batch=batch)
