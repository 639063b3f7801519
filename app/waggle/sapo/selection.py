"""Every filter and every weight of external groups, in the order in which they act.

Three act before a round, because they decide what reaches the pool. network/exchange/collector.py pulls nothing from a peer
that a person muted, that broke a rule lately, or whose quota is spent. network/exchange/verification.py refuses what breaks the
charter, reserved questions included, and gives no reward to a completion with several answers or one that is not right
(`strict_verdict`). network/exchange/pool.py keeps only groups whose rewards differ, for a while, and at most a quarter of its
room for one party; when a peer breaks a rule, its waiting groups leave.

Then, in `select`, once a round:

 1. `_without_too_long`       refuses groups of which no completion fits into an answer's tokens and the policy's context
 2. `_without_one_sided`      refuses groups that make the answers of their party more one-sided than their questions are
 3. `share_places`            offers no more groups of one party than its share of the places
 4. `SharingStrategy.choose`  the sharing strategy chooses I local and J external groups (sharing/, the setting learning.sharing)
 5. `encode_external`         masks single completions that do not fit (training_groups.py)
 6. `Rule.teach`              the update rule turns rewards into advantages, none where they differ by crumbs (rl/update_rules/)
 7. `SharingStrategy.temper`  the sharing strategy weighs each token of a peer's group
 8. `leave_out_unfamiliar`    masks completions whose text is stranger than usual
 9. `refill`                  refuses chosen groups that pull at nothing now, and puts others in their places: steps 5 to 8 again
10. `share_pull`              weighs a party down that has more than its share of the gradient

Each group that is refused or weighed down has a `Reason`, and a line in the log. Steps 2, 3, 8 and 10 are the bounds on peers
(`stages.Bounds`): a reward looks at the answer alone, so `any text <answer>truth</answer>` earns a positive advantage, and
without bounds a planted phrase could be taught under the cover of correct answers.

A *party* is a peer, or all peers of one address range: who has many names has no more of anything.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ExtensionError
from waggle.core.message import Message
from waggle.core.peer_id import short_id
from waggle.core.text.round_number import round_number
from waggle.rl.advantage import teaches
from waggle.rl.batch import Floats, Ids, SampledCompletion
from waggle.rl.random_streams import generator
from waggle.sapo.interfaces import Policy
from waggle.sapo.sharing.interface import Candidates, SharingStrategy, TrainingSet
from waggle.sapo.stages import Judged, Node, RoundSettings
from waggle.sapo.training_groups import (
    TrainingSetSize,
    WeightedGroup,
    encode_external,
    encode_local,
    file_of,
    fits_at_all,
    weigh,
)
from waggle.tasks.rollout_group import NEWCOMERS, TAGS, JudgedGroup, Verdict

log = logging.getLogger(__name__)

OPEN, CLOSE = TAGS
REFILLS = 2  # of a training set: each is another encoding and perhaps another forward pass, and mostly one is enough
WINDOW = 8  # tokens in a row: a planted phrase stands out however long the text around it is
QUORUM = 3  # other parties whose word counts for what is usual: so it takes a majority of them to make a phrase usual

Party = str | bytes
Position = tuple[int, int]  # (group, completion) in a training set


class Reason(Enum):
    """Why an external group was refused or weighed down."""

    TOO_LONG = "too_long"  # no completion of it fits
    OVER_SHARE_OF_PLACES = "over_share_of_places"  # not offered in this round; it stays in the pool
    ONE_SIDED = "one_sided"  # its party taught this answer more often than the questions have it
    TEACHES_NOTHING = "teaches_nothing"  # rule and strategy leave no advantage
    UNFAMILIAR = "unfamiliar"  # text stranger than usual
    OVER_SHARE_OF_PULL = "over_share_of_pull"  # weighed down to its party's share


@dataclass(frozen=True)
class Decision:
    """One external group and why it does not count in full. `weight` is the part of its pull that stays."""

    group: JudgedGroup
    reason: Reason
    weight: float = 0.0

    @property
    def is_refusal(self) -> bool:
        """Whether nothing of the group is learned, now or later."""
        return not self.weight and self.reason is not Reason.OVER_SHARE_OF_PLACES


@dataclass(frozen=True)
class Selection:
    """A training set, its local groups first, ready to be learned; and every decision that was taken on the way.

    `external_reward` is the mean reward of the external groups that were waiting, as judged here; None without any.
    """

    groups: tuple[WeightedGroup, ...]
    decisions: tuple[Decision, ...]
    external_reward: float | None = None

    @property
    def refusals(self) -> dict[bytes, dict[str, int]]:
        """The number of refused groups, by the peer that made them and by the value of the reason."""
        counts: dict[bytes, Counter[str]] = {}
        for decision in self.decisions:
            if decision.is_refusal:
                counts.setdefault(decision.group.group.origin, Counter())[decision.reason.value] += 1
        return {origin: dict(by_reason) for origin, by_reason in counts.items()}


def select(
    number: int, node: Node, rules: RoundSettings, judged: Judged, sampled: Sequence[Sequence[SampledCompletion]]
) -> Selection:
    """The training set of round `number`: I local and J external groups, as the node's strategy chooses within the bounds.

    What is chosen or refused leaves the pool; a refused group leaves its place to another. `sampled` are the tokens of `judged`.
    """
    waiting = node.swarm.waiting()
    fitting, decisions = _without_too_long(node, rules, waiting)
    balanced, one_sided = _without_one_sided(node, rules, fitting)
    decisions += one_sided
    places = rules.local + rules.external
    pool = share_places(balanced, places, rules.bounds.share, generator(node.seed, "fair", number))
    decisions += _decisions_not_offered(balanced, pool)
    candidates = Candidates(
        local_groups=judged.groups,
        pool=pool,
        local=rules.local,
        external=rules.external,
        crumb_span=rules.crumb_span,
        noise=generator(node.seed, "choose", number),
    )
    training = _choose(node.sharing, candidates)
    groups, unfamiliar = _weigh_all(node, rules, training, judged, sampled)
    refused: list[JudgedGroup] = []
    for _ in range(REFILLS):
        useless = [each.encoded.group for each in groups if each.encoded.external and not each.pull]
        if not useless:
            break
        node.swarm.discard(useless)
        decisions += _why_useless(useless, unfamiliar)
        refused += useless
        training = refill(candidates, training, refused)
        groups, unfamiliar = _weigh_all(node, rules, training, judged, sampled)
    node.swarm.take(training.external)
    _record_answers(node, groups)
    bounded = share_pull(groups, rules.bounds.share)
    decisions += [*unfamiliar, *_decisions_weighed_down(groups, bounded)]
    _log(number, decisions)
    return Selection(tuple(bounded), tuple(decisions), _mean_reward(waiting))


def party(group: JudgedGroup) -> Party:
    """The party that a group counts for: its address range, or else the peer itself."""
    return group.source or group.group.origin


def _mean_reward(groups: Iterable[JudgedGroup]) -> float | None:
    rewards = [reward for group in groups for reward in group.rewards]
    return sum(rewards) / len(rewards) if rewards else None


# 1. Length


def _without_too_long(
    node: Node, rules: RoundSettings, waiting: Sequence[JudgedGroup]
) -> tuple[list[JudgedGroup], list[Decision]]:
    """The waiting groups that fit; the others leave the pool."""
    fitting, too_long = list[JudgedGroup](), list[JudgedGroup]()
    for group in waiting:
        fit = fits_at_all(node.prompter, group, rules.longest_external, rules.context)
        (fitting if fit else too_long).append(group)
    node.swarm.discard(too_long)
    return fitting, [Decision(group, Reason.TOO_LONG) for group in too_long]


# 2. Answers


def _without_one_sided(
    node: Node, rules: RoundSettings, fitting: Sequence[JudgedGroup]
) -> tuple[list[JudgedGroup], list[Decision]]:
    """The groups that their parties may teach now; the others leave the pool."""
    if not rules.bounds.one_sided:
        return list(fitting), []
    node.balance.read(fitting)
    one_sided = [group for group in fitting if not node.balance.allows(group, party(group))]
    node.swarm.discard(one_sided)
    refused = {group.key for group in one_sided}
    return [group for group in fitting if group.key not in refused], [Decision(group, Reason.ONE_SIDED) for group in one_sided]


def _record_answers(node: Node, groups: Sequence[WeightedGroup]) -> None:
    """Remember what peers teach in this round."""
    for each in groups:
        if each.encoded.external and each.pull:
            node.balance.record(each.encoded.group, party(each.encoded.group))


# 3. Places


def share_places(pool: Sequence[JudgedGroup], places: int, share: float, noise: np.random.Generator) -> list[JudgedGroup]:
    """The pool with no more groups of any party than `share` of the places, or than an equal part where parties are few.

    Which groups of a party stay is drawn uniformly, the first one of each peer in it before the second of any. The order of the
    pool does not change. With a share of 1 all stay, so that a draw from the pool is uniform over groups, as published.
    Newcomers together get only the places that others leave.
    """
    if share >= 1:
        return list(pool)
    positions_of: dict[Party, list[int]] = {}
    for i, group in enumerate(pool):
        positions_of.setdefault(party(group), []).append(i)
    most = max(ceil(places * share), ceil(places / max(1, len(positions_of))))
    staying: set[int] = set()
    for whose, positions in sorted(positions_of.items(), key=lambda entry: entry[0] == NEWCOMERS):  # newcomers last
        room = min(most, max(0, places - len(staying))) if whose == NEWCOMERS else most
        shuffled = positions if len(positions) <= room else [int(i) for i in noise.permutation(positions)]
        staying.update(_by_turns(shuffled, [pool[i].group.origin for i in shuffled])[:room])
    return [group for i, group in enumerate(pool) if i in staying]


def _by_turns(positions: Sequence[int], origins: Sequence[bytes]) -> list[int]:
    """The same positions, the first one of each origin before the second of any."""
    count: Counter[bytes] = Counter()
    turns = []
    for origin in origins:
        turns.append(count[origin])
        count[origin] += 1
    return [position for _, position in sorted(zip(turns, positions, strict=True), key=lambda pair: pair[0])]


def _decisions_not_offered(fitting: Sequence[JudgedGroup], pool: Sequence[JudgedGroup]) -> list[Decision]:
    offered = {group.key for group in pool}
    return [Decision(group, Reason.OVER_SHARE_OF_PLACES) for group in fitting if group.key not in offered]


# 4. Choice


def _choose(sharing: SharingStrategy, candidates: Candidates) -> TrainingSet:
    """What the strategy chooses; raises ExtensionError unless it names each group once and fills no more than I + J places."""
    training = sharing.choose(candidates)
    local, external = training.local, [group.key for group in training.external]
    if (
        not set(local) <= set(range(len(candidates.local_groups)))
        or len(set(local)) < len(local)
        or len(set(external)) < len(external)
    ):
        raise ExtensionError(
            Message("%1 chose a group twice, or one that does not exist.", file_of(sharing)),
            "Choose another one in Settings, or mend the file.",
        )
    if len(local) + len(external) > candidates.local + candidates.external:
        raise ExtensionError(
            Message("%1 chose too many groups.", file_of(sharing)), "Choose another one in Settings, or mend the file."
        )
    return training


# 5 to 8. Weights


def _weigh_all(
    node: Node, rules: RoundSettings, training: TrainingSet, judged: Judged, sampled: Sequence[Sequence[SampledCompletion]]
) -> tuple[list[WeightedGroup], list[Decision]]:
    """The groups of a training set with the weights of rule, strategy and familiarity, local groups first."""
    local = [encode_local(node.prompter, judged.groups[i], sampled[i]) for i in training.local]
    external = [encode_external(node.prompter, group, rules.longest_external, rules.context) for group in training.external]
    encoded = [*local, *external]
    measure = TrainingSetSize(
        groups=rules.local + rules.external,  # the denominator, even where the training set is smaller
        tokens=sum(sum(group.lengths) for group in encoded if teaches(group.group.lesson_rewards, rules.crumb_span)),
        longest=rules.max_new,
        crumb_span=rules.crumb_span,
    )
    values: Sequence[Floats | None] = [None] * len(encoded)
    if rules.rule.critic and encoded:
        values = node.policy.values([group.written for group in encoded])
    logp_of: dict[int, Floats] = {}
    if node.sharing.needs_logp and external:
        logp = node.policy.logprobs([group.written for group in external], rules.temperature)
        logp_of = dict(enumerate(logp, len(local)))
    weighted = [
        weigh(group, rules.rule, node.sharing, measure, values=value, logp=logp_of.get(i))
        for i, (group, value) in enumerate(zip(encoded, values, strict=True))
    ]
    if not rules.bounds.surprise:
        return weighted, []
    own_logp = [sample.logp for row in sampled for sample in row]
    familiar = leave_out_unfamiliar(weighted, own_logp, node.policy, rules.temperature)
    return familiar, [
        Decision(before.encoded.group, Reason.UNFAMILIAR, after.pull / before.pull)
        for before, after in zip(weighted, familiar, strict=True)
        if after is not before and after.pull < before.pull
    ]


# 8. Familiarity


def leave_out_unfamiliar(
    weighted: Sequence[WeightedGroup], own_logp: Sequence[Floats], policy: Policy, temperature: float
) -> list[WeightedGroup]:
    """The same groups with weight 0 for completions of peers whose text is stranger than usual (see `strangeness_limits`).

    `own_logp` holds the log-probs (T,) of each completion that the policy wrote in this round. Only completions that would be
    made likelier are looked at; the policy runs only over those that have text beside a true answer, which are mostly none.
    """
    inexcusable = {
        (i, k): _inexcusable_tokens(group, k)
        for i, group in enumerate(weighted)
        if group.encoded.external
        for k in map(int, np.flatnonzero(group.means > 0))
    }
    to_score: dict[int, list[int]] = {}
    for (i, k), tokens in inexcusable.items():
        if tokens.any():
            to_score.setdefault(i, []).append(k)
    if not to_score:
        return list(weighted)
    strangeness_of = dict.fromkeys(inexcusable, 0.0)
    texts = [weighted[i].encoded.written.only(completions) for i, completions in to_score.items()]
    for (i, completions), text, logp in zip(to_score.items(), texts, policy.logprobs(texts, temperature), strict=True):
        parts = np.split(logp, np.cumsum([len(ids) for ids in text.completions])[:-1])
        strangeness_of.update({(i, k): strangeness(part, inexcusable[i, k]) for k, part in zip(completions, parts, strict=True)})
    return _without_strange(weighted, strangeness_of, [strangeness(logp) for logp in own_logp])


def strangeness(logp: Floats, counted: NDArray[np.bool_] | None = None) -> float:
    """Nats: the most surprising eight tokens in a row of a completion (T,). Only the tokens `counted` (T,) add surprise."""
    surprise = -np.asarray(logp, np.float64)
    if counted is not None:
        surprise = np.where(counted, surprise, 0.0)
    if not len(surprise):
        return 0.0
    return float(np.convolve(surprise, np.ones(min(WINDOW, len(surprise))), "valid").max())


def inexcusable_tokens(offsets: Ids, verdict: Verdict, length: int) -> NDArray[np.bool_]:
    """(`length`,): the tokens of an encoded completion that nothing excuses. `offsets` (T, 2) are the characters of each.

    Excused are the stop token, which no text can contain, the two tags of the judged answer, and the answer itself if it is the
    true one, for then the question dictates it. Another right answer is not excused: scorers let words stand in many.
    """
    excused = np.zeros(length, np.bool_)
    excused[len(offsets) :] = True
    if verdict.length:
        stop = verdict.start + verdict.length
        spans = [(verdict.start - len(OPEN), verdict.start), (stop, stop + len(CLOSE))]
        if verdict.exact:
            spans = [(spans[0][0], spans[1][1])]
        for first, last in spans:
            excused[: len(offsets)] |= (offsets[:, 0] >= first) & (offsets[:, 1] <= last)
    return ~excused


def strangeness_limits(local: Sequence[float], parties: Mapping[Party, Sequence[float]]) -> dict[Party, float]:
    """How strange the completions of each party may be: as strange as the node's own, or as is usual among *other* parties.

    Usual is the lower median over at least three other parties, each with its own lower median, so that only a majority of them
    can pass something off as usual.
    """
    local_limit = max(local, default=0.0)
    typical = {whose: median_low(values) for whose, values in parties.items() if values}
    limits: dict[Party, float] = {}
    for whose in parties:
        others = [value for other, value in typical.items() if other != whose]
        limits[whose] = max(local_limit, median_low(others)) if len(others) >= QUORUM else local_limit
    return limits


def _inexcusable_tokens(weighted: WeightedGroup, k: int) -> NDArray[np.bool_]:
    encoded = weighted.encoded
    return inexcusable_tokens(encoded.offsets(k), encoded.group.verdicts[k], encoded.lengths[k])


def _without_strange(
    weighted: Sequence[WeightedGroup], strangeness_of: Mapping[Position, float], local: Sequence[float]
) -> list[WeightedGroup]:
    """The groups with weight 0 for every completion above the limit of its party."""
    by_party: dict[Party, list[float]] = {}
    for (i, _), value in strangeness_of.items():
        by_party.setdefault(party(weighted[i].encoded.group), []).append(value)
    limits = strangeness_limits(local, by_party)
    factors = {i: np.ones(len(weighted[i].encoded.lengths), np.float32) for i, _ in strangeness_of}  # (G,) each
    for (i, k), value in strangeness_of.items():
        factors[i][k] = value <= limits[party(weighted[i].encoded.group)]
    return [group.scale_by(factors[i]) if i in factors else group for i, group in enumerate(weighted)]


# 9. Groups that pull at nothing


def refill(candidates: Candidates, training: TrainingSet, refused: Collection[JudgedGroup]) -> TrainingSet:
    """The training set with other groups in the places of the external ones that were `refused`.

    External groups that teach are drawn uniformly first, then local ones that teach. A party of which a group was refused gets no
    further place in this round.
    """
    refused_keys, refused_parties = {group.key for group in refused}, {party(group) for group in refused}
    chosen = {group.key for group in training.external}
    staying = tuple(group for group in training.external if group.key not in refused_keys)
    free = len(training.external) - len(staying)
    useful = candidates.useful(candidates.pool)
    spare = [group for group in useful if group.key not in chosen and party(group) not in refused_parties]
    fresh = tuple(spare[i] for i in candidates.noise.permutation(len(spare))[:free])
    spare_local = [i for i in candidates.teaching if i not in training.local]
    local = [spare_local[i] for i in candidates.noise.permutation(len(spare_local))[: free - len(fresh)]]
    return TrainingSet(local=tuple(sorted((*training.local, *local))), external=(*staying, *fresh))


def _why_useless(useless: Iterable[JudgedGroup], unfamiliar: Iterable[Decision]) -> list[Decision]:
    """Their text was left out, or else rule and strategy found nothing in them."""
    strange = {decision.group.key for decision in unfamiliar}
    return [Decision(group, Reason.UNFAMILIAR if group.key in strange else Reason.TEACHES_NOTHING) for group in useless]


# 10. Gradient


def share_pull(weighted: Sequence[WeightedGroup], share: float) -> list[WeightedGroup]:
    """The same groups with the pull of each party brought down to its share of the sum."""
    local_pull = sum(group.pull for group in weighted if not group.encoded.external)
    pulls: dict[Party, float] = {}
    for group in weighted:
        if group.encoded.external:
            whose = party(group.encoded.group)
            pulls[whose] = pulls.get(whose, 0.0) + group.pull
    scales = pull_scales(local_pull, pulls, share)
    return [
        group.scale_by(np.full(len(group.encoded.lengths), scales[party(group.encoded.group)]))
        if group.encoded.external
        else group
        for group in weighted
    ]


def pull_scales(local_pull: float, parties: Mapping[Party, float], share: float) -> dict[Party, float]:
    """The factor for each party's pull, so that no party has more than `share` of the sum of all. `local_pull` is never scaled.

    The sum is that before anything is scaled: a party that hardly pulls cannot hold the others down to its own level. Where
    fewer than 1 / share parties pull at all, each may have an equal part, so a node learns from a lone teacher.
    """
    pulling = sum(pull > 0 for pull in parties.values()) + (local_pull > 0)
    level = max(share, 1.0 / max(1, pulling)) * (local_pull + sum(parties.values()))
    return {whose: min(1.0, level / pull) if pull > 0 else 1.0 for whose, pull in parties.items()}


def _decisions_weighed_down(before: Sequence[WeightedGroup], after: Sequence[WeightedGroup]) -> list[Decision]:
    return [
        Decision(group.encoded.group, Reason.OVER_SHARE_OF_PULL, scaled.pull / group.pull)
        for group, scaled in zip(before, after, strict=True)
        if scaled.pull < group.pull
    ]


# Log


def _log(number: int, decisions: Sequence[Decision]) -> None:
    """One line for each peer and reason: refusals at INFO, the rest at DEBUG."""
    by_peer: dict[tuple[bytes, Reason, bool], list[float]] = {}
    for decision in decisions:
        key = decision.group.group.origin, decision.reason, decision.is_refusal
        by_peer.setdefault(key, []).append(decision.weight)
    for (origin, reason, is_refusal), weights in by_peer.items():
        peer = short_id(origin)
        if is_refusal:
            log.info("round %d: %d refused from %s: %s", round_number(number), len(weights), peer, reason.value)
        else:
            percent = 100 * sum(weights) / len(weights)
            log.debug("round %d: %d from %s count %.0f%%: %s", round_number(number), len(weights), peer, percent, reason.value)
