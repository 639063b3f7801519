"""A whole round on a fake policy and a fake swarm, with the real verifier."""

import dataclasses

import msgspec
import numpy as np
import pytest

from waggle.core.errors import CharterError, QuestionsTooLong, Stopped
from waggle.rl.update_rules import dapo
from waggle.sapo.fakes import FakePolicy, FakeSwarm, FakeTokenizer, plain_prompter
from waggle.sapo.prompt_form import PLAIN
from waggle.sapo.round import draw, play
from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.plain import Plain
from waggle.sapo.stages import BOUNDED, UNBOUNDED, Drawn, Gathered, Judged, Learned, Node, RoundSettings, Shared
from waggle.sapo.training_groups import encode_external
from waggle.tasks.charter import Specialty
from waggle.tasks.questions import Question, QuestionId, split_of
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

CHARTER = first_swarm()
RULES = RoundSettings(questions=8, local=4, external=4, group_size=4, max_new=40)
LINES = ("<answer>1</answer>", "<answer>True</answer>", "<answer>0 0 0</answer>", "just words")


def node(verifier, *, lines=LINES, pool=(), seed=1, origin=b"o" * 38) -> Node:
    return Node(
        policy=FakePolicy(lines), tokenizer=FakeTokenizer(), swarm=FakeSwarm(pool), verifier=verifier, charter=CHARTER,
        origin=origin, seed=seed, model="fake",
    )  # fmt: skip


def external(number: int, rewards: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0), text: str = "<answer>1</answer>") -> JudgedGroup:
    group = Group(
        origin=b"p" * 38, id=QuestionId("bf", 5, number), completions=tuple(Completion(text=text, ended=True) for _ in rewards)
    )
    question = Question(dataset="bf", seed=number, text="What is the output?")
    return JudgedGroup(group=group, question=question, verdicts=tuple(Verdict(reward=r, reason="") for r in rewards))


def test_a_round_tells_its_stages_in_order(verifier):
    stages = list(play(0, 100, node(verifier), RULES))
    assert [type(stage) for stage in stages] == [Drawn, Judged, Shared, Gathered, Learned]


def test_questions_are_regenerable_by_anyone_and_never_reserved(verifier):
    me = node(verifier)
    for number in range(30):
        drawn = draw(number, 100, me, RULES)
        assert len(drawn.groups) == RULES.questions
        for group, question in drawn.groups:
            assert split_of(question.dataset, question.text) == "train"
            assert 0 <= group.id.number < CHARTER.questions_per_epoch
            (regenerated,) = verifier.questions([group.id.key(CHARTER.digest, me.origin)])
            assert regenerated == question


def test_a_seed_of_which_a_dataset_makes_no_question_is_not_asked():
    """The catalogue leaves tsumego out, because some of its keys are not the best move; it has such seeds."""
    hard = Specialty(title="Tsumego", dataset="tsumego")
    charter = msgspec.structs.replace(CHARTER, specialties=(hard,))
    settings = {"min_board_size": 5, "max_board_size": 15, "max_stones": 13}
    verifier = Verifier(charter, datasets=(DatasetLevels("tsumego", (settings,)),))
    try:
        me = dataclasses.replace(node(verifier), charter=charter)
        drawn = [each for number in range(20) for each in draw(number, 100, me, RULES).groups]
        assert len(drawn) == 20 * RULES.questions
        assert all(question.text for _, question in drawn)
        few = dataclasses.replace(me, charter=msgspec.structs.replace(charter, questions_per_epoch=512))
        with pytest.raises(QuestionsTooLong, match="the questions are longer"):
            draw(0, 100, few, dataclasses.replace(RULES, context=RULES.max_new + 100))
    finally:
        verifier.close()


class Mute:
    """A verifier whose second dataset fails for every seed."""

    def __init__(self, verifier: Verifier, dataset: str) -> None:
        self._verifier, self._dataset, self.calls = verifier, dataset, 0

    def questions(self, keys):
        self.calls += 1
        questions = self._verifier.questions(keys)
        return [
            msgspec.structs.replace(question, text="") if question.dataset == self._dataset else question
            for question in questions
        ]


def test_a_specialty_that_makes_no_questions_leaves_the_round_to_the_others(verifier):
    speaks, mute = (specialty.dataset for specialty in CHARTER.specialties[:2])
    muted = Mute(verifier, mute)
    both = dataclasses.replace(node(muted), specialties=(speaks, mute))
    drawn = draw(0, 100, both, RULES)
    assert [group.id.dataset for group, _ in drawn.groups] == [speaks] * RULES.questions
    assert muted.calls < 20
    with pytest.raises(CharterError, match="too few questions"):
        draw(0, 100, dataclasses.replace(both, specialties=(mute,)), RULES)


