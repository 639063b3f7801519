"""Lessons: the input of update rule and strategy, and the completions that a training group omits."""

import dataclasses

import msgspec
import numpy as np
import pytest

from sapo.test_round import LINES, RULES, external, node
from waggle.rl.batch import SampledCompletion
from waggle.rl.update_rules import rule, table
from waggle.sapo.fakes import FakeTokenizer, plain_prompter
from waggle.sapo.prompt_form import FORMS, Prompter, WorkedExample
from waggle.sapo.round import play
from waggle.sapo.sharing.interface import Candidates, PeerGroup, TrainingSet
from waggle.sapo.sharing.plain import Plain
from waggle.sapo.training_groups import encode_external, encode_local, fits_at_all
from waggle.tasks.rollout_group import Completion


class Listener(Plain):
    """A strategy that needs log-probs and records them."""

    needs_logp = True

    def __init__(self) -> None:
        self.peers: list[PeerGroup] = []

    def temper(self, peer):
        self.peers.append(peer)
        return peer.advantage * np.float32(0.5)


def learned(me, **rules):
    list(play(0, 100, me, dataclasses.replace(RULES, **rules)))
    (batches,) = me.policy.learned
    return batches


@pytest.mark.parametrize("name", table())
def test_a_batch_has_one_advantage_and_one_weight_for_each_token(verifier, name):
    batches = learned(node(verifier, lines=LINES, pool=[external(i) for i in range(4)]), rule=rule(name))
    for batch in batches:
        count = sum(map(len, batch.completions))
        assert batch.advantage.shape == batch.weight.shape == (count,)
        assert batch.advantage.dtype == batch.weight.dtype == np.float32
        assert (batch.returns is not None) is (name == "ppo")
    assert 0 < sum(float(batch.weight.sum()) for batch in batches) <= 1 + 1e-6


def test_a_critic_learns_from_completions_that_are_gated_out(verifier):
    batches = learned(node(verifier, lines=("just words",), pool=[external(i) for i in range(4)]), rule=rule("ppo"))
    batch = batches[-1]
    length = len("<answer>1</answer>") + 1
    assert [len(ids) for ids in batch.completions] == [length] * 4
    assert batch.advantage[:length].all()
    assert not batch.advantage[length:].any()  # misses, expected at 0: nothing to learn but the value
    assert (batch.returns[length - 1], batch.returns[-1]) == (1.0, 0.0)


def test_a_strategy_that_asks_is_told_the_probability_of_external_tokens_only(verifier):
    sharing = Listener()
    me = dataclasses.replace(node(verifier, pool=[external(i) for i in range(4)]), sharing=sharing)
    batches = learned(me)
    assert len(sharing.peers) == 4
    for peer in sharing.peers:
        assert peer.logp is not None
        assert len(peer.logp) == len(peer.advantage) == sum(peer.lengths)
    np.testing.assert_allclose(batches[-1].advantage[:3], 3**0.5 / 2, rtol=1e-3)


def test_each_group_counts_the_same_share_of_the_places_even_where_few_came_together(verifier):
    batches = learned(node(verifier, lines=LINES, pool=[external(1)]), questions=2, rule=rule("grpo"))
    assert batches
    weights = [len(batch.completions) / RULES.group_size for batch in batches]
    for batch, share in zip(batches, weights, strict=True):
        assert batch.weight.sum() == pytest.approx(share / (RULES.local + RULES.external))


def test_a_completion_too_long_for_its_reader_leaves_a_lone_stop_token_in_its_place():
    group = external(1, (1.0, 0.0, 0.0))
    texts = (Completion(text="x" * 10, ended=True), Completion(text="y" * 11, ended=False), Completion(text="", ended=False))
    group = msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, completions=texts))
    tokenizer = FakeTokenizer()
    draft = encode_external(plain_prompter(tokenizer), group, 10)
    assert draft.fits == (False, False, False), "ten characters and a stop token are eleven"
    assert draft.lengths == (1, 1, 1)
    assert all(ids.tolist() == [tokenizer.stops[0]] for ids in draft.written.completions)
    assert encode_external(plain_prompter(tokenizer), group, 11).lengths == (11, 11, 1)


