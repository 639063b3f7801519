"""Bounds on what any one peer can do to a training set: its places, its share of the gradient, and how strange its text may be.

Rewards look at the answer alone, so `any text <answer>truth</answer>` earns a positive advantage: without bounds, peers
could teach a planted phrase under cover of correct answers. A *party* is a peer, or all peers of one address range. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Floats
from waggle.sapo.interfaces import Tokenizer
from waggle.tasks.rollout_group import NEWCOMERS, TAGS, JudgedGroup, Verdict

OPEN, CLOSE = TAGS
WINDOW = 8  # tokens in a row: a planted phrase stands out however long the text around it
QUORUM = 3  # other parties whose word counts for what is usual

Party = str | bytes


@dataclass(frozen=True)
class Bounds:
    """`share` of the places and of the gradient is the most that one party gets; `surprise`: strange text is left out."""

    share: float = 0.25
    surprise: bool = True


BOUNDED, UNBOUNDED = Bounds(), Bounds(share=1.0, surprise=False)


def party(group: JudgedGroup) -> Party:
    """Whom a group counts for."""
    return group.source or group.group.origin


def fair(pool: Sequence[JudgedGroup], places: int, share: float, noise: np.random.Generator) -> list[JudgedGroup]:
    """The pool with no more of any party than `share` of the places, or an equal part where there are few parties.

    Which of a party's groups stay is drawn uniformly, first one of each peer in it; the order is kept. A party that may have all
    places loses none: then a draw from the pool is uniform over groups, as published. Newcomers get what places others leave.
    """
    if share >= 1:
        return list(pool)
    of: dict[Party, list[int]] = {}
    for i, group in enumerate(pool):
        of.setdefault(party(group), []).append(i)
    most = max(ceil(places * share), ceil(places / max(1, len(of))))
    kept: set[int] = set()
    for whose, positions in sorted(of.items(), key=lambda each: each[0] == NEWCOMERS):
        room = min(most, max(0, places - len(kept))) if whose == NEWCOMERS else most
        shuffled = positions if len(positions) <= room else [int(i) for i in noise.permutation(positions)]
        kept.update(_by_turns(shuffled, [pool[i].group.origin for i in shuffled])[:room])
    return [group for i, group in enumerate(pool) if i in kept]


def _by_turns(positions: Sequence[int], origins: Sequence[bytes]) -> list[int]:
    """The same positions, the first one of each origin before the second of any."""
    seen: Counter[bytes] = Counter()
    turns = []
    for origin in origins:
        turns.append(seen[origin])
        seen[origin] += 1
    return [position for _, position in sorted(zip(turns, positions, strict=True), key=lambda pair: pair[0])]


def strangeness(logp: Floats, outside: NDArray[np.bool_] | None = None) -> float:
    """Nats: the most surprising stretch of a completion (N,), eight tokens long, counting the tokens `outside` only."""
    surprise = -np.asarray(logp, np.float64)
    if outside is not None:
        surprise = np.where(outside, surprise, 0.0)
    if not len(surprise):
        return 0.0
    return float(np.convolve(surprise, np.ones(min(WINDOW, len(surprise))), "valid").max())


def outside(tokenizer: Tokenizer, text: str, verdict: Verdict, length: int) -> NDArray[np.bool_]:
    """(`length`,): which tokens of an encoded completion nothing excuses.

    The stop token is excused, which no text can hold, the judged answer's two tags, and the answer itself where it is the true
    one: then the question dictates it. Another right answer is not: scorers let words stand in many.
    """
    offsets = tokenizer.offsets(text)
    free = np.zeros(length, np.bool_)
    free[len(offsets) :] = True
    if verdict.length:
        stop = verdict.start + verdict.length
        spans = [(verdict.start - len(OPEN), verdict.start), (stop, stop + len(CLOSE))]
        if verdict.exact:
            spans = [(spans[0][0], spans[1][1])]
        for first, last in spans:
            free[: len(offsets)] |= (offsets[:, 0] >= first) & (offsets[:, 1] <= last)
    return ~free


def limits(own: Sequence[float], peers: Mapping[Party, Sequence[float]]) -> dict[Party, float]:
    """How strange each party's completions may be: as one's own were, or as is usual among the *other* parties.

    Usual is what the lower median of at least three others shows, so that it takes a majority to pass something off as usual.
    """
    mine = max(own, default=0.0)
    typical = {each: median_low(shown) for each, shown in peers.items() if shown}
    found: dict[Party, float] = {}
    for each in peers:
        others = [value for other, value in typical.items() if other != each]
        found[each] = max(mine, median_low(others)) if len(others) >= QUORUM else mine
    return found


def scales(own: float, peers: Mapping[Party, float], share: float) -> dict[Party, float]:
    """What to multiply each party's pull by, so that none has more than `share` of the sum of all; one's own is never touched.

    Of the sum before anybody is brought down, so that somebody who hardly pulls cannot hold the others down to that. Where
    fewer than 1 / share parties pull at all, each may have an equal part: a lone teacher is learned from.
    """
    pulling = sum(pull > 0 for pull in peers.values()) + (own > 0)
    level = max(share, 1.0 / max(1, pulling)) * (own + sum(peers.values()))
    return {each: min(1.0, level / pull) if pull > 0 else 1.0 for each, pull in peers.items()}