def test_what_is_longer_than_the_policy_can_read_is_neither_asked_nor_learned(verifier):
    lengths = [len(question.text) for _, question in draw(0, 100, node(verifier), RULES).groups]
    longest = len(PLAIN.text("")) + sorted(lengths)[4] + RULES.max_new
    narrow = dataclasses.replace(RULES, context=longest)
    me = node(verifier)
    drawn, *_ = play(0, 100, me, narrow)
    prompts = [len(PLAIN.text(question.text)) for _, question in drawn.groups]
    assert len(prompts) == RULES.questions
    assert max(prompts) + RULES.max_new <= longest
    question = len(PLAIN.text(external(1).question.text))
    for text, fit in (("<answer>1", True), ("<answer>1</answer>", False)):
        draft = encode_external(plain_prompter(me.tokenizer), external(1, text=text), 40, question + 12)
        assert draft.fits == (fit,) * 4
    beyond = encode_external(plain_prompter(me.tokenizer), external(1), 40, 5)
    assert beyond.fits == (False,) * 4, "the question alone is too long"


def test_two_nodes_draw_different_questions_and_one_node_the_same_again(verifier):
    def texts(seed):
        return [question.text for _, question in draw(3, 100, node(verifier, seed=seed), RULES).groups]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_the_same_round_played_twice_is_the_same(verifier):
    first, second = (list(play(5, 100, node(verifier), RULES)) for _ in range(2))
    assert first[1] == second[1]


def test_external_groups_that_teach_nothing_are_never_drawn_and_own_ones_take_their_place(verifier):
    pool = [external(1), external(2, (0.0,) * 4), external(3, (0.05, 0.0, 0.05, 0.0))]
    me = node(verifier, pool=pool)
    stages = list(play(0, 100, me, RULES))
    gathered = stages[3]
    assert (gathered.external, gathered.local) == (1, 7)
    assert me.swarm.pool == pool[1:]


def test_a_peers_group_of_which_nothing_fits_takes_nobodys_place_and_leaves_the_pool(verifier):
    pool = [external(1, text="x" * 100), external(2), external(3, text="y" * 100)]
    me = dataclasses.replace(node(verifier, pool=pool), sharing=Gated())
    gathered, learned = list(play(0, 100, me, RULES))[3:]
    assert (gathered.local, gathered.external, gathered.waiting) == (7, 1, 0)
    assert [lesson.group for lesson in learned.lessons[7:]] == [pool[1]]


def test_a_full_pool_gives_exactly_as_many_groups_as_asked_for(verifier):
    me = dataclasses.replace(node(verifier, pool=[external(i) for i in range(20)]), sharing=Gated())
    gathered = list(play(0, 100, me, RULES))[3]
    assert (gathered.local, gathered.external, gathered.waiting) == (4, 4, 16)


def test_by_default_own_groups_that_teach_nothing_give_their_places_to_peers(verifier):
    me = node(verifier, lines=("just words",), pool=[external(i) for i in range(20)])
    gathered = list(play(0, 100, me, RULES))[3]
    assert (gathered.local, gathered.external, gathered.waiting) == (0, 8, 12)


def test_what_a_peer_got_wrong_is_not_pushed_down_and_keeps_its_place_in_the_denominator(verifier):
    me = node(verifier, lines=("just words",), pool=[external(i) for i in range(4)])
    learned = list(play(0, 100, me, RULES))[-1]
    (batches,) = me.policy.learned
    assert [len(batch.completions) for batch in batches] == [1] * 4
    length = len("<answer>1</answer>") + 1  # with one's own stop token
    for batch in batches:
        assert batch.completions[0][-1] == FakeTokenizer.stop
        assert batch.weight[0] == pytest.approx(1 / (8 * 4 * length))
        assert batch.advantage[0] == pytest.approx(3**0.5, rel=1e-3)
    assert {lesson.effects for lesson in learned.lessons[4:]} == {(1, 0, 0, 0)}
    assert learned.external_share == 1.0


def test_a_cut_completion_gets_no_stop_token_and_an_overlong_one_is_dropped(verifier):
    cut = external(1)
    cut = JudgedGroup(
        group=Group(
            origin=cut.group.origin,
            id=cut.group.id,
            completions=(Completion(text="abc", ended=False), Completion(text="x" * 100, ended=True), *cut.group.completions[2:]),
        ),
        question=cut.question,
        verdicts=tuple(Verdict(reward=r, reason="") for r in (1.0, 1.0, 0.0, 0.0)),
    )
    me = node(verifier, lines=("just words",), pool=[cut])
    list(play(0, 100, me, RULES))
    (batch,) = me.policy.learned[0]
    np.testing.assert_array_equal(batch.completions[0], FakeTokenizer().encode("abc"))
    assert len(batch.completions) == 1


