"""Applies the bounds to the groups that a round is about to learn: strange text is left out, and nobody pulls too strongly.

What is left out gives its place to what others sent.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats
from waggle.sapo import bounds
from waggle.sapo.interfaces import Policy, Tokenizer
from waggle.sapo.sharing.interface import Offer, TrainingSet
from waggle.sapo.training_groups import Weighed
from waggle.tasks.rollout_group import JudgedGroup


def familiar(
    weighed: Sequence[Weighed], said: Sequence[Floats], policy: Policy, tokenizer: Tokenizer, temperature: float
) -> list[Weighed]:
    """The same without those completions of peers whose text is stranger than what is usual (see bounds.py).

    `said` holds the log-probs (N,) of what the policy itself wrote in this round. Only what would be made likelier is looked
    at, and the policy is only asked about what has anything beside a right answer: mostly nothing.
    """
    free = {
        (i, k): _outside(one, k, tokenizer)
        for i, one in enumerate(weighed)
        if one.draft.external
        for k in map(int, np.flatnonzero(one.means > 0))
    }
    asked: dict[int, list[int]] = {}
    for (i, k), tokens_outside in free.items():
        if tokens_outside.any():
            asked.setdefault(i, []).append(k)
    if not asked:
        return list(weighed)
    strange = dict.fromkeys(free, 0.0)
    texts = [weighed[i].draft.written.only(positions) for i, positions in asked.items()]
    for (i, positions), text, logp in zip(asked.items(), texts, policy.logprobs(texts, temperature), strict=True):
        parts = np.split(logp, np.cumsum([len(ids) for ids in text.completions])[:-1])
        strange.update({(i, k): bounds.strangeness(part, free[i, k]) for k, part in zip(positions, parts, strict=True)})
    return _without_strange(weighed, strange, [bounds.strangeness(logp) for logp in said])


def refilled(offer: Offer, training: TrainingSet, refused: Collection[JudgedGroup]) -> TrainingSet:
    """The same with others in the places of the external groups that were `refused`: drawn uniformly, then own ones that teach.

    None of the parties whose groups were refused: whoever sent what teaches nothing gets no further place in this round.
    """
    gone, barren = {group.key for group in refused}, {bounds.party(group) for group in refused}
    chosen = {group.key for group in training.external}
    kept = tuple(group for group in training.external if group.key not in gone)
    free = len(training.external) - len(kept)
    spare = [group for group in offer.useful(offer.pool) if group.key not in chosen and bounds.party(group) not in barren]
    fresh = tuple(spare[i] for i in offer.noise.permutation(len(spare))[:free])
    rest = [i for i in offer.teaching if i not in training.local]
    own = [rest[i] for i in offer.noise.permutation(len(rest))[: free - len(fresh)]]
    return TrainingSet(local=tuple(sorted((*training.local, *own))), external=(*kept, *fresh))


def shared_out(weighed: Sequence[Weighed], share: float) -> list[Weighed]:
    """The same with each party's pull brought down to its share of the sum."""
    own = sum(one.pull for one in weighed if not one.draft.external)
    pulls: dict[bounds.Party, float] = {}
    for one in weighed:
        if one.draft.external:
            whose = bounds.party(one.draft.group)
            pulls[whose] = pulls.get(whose, 0.0) + one.pull
    scales = bounds.scales(own, pulls, share)
    return [
        one.scaled(np.full(len(one.draft.lengths), scales[bounds.party(one.draft.group)])) if one.draft.external else one
        for one in weighed
    ]


def _outside(weighed: Weighed, k: int, tokenizer: Tokenizer) -> NDArray[np.bool_]:
    group = weighed.draft.group
    return bounds.outside(tokenizer, group.group.completions[k].text, group.verdicts[k], weighed.draft.lengths[k])


def _without_strange(weighed: Sequence[Weighed], strange: Mapping[tuple[int, int], float], own: Sequence[float]) -> list[Weighed]:
    """`strange` holds how strange completion k of group i is."""
    shown: dict[bounds.Party, list[float]] = {}
    for (i, _), found in strange.items():
        shown.setdefault(bounds.party(weighed[i].draft.group), []).append(found)
    limits = bounds.limits(own, shown)
    factors = {i: np.ones(len(weighed[i].draft.lengths), np.float32) for i, _ in strange}
    for (i, k), found in strange.items():
        factors[i][k] = found <= limits[bounds.party(weighed[i].draft.group)]
    return [one.scaled(factors[i]) if i in factors else one for i, one in enumerate(weighed)]
