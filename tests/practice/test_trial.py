"""Test that a trial is the engine's own round for several nodes: reproducible, and without reserved questions."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.tokenizer import load as load_tokenizer
from waggle.models.torch.policy import TorchPolicy
from waggle.network.solo_node import SoloNode
from waggle.practice.results import Key, Run
from waggle.practice.simulated_swarm import Weather
from waggle.practice.trial import TICK_SECONDS, Setup, Trial, as_sent, noise_seed, origin_of
from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams, TokenizedGroup
from waggle.rl.update_rules import grpo, ppo
from waggle.sapo import round as sapo
from waggle.sapo import stages
from waggle.sapo.interfaces import Policy, Tokenizer
from waggle.sapo.prompt_form import FORMS, PLAIN
from waggle.sapo.sharing import strategy
from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, PeerGroup, TrainingSet
from waggle.sapo.sharing.plain import Plain
from waggle.tasks.questions import EPOCH_SECONDS, Question, QuestionId, QuestionKey, epoch_at, split_of
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.starter_model.starter import Shape, new_model, write
from waggle_lab.starter_model.starter_tokenizer import build
from waggle_lab.study import statistics

CHARTER = first_swarm()
ROUNDS = 5
RULES = stages.RoundSettings(questions=4, local=2, external=2, group_size=4, crumb_span=0.0)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


def key(*, seed: int = 1, rounds: int = ROUNDS) -> Key:
    return Key(setting="sparse", configuration="test", seed=seed, learning_rate=5e-4, rounds=rounds, split="dev")


@pytest.fixture(scope="module")
def reserved(verifier):
    return tuple(question for specialty in CHARTER.specialties for question in verifier.held_out(specialty.dataset, "dev", 2))


@pytest.fixture
def setup(reserved) -> Setup:
    return Setup(
        folders=(paths.starter(),) * 3,
        models=("starter",) * 3,
        charter=CHARTER,
        rules=RULES,
        sharing=Gated,
        most_questions=0,
        held_out=reserved,
        final_held_out=reserved,
        measure_every=3,
    )


def played(setup: Setup, verifier, **changes) -> tuple[Run, Trial]:
    trial = Trial(key(**changes), setup, verifier)
    assert list(trial.run()) == list(range(1, changes.get("rounds", ROUNDS) + 1))
    return trial.result(0.0, "here"), trial


class Remembering:
    """A verifier that remembers the key of each question that it made, by the prompt."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier, self._keys = verifier, {}

    def questions(self, keys: Sequence[QuestionKey]) -> list[Question]:
        questions = self._verifier.questions(keys)
        self._keys |= {PLAIN.text(question.text): question.key for question in questions}
        return questions

    def truth(self, prompt: str) -> str | None:
        """None if this verifier did not make the question, as with reserved ones."""
        return self._verifier.answers([self._keys[prompt]])[0] if prompt in self._keys else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verifier, name)


