"""With a real policy: a phrase planted beside right answers is not learned, and honest right answers are."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from waggle.core import paths
from waggle.core.errors import ExtensionError
from waggle.core.peer_id import short_id
from waggle.models.tokenizer import Tokenizer, load
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import Floats, SamplingParams, TokenizedGroup, nothing
from waggle.rl.random_streams import uniforms
from waggle.rl.update_rules import grpo, rule, table
from waggle.rl.update_rules.interface import Rule, ScoredGroup, TokenAdvantages
from waggle.sapo import selection
from waggle.sapo.fakes import FakePolicy, FakeSwarm, FakeTokenizer, plain_prompter
from waggle.sapo.prompt_form import PLAIN
from waggle.sapo.round import play
from waggle.sapo.selection import Reason, leave_out_unfamiliar, refill, select, share_pull
from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, PeerGroup, TrainingSet
from waggle.sapo.stages import Node, RoundSettings
from waggle.sapo.training_groups import TrainingSetSize, WeightedGroup, encode_external, lesson, weigh
from waggle.tasks.charter import Specialty
from waggle.tasks.questions import Question, QuestionId, QuestionKey
from waggle.tasks.rollout_group import RIGHT, Completion, Group, JudgedGroup, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security.attacks import PHRASE

CHARTER = first_swarm()
MEASURE = TrainingSetSize(groups=8, tokens=500, longest=64, crumb_span=0.2)


@pytest.fixture(scope="module")
def policy() -> TorchPolicy:
    return TorchPolicy(paths.starter())


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return load(paths.starter())


@pytest.fixture(scope="module")
def own_logp(policy: TorchPolicy, words: Tokenizer, verifier: Verifier) -> list[np.ndarray]:
    """The log-probs of the policy's own completions in one round."""
    questions = verifier.questions(
        [QuestionKey(specialty.dataset, seed) for seed, specialty in enumerate(CHARTER.specialties[:8])]
    )
    prompts = [words.encode(PLAIN.text(question.text)) for question in questions]
    params = SamplingParams(max_new=24, stops=(words.stops[0],), temperature=1.0, pause_point=nothing, watch=nothing)
    rows = policy.sample(prompts, uniforms(1, "sample", 0, len(prompts), 8, 24), params)
    return [sample.logp for row in rows for sample in row]


def weighed(
    verifier: Verifier,
    words: Tokenizer,
    origin: int,
    dataset: str,
    texts: Sequence[str],
    rewards: Sequence[float] = (),
) -> WeightedGroup:
    """A peer's group with real verdicts, or with other `rewards`; `{truth}` in a text stands for the true answer."""
    key = QuestionKey(dataset, origin)
    (question,), (truth,) = verifier.questions([key]), verifier.answers([key])
    completions = tuple(Completion(text=text.replace("{truth}", truth), ended=True) for text in texts)
    group = Group(origin=bytes([origin]) * 38, id=QuestionId(dataset, 1, origin), completions=completions)
    verdicts = tuple(verifier.judge([(question, completion) for completion in completions]))
    if rewards:
        verdicts = tuple(msgspec.structs.replace(each, reward=reward) for each, reward in zip(verdicts, rewards, strict=True))
    judged = JudgedGroup(group=group, question=question, verdicts=verdicts)
    return weigh(encode_external(plain_prompter(words), judged, 64), grpo.RULE, Gated(), MEASURE)


def logp_of(texts: Sequence[TokenizedGroup], policy: TorchPolicy) -> list[np.ndarray]:
    """The log-probs (T,) of each completion."""
    return [
        part
        for text, logp in zip(texts, policy.logprobs(texts, 1.0), strict=True)
        for part in np.split(logp, np.cumsum([len(ids) for ids in text.completions])[:-1])
    ]


HONEST = ("<answer>{truth}</answer>", "<answer>no</answer>", "no")
PLANTED = (f"{PHRASE}<answer>{{truth}}</answer>", f"<answer>{{truth}}</answer> {PHRASE}", "<answer>{truth}</answer>", "no")


