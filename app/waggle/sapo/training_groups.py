"""A group of a training set on its way to the policy: encoded in the node's own tokens, weighted, and at last a lesson.

G completions, N tokens in all: every array of this file runs over them in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from waggle.core.errors import ExtensionError
from waggle.core.message import Message
from waggle.rl.batch import Floats, Ids, SampledCompletion, TokenizedGroup, TrainingGroup
from waggle.rl.update_rules.interface import Rule, ScoredGroup, TokenAdvantages, mean_of_means
from waggle.sapo.interfaces import Prompt
from waggle.sapo.prompt_form import Prompter
from waggle.sapo.sharing.interface import PeerGroup, SharingStrategy
from waggle.tasks.rollout_group import Completion, JudgedGroup


@dataclass(frozen=True)
class EncodedGroup:
    """A judged group in the node's own tokens. `fits` says which completions may be trained on.

    `sampled_logp` (N,) is what the policy said of its own tokens when it wrote them; None for the text of others.
    """

    group: JudgedGroup
    written: TokenizedGroup
    fits: tuple[bool, ...]  # (G,)
    external: bool
    prompt: Prompt
    prompter: Prompter
    sampled_logp: Floats | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """(G,) tokens of each completion."""
        return tuple(len(ids) for ids in self.written.completions)

    def offsets(self, k: int) -> Ids:
        """(T, 2): the first and the last character (exclusive) of each token of completion `k`, without a stop token."""
        return self.prompter.offsets(self.prompt, self.group.group.completions[k].text)


@dataclass(frozen=True)
class WeightedGroup:
    """An encoded group and the advantage of each of its tokens. `emphasis` is the update rule's weight divided by GRPO's."""

    encoded: EncodedGroup
    teaching: TokenAdvantages
    advantage: Floats  # (N,)
    emphasis: Floats  # (N,)
    values: Floats | None = None  # (N,) of the critic

    @property
    def parts(self) -> list[Floats]:
        """The advantages of each completion's tokens: G arrays."""
        return np.split(self.advantage, np.cumsum(self.encoded.lengths)[:-1])

    @property
    def means(self) -> Floats:
        """(G,) mean advantage of each completion; 0 for those that may not be trained on."""
        return np.array(
            [float(part.mean()) if fit else 0.0 for part, fit in zip(self.parts, self.encoded.fits, strict=True)], np.float32
        )

    @property
    def pull(self) -> float:
        """How strongly this group pulls: the sum of |advantage * weight| over its tokens, times the groups of a training set.

        Computed as the mean over completions of the mean over tokens, because the weights of GRPO amount to that for any size.
        """
        pulls = np.split(np.abs(self.advantage * self.emphasis), np.cumsum(self.encoded.lengths)[:-1])
        means = [float(part.mean()) if fit else 0.0 for part, fit in zip(pulls, self.encoded.fits, strict=True)]
        return float(np.array(means, np.float32).mean())

    def scale_by(self, factors: Floats) -> "WeightedGroup":
        """The same group with the advantages of each completion multiplied by its factor (G,)."""
        return replace(self, advantage=self.advantage * np.repeat(factors.astype(np.float32), self.encoded.lengths))


@dataclass(frozen=True)
class Lesson:
    """A group as it is learned. `effects` says what learning does to each completion: 1 likelier, -1 less likely, 0 nothing."""

    group: JudgedGroup
    effects: tuple[int, ...]  # (G,)
    pull: float  # see WeightedGroup.pull
    batch: TrainingGroup | None  # None where nothing pulls: leaving it out is exact


@dataclass(frozen=True)
class TrainingSetSize:
    """What all groups of one training set have in common."""

    groups: int  # I + J
    tokens: int  # of all completions of groups that teach something
    longest: int  # tokens that a completion may have
    crumb_span: float  # a group whose rewards differ by less teaches nothing


def encode_local(prompter: Prompter, group: JudgedGroup, sampled: Sequence[SampledCompletion]) -> EncodedGroup:
    """The node's own group, with the very tokens that were sampled: encoding its text again may give others."""
    prompt = prompter.sampling_prompt(group.question)
    written = TokenizedGroup(prompt.ids, tuple(sample.tokens for sample in sampled))
    logp = np.concatenate([sample.logp for sample in sampled])
    fits = (True,) * len(sampled)
    return EncodedGroup(group, written, fits, external=False, prompt=prompt, prompter=prompter, sampled_logp=logp)


def encode_external(prompter: Prompter, group: JudgedGroup, longest: int, context: int = 0) -> EncodedGroup:
    """A peer's group: the tokens that the node's own policy would have written for its text, as far as that can be known.

    A completion longer than `longest` tokens, or beyond the `context` with its prompt, is dropped, never cut: a lone stop token
    keeps its place, so that the denominator stays G.
    """
    prompt = prompter.prompt(group.question)
    longest = min(longest, context - len(prompt.ids)) if context else longest
    stop = np.array([prompter.stop], np.int32)
    encoded = [_encode(prompter, prompt, completion) for completion in group.group.completions]
    fits = tuple(0 < len(ids) <= longest for ids in encoded)
    completions = tuple(ids.astype(np.int32) if fit else stop for ids, fit in zip(encoded, fits, strict=True))
    written = TokenizedGroup(prompt.ids, completions)
    return EncodedGroup(group, written, fits, external=True, prompt=prompt, prompter=prompter)