class Knowing:
    """A real policy that writes the true answer in the first completion of each group, so that nodes can teach at once."""

    def __init__(self, policy: Policy, tokenizer: Tokenizer, verifier: Remembering) -> None:
        self._policy, self._tokenizer, self._verifier = policy, tokenizer, verifier

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        rows = self._policy.sample(prompts, uniforms, params)
        truths = [self._verifier.truth(self._tokenizer.decode(prompt)) for prompt in prompts]
        return [
            row if truth is None else [self._answer(prompt, truth, params), *row[1:]]
            for prompt, truth, row in zip(prompts, truths, rows, strict=True)
        ]

    def _answer(self, prompt: Ids, truth: str, params: SamplingParams) -> SampledCompletion:
        tokens = np.append(self._tokenizer.encode(f"<answer>{truth}</answer>"), np.int32(self._tokenizer.stops[0]))
        tokens = tokens[: params.max_new]
        (logp,) = self._policy.logprobs([TokenizedGroup(prompt, (tokens,))], params.temperature)
        return SampledCompletion(tokens=tokens, logp=logp, ended=bool(tokens[-1] == self._tokenizer.stops[0]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def teaching(setup: Setup, verifier: Verifier, **changes) -> Trial:
    """A trial of nodes that know answers. The starter's first right answer would take hundreds of questions."""
    remembering = Remembering(verifier)
    trial = Trial(key(**changes), replace(setup, held_out=(), measure_every=0), remembering)
    for player in trial._players:
        policy = Knowing(player.node.policy, player.node.tokenizer, remembering)
        player.node = replace(player.node, policy=policy)
    return trial


def watch(trial: Trial) -> list:
    """Every group that a node shared, and every lesson that it took."""
    rounds = []
    log = trial.log.record_round

    def noted(tick, member, judged, learned, ages):
        rounds.append((tick, member, judged, learned))
        log(tick, member, judged, learned, ages)

    trial.log.record_round = noted
    return rounds


def test_the_same_seed_gives_the_same_numbers_twice(setup, verifier):
    first, second = (played(setup, verifier)[0] for _ in range(2))
    assert first == second
    assert first.measured_at == (0, 3, 5)
    assert len(first.reward) == ROUNDS
    assert set(first.completions) == {3 * 4 * 4}


def test_another_seed_asks_every_node_other_questions(setup, verifier):
    questions = []
    for seed in (1, 2):
        trial = Trial(key(seed=seed, rounds=2), setup, verifier)
        rounds = watch(trial)
        list(trial.run())
        questions.append({m: {g.question.text for t, n, judged, _ in rounds if n == m for g in judged.groups} for m in range(3)})
    drawn = [questions for swarm in questions for questions in swarm.values()]
    for first, other in combinations(drawn, 2):  # nodes of one swarm, and of two; a small question may come up twice by chance
        assert len(first & other) <= len(first) // 4


def test_no_reserved_question_is_ever_shared_or_trained_on(setup, verifier, reserved):
    trial = Trial(key(rounds=8), setup, verifier)
    rounds = watch(trial)
    list(trial.run())
    texts = {(group.question.dataset, group.question.text) for _, _, judged, _ in rounds for group in judged.groups}
    texts |= {(each.group.question.dataset, each.group.question.text) for *_, learned in rounds for each in learned.lessons}
    assert len(texts) > 50
    assert all(split_of(*text) == "train" for text in texts)
    assert not texts & {(question.dataset, question.text) for question in reserved}


def test_an_isolated_node_of_a_trial_is_the_engines_round_and_nothing_else(setup, verifier):
    rules = replace(RULES, local=4, external=0)
    run, _ = played(replace(setup, folders=setup.folders[:1], models=("starter",), rules=rules, sharing=Plain), verifier)
    node = stages.Node(
        policy=TorchPolicy(paths.starter()), tokenizer=load_tokenizer(paths.starter()), swarm=SoloNode(), verifier=verifier,
        charter=CHARTER, origin=origin_of(1, 0), seed=noise_seed(1, 0), sharing=Plain(),
    )  # fmt: skip
    rewards = []
    for number in range(ROUNDS):
        at = EPOCH_SECONDS * 2_000_000 + number * TICK_SECONDS
        judged = next(stage for stage in list(sapo.play(number, epoch_at(at), node, rules)) if isinstance(stage, stages.Judged))
        values = [reward for group in judged.groups for reward in group.rewards]
        rewards.append(round(sum(values) / len(values), 4))
    assert list(run.reward) == rewards


def test_models_of_other_sizes_and_vocabularies_share_in_one_swarm(setup, verifier, tmp_path):
    texts = {
        specialty.dataset: [q.text for q in verifier.questions([QuestionKey(specialty.dataset, s) for s in range(40)])]
        for specialty in CHARTER.specialties
    }
    tokenizer = build(texts, merges=200)
    torch.manual_seed(0)
    write(
        new_model(Shape(width=32, layers=1, heads=2, key_value_heads=1, inner=32), tokenizer),
        tokenizer,
        tmp_path,
        "A tiny model.",
    )
    mixed = replace(setup, folders=(paths.starter(), tmp_path, paths.starter()), models=("starter", "tiny", "starter"))
    trial = teaching(mixed, verifier, rounds=4)
    rounds = watch(trial)
    list(trial.run())
    lessons = [each for _, member, _, learned in rounds if member == 1 for each in learned.lessons if each.batch is not None]
    foreign = [each for each in lessons if each.group.group.origin != origin_of(1, 1)]
    assert foreign, "the tiny one learned from nobody"
    words = load_tokenizer(tmp_path)
    for each in foreign:
        assert words.decode(each.batch.prompt) == PLAIN.text(each.group.question.text)


def test_a_node_asks_only_about_its_own_specialties_and_learns_from_others(setup, verifier):
    names = [specialty.dataset for specialty in CHARTER.specialties]
    mine = ((names[4],), (names[7], names[8]), (names[4],))
    trial = teaching(replace(setup, specialties=mine), verifier, rounds=4)
    rounds = watch(trial)
    list(trial.run())
    for _, member, judged, _ in rounds:
        assert {group.question.dataset for group in judged.groups} <= set(mine[member])
    assert trial.result(0.0, "here").specialty_counts == (1, 2, 1)
    learned = {lesson.group.question.dataset for _, member, _, learned in rounds if member == 1 for lesson in learned.lessons}
    assert names[4] in learned


def test_slow_and_absent_nodes_are_missed_by_nobody(setup, verifier):
    weather = Weather(offline=0.4, speeds=(1.0, 0.5, 1.0), loss=0.2, delay=2)
    run, _ = played(replace(setup, weather=weather), verifier, rounds=8)
    assert 0 < sum(run.completions) < 8 * 3 * 16
    assert all(0 <= reward <= 1 for reward in run.reward)


def test_how_old_others_groups_are_is_written_down(setup, verifier):
    trial = teaching(replace(setup, weather=Weather(delay=3)), verifier, rounds=10)
    list(trial.run())
    assert 3 <= trial.result(0.0, "here").external_age[0] < 10, "none is younger than its way took"
    alone = teaching(replace(setup, rules=replace(RULES, external=0)), verifier)
    list(alone.run())
    assert alone.result(0.0, "here").external_age == (0.0,)


def test_a_filtered_control_asks_for_more_while_few_groups_teach(setup, verifier):
    rules = replace(RULES, local=4, external=0)
    run, _ = played(replace(setup, rules=rules, most_questions=12), verifier)
    assert set(run.completions) == {3 * 12 * 4}, "the starter is hardly ever right: three times the questions"


@pytest.mark.parametrize("name", ["own_probability", "capability", "replay", "filtered", "success_gated"])
def test_strategies_play_from_the_first_round_on_when_there_is_nothing_from_others_yet(setup, verifier, name):
    run, _ = played(replace(setup, sharing=strategy(name).make), verifier, rounds=4)
    assert len(run.reward) == 4


class Watched:
    """A strategy that notes the peers' groups that it weighs."""

    def __init__(self, name: str, peers: list[PeerGroup]) -> None:
        self._strategy, self._peers = strategy(name).make(), peers

    def temper(self, peer: PeerGroup) -> Floats:
        self._peers.append(peer)
        return self._strategy.temper(peer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strategy, name)


@pytest.mark.parametrize("name", ["f_tis", "off_policy_mask", "topr", "luffy"])
def test_published_rules_get_the_log_probs_that_they_need_and_learn_in_several_steps(setup, verifier, name):
    peers = list[PeerGroup]()
    rules = replace(RULES, updates=2)
    trial = teaching(replace(setup, rules=rules, sharing=lambda: Watched(name, peers)), verifier, rounds=4)
    list(trial.run())
    assert max(trial.result(0.0, "here").external_share) > 0
    assert all(peer.logp is not None for peer in peers)
    assert all(completion.logp is not None for peer in peers for completion in peer.group.group.completions)
    ratios = np.concatenate([peer.log_ratios for peer in peers])
    assert ratios.any(), "no two nodes are equal after their first steps"
    assert np.isfinite(ratios).all()


def test_a_rule_with_a_critic_plays_too(setup, verifier):
    trial = teaching(replace(setup, rules=replace(RULES, rule=ppo.RULE)), verifier, rounds=4)
    list(trial.run())
    assert max(trial.result(0.0, "here").external_share) > 0


def test_each_node_learns_by_its_own_rule_and_from_nodes_of_another(setup, verifier):
    trial = teaching(replace(setup, updates=(ppo.RULE, grpo.RULE, grpo.RULE)), verifier, rounds=6)
    rounds = watch(trial)
    list(trial.run())
    taught_by = {
        member: {lesson.group.group.origin for _, n, _, learned in rounds if n == member for lesson in learned.lessons}
        for member in range(3)
    }
    by_ppo, *others = (origin_of(1, i) for i in range(3))
    assert by_ppo in taught_by[1] | taught_by[2]
    assert taught_by[0] & set(others), "and the other way round"
    assert [player.node.policy._critic is not None for player in trial._players] == [True, False, False]


def test_each_node_trains_by_its_own_method_at_its_own_rate_and_is_asked_in_its_own_form(setup, verifier):
    forms = iter((PLAIN, FORMS["example"], PLAIN))
    modes, scales = (TrainingMode("lora"), TrainingMode(), TrainingMode()), (1.0, 0.5, 0.25)
    own = replace(setup, training=modes, rate_scales=scales, form=lambda folder, node, rules: next(forms))
    trial = teaching(own, verifier, rounds=3)
    rounds = watch(trial)
    list(trial.run())
    assert [player.node.policy.training.method for player in trial._players] == ["lora", "full", "full"]
    assert [player.node.form.name for player in trial._players] == ["plain", "example", "plain"]
    rates = {n: learned.learning_rate for tick, n, _, learned in rounds if learned.metrics is not None and tick == 2}
    assert len(rates) == 3, "all nodes learned in the last round"
    assert [rates[n] / rates[0] for n in range(3)] == pytest.approx(scales)


class Counting(Plain):
    """Plain sharing that counts its own calls."""

    instances: ClassVar[list["Counting"]] = []

    def __init__(self) -> None:
        self.choices = 0
        self.instances.append(self)

    def choose(self, offer: Candidates) -> TrainingSet:
        self.choices += 1
        return super().choose(offer)


def test_every_node_has_a_strategy_of_its_own_that_is_asked_every_round(setup, verifier):
    Counting.instances.clear()
    played(replace(setup, sharing=Counting), verifier)
    assert [each.choices for each in Counting.instances] == [ROUNDS] * 3


def test_the_score_at_the_end_is_taken_on_more_questions_than_those_of_the_curve(setup, verifier, reserved):
    few = tuple(question for first, question in enumerate(reserved) if first % 2 == 0)
    trial = Trial(key(), replace(setup, held_out=few), verifier)
    log, totals = trial.log.record_scores, []

    def noted(tick, scores):
        totals.append((tick, {score.total for score in scores}))
        log(tick, scores)

    trial.log.record_scores = noted
    list(trial.run())
    assert totals == [(0, {len(few)}), (3, {len(few)}), (5, {len(few)})]
    assert trial.log.score()[1] == 3 * len(reserved)


def test_a_trial_without_a_curve_is_scored_at_its_end_alone(setup, verifier, reserved):
    trial = Trial(key(rounds=1), replace(setup, held_out=(), measure_every=0), verifier)
    list(trial.run())
    assert trial.log.score()[1] == 3 * len(reserved)


def test_a_swarm_in_which_nobody_had_a_turn_is_a_result_too(setup, verifier):
    run, _ = played(replace(setup, weather=Weather(speeds=(0.1,))), verifier, rounds=3)
    assert sum(run.completions) == 0
    assert statistics.reward_per_thousand(run) == statistics.reward_cumulative(run) == 0.0


def test_what_travels_is_what_the_engine_would_send_judged_again_where_it_had_to_be_changed(verifier):
    (question,) = verifier.questions([QuestionKey("binary_matrix", 5)])
    (answer,) = verifier.answers([QuestionKey("binary_matrix", 5)])
    right = f"<answer>{answer}</answer>"

    def judged_group(number: int, *texts: str, ended: bool) -> JudgedGroup:
        completions = tuple(Completion(text=text, ended=ended) for text in texts)
        group = Group(origin=origin_of(1, 0), id=QuestionId("binary_matrix", 5, number), completions=completions)
        return JudgedGroup(group=group, question=question, verdicts=(Verdict(reward=1.0, reason=""),) * len(texts))

    whole = judged_group(1, right, "no", ended=True)
    cut = judged_group(2, f"{right}\ufffd", "no\ufffd", ended=False)
    broken = judged_group(3, "\ufffdno", "no", ended=True)
    twice = judged_group(4, f"{right}{right}", "no", ended=True)
    unchanged, changed, several = as_sent([whole, cut, broken, twice], CHARTER, verifier)
    assert unchanged == whole
    assert several.rewards == (0.0, 1.0), "as a reader would have it"
    assert [completion.text for completion in changed.group.completions] == [right, "no"]
    assert changed.rewards == (1.0, 0.0)


def test_a_specialty_that_a_model_cannot_read_is_told_before_a_round_is_played(setup, verifier):
    short = replace(setup, rules=replace(RULES, context=70))  # which the longest questions do not fit into
    with pytest.raises(LabError, match=r"No reserved question of \w+ fits into the 70 tokens"):
        Trial(key(), short, verifier)