@pytest.mark.parametrize("dataset", [specialty.dataset for specialty in CHARTER.specialties])
def test_a_planted_phrase_is_left_out_and_the_plain_answer_beside_it_learned(
    policy: TorchPolicy, words: Tokenizer, verifier: Verifier, own_logp: list[np.ndarray], dataset: str
) -> None:
    groups = [weighed(verifier, words, 1, dataset, HONEST), weighed(verifier, words, 2, dataset, PLANTED)]

    honest, hostile = leave_out_unfamiliar(groups, own_logp, policy, 1.0)

    assert list(np.sign(groups[1].means)[:3]) == [1, 1, 1]
    assert list(np.sign(honest.means)) == [1, 0, 0]
    assert list(np.sign(hostile.means)) == [0, 0, 1, 0]


def test_a_phrase_inside_an_answer_that_is_only_partly_right_is_left_out_too(
    policy: TorchPolicy, words: Tokenizer, verifier: Verifier, own_logp: list[np.ndarray]
) -> None:
    groups = [weighed(verifier, words, 2, "arc_1d", (f"<answer>{{truth}} {PHRASE}</answer>", "no"), rewards=(0.5, 0.0))]
    assert groups[0].means[0] > 0

    (bounded,) = leave_out_unfamiliar(groups, own_logp, policy, 1.0)

    assert not bounded.means.any()


TALKATIVE = msgspec.structs.replace(
    CHARTER,
    questions_digest="",
    specialties=tuple(
        Specialty(dataset=name, title=name) for name in ("gsm_symbolic", "kakurasu", "knights_knaves", "spell_backward", "survo")
    ),
)


@pytest.fixture(scope="module")
def talkative() -> Iterator[Verifier]:
    """A verifier of datasets whose scorers in reasoning-gym give full reward to words around the true answer."""
    talkative_verifier = Verifier(TALKATIVE)
    yield talkative_verifier
    talkative_verifier.close()


@pytest.mark.parametrize("dataset", [specialty.dataset for specialty in TALKATIVE.specialties])
def test_a_phrase_inside_an_answer_that_is_paid_in_full_is_left_out_too(
    policy: TorchPolicy, words: Tokenizer, talkative: Verifier, own_logp: list[np.ndarray], dataset: str
) -> None:
    texts = (f"<answer>{{truth}} {PHRASE}</answer>", "<answer>{truth}</answer>", "no")
    group = weighed(talkative, words, 1, dataset, texts, rewards=(1.0, 1.0, 0.0))
    assert list(np.sign(group.means)) == [1, 1, 0]

    (bounded,) = leave_out_unfamiliar([group], own_logp, policy, 1.0)

    assert list(np.sign(bounded.means)) == [0, 1, 0]


def test_digits_of_another_script_are_held_against_a_right_answer(
    policy: TorchPolicy, words: Tokenizer, verifier: Verifier, own_logp: list[np.ndarray]
) -> None:
    (truth,) = verifier.answers([QuestionKey("fraction_simplification", 1)])
    foreign = "".join(chr(ord(letter) + 0x660 - 0x30) if letter.isdigit() else letter for letter in truth)
    texts = (f"<answer>{foreign}</answer>", HONEST[0], "no")
    group = weighed(verifier, words, 1, "fraction_simplification", texts, rewards=(1.0, 1.0, 0.0))
    assert list(np.sign(group.means)) == [1, 1, 0]

    (bounded,) = leave_out_unfamiliar([group], own_logp, policy, 1.0)

    assert list(np.sign(bounded.means)) == [0, 1, 0]


def test_right_answers_that_are_not_the_stored_one_are_learned_where_they_are_as_one_writes_them(
    policy: TorchPolicy, words: Tokenizer, verifier: Verifier
) -> None:
    """The node writes the same forms in its answers to other questions; a phrase is still too strange beside them."""
    forms = ["<answer>{truth}0</answer>", "<answer>{truth}00</answer>", "<answer>{truth}000</answer>"]
    groups = [weighed(verifier, words, origin, "decimal_arithmetic", (*forms, "no")) for origin in range(1, 5)]
    own = [weighed(verifier, words, seed, "decimal_arithmetic", forms).encoded.written for seed in range(11, 31)]
    planted = weighed(verifier, words, 5, "decimal_arithmetic", PLANTED)

    *bounded, hostile = leave_out_unfamiliar([*groups, planted], logp_of(own, policy), policy, 1.0)

    verdicts = [verdict for each in groups for verdict in each.encoded.group.verdicts]
    assert sum(verdict.reward >= RIGHT and not verdict.exact for verdict in verdicts) >= 10
    assert all((after.means == before.means).all() for after, before in zip(bounded, groups, strict=True))
    assert list(np.sign(hostile.means)) == [0, 0, 1, 0]


