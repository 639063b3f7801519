"""Applies the bounds to the groups that a round is about to learn: strange text is left out, and nobody pulls too strongly."""

from collections.abc import Sequence

import numpy as np

from waggle.rl.batch import Floats
from waggle.sapo import bounds
from waggle.sapo.lesson import Weighed
from waggle.sapo.seams import Policy, Tokens


def familiar(
    weighed: Sequence[Weighed], said: Sequence[Floats], policy: Policy, tokens: Tokens, temperature: float
) -> list[Weighed]:
    """The same without those completions of peers whose text is stranger than what is usual (see bounds.py).

    `said` holds the log-probs (N,) of what the policy itself wrote in this round. Only what would be made likelier is looked
    at: one forward pass over it.
    """
    rewarded = {i: [int(k) for k in np.flatnonzero(one.means > 0)] for i, one in enumerate(weighed) if one.draft.external}
    suspects = {i: positions for i, positions in rewarded.items() if positions}
    if not suspects:
        return list(weighed)
    logps = policy.logprobs([weighed[i].draft.written.only(positions) for i, positions in suspects.items()], temperature)
    strange = {
        i: _strangeness(weighed[i], positions, logp, tokens) for (i, positions), logp in zip(suspects.items(), logps, strict=True)
    }
    shown: dict[bounds.Party, list[float]] = {}
    for i, found in strange.items():
        shown.setdefault(bounds.party(weighed[i].draft.group), []).extend(found)
    limits = bounds.limits([bounds.strangeness(logp) for logp in said], shown)
    kept = list(weighed)
    for i, found in strange.items():
        factors = np.ones(len(weighed[i].draft.lengths), np.float32)
        factors[suspects[i]] = np.array(found) <= limits[bounds.party(weighed[i].draft.group)]
        kept[i] = weighed[i].scaled(factors)
    return kept


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


def _strangeness(weighed: Weighed, positions: Sequence[int], logp: Floats, tokens: Tokens) -> list[float]:
    """Of the completions at these positions; `logp` (N,) runs over their tokens in order."""
    draft = weighed.draft
    each = np.split(logp, np.cumsum([draft.lengths[position] for position in positions])[:-1])
    completions, verdicts = draft.group.group.completions, draft.group.verdicts
    return [
        bounds.strangeness(one, bounds.outside(tokens, completions[position].text, verdicts[position], len(one)))
        for one, position in zip(each, positions, strict=True)
    ]
