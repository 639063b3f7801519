"""What a round works with (`RoundSettings`, `Node`) and what it yields after each stage, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from waggle.core.errors import CharterError
from waggle.core.message import Message
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.batch import Ids, SampledCompletion, StepMetrics
from waggle.rl.update_rules import grpo
from waggle.rl.update_rules.interface import Rule
from waggle.sapo.answer_balance import AnswerBalance
from waggle.sapo.interfaces import Policy, Swarm, Tokenizer, Verifier
from waggle.sapo.prompt_form import PLAIN, Prompter, PromptForm, WorkedExample
from waggle.sapo.question_mix import Level, QuestionMix
from waggle.sapo.sharing.adaptive import Adaptive
from waggle.sapo.sharing.interface import SharingStrategy
from waggle.sapo.training_groups import Lesson
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionKey, split_of
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup

EXAMPLES, EXAMPLE_SEED = 16, 1 << 41  # questions among which a worked example is chosen, and the first of their seeds
SAMPLE, SAMPLE_SEED = 256, 1 << 40  # questions of a level whose answers say what is usual, and the first of their seeds


@dataclass(frozen=True)
class Bounds:
    """What selection.py holds every peer to.

    `share` is the largest part of the places, and of the gradient, that one party gets. `surprise` says whether text that is
    stranger than usual is left out, `one_sided` whether answers that come too often are.
    """

    share: float = 0.25  # a planted phrase needs more than one party to reach half of a training set
    surprise: bool = True
    one_sided: bool = True


BOUNDED, UNBOUNDED = Bounds(), Bounds(share=1.0, surprise=False, one_sided=False)


@dataclass(frozen=True)
class RoundSettings:
    """The numbers of a round. `questions` are drawn; `local` (I) and `external` (J) groups are trained on."""

    questions: int = 8
    local: int = 4
    external: int = 4
    group_size: int = 8  # G
    max_new: int = 24  # tokens of a completion, its stop token included
    external_max: int = 0  # tokens of a completion of a peer; 0: as many as of its own
    context: int = 0  # tokens that the policy can read at a time; 0: more than any question and its answer have
    temperature: float = 1.0
    top_p: float = 1.0
    learning_rate: float = 5e-4
    warmup_steps: int = 10
    updates: int = 1  # optimizer steps, each on a minibatch of the training set (minibatches.py)
    crumb_span: float = CRUMB_SPAN
    form_pay: float = 0.0  # see JudgedGroup.form_pay
    rule: Rule = grpo.RULE
    bounds: Bounds = BOUNDED

    @property
    def longest_external(self) -> int:
        """The most tokens of a completion of a peer: other models may need longer ones than this."""
        return max(self.max_new, self.external_max)

    def under(self, charter: Charter) -> "RoundSettings":
        """The same rules, with a group size that the charter allows."""
        return replace(self, group_size=min(max(self.group_size, charter.group_size_min), charter.group_size_max))


@dataclass(frozen=True)
class Node:
    """The player of a round: one policy, one identity and one source of randomness, under one charter.

    `specialties` are the datasets that this node asks about; empty means all of the charter's.
    """

    policy: Policy
    tokenizer: Tokenizer
    swarm: Swarm
    verifier: Verifier
    charter: Charter
    origin: bytes
    seed: int
    model: str = ""
    sharing: SharingStrategy = field(default_factory=Adaptive)
    specialties: tuple[str, ...] = ()
    form: PromptForm = PLAIN
    mix: QuestionMix = field(default_factory=QuestionMix)

    @cached_property
    def balance(self) -> AnswerBalance:
        """What peers taught this node lately."""
        return AnswerBalance(self.verifier.answers, self._sample)

    def _sample(self, level: Level) -> list[QuestionKey]:
        keys = [QuestionKey(level[0], SAMPLE_SEED + i, level[1]) for i in range(SAMPLE)]
        return [question.key for question in self.verifier.questions(keys) if question.text]

    @property
    def levels(self) -> list[Level]:
        """The levels that this node asks about."""
        return [
            (specialty.dataset, place)
            for specialty in self.charter.specialties
            for place in range(len(specialty.levels))
            if not self.specialties or specialty.dataset in self.specialties
        ]

    def prompt(self, question: Question) -> Ids:
        """Token ids (T,) that the policy continues to answer a question."""
        return self.prompter.sampling_prompt(question).ids

    @cached_property
    def prompter(self) -> Prompter:
        return Prompter(self.form, self.tokenizer, cache(self._worked_example))

    def _worked_example(self, level: Level) -> WorkedExample:
        """The shortest of a few questions that may be trained on: the same on every node of the swarm."""
        keys = [QuestionKey(level[0], EXAMPLE_SEED + i, level[1]) for i in range(EXAMPLES)]
        questions = [question for question in self.verifier.questions(keys) if split_of(level[0], question.text) == "train"]
        if not questions:
            raise CharterError(Message("%1 has too few questions of %2 for a worked example.", self.charter.name, level[0]))
        shortest = min(questions, key=lambda question: len(question.text))
        return WorkedExample(shortest.text, self.verifier.answers([shortest.key])[0])

    def completion(self, sampled: SampledCompletion) -> Completion:
        """The text that the policy wrote, with the form's prefill and without its stop token."""
        return completion_of(self.tokenizer, sampled, self.form.prefill)

    def text(self, tokens: Ids, *, ended: bool) -> str:
        """The text so far of a completion of these tokens; the last one is a stop token if it `ended`."""
        return self.form.prefill + self.tokenizer.decode_continuation(tokens[:-1] if ended else tokens)