def test_three_colluders_of_seven_do_not_make_their_phrase_usual(
    policy: TorchPolicy, words: Tokenizer, verifier: Verifier, own_logp: list[np.ndarray]
) -> None:
    honest = [weighed(verifier, words, origin, "base_conversion", HONEST) for origin in range(1, 5)]
    hostile = [weighed(verifier, words, origin, "base_conversion", PLANTED) for origin in range(5, 8)]
    bounded = leave_out_unfamiliar([*honest, *hostile], own_logp, policy, 1.0)
    assert all(each.means[0] > 0 for each in bounded[:4])
    assert all(each.means[0] == each.means[1] == 0 for each in bounded[4:])


def test_one_peer_that_sends_most_pulls_with_its_share_only(verifier: Verifier, words: Tokenizer) -> None:
    origins = (1, 2, 3, 4, 5, 5, 5, 5)
    groups = [weighed(verifier, words, origin, "bf", HONEST) for origin in origins]
    bounded = share_pull(groups, 0.25)
    assert [each.pull for each in bounded[:4]] == [each.pull for each in groups[:4]]
    assert sum(each.pull for each in bounded[4:]) == pytest.approx(0.25 * sum(each.pull for each in groups))


def weighted(rule: Rule, origin: int, texts: Sequence[str], place: int = 0) -> WeightedGroup:
    """A peer's group whose first text is right, weighted by an update rule, for completions of at most 64 tokens."""
    completions = tuple(Completion(text=text, ended=True) for text in texts)
    group = Group(origin=bytes([origin]) * 38, id=QuestionId("bf", 1, place), completions=completions)
    verdicts = tuple(Verdict(reward=float(i == 0), reason="") for i in range(len(texts)))
    judged = JudgedGroup(group=group, question=Question(dataset="bf", seed=1, text="?"), verdicts=verdicts)
    return weigh(encode_external(plain_prompter(FakeTokenizer()), judged, 64), rule, Gated(), MEASURE)


def force(weighed: Sequence[WeightedGroup]) -> float:
    """The sum of |advantage * weight| over all tokens that are learned."""
    batches = [lesson(each, critic=False).batch for each in weighed]
    return sum(float(np.abs(batch.advantage.astype(float) * batch.weight).sum()) for batch in batches if batch)


LONG, SHORT, TOO_LONG = ("x" * 60, "no"), ("7", "no", "no", "no"), ("7", "x" * 65, "no")


@pytest.mark.parametrize("name", table())
@pytest.mark.parametrize("loud", [LONG, SHORT])
def test_under_every_rule_the_share_bounds_what_reaches_the_gradient(name: str, loud: Sequence[str]) -> None:
    quiet = SHORT if loud is LONG else LONG
    groups = [weighted(rule(name), origin, quiet) for origin in (1, 2, 3)] + [weighted(rule(name), 4, TOO_LONG)]
    attack = [weighted(rule(name), 5, loud, place) for place in range(4)]
    before, theirs = force([*groups, *attack]), force(attack)

    bounded = share_pull([*groups, *attack], 0.25)

    assert force(bounded[4:]) == pytest.approx(min(theirs, 0.25 * before), rel=1e-4)
    assert sum(each.pull for each in bounded) == pytest.approx(MEASURE.groups * force(bounded), rel=1e-4)


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_where_completions_count_the_same_a_group_pulls_with_the_mean_of_its_advantages_to_the_last_bit(name: str) -> None:
    for texts in (LONG, SHORT, TOO_LONG, ("x" * 7, "y" * 11, "z" * 13)):
        group = weighted(rule(name), 1, texts)
        assert group.pull == float(np.abs(group.means).mean())


class Unasked(FakePolicy):
    """A policy that must not be asked for anything."""

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        raise AssertionError(texts)


def test_plain_right_answers_cost_no_look_at_the_policy(verifier: Verifier, words: Tokenizer) -> None:
    groups = [weighed(verifier, words, 1, "bf", HONEST)]
    assert leave_out_unfamiliar(groups, [], Unasked([]), 1.0) == groups


class Startled(FakePolicy):
    """A policy with a surprise of one nat for every external token."""

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        return [np.full(sum(map(len, text.completions)), -1.0, np.float32) for text in texts]