def test_a_round_in_which_nothing_teaches_takes_no_step(verifier):
    me = node(verifier, lines=("just words",))
    learned = list(play(0, 100, me, RULES))[-1]
    assert learned.metrics is None
    assert me.policy.steps == 0


def test_the_tokens_trained_on_are_those_that_were_sampled_stop_included(verifier):
    me = node(verifier, lines=("<answer>1</answer>", "<answer>2</answer>", "no"))
    for number in range(40):
        stages = list(play(number, 100, me, RULES))
        if stages[-1].metrics is not None:
            break
    batch = me.policy.learned[-1][0]
    for ids in batch.completions:
        assert ids[-1] == FakeTokenizer.stop
        assert FakeTokenizer().decode(ids[:-1]) in ("<answer>1</answer>", "<answer>2</answer>", "no")


def test_a_stop_between_two_steps_leaves_the_policy_as_it_was(verifier):
    me = node(verifier)

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(play(0, 100, me, RULES, pause_point=stop))
    assert me.policy.steps == 0


def test_everything_a_node_wrote_is_offered_to_the_swarm_and_nothing_that_judges_it(verifier):
    me = node(verifier)
    judged, shared = list(play(0, 100, me, RULES))[1:3]
    assert me.swarm.shared == [each.group for each in judged.groups]
    assert (shared.groups, shared.bytes > 0) == (8, True)


def test_a_charter_with_too_few_questions_is_named_instead_of_searched_for_ever(verifier):
    small = msgspec.structs.replace(CHARTER, questions_per_epoch=16, specialties=CHARTER.specialties[:1])
    me = dataclasses.replace(node(verifier), charter=small)
    with pytest.raises(CharterError, match="too few questions"):
        draw(0, 100, me, dataclasses.replace(RULES, questions=64))


def test_a_policy_that_can_read_no_question_is_named_soon_and_a_stop_is_heard_meanwhile(verifier):
    looks = []

    def stop() -> None:
        looks.append(1)
        if len(looks) == 100:
            raise Stopped

    me = dataclasses.replace(node(verifier), specialties=("basic_arithmetic",))
    narrow = dataclasses.replace(RULES, context=RULES.max_new + 1)
    with pytest.raises(QuestionsTooLong, match="reads 41 tokens at a time"):
        draw(0, 100, me, narrow)
    with pytest.raises(Stopped):
        draw(0, 100, me, narrow, pause_point=stop)


def test_a_large_group_of_a_peer_pulls_no_harder_than_a_small_one(verifier):
    small, large = external(1, (1.0, 0.0)), external(2, (1.0, 0.0) * 8)
    me = node(verifier, lines=("just words",), pool=[small, large])
    lessons = list(play(0, 100, me, RULES))[-1].lessons[-2:]
    assert lessons[0].pull == pytest.approx(lessons[1].pull, rel=1e-3)


class Startled(FakePolicy):
    """A policy for which all external tokens are unlikely."""

    def logprobs(self, texts, temperature):
        return [np.full(sum(map(len, text.completions)), -9.0, np.float32) for text in texts]


@pytest.mark.parametrize(("bounds", "learned"), [(BOUNDED, False), (UNBOUNDED, True)])
def test_a_round_leaves_out_what_is_strange_where_its_bounds_say_so(verifier, bounds, learned):
    me = dataclasses.replace(node(verifier, pool=[external(1, text="gold! 1")]), policy=Startled(LINES))
    *_, last = play(0, 100, me, dataclasses.replace(RULES, bounds=bounds))
    theirs = [each for each in last.lessons if each.group.group.origin != me.origin]
    assert [each for each in theirs if 1 in each.effects] == (theirs if learned else [])
    assert bool(theirs) == learned
    assert not me.swarm.pool, "it is not looked at again"


def by(letter, group):
    return msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, origin=letter * 38))


class StartledByGold(FakePolicy):
    """A policy for which texts with "gold" are unlikely."""

    def logprobs(self, texts, temperature):
        return [
            np.concatenate(
                [np.full(len(ids), -9.0 if "gold" in FakeTokenizer().decode(ids) else 0.0) for ids in text.completions]
            )
            for text in texts
        ]