@dataclass(frozen=True)
class Drawn:
    """Questions were drawn. `groups` have no completions yet."""

    round: int
    epoch: int
    groups: tuple[tuple[Group, Question], ...]


@dataclass(frozen=True)
class Judged:
    """The policy answered every question, and the verifier judged every answer."""

    round: int
    groups: tuple[JudgedGroup, ...]
    tokens: int  # generated

    @property
    def entropy(self) -> float:
        """Nats per token of the policy as it sampled: the mean of -log p over the tokens that it wrote."""
        logp = (completion.logp or 0.0 for group in self.groups for completion in group.group.completions)
        return -sum(logp) / max(1, self.tokens)


@dataclass(frozen=True)
class Shared:
    """The node's groups were handed to the network: `groups` of them travel, in a record of so many `bytes`."""

    round: int
    groups: int
    bytes: int


@dataclass(frozen=True)
class Gathered:
    """The training set was put together. `waiting` external groups are still in the pool.

    `refusals` counts the external groups that were refused, by peer id and by the value of their `selection.Reason`.
    `external_reward` is the mean reward of the external groups that were on offer, as judged here; None without any.
    """

    round: int
    local: int
    external: int
    waiting: int
    refusals: Mapping[bytes, Mapping[str, int]] = field(default_factory=dict)
    external_reward: float | None = None


@dataclass(frozen=True)
class Learned:
    """The optimizer steps were taken. `metrics` are their means, None where no group teaches anything: then there was no step."""

    round: int
    lessons: tuple[Lesson, ...]
    metrics: StepMetrics | None
    learning_rate: float  # of the last step
    external_share: float  # of |advantage * weight|, summed over the tokens trained on


Stage = Drawn | Judged | Shared | Gathered | Learned


def fits(node: Node, rules: RoundSettings, question: Question) -> bool:
    """Whether a question and the longest answer fit into the policy's context: it was never trained beyond that."""
    return not rules.context or len(node.prompt(question)) + rules.max_new <= rules.context


def completion_of(tokenizer: Tokenizer, sampled: SampledCompletion, prefill: str = "") -> Completion:
    """The text that a policy wrote after `prefill`, with it and without its stop token."""
    ids = sampled.tokens[:-1] if sampled.ended else sampled.tokens
    return Completion(text=prefill + tokenizer.decode_continuation(ids), ended=sampled.ended, logp=float(sampled.logp.sum()))