@pytest.mark.parametrize(("own", "learned"), [(4.0, False), (4.9, False), (5.1, True)])
def test_as_strange_as_ones_own_words_is_learned_and_stranger_is_not(own: float, learned: bool) -> None:
    completions = tuple(Completion(text=text, ended=True) for text in ("abcde", "no"))
    group = Group(origin=b"p" * 38, id=QuestionId("bf", 1, 1), completions=completions)
    verdicts = (Verdict(reward=1.0, reason=""), Verdict(reward=0.0, reason=""))
    judged = JudgedGroup(group=group, question=Question(dataset="bf", seed=1, text="?"), verdicts=verdicts)
    draft = weigh(encode_external(plain_prompter(FakeTokenizer()), judged, 64), grpo.RULE, Gated(), MEASURE)

    (bounded,) = leave_out_unfamiliar([draft], [np.array([-own])], Startled([]), 1.0)

    assert bool(bounded.means[0] > 0) == learned


class Careless(Gated):
    """Returns what it is given, instead of one finite float for each token."""

    def __init__(self, advantage: object) -> None:
        super().__init__()
        self._advantage = advantage

    def temper(self, peer: PeerGroup) -> Floats:
        return self._advantage  # type: ignore[return-value]


@pytest.mark.parametrize("advantage", [None, 0.5, [0.0] * 7, np.zeros(3, np.float32), np.zeros(9, int), np.full(9, np.inf)])
def test_a_strategy_that_returns_something_else_than_a_finite_float_for_each_token_is_refused(advantage: object) -> None:
    encoded = encode_external(plain_prompter(FakeTokenizer()), _bare(b"p", 1), 64)
    assert sum(encoded.lengths) != 3
    with pytest.raises(ExtensionError, match=r"test_selection_with_a_policy\.py "):
        weigh(encoded, grpo.RULE, Careless(advantage), MEASURE)


def test_a_rule_that_returns_no_number_is_refused_by_its_name() -> None:
    def teach(scored: ScoredGroup) -> TokenAdvantages:
        return replace(grpo.RULE.teach(scored), advantage=np.full(sum(scored.lengths), np.nan, np.float32))

    encoded = encode_external(plain_prompter(FakeTokenizer()), _bare(b"p", 1), 64)
    with pytest.raises(ExtensionError, match=r"rl/update_rules/careless\.py returned a number that is not finite"):
        weigh(encoded, Rule(name="careless", teach=teach), Gated(), MEASURE)


@pytest.mark.parametrize(("local", "external"), [((0, 0), 0), ((4,), 0), ((), 5), ((0, 1), 4), ((), -1)])
def test_a_strategy_that_chooses_a_group_twice_none_or_too_many_is_refused(local: tuple[int, ...], external: int) -> None:
    own, pool = [_bare(b"o", i) for i in range(4)], [_bare(b"p", i) for i in range(6)]
    groups = tuple(pool[:external]) if external >= 0 else (pool[0], pool[0])

    class Greedy(Gated):
        def choose(self, candidates: Candidates) -> TrainingSet:
            return TrainingSet(local, groups)

    with pytest.raises(ExtensionError, match=r"test_selection_with_a_policy\.py chose"):
        selection._choose(Greedy(), Candidates(own, pool, 1, 3, 0.2, np.random.default_rng(1)))


def _bare(origin: bytes, number: int, rewards: Sequence[float] = (1.0, 0.0)) -> JudgedGroup:
    group = Group(origin=origin * 38, id=QuestionId("bf", 1, number), completions=(Completion(text="x", ended=True),) * 2)
    verdicts = tuple(Verdict(reward=reward, reason="") for reward in rewards)
    return JudgedGroup(group=group, question=Question(dataset="bf", seed=1, text="What?"), verdicts=verdicts)