def fits_at_all(prompter: Prompter, group: JudgedGroup, longest: int, context: int = 0) -> bool:
    """Whether any completion of a peer's group may be trained on: whether `encode_external` would find one that fits.

    A token is at least one byte, except for a mark at the beginning and the stop token, so a text of few bytes fits without being
    encoded: mostly nothing has to be.
    """
    # half of the context: a form puts more tokens around a question than its bytes tell
    if context and len(group.question.text.encode()) + longest > context // 2:
        longest = min(longest, context - len(prompter.prompt(group.question).ids))
    prompt = cache(lambda: prompter.prompt(group.question))
    return any(
        0 < len(completion.text.encode()) < longest - 1 or 0 < len(_encode(prompter, prompt(), completion)) <= longest
        for completion in sorted(group.group.completions, key=lambda each: len(each.text))
    )


def weigh(
    encoded: EncodedGroup,
    rule: Rule,
    sharing: SharingStrategy,
    measure: TrainingSetSize,
    *,
    values: Floats | None = None,
    logp: Floats | None = None,
) -> WeightedGroup:
    """Advantages by the update rule and, for an external group, by the sharing strategy.

    `values` (N,) are the critic's, `logp` (N,) those of the node's own policy; None where nothing needs them.
    """
    scored = ScoredGroup(
        rewards=encoded.group.lesson_rewards,
        lengths=encoded.lengths,
        groups=measure.groups,
        tokens=measure.tokens,
        longest=measure.longest,
        crumb_span=measure.crumb_span,
        values=values,
    )
    teaching = rule.teach(scored)
    tokens = sum(encoded.lengths)
    _require_numbers(tokens, f"rl/update_rules/{rule.name}.py", teaching.advantage, teaching.weight)
    advantage = teaching.advantage
    if encoded.external:
        advantage = sharing.temper(PeerGroup(encoded.group, encoded.lengths, advantage, logp))
        _require_numbers(tokens, file_of(sharing), advantage)
    return WeightedGroup(encoded, teaching, advantage, teaching.weight / mean_of_means(scored), values)


def file_of(sharing: SharingStrategy) -> str:
    """The file that a strategy comes from, such as sapo/sharing/plain.py."""
    return f"{type(sharing).__module__.removeprefix('waggle.').replace('.', '/')}.py"


def _require_numbers(tokens: int, file: str, *arrays: object) -> None:
    """Raise ExtensionError unless all are float arrays (N,) of finite numbers: one infinite weight would ruin the model."""
    for array in arrays:
        if not (isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.shape == (tokens,)):
            raise ExtensionError(
                Message("%1 did not return one float for each of %2 tokens.", file, tokens),
                "Choose another one in Settings, or mend the file.",
            )
        if not np.isfinite(array).all():
            raise ExtensionError(
                Message("%1 returned a number that is not finite.", file), "Choose another one in Settings, or mend the file."
            )


def lesson(weighted: WeightedGroup, *, critic: bool) -> Lesson:
    """The lesson of a group. With a critic, completions without an advantage are part of it: they teach the value head."""
    encoded = weighted.encoded
    pulls = [fit and (critic or bool(part.any())) for part, fit in zip(weighted.parts, encoded.fits, strict=True)]
    return Lesson(
        group=encoded.group,
        effects=tuple(int(np.sign(mean)) for mean in weighted.means),
        pull=weighted.pull,
        batch=_batch(weighted, pulls) if any(pulls) else None,
    )


def _batch(weighted: WeightedGroup, pulls: Sequence[bool]) -> TrainingGroup:
    """Only the completions that pull (G,): leaving the others out is exact, for their tokens have no gradient.

    The old log-probs are those of sampling, which peers' completions lack; sapo/minibatches.py decides what steps get.
    """
    encoded, teaching = weighted.encoded, weighted.teaching
    pulling = np.repeat(pulls, encoded.lengths)  # (N,)
    return TrainingGroup(
        prompt=encoded.written.prompt,
        completions=tuple(ids for ids, pull in zip(encoded.written.completions, pulls, strict=True) if pull),
        advantage=weighted.advantage[pulling].astype(np.float32),
        weight=teaching.weight[pulling],
        old_logp=None if encoded.sampled_logp is None else encoded.sampled_logp[pulling],
        returns=None if teaching.returns is None else teaching.returns[pulling],
        values=None if weighted.values is None else weighted.values[pulling],
    )


def _encode(prompter: Prompter, prompt: Prompt, completion: Completion) -> Ids:
    """Token ids (T,): a completion that ended by itself gets the node's own stop token, one that was cut does not."""
    ids = prompter.continuation(prompt, completion.text)
    return np.append(ids, np.int32(prompter.stop)) if completion.ended else ids
