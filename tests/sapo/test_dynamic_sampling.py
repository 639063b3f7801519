"""Dynamic sampling: a round of DAPO draws again until enough of its own groups teach, at most three times in all."""

import dataclasses

import msgspec
import numpy as np
import pytest

from sapo.test_round import CHARTER, LINES, RULES, external, node
from waggle.rl.update_rules import dapo
from waggle.sapo.fakes import FakePolicy, FakeSwarm
from waggle.sapo.round import draw, play
from waggle.sapo.sharing.filtered import Filtered
from waggle.sapo.sharing.plain import Plain
from waggle.sapo.stages import Drawn, Gathered, Judged, Learned, Shared

DAPO = dataclasses.replace(RULES, rule=dapo.RULE)
PAID = dataclasses.replace(DAPO, form_pay=0.3)  # so that LINES teach whatever the questions are
SILENT = ("just words",)  # of which no group teaches


class Later(FakePolicy):
    """A policy that answers with words alone until it is asked for the second, or a later, time in a round."""

    def __init__(self, silent: int) -> None:
        super().__init__(LINES)
        self.silent, self.calls, self.noise = silent, 0, []

    def sample(self, prompts, uniforms, params):
        self.calls += 1
        self.noise.append(uniforms)
        return (FakePolicy(SILENT) if self.calls <= self.silent else super()).sample(prompts, uniforms, params)


def answering(verifier, silent: int, **more):
    return dataclasses.replace(node(verifier), policy=Later(silent), **more)


@pytest.mark.parametrize(("silent", "lots"), [(0, 1), (1, 2), (9, 3)])
def test_it_draws_again_while_too_few_groups_teach_and_not_for_ever(verifier, silent, lots):
    me = answering(verifier, silent)
    stages = list(play(3, 100, me, PAID))
    assert [type(stage) for stage in stages] == [*[Drawn] * lots, Judged, Shared, Gathered, Learned]
    assert [len(stage.groups) for stage in stages[:lots]] == [8 * (1 + lot) for lot in range(lots)]
    judged = stages[lots]
    assert [each.group.id for each in judged.groups] == [group.id for group, _ in stages[lots - 1].groups]
    assert me.policy.calls == lots
    assert judged.tokens == sum(len(text) + 1 for each in judged.groups for text in (c.text for c in each.group.completions))


def test_other_rules_draw_once(verifier):
    me = answering(verifier, 9)
    list(play(3, 100, me, RULES))
    assert me.policy.calls == 1


def test_no_question_and_no_noise_of_an_epoch_is_used_twice(verifier):
    me, ids = answering(verifier, 10**9), []
    for number in range(5):
        *_, last, judged, _, _, _ = play(number, 100, me, DAPO)
        ids += [each.group.id for each in judged.groups]
        assert len(last.groups) == 24
    assert len(set(ids)) == len(ids) == 120
    rows = np.concatenate(me.policy.noise)
    assert len(np.unique(rows[:, :8], axis=0)) == len(rows)


def test_the_first_draw_of_a_round_is_that_of_rules_that_draw_once(verifier):
    """But for its numbers, which leave room for more draws."""
    me = node(verifier)
    levels = [[(group.id.dataset, group.id.level) for group, _ in draw(0, 100, me, rules).groups] for rules in (RULES, DAPO)]
    assert levels[0] == levels[1]


def test_a_charter_without_further_questions_ends_the_drawing_and_not_the_round(verifier):
    small = msgspec.structs.replace(CHARTER, questions_per_epoch=12, specialties=CHARTER.specialties[:1])
    me = answering(verifier, 9, charter=small)
    *_, judged, _, _, learned = play(0, 100, me, DAPO)
    ids = [each.group.id for each in judged.groups]
    assert 8 <= len(ids) == len(set(ids)) <= 12
    assert learned.metrics is None


def test_all_groups_are_shared_and_those_that_teach_are_learned_from(verifier):
    me = answering(verifier, 1, sharing=Filtered(), swarm=FakeSwarm([external(1)]))
    *_, judged, shared, gathered, learned = play(3, 100, me, dataclasses.replace(PAID, local=2, external=1))
    assert shared.groups == len(judged.groups) == len(me.swarm.shared) > 8
    assert gathered.external == 1
    assert all(lesson.batch is not None for lesson in learned.lessons), "dynamic sampling is for groups that teach"


def test_while_more_is_written_a_person_sees_what_was_written_before(verifier):
    class Watched(Later):
        def sample(self, prompts, uniforms, params):
            rows = super().sample(prompts, uniforms, params)
            tokens = np.zeros((len(uniforms), params.max_new), np.int32)
            params.watch(tokens, np.full(len(tokens), 2, np.int32), np.zeros(len(tokens), np.bool_))
            return rows

    policy, watched = Watched(9), []
    me = dataclasses.replace(node(verifier), policy=policy)
    list(play(3, 100, me, DAPO, watch=lambda *rows: watched.append(tuple(each.copy() for each in rows))))
    assert [tokens.shape for tokens, _, _ in watched] == [(32, 40), (64, 40), (96, 40)]
    tokens, lengths, ended = watched[2]
    assert me.tokenizer.decode(tokens[0, : lengths[0] - 1]) == SILENT[0]
    assert ended[:64].all()
    assert not ended[64:].any()
    assert lengths[64:].tolist() == [2] * 32


def test_a_long_answer_of_a_peer_costs_it_under_dapo(verifier):
    """The lengths of peers' answers count in the node's own tokens."""
    group = external(1, (1.0, 1.0, 0.0, 0.0))
    texts = ("<answer>1</answer>", "<answer>1</answer>" + 20 * "!", "no", "no")
    group = msgspec.structs.replace(
        group,
        group=msgspec.structs.replace(
            group.group,
            completions=tuple(
                msgspec.structs.replace(completion, text=text)
                for completion, text in zip(group.group.completions, texts, strict=True)
            ),
        ),
    )
    me = dataclasses.replace(node(verifier, lines=SILENT), swarm=FakeSwarm([group]), sharing=Plain())
    *_, learned = play(0, 100, me, DAPO)
    batch = next(lesson.batch for lesson in learned.lessons if lesson.batch is not None)
    short, long = (part[0] for part in np.split(batch.advantage, np.cumsum([len(ids) for ids in batch.completions])[:-1])[:2])
    assert [len(ids) for ids in batch.completions][:2] == [19, 39]  # of 40: 39 tokens cost 7/8
    assert short > long
