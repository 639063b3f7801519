"""A lesson: one group of a training set as token ids with advantages, ready for the policy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, Written
from waggle.rl.update_rules.interface import Rule, Scored, Teaching, mean_of_means
from waggle.sapo.interfaces import Tokenizer
from waggle.sapo.sharing.interface import PeerGroup, Sharing
from waggle.tasks.charter import Charter
from waggle.tasks.rollout_group import Completion, JudgedGroup


@dataclass(frozen=True)
class Draft:
    """A group in one's own tokens, before anybody said what it is worth. `fits` tells which completions may be trained on."""

    group: JudgedGroup
    written: Written
    fits: tuple[bool, ...]  # (G,)
    external: bool

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(len(ids) for ids in self.written.completions)


@dataclass(frozen=True)
class Weighed:
    """A draft and what each of its N tokens is worth; `emphasis` is the rule's weight of it divided by GRPO's."""

    draft: Draft
    teaching: Teaching
    advantage: Floats  # (N,)
    emphasis: Floats  # (N,)

    @property
    def parts(self) -> list[Floats]:
        """The advantages of each completion's tokens."""
        return np.split(self.advantage, np.cumsum(self.draft.lengths)[:-1])

    @property
    def means(self) -> Floats:
        """(G,) mean advantage of each completion; 0 for those that may not be trained on."""
        return np.array(
            [float(part.mean()) if fit else 0.0 for part, fit in zip(self.parts, self.draft.fits, strict=True)], np.float32
        )

    @property
    def pull(self) -> float:
        """How strongly this group pulls: the sum of |advantage * weight| over its tokens, times the groups of a training set.

        Taken as a mean over tokens and completions, which it is under GRPO, whatever the group's size.
        """
        pulls = np.split(np.abs(self.advantage * self.emphasis), np.cumsum(self.draft.lengths)[:-1])
        means = [float(part.mean()) if fit else 0.0 for part, fit in zip(pulls, self.draft.fits, strict=True)]
        return float(np.array(means, np.float32).mean())

    def scaled(self, factors: Floats) -> "Weighed":
        """With each completion's advantages multiplied by its factor (G,)."""
        return replace(self, advantage=self.advantage * np.repeat(factors.astype(np.float32), self.draft.lengths))


@dataclass(frozen=True)
class Lesson:
    """`effects` says per completion of the group what learning does: 1 likelier, -1 less likely, 0 left alone."""

    group: JudgedGroup
    effects: tuple[int, ...]
    pull: float  # how strongly this group pulls
    batch: GroupBatch | None  # None where nothing pulls: skipping is exact


@dataclass(frozen=True)
class Measure:
    """What every lesson of one training set shares."""

    groups: int  # I + J
    tokens: int  # of all completions
    longest: int
    crumb_span: float


def local_draft(charter: Charter, tokenizer: Tokenizer, group: JudgedGroup, sampled: Sequence[Sampled]) -> Draft:
    """A group of one's own, with the very tokens that were sampled."""
    written = Written(_prompt(charter, tokenizer, group), tuple(one.tokens for one in sampled))
    return Draft(group, written, (True,) * len(sampled), external=False)


def external_draft(charter: Charter, tokenizer: Tokenizer, group: JudgedGroup, longest: int, context: int = 0) -> Draft:
    """A peer's group, re-encoded with one's own tokens.

    A completion longer than `longest` tokens, or beyond the `context` with its prompt, is dropped, never cut: a lone stop token
    keeps its place in the denominator.
    """
    prompt = _prompt(charter, tokenizer, group)
    longest = min(longest, context - len(prompt)) if context else longest
    stop = np.array([tokenizer.stop], np.int32)
    encoded = [_encoded(tokenizer, one) for one in group.group.completions]
    fits = tuple(0 < len(ids) <= longest for ids in encoded)
    kept = tuple(ids.astype(np.int32) if fit else stop for ids, fit in zip(encoded, fits, strict=True))
    return Draft(group, Written(prompt, kept), fits, external=True)


def fits_at_all(charter: Charter, tokenizer: Tokenizer, group: JudgedGroup, longest: int, context: int = 0) -> bool:
    """Whether any completion of a peer's group may be trained on, as `external_draft` finds it.

    A token is a byte or more: most often nothing has to be encoded.
    """
    if context and len(charter.prompt_for(group.question.text).encode()) + longest > context // 2:  # a chat has more around it
        longest = min(longest, context - len(_prompt(charter, tokenizer, group)))
    return any(
        0 < len(one.text.encode()) < longest or 0 < len(_encoded(tokenizer, one)) <= longest
        for one in sorted(group.group.completions, key=lambda one: len(one.text))
    )


def weigh(
    draft: Draft, rule: Rule, sharing: Sharing, measure: Measure, *, values: Floats | None = None, logp: Floats | None = None
) -> Weighed:
    """What the rule and, for a peer's group, the strategy make of a draft. `values` and `logp` are (N,)."""
    scored = Scored(
        rewards=draft.group.rewards,
        lengths=draft.lengths,
        groups=measure.groups,
        tokens=measure.tokens,
        longest=measure.longest,
        crumb_span=measure.crumb_span,
        values=values,
    )
    teaching = rule.teach(scored)
    advantage = teaching.advantage
    if draft.external:
        advantage = sharing.temper(PeerGroup(draft.group, draft.lengths, advantage, logp))
    return Weighed(draft, teaching, advantage, teaching.weight / mean_of_means(scored))


def lesson(weighed: Weighed, *, critic: bool) -> Lesson:
    """The lesson as it will be learned. With a critic, completions without advantage teach it too."""
    draft = weighed.draft
    pulls = [fit and (critic or bool(part.any())) for part, fit in zip(weighed.parts, draft.fits, strict=True)]
    return Lesson(
        group=draft.group,
        effects=tuple(int(np.sign(mean)) for mean in weighed.means),
        pull=weighed.pull,
        batch=_batch(draft, weighed.advantage, weighed.teaching, pulls) if any(pulls) else None,
    )


def _batch(draft: Draft, advantage: Floats, teaching: Teaching, pulls: Sequence[bool]) -> GroupBatch:
    """Only the completions that pull: leaving the others out is exact, for their tokens have no gradient."""
    kept = np.repeat(pulls, draft.lengths)
    return GroupBatch(
        prompt=draft.written.prompt,
        completions=tuple(ids for ids, pull in zip(draft.written.completions, pulls, strict=True) if pull),
        advantage=advantage[kept].astype(np.float32),
        weight=teaching.weight[kept],
        returns=None if teaching.returns is None else teaching.returns[kept],
    )


def _encoded(tokenizer: Tokenizer, completion: Completion) -> Ids:
    """One that ended by itself with one's own stop token, a cut one without."""
    ids = tokenizer.encode(completion.text)
    return np.append(ids, np.int32(tokenizer.stop)) if completion.ended else ids


def _prompt(charter: Charter, tokenizer: Tokenizer, group: JudgedGroup) -> Ids:
    return tokenizer.prompt(charter.prompt_for(group.question.text))
