"""One round of SAPO on one node: draw, answer, judge, share, gather, learn. READ THIS FIRST.

    draw questions; let the policy answer each of them several times; let the verifier judge the answers;
    share these groups with the swarm; gather the groups to learn from, local and external ones; learn from them.

`play` is a generator that yields one value of stages.py after each stage, so that a round can be watched, and stopped between
any two. All that is random is a function of (seed, round, question, completion). Not here: when to play, what to save, what to
report; which external groups are learned from, and how strongly, is selection.py.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import CharterError, QuestionsTooLong
from waggle.core.message import Message
from waggle.rl.batch import Ids, SampledCompletion, SamplingParams, StepMetrics, StepParams, nothing
from waggle.rl.random_streams import generator, uniforms
from waggle.sapo.dynamic_sampling import teach_enough, watch_after
from waggle.sapo.minibatches import minibatches
from waggle.sapo.question_mix import Level
from waggle.sapo.selection import select
from waggle.sapo.stages import Drawn, Gathered, Judged, Learned, Node, RoundSettings, Shared, Stage, fits
from waggle.sapo.training_groups import WeightedGroup, lesson
from waggle.tasks.questions import Question, QuestionId, split_of
from waggle.tasks.rollout_group import Group, JudgedGroup

LOOKS = 256  # rounds of looking for questions before a policy that could read none of them is reported


def play(
    number: int,
    epoch: int,
    node: Node,
    rules: RoundSettings,
    *,
    pause_point: Callable[[], None] = nothing,
    watch: Callable[[Ids, Ids, NDArray[np.bool_]], None] = nothing,
) -> Iterator[Stage]:
    """Play round `number`. `pause_point` may block or raise Stopped; `watch` sees completions while they are written."""
    drawn = draw(number, epoch, node, rules, pause_point=pause_point)
    yield drawn

    sampled = answer(number, node, rules, drawn, pause_point=pause_point, watch=watch)
    judged = judge(number, node, rules, drawn, sampled)
    for lot in range(1, rules.rule.lots):  # dynamic sampling, if the update rule has it
        more = () if teach_enough(judged, rules) else draw_more(number, lot, node, rules, drawn, pause_point=pause_point)
        if not more:
            break
        yield (drawn := Drawn(number, epoch, drawn.groups + more))
        added, watch_all = Drawn(number, epoch, more), watch_after(sampled, rules.max_new, watch)
        answers = answer(number, node, rules, added, pause_point=pause_point, watch=watch_all, first=len(sampled))
        further = judge(number, node, rules, added, answers)
        sampled += answers
        judged = Judged(number, judged.groups + further.groups, judged.tokens + further.tokens)
    node.mix.update(judged.groups, rules.crumb_span)
    yield judged

    groups, size = node.swarm.share(number, epoch, [judged_group.group for judged_group in judged.groups], node.model)
    yield Shared(number, groups, size)

    selection = select(number, node, rules, judged, sampled)
    external = sum(group.encoded.external for group in selection.groups)
    yield Gathered(
        number, len(selection.groups) - external, external, len(node.swarm.waiting()), selection.refusals,
        external_reward=selection.external_reward,
    )  # fmt: skip

    yield learn(number, node, rules, selection.groups, pause_point)


def draw(
    number: int, epoch: int, node: Node, rules: RoundSettings, *, pause_point: Callable[[], None] = nothing, lot: int = 0
) -> Drawn:
    """Draw questions, of each level as often as the node's mix says. `lot` counts the draws of one round.

    A reserved question gives way to another one of its level; one that does not exist, or that is too long for the policy, to
    one of the next level. Each takes another number of the epoch. Raises QuestionsTooLong if the policy can read no question,
    CharterError if there are too few.
    """
    noise, levels = generator(node.seed, "draw", number, *([lot] if lot else [])), node.levels
    ends = np.cumsum(node.mix.shares(levels))
    places = np.minimum(np.searchsorted(ends, noise.random(rules.questions), side="right"), len(levels) - 1)
    numbers = _numbers(number * rules.rule.lots + lot, rules.questions, node.charter.questions_per_epoch)
    ids = [_question_id(levels[place], epoch, following) for place, following in zip(places, numbers, strict=False)]
    chosen: dict[QuestionId, Question] = {}
    looks, any_readable, any_too_long = 0, False, False
    while ids and (looks < LOOKS or any_readable):
        pause_point()
        looks, vacant = looks + 1, list[Level]()
        keys = [question_id.key(node.charter.digest, node.origin) for question_id in ids]
        for question_id, question in zip(ids, node.verifier.questions(keys), strict=True):
            fit = fits(node, rules, question)
            readable = fit and bool(question.text)
            any_readable, any_too_long = any_readable or readable, any_too_long or not fit
            if readable and split_of(question.dataset, question.text) == "train":
                chosen[question_id] = question
            else:
                level = question_id.dataset, question_id.level
                vacant.append(level if readable else levels[(levels.index(level) + 1) % len(levels)])
        ids = [_question_id(level, epoch, following) for level, following in zip(vacant, numbers, strict=False)]
        if len(ids) < len(vacant):
            break
    if any_too_long and not any_readable:
        raise QuestionsTooLong(
            Message("This model reads %1 tokens at a time, and the questions are longer.", rules.context),
            "Choose another model, or other specialties.",
        )
    if len(chosen) < rules.questions:
        raise CharterError(
            Message("%1 has too few questions for %2 a round.", node.charter.name, rules.questions),
            "Lower learning.questions, or choose another swarm.",
        )
    groups = tuple(
        (Group(origin=node.origin, id=question_id, completions=()), question) for question_id, question in chosen.items()
    )
    return Drawn(number, epoch, groups)


def draw_more(
    number: int, lot: int, node: Node, rules: RoundSettings, drawn: Drawn, *, pause_point: Callable[[], None] = nothing
) -> tuple[tuple[Group, Question], ...]:
    """Questions that were not drawn yet; none if the charter has no more of them."""
    try:
        more = draw(number, drawn.epoch, node, rules, pause_point=pause_point, lot=lot)
    except (CharterError, QuestionsTooLong):  # the round goes on with the groups that there are
        return ()
    known = {group.id for group, _ in drawn.groups}
    return tuple((group, question) for group, question in more.groups if group.id not in known)


def _numbers(number: int, questions: int, cap: int) -> Iterator[int]:
    """The numbers of an epoch that a draw may use, each once: draws are two lots apart, so that a few skipped ones are free.

    With 8 questions a round, 65,536 numbers are enough for 4,096 rounds of an epoch, seven a second. A faster node begins anew;
    its peers refuse those groups, as their numbers are used.
    """
    return (position % cap for position in range(2 * number * questions, 2 * number * questions + cap))


def _question_id(level: Level, epoch: int, number: int) -> QuestionId:
    return QuestionId(level[0], epoch, number, level[1])


def answer(
    number: int,
    node: Node,
    rules: RoundSettings,
    drawn: Drawn,
    *,
    pause_point: Callable[[], None],
    watch: Callable[[Ids, Ids, NDArray[np.bool_]], None],
    first: int = 0,
) -> list[list[SampledCompletion]]:
    """Sample G completions for each of the P questions. `first` is the number of the first one in the round."""
    params = SamplingParams(
        max_new=rules.max_new, stops=node.tokenizer.stops, temperature=rules.temperature, top_p=rules.top_p,
        pause_point=pause_point, watch=watch,
    )  # fmt: skip
    prompts = [node.prompt(question) for _, question in drawn.groups]
    noise = uniforms(node.seed, "sample", number, len(prompts), rules.group_size, rules.max_new, first=first)  # (P * G, max_new)
    return node.policy.sample(prompts, noise, params)


def judge(number: int, node: Node, rules: RoundSettings, drawn: Drawn, sampled: Sequence[Sequence[SampledCompletion]]) -> Judged:
    """Turn tokens into texts and let the verifier judge exactly those texts."""
    groups = [
        Group(origin=group.origin, id=group.id, completions=tuple(map(node.completion, row)))
        for (group, _), row in zip(drawn.groups, sampled, strict=True)
    ]
    questions = [question for _, question in drawn.groups]
    answers = [
        (question, completion) for group, question in zip(groups, questions, strict=True) for completion in group.completions
    ]
    verdicts = iter(node.verifier.judge(answers))
    judged = tuple(
        JudgedGroup(
            group=group,
            question=question,
            verdicts=tuple(next(verdicts) for _ in group.completions),
            round=number,
            model=node.model,
            form_pay=rules.form_pay,
        )
        for group, question in zip(groups, questions, strict=True)
    )
    return Judged(number, judged, sum(len(sample.tokens) for row in sampled for sample in row))


def learn(
    number: int, node: Node, rules: RoundSettings, groups: Sequence[WeightedGroup], pause_point: Callable[[], None]
) -> Learned:
    """Take the optimizer steps on the training set; none where nothing pulls.

    Raises Stopped before or between two steps. Then the policy must be opened again, and the round is played once more.
    """
    lessons = [lesson(group, critic=rules.rule.critic) for group in groups]
    rate = _learning_rate(node, rules)
    batches = [each.batch for each in lessons if each.batch is not None]
    steps = list[StepMetrics]()
    for minibatch in minibatches(batches, rules.updates, node.policy, rules.temperature):
        rate = _learning_rate(node, rules)
        params = StepParams(
            learning_rate=rate, temperature=rules.temperature, clip=rules.rule.clip, ratio=rules.rule.ratio,
            value_clip=rules.rule.value_clip, pause_point=pause_point,
        )  # fmt: skip
        steps.append(node.policy.step(minibatch, params))
    metrics = mean_of(steps) if steps else None
    pull = sum(each.pull for each in lessons)
    # by origin: a strategy may bring back the node's own old groups as external ones
    external = sum(each.pull for each in lessons if each.group.group.origin != node.origin)
    return Learned(number, tuple(lessons), metrics, rate, external / pull if pull else 0.0)


def _learning_rate(node: Node, rules: RoundSettings) -> float:
    """The rate of the policy's next step."""
    return rules.learning_rate * min(1.0, (node.policy.steps + 1) / max(1, rules.warmup_steps))


def mean_of(steps: Sequence[StepMetrics]) -> StepMetrics:
    """The means over the steps of a round. `applied` is False if any step was left out."""
    return StepMetrics(
        loss=sum(step.loss for step in steps) / len(steps),
        clip_fraction=sum(step.clip_fraction for step in steps) / len(steps),
        gradient_norm=sum(step.gradient_norm for step in steps) / len(steps),
        applied=all(step.applied for step in steps),
    )
