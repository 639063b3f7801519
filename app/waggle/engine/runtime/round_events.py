"""Converts the stages of a round into events for the window."""

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence

import msgspec

from waggle.core.peer_id import text_of
from waggle.network.identity.keys import name_of
from waggle.protocol import events
from waggle.protocol.json_lines import LONGEST_SHOWN
from waggle.sapo import stages
from waggle.sapo.first_success import FirstSuccess
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import RIGHT, Group, JudgedGroup, has_form

# Of all texts of one event. The line of such an event, and of a State full of such cards, stays well below json_lines.MAX_LINE.
MAX_EVENT_CHARACTERS = 600_000
TEACHERS = 3  # peers of whom an example goes along with a step


def key_of(group: Group) -> str:
    """The key of a group, the same in every event: the end of its origin's id, and its question."""
    return f"{group.origin[-6:].hex()}/{group.id.dataset}/{group.id.epoch}/{group.id.number}"


class Titles:
    """The titles of a charter's specialties by dataset."""

    def __init__(self, charter: Charter) -> None:
        self._titles = {specialty.dataset: specialty.title for specialty in charter.specialties}

    def __getitem__(self, dataset: str) -> str:
        return self._titles.get(dataset, dataset)


def questions_drawn_event(
    stage: stages.Drawn, titles: Titles, group_size: int, shares: tuple[events.QuestionShare, ...]
) -> events.QuestionsDrawn:
    groups = tuple(_group(group, question, titles) for group, question in stage.groups)
    return events.QuestionsDrawn(round=stage.round, epoch=stage.epoch, groups=groups, group_size=group_size, shares=shares)


def question_shares(node: stages.Node) -> tuple[events.QuestionShare, ...]:
    """How often the node asks about each level of its specialties, in the order of the charter."""
    levels = node.levels
    share_of = dict(zip(levels, node.mix.shares(levels), strict=True))
    return tuple(
        events.QuestionShare(
            specialty=specialty.title,
            levels={
                difficulty: round(float(share_of[specialty.dataset, place]), 4)
                for place, difficulty in enumerate(specialty.levels)
            },
        )
        for specialty in node.charter.specialties
        if (specialty.dataset, 0) in share_of
    )


def groups_judged_event(stage: stages.Judged, titles: Titles, truths: Mapping[QuestionId, str]) -> events.GroupsJudged:
    """`truths`: right answers to questions that no completion solved."""
    most = text_limit(sum(2 + len(group.verdicts) for group in stage.groups))
    groups = (
        msgspec.structs.replace(_shown_group(group, titles, most), truth=truths.get(group.group.id, "")[:most])
        for group in stage.groups
    )
    return events.GroupsJudged(round=stage.round, groups=tuple(groups))