class TwoStops(FakeTokenizer):
    """Ends a turn of a chat with token 1, a text with token 0."""

    stops = (1, 0)
    has_chat_template = True

    def stop_for(self, *, chat: bool) -> int:
        return 1 if chat else 0


@pytest.mark.parametrize(("form", "stop"), [("chat", 1), ("plain", 0), ("chat_example_opened", 1)])
def test_a_peers_text_ends_with_the_stop_token_of_the_form_and_an_own_one_with_the_one_that_was_sampled(form, stop):
    prompter = Prompter(FORMS[form], TwoStops(), lambda level: WorkedExample("1?", "1"))
    group = external(1, (1.0, 0.0))
    texts = (Completion(text="<answer>7</answer>", ended=True), Completion(text="7", ended=False))
    group = msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, completions=texts))
    ended, cut = encode_external(prompter, group, 40).written.completions
    assert ended.tolist() == [*FakeTokenizer().encode("<answer>7</answer>"), stop]
    assert cut.tolist() == [*FakeTokenizer().encode("7")]
    sampled = [SampledCompletion(np.array([55, end], np.int32), np.zeros(2, np.float32), ended=True) for end in (0, 1)]
    assert [ids[-1] for ids in encode_local(prompter, group, sampled).written.completions] == [0, 1]


def test_what_a_person_wrote_is_learned_from_like_any_other_text_of_a_peer(verifier):
    from_policy = external(0)
    first, *others = from_policy.group.completions
    by_hand = msgspec.structs.replace(first, by="human", logp=None)
    group = msgspec.structs.replace(from_policy, group=msgspec.structs.replace(from_policy.group, completions=(by_hand, *others)))
    plain, marked = (encode_external(plain_prompter(FakeTokenizer()), each, 40) for each in (from_policy, group))
    assert [list(ids) for ids in marked.written.completions] == [list(ids) for ids in plain.written.completions]
    assert (marked.fits, marked.external) == (plain.fits, True), "its log-probs are this policy's own, as of all that is external"
    batches = [learned(node(verifier, lines=("just words",), pool=[each])) for each in (from_policy, group)]
    assert [list(batch.advantage) for batch in batches[0]] == [list(batch.advantage) for batch in batches[1]]


@pytest.mark.parametrize("name", table())
def test_the_external_share_that_is_told_is_that_of_the_gradient(verifier, name):
    long = [external(i, text="long words <answer>1</answer>") for i in range(4)]
    me = node(verifier, lines=LINES, pool=long)
    last = list(play(0, 100, me, dataclasses.replace(RULES, rule=rule(name))))[-1]
    forces = [
        float(np.abs(each.batch.advantage.astype(float) * each.batch.weight).sum()) if each.batch else 0.0
        for each in last.lessons
    ]
    theirs = [force for each, force in zip(last.lessons, forces, strict=True) if each.group.group.origin != me.origin]
    assert 0 < last.external_share == pytest.approx(sum(theirs) / sum(forces), rel=1e-4)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("context", [0, 10, 36, 37, 40, 80, 1000])
@pytest.mark.parametrize(
    "texts", [("",), ("x" * 9,), ("x" * 10,), ("ä" * 9,), ("ä" * 10,), ("x" * 11, "ä" * 11), ("x" * 11, "ä" * 8)]
)
def test_whether_anything_fits_is_what_a_draft_finds(texts, context, ended):
    group = external(1)
    completions = tuple(Completion(text=text, ended=ended) for text in texts)
    group = msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, completions=completions))
    draft = encode_external(plain_prompter(FakeTokenizer()), group, 10, context)
    assert fits_at_all(plain_prompter(FakeTokenizer()), group, 10, context) == any(draft.fits)


def test_own_groups_that_come_back_are_nobody_elses_share(verifier):
    """A strategy may replay the node's own old groups beside those of peers."""
    me = node(verifier, lines=("just words",))
    old = [
        msgspec.structs.replace(each, group=msgspec.structs.replace(each.group, origin=me.origin))
        for each in map(external, range(4))
    ]

    class BringsBack(Plain):
        def choose(self, offer: Candidates) -> TrainingSet:
            return TrainingSet(local=(), external=old)

    last = list(play(0, 100, dataclasses.replace(me, sharing=BringsBack()), RULES))[-1]
    assert sum(lesson.pull for lesson in last.lessons) > 0
    assert last.external_share == 0.0