@pytest.mark.parametrize(("spare", "external", "local"), [(4, 4, (0,)), (1, 3, (0, 1)), (0, 2, (0, 1, 3))])
def test_who_sent_what_is_refused_gives_its_places_to_others_and_what_they_cannot_fill_to_own_groups_that_teach(
    spare: int, external: int, local: tuple[int, ...]
) -> None:
    own = [_bare(b"o", i, (0.0, 0.0) if i == 2 else (1.0, 0.0)) for i in range(4)]
    refused, more_of_it = [_bare(b"x", 0), _bare(b"y", 0)], [_bare(b"x", 1), _bare(b"y", 1)]
    staying, dull = [_bare(b"a", 0), _bare(b"x", 2)], [_bare(b"b", 9, (0.0, 0.0))]
    others = [_bare(bytes([97 + i]), 1) for i in range(spare)]
    pool = [*refused, *more_of_it, *staying, *dull, *others]
    offer = Candidates(own, pool, 1, 4, 0.2, np.random.default_rng(1))
    training = refill(offer, TrainingSet((0,), (refused[0], staying[0], refused[1], staying[1])), refused)
    assert training.local == local
    assert (len(training.external), training.external[:2]) == (external, tuple(staying)), "what was not refused stays"
    assert all(group in others for group in training.external[2:])
    assert len({id(group) for group in training.external}) == external


class StartledByGold(FakePolicy):
    """A policy for which only texts with "gold" are surprising."""

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        decode = FakeTokenizer().decode
        return [
            np.concatenate([np.full(len(ids), -9.0 if "gold" in decode(ids) else 0.0, np.float32) for ids in text.completions])
            for text in texts
        ]


def _sent(origin: bytes, number: int, texts: Sequence[str], rewards: Sequence[float] = (1.0, 0.0)) -> JudgedGroup:
    completions = tuple(Completion(text=text, ended=True) for text in texts)
    group = _bare(origin, number, rewards)
    return msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, completions=completions))


def test_every_refusal_and_every_lowered_weight_has_its_reason_in_the_selection_and_in_the_log(
    verifier: Verifier, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, selection.log.name)
    rules = RoundSettings(questions=4, local=2, external=6, group_size=2, max_new=12)
    long = _sent(b"a", 1, ("far too long a text", "and this one also"))
    half_long = _sent(b"b", 2, ("far too long a text", "no"))  # what is left of it has no advantage that passes the gate
    strange = _sent(b"c", 3, ("gold! 1", "no"))
    half_strange = _sent(b"d", 4, ("gold! 1", "1", "no"), (1.0, 1.0, 0.0))
    crowd = [_sent(b"e", number, ("1", "no")) for number in range(5, 15)]
    pool = [long, half_long, strange, half_strange, *crowd]
    node = Node(
        policy=StartledByGold(["words"]), tokenizer=FakeTokenizer(), swarm=FakeSwarm(pool), verifier=verifier, charter=CHARTER,
        origin=b"o" * 38, seed=1,
    )  # fmt: skip

    *_, gathered, learned = play(0, 100, node, rules)
    _, judged, *_ = play(0, 100, replace(node, swarm=FakeSwarm(pool)), rules)
    decisions = select(
        0, replace(node, swarm=FakeSwarm(pool)), rules, judged, node.policy.sample(
            [FakeTokenizer().encode("?")] * 4, uniforms(1, "sample", 0, 4, 2, 12), SamplingParams(max_new=12, stops=(0,))
        )
    ).decisions  # fmt: skip

    reasons = {(decision.group.key, decision.reason): decision.weight for decision in decisions}
    assert reasons[long.key, Reason.TOO_LONG] == 0
    assert reasons[half_long.key, Reason.TEACHES_NOTHING] == 0
    assert reasons[strange.key, Reason.UNFAMILIAR] == 0
    assert 0 < reasons[half_strange.key, Reason.UNFAMILIAR] < 1
    assert sum(reason is Reason.OVER_SHARE_OF_PLACES for _, reason in reasons) == 8, "two of eight places, in each round"
    lowered = [decision.weight for decision in decisions if decision.reason is Reason.OVER_SHARE_OF_PULL]
    assert len(lowered) == 2
    assert all(0 < weight < 1 for weight in lowered)
    assert gathered.refusals == {b"a" * 38: {"too_long": 1}, b"b" * 38: {"teaches_nothing": 1}, b"c" * 38: {"unfamiliar": 1}}
    assert not {long.key, half_long.key, strange.key} & {each.group.key for each in learned.lessons if each.batch}
    lines = {(record.levelname, record.getMessage()) for record in caplog.records if record.name == selection.log.name}
    assert ("INFO", f"round 1: 1 refused from {short_id(b'a' * 38)}: too_long") in lines
    assert ("INFO", f"round 1: 1 refused from {short_id(b'c' * 38)}: unfamiliar") in lines
    assert any(level == "DEBUG" and line.endswith("over_share_of_pull") for level, line in lines)
