"""One round of SAPO on one node: draw, answer, judge, share, gather, learn. This is the page to read first.

    draw questions; the policy answers each several times; the verifier judges; the swarm gets ours and gives theirs;
    keep the groups that teach; learn once; say how it went.

`play` is a generator that yields what happened after each stage, so it can be watched, and stopped between any two.
Everything random is a function of (seed, round, question, completion). Left out: when to run, where to save, whom to tell.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import CharterError, QuestionsTooLong
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.batch import Floats, Ids, Sampled, SampleParams, StepMetrics, StepParams, nothing
from waggle.rl.random_streams import generator, uniforms
from waggle.rl.update_rules import grpo
from waggle.rl.update_rules.interface import Rule
from waggle.sapo import bounding, bounds
from waggle.sapo.bounds import BOUNDED, Bounds
from waggle.sapo.interfaces import Policy, Swarm, Tokenizer, Verifier
from waggle.sapo.sharing.adaptive import Adaptive
from waggle.sapo.sharing.interface import Offer, Sharing, TrainingSet
from waggle.sapo.training_groups import Lesson, Measure, Weighed, external_draft, fits_at_all, lesson, local_draft, weigh
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionId, seed_of, split_of
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup

LOOKED = 256  # times for questions, before it is said that a policy can read none
REFILLS = 2  # of a training set, for groups in it that turn out to teach nothing


@dataclass(frozen=True)
class Rules:
    """The numbers of a round. `questions` are drawn; `local` (I) and `external` (J) groups are trained on."""

    questions: int = 8
    local: int = 4
    external: int = 4
    group_size: int = 8  # G
    max_new: int = 24  # tokens of a completion, its stop token included
    context: int = 0  # tokens that the policy can read at a time; 0: more than any question and its answer have
    temperature: float = 1.0
    top_p: float = 1.0
    learning_rate: float = 5e-4
    warmup_steps: int = 10
    crumb_span: float = CRUMB_SPAN
    rule: Rule = grpo.RULE
    bounds: Bounds = BOUNDED

    def under(self, charter: Charter) -> "Rules":
        """The same with groups as large as a charter lets travel."""
        return replace(self, group_size=min(max(self.group_size, charter.group_size_min), charter.group_size_max))


@dataclass(frozen=True)
class Node:
    """Who plays: one policy, one identity, one source of randomness, among others under one charter.

    `specialties` are the datasets this node asks about; empty means all of the charter's.
    """

    policy: Policy
    tokenizer: Tokenizer
    swarm: Swarm
    verifier: Verifier
    charter: Charter
    origin: bytes
    seed: int
    model: str = ""
    sharing: Sharing = field(default_factory=Adaptive)
    specialties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawn:
    """`groups` have no completions yet."""

    round: int
    epoch: int
    groups: tuple[tuple[Group, Question], ...]


@dataclass(frozen=True)
class Judged:
    round: int
    groups: tuple[JudgedGroup, ...]
    tokens: int  # generated

    @property
    def entropy(self) -> float:
        """Nats per token of the policy as it sampled: the mean of -log p over what it wrote."""
        return -sum(one.logp or 0.0 for group in self.groups for one in group.group.completions) / max(1, self.tokens)


@dataclass(frozen=True)
class Shared:
    round: int
    groups: int
    bytes: int


@dataclass(frozen=True)
class Gathered:
    round: int
    local: int
    external: int
    waiting: int


@dataclass(frozen=True)
class Learned:
    """`metrics` is None where no group taught anything and so no step was taken."""

    round: int
    lessons: tuple[Lesson, ...]
    metrics: StepMetrics | None
    learning_rate: float
    external_share: float  # of |advantage * weight|, summed over the tokens trained on


Stage = Drawn | Judged | Shared | Gathered | Learned


def play(
    number: int,
    epoch: int,
    node: Node,
    rules: Rules,
    *,
    pause_point: Callable[[], None] = nothing,
    watch: Callable[[Ids, Ids, NDArray[np.bool_]], None] = nothing,
) -> Iterator[Stage]:
    """Play round `number`. `pause_point` may block or raise Stopped; `watch` sees completions while they are written."""
    drawn = draw(number, epoch, node, rules, pause_point=pause_point)
    yield drawn

    params = SampleParams(
        max_new=rules.max_new, stop=node.tokenizer.stop, temperature=rules.temperature, top_p=rules.top_p,
        pause_point=pause_point, watch=watch,
    )  # fmt: skip
    prompts = [node.tokenizer.prompt(node.charter.prompt_for(question.text)) for _, question in drawn.groups]
    noise = uniforms(node.seed, "sample", number, len(prompts), rules.group_size, rules.max_new)
    sampled = node.policy.sample(prompts, noise, params)

    judged = judge(number, node, drawn, sampled)
    yield judged

    yield Shared(number, *node.swarm.share(number, epoch, [one.group for one in judged.groups], node.model))

    weighed = gather(number, node, rules, judged, sampled)
    external = sum(one.draft.external for one in weighed)
    yield Gathered(number, len(weighed) - external, external, len(node.swarm.waiting()))

    yield learn(number, node, rules, weighed, pause_point)


def draw(number: int, epoch: int, node: Node, rules: Rules, *, pause_point: Callable[[], None] = nothing) -> Drawn:
    """Specialties uniformly with replacement; reserved questions are passed over to the next index, those that the policy cannot
    read whole, or that are not made, also to the next specialty. Raises QuestionsTooLong where it can read none, CharterError
    where there are too few."""
    noise = generator(node.seed, "draw", number)
    datasets = node.specialties or tuple(specialty.dataset for specialty in node.charter.specialties)
    cap = node.charter.index_cap
    chosen: dict[QuestionId, Question] = {}
    ids = [
        QuestionId(datasets[int(noise.integers(len(datasets)))], epoch, int(noise.integers(cap))) for _ in range(rules.questions)
    ]
    anything = too_long = False  # that the policy can read; that it cannot
    for looked in range(cap):
        if not ids or (looked >= LOOKED and not anything):
            break
        pause_point()
        made = node.verifier.questions([(one.dataset, seed_of(node.charter.digest, node.origin, one)) for one in ids])
        again = []
        for one, question in zip(ids, made, strict=True):
            fit = fits(node, rules, question)
            readable = fit and bool(question.text)
            anything, too_long = anything or readable, too_long or not fit
            if readable and split_of(question.dataset, question.text) == "train" and one not in chosen:
                chosen[one] = question
            else:
                dataset = one.dataset if readable else datasets[(datasets.index(one.dataset) + 1) % len(datasets)]
                again.append(QuestionId(dataset, epoch, (one.index + 1) % cap))
        ids = again
    if too_long and not anything:
        raise QuestionsTooLong(
            f"This model reads {rules.context} tokens at a time, and the questions are longer.",
            "Choose another model, or other specialties.",
        )
    if ids:
        raise CharterError(
            f"{node.charter.name} has too few questions for {rules.questions} a round.",
            "Lower learning.questions, or choose another swarm.",
        )
    groups = tuple((Group(origin=node.origin, id=one, completions=()), question) for one, question in chosen.items())
    return Drawn(number, epoch, groups)


def fits(node: Node, rules: Rules, question: Question) -> bool:
    """Whether the policy can read a question and the longest answer at a time: beyond that it was never trained."""
    prompt = node.charter.prompt_for(question.text)
    return not rules.context or len(node.tokenizer.prompt(prompt)) + rules.max_new <= rules.context


def judge(number: int, node: Node, drawn: Drawn, sampled: Sequence[Sequence[Sampled]]) -> Judged:
    """Turn tokens into texts and let the verifier judge exactly those texts."""
    groups = [
        Group(origin=group.origin, id=group.id, completions=tuple(completion_of(node.tokenizer, one) for one in row))
        for (group, _), row in zip(drawn.groups, sampled, strict=True)
    ]
    questions = [question for _, question in drawn.groups]
    verdicts = iter(
        node.verifier.judge(
            [(question, one) for group, question in zip(groups, questions, strict=True) for one in group.completions]
        )
    )
    judged = tuple(
        JudgedGroup(
            group=group,
            question=question,
            verdicts=tuple(next(verdicts) for _ in group.completions),
            round=number,
            model=node.model,
        )
        for group, question in zip(groups, questions, strict=True)
    )
    return Judged(number, judged, sum(len(one.tokens) for row in sampled for one in row))


def gather(number: int, node: Node, rules: Rules, judged: Judged, sampled: Sequence[Sequence[Sampled]]) -> list[Weighed]:
    """I local + J external groups, as the node's strategy chooses, and what each is worth; what is drawn from the pool leaves it.

    So does what can teach nothing here, for it is too long or too strange: it takes nobody's place.
    """
    waiting, too_long = list[JudgedGroup](), list[JudgedGroup]()
    for group in node.swarm.waiting():
        fit = fits_at_all(node.charter, node.tokenizer, group, rules.max_new, rules.context)
        (waiting if fit else too_long).append(group)
    node.swarm.discard(too_long)
    pool = bounds.fair(waiting, rules.local + rules.external, rules.bounds.share, generator(node.seed, "fair", number))
    offer = Offer(
        own=judged.groups,
        pool=pool,
        local=rules.local,
        external=rules.external,
        crumb_span=rules.crumb_span,
        noise=generator(node.seed, "choose", number),
    )
    training = node.sharing.choose(offer)
    weighed = _weighed(node, rules, training, judged, sampled)
    refused: list[JudgedGroup] = []
    for _ in range(REFILLS):
        idle = [one.draft.group for one in weighed if one.draft.external and not one.pull]
        if not idle:
            break
        node.swarm.discard(idle)
        refused += idle
        training = bounding.refilled(offer, training, refused)
        weighed = _weighed(node, rules, training, judged, sampled)
    node.swarm.take(training.external)
    return weighed


def learn(number: int, node: Node, rules: Rules, weighed: Sequence[Weighed], pause_point: Callable[[], None]) -> Learned:
    """One optimiser step on the training set; none where nothing pulls."""
    lessons = [lesson(one, critic=rules.rule.critic) for one in bounding.shared_out(weighed, rules.bounds.share)]
    rate = rules.learning_rate * min(1.0, (node.policy.steps + 1) / max(1, rules.warmup_steps))
    batches = [lesson.batch for lesson in lessons if lesson.batch is not None]
    metrics = None
    if batches:
        params = StepParams(learning_rate=rate, temperature=rules.temperature, clip=rules.rule.clip, pause_point=pause_point)
        metrics = node.policy.step(batches, params)
    pull = sum(lesson.pull for lesson in lessons)
    foreign = sum(lesson.pull for lesson in lessons if lesson.group.group.origin != node.origin)  # own old ones may come back
    share = foreign / pull if pull else 0.0
    return Learned(number, tuple(lessons), metrics, rate, share)


def _weighed(
    node: Node, rules: Rules, training: TrainingSet, judged: Judged, sampled: Sequence[Sequence[Sampled]]
) -> list[Weighed]:
    """What the update rule, the sharing strategy and the bounds make of a training set, its local groups first.

    Each is told what it asks the policy for.
    """
    own = [local_draft(node.charter, node.tokenizer, judged.groups[i], sampled[i]) for i in training.local]
    others = [external_draft(node.charter, node.tokenizer, group, rules.max_new, rules.context) for group in training.external]
    drafts = [*own, *others]
    measure = Measure(
        groups=rules.local + rules.external,  # the denominator, even where the training set came out smaller
        tokens=sum(sum(draft.lengths) for draft in drafts),
        longest=rules.max_new,
        crumb_span=rules.crumb_span,
    )
    values: Sequence[Floats | None] = [None] * len(drafts)
    if rules.rule.critic and drafts:
        values = node.policy.values([draft.written for draft in drafts])
    likely: dict[int, Floats] = {}
    if node.sharing.needs_logp and others:
        logp = node.policy.logprobs([draft.written for draft in others], rules.temperature)
        likely = dict(enumerate(logp, len(own)))
    weighed = [
        weigh(draft, rules.rule, node.sharing, measure, values=value, logp=likely.get(i))
        for i, (draft, value) in enumerate(zip(drafts, values, strict=True))
    ]
    if not rules.bounds.surprise:
        return weighed
    said = [one.logp for row in sampled for one in row]
    return bounding.familiar(weighed, said, node.policy, node.tokenizer, rules.temperature)


def completion_of(tokenizer: Tokenizer, sampled: Sampled) -> Completion:
    """What a policy wrote, as text, without its stop token."""
    ids = sampled.tokens[:-1] if sampled.ended else sampled.tokens
    return Completion(text=tokenizer.decode(ids), ended=sampled.ended, logp=float(sampled.logp.sum()))