def text_limit(texts: int) -> int:
    """The characters of each text in an event with so many texts: peers' texts must not make a line too long to read."""
    return min(LONGEST_SHOWN, MAX_EVENT_CHARACTERS // max(1, texts))


def shown_groups(groups: Sequence[JudgedGroup], titles: Titles) -> tuple[events.ShownGroup, ...]:
    """Judged groups for one event, as a person sees them."""
    most = text_limit(sum(1 + len(group.verdicts) for group in groups))
    return tuple(_shown_group(group, titles, most) for group in groups)


def _shown_group(group: JudgedGroup, titles: Titles, most: int) -> events.ShownGroup:
    completions = tuple(
        events.ShownCompletion(
            text=completion.text[:most], ended=completion.ended, judged=True, reward=round(verdict.reward, 4),
            reason=verdict.reason, start=verdict.start, length=verdict.length, human=completion.by == "human",
        )
        for completion, verdict in zip(group.group.completions, group.verdicts, strict=True)
    )  # fmt: skip
    return msgspec.structs.replace(_group(group.group, group.question, titles, most), completions=completions)


def groups_gathered_event(stage: stages.Gathered) -> events.GroupsGathered:
    refused: Counter[str] = Counter()
    for by_reason in stage.refusals.values():
        refused.update(by_reason)
    return events.GroupsGathered(
        round=stage.round,
        local=stage.local,
        external=stage.external,
        waiting=stage.waiting,
        refused=dict(refused),
        refused_by_peer={text_of(origin): dict(by_reason) for origin, by_reason in stage.refusals.items()},
    )


def policy_updated_event(stage: stages.Learned, own: stages.Judged, step: int, titles: Titles) -> events.PolicyUpdated:
    """`own` are the local completions of the same round."""
    reason = left_out(stage)
    taught = () if reason else shown_groups(_examples(stage, {judged.group.origin for judged in own.groups}), titles)
    lessons = tuple(
        events.Lesson(key=key_of(lesson.group.group), effects=(0,) * len(lesson.effects) if reason else lesson.effects)
        for lesson in stage.lessons
    )
    metrics = _metrics(stage, own)
    return events.PolicyUpdated(round=stage.round, step=step, metrics=metrics, lessons=lessons, left_out=reason, taught=taught)


def _examples(stage: stages.Learned, own: Container[bytes]) -> list[JudgedGroup]:
    """Of each peer that taught, the first group with a right answer, or else its first; of those who taught most.

    `own`: the origins that are no peers.
    """
    by_peer: dict[bytes, list[JudgedGroup]] = {}
    for lesson in stage.lessons:
        if any(lesson.effects) and lesson.group.group.origin not in own:
            by_peer.setdefault(lesson.group.group.origin, []).append(lesson.group)
    most = sorted(by_peer.values(), key=len, reverse=True)[:TEACHERS]
    return [next((group for group in groups if max(group.rewards) >= RIGHT), groups[0]) for groups in most]


def left_out(stage: stages.Learned) -> events.LeftOut:
    """Why no step was taken; empty if one was."""
    if stage.metrics is None:
        return "no_lesson"
    return "" if stage.metrics.applied else "not_finite"


def round_summary(
    at: float, seconds: float, own: stages.Judged, gathered: stages.Gathered, stage: stages.Learned, titles: Titles,
    recipe: str = "",
) -> events.RoundSummary:  # fmt: skip
    """The figures of one finished round."""
    reason = left_out(stage)
    written = [pair for group in own.groups for pair in zip(group.group.completions, group.verdicts, strict=True)]
    rewards = [reward for group in own.groups for reward in group.rewards]
    by_specialty: dict[str, list[float]] = {}
    for group in own.groups:
        by_specialty.setdefault(titles[group.question.dataset], []).extend(group.rewards)
    return events.RoundSummary(
        round=own.round,
        at=at,
        reward=sum(rewards) / len(rewards),
        solved=sum(reward >= RIGHT for reward in rewards) / len(rewards),
        seconds=seconds,
        completions=len(rewards),
        tokens=own.tokens,
        local=gathered.local,
        external=gathered.external,
        waiting=gathered.waiting,
        external_reward=gathered.external_reward,
        by_specialty={title: sum(values) / len(values) for title, values in by_specialty.items()},
        metrics=_metrics(stage, own),
        taught=0 if reason else sum(lesson.pull > 0 for lesson in stage.lessons),
        left_out=reason == "not_finite",
        readable=sum(has_form(completion, verdict) for completion, verdict in written),
        cut=sum(not completion.ended for completion, _ in written),
        recipe=recipe,
    )


def first_success_event(first_success: FirstSuccess, at: float, titles: Titles) -> events.Aha:
    """A first success for an event."""
    specialty = titles[first_success.dataset]
    if first_success.learned_from is None:
        return events.Aha(round=first_success.round, at=at, specialty=specialty)
    return events.Aha(
        round=first_success.round,
        at=at,
        specialty=specialty,
        origin=text_of(first_success.learned_from),
        name=name_of(first_success.learned_from),
    )


def _group(group: Group, question: Question, titles: Titles, most: int = LONGEST_SHOWN) -> events.ShownGroup:
    return events.ShownGroup(key=key_of(group), specialty=titles[question.dataset], question=question.text[:most])


def _metrics(stage: stages.Learned, own: stages.Judged) -> events.Metrics:
    values = {
        "entropy": own.entropy,
        "completion_tokens": own.tokens / max(1, sum(len(group.verdicts) for group in own.groups)),
        "learning_rate": stage.learning_rate,
    }
    if stage.metrics is not None:
        values |= {
            "loss": stage.metrics.loss,
            "clip_fraction": stage.metrics.clip_fraction,
            "gradient_norm": stage.metrics.gradient_norm,
            "external_share": stage.external_share,
        }
    # A broken model computes NaN or infinity. JSON has neither: they become null, and such a line cannot be decoded.
    return events.Metrics(**{name: value if math.isfinite(value) else 0.0 for name, value in values.items()})