def test_the_places_of_what_is_too_strange_go_to_what_others_sent(verifier):
    honest = [by(letter, external(i)) for letter in (b"a", b"b", b"c") for i in range(2)]
    planted = [by(letter, external(i, text="gold! 1")) for letter in (b"x", b"y") for i in range(20)]
    for number in range(4):
        me = dataclasses.replace(node(verifier), policy=StartledByGold(("just words",)), swarm=FakeSwarm([*planted, *honest]))
        gathered, learned = list(play(number, 100, me, RULES))[3:]
        theirs = [each.group for each in learned.lessons if each.group in honest]
        assert (len(theirs), gathered.external, gathered.local) == (6, 6, 0)
        assert not [group for group in honest if group in me.swarm.pool]
        assert len(me.swarm.pool) >= len(planted) - RULES.local, "nobody looks at more of it than may be learned"


def test_a_round_gives_nobody_more_than_a_share_of_places_and_gradient(verifier):
    crowd = [external(number) for number in range(8)]
    others = [by(letter, external(number)) for letter, number in zip((b"a", b"b", b"c"), range(20, 23), strict=True)]
    me = node(verifier, pool=[*crowd, *others], lines=("just words",))
    *_, gathered, last = play(0, 100, me, RULES)
    pulls = {}
    for lesson in last.lessons:
        pulls.setdefault(lesson.group.group.origin, []).append(lesson.pull)
    assert len(pulls[b"p" * 38]) == 2
    assert sum(pulls[b"p" * 38]) < 2 * pulls[b"a" * 38][0]
    assert gathered.external == 5


def test_groups_are_as_large_as_the_charter_lets_travel():
    narrow = msgspec.structs.replace(CHARTER, group_size_min=2, group_size_max=4)
    wide = msgspec.structs.replace(CHARTER, group_size_min=12, group_size_max=16)
    assert [RoundSettings(group_size=8).under(charter).group_size for charter in (narrow, CHARTER, wide)] == [4, 8, 12]


class Recorder(FakePolicy):
    """A policy that records the learning rate of each step, and leaves out the steps with these numbers."""

    def __init__(self, lines, *, refused: tuple[int, ...] = ()) -> None:
        super().__init__(lines)
        self.rates: list[float] = []
        self._refused = refused

    def step(self, batches, params):
        self.rates.append(params.learning_rate)
        metrics = super().step(batches, params)
        return dataclasses.replace(metrics, loss=float(self.steps), applied=self.steps - 1 not in self._refused)


@pytest.mark.parametrize(("refused", "applied"), [((), True), ((1,), False), ((0, 1, 2), False)])
def test_each_step_of_a_round_has_its_own_learning_rate_and_the_round_their_means(verifier, refused, applied):
    rules = dataclasses.replace(RULES, updates=3, warmup_steps=10, learning_rate=1e-3, local=0, external=4)
    me = dataclasses.replace(node(verifier, pool=[external(i) for i in range(4)]), policy=Recorder(LINES, refused=refused))
    *_, learned = play(0, 100, me, rules)
    assert me.policy.rates == pytest.approx([1e-4, 2e-4, 3e-4])
    assert learned.learning_rate == me.policy.rates[-1]
    assert learned.metrics is not None
    assert (learned.metrics.loss, learned.metrics.applied) == (2.0, applied)


def test_dapo_shares_its_weight_among_the_tokens_of_groups_that_teach(verifier):
    """So own groups that teach nothing do not make a lesson weaker: here four of them are in the training set, too."""
    me = node(verifier, lines=("just words",), pool=[external(i) for i in range(4)])
    me = dataclasses.replace(me, sharing=Plain())
    *_, learned = play(0, 100, me, dataclasses.replace(RULES, rule=dapo.RULE))
    assert len(learned.lessons) == 8
    ((first, *others),) = me.policy.learned
    tokens = 4 * 4 * (len("<answer>1</answer>") + 1)
    assert len(others) == 3
    assert first.weight == pytest.approx(1 / tokens)


def test_longer_answers_of_peers_are_learned_from_as_far_as_memory_allows(verifier):
    """A model may write short answers only, because it needs no more; others need more."""
    short = dataclasses.replace(RULES, max_new=12)
    pool = [external(number, text=f"<answer>{number}</answer> as I worked out") for number in range(4)]
    for rules, count in ((short, 0), (dataclasses.replace(short, external_max=RULES.max_new), 4)):
        *_, gathered, _ = play(0, 100, node(verifier, lines=("no",), pool=pool), rules)
        assert gathered.external == count
        assert gathered.refusals == ({} if count else {b"p" * 38: {"too_long": 4}})
