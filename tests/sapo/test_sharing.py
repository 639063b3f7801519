"""Text on its way from one node's tokens to another's, and the mix of local and external groups."""

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from waggle.core import paths
from waggle.engine.startup.round_settings import _seed
from waggle.models.stop_tokens import StopTokens
from waggle.models.tokenizer import Tokenizer, load
from waggle.network.messages import rollout_record
from waggle.rl.batch import SampledCompletion
from waggle.rl.random_streams import generator, uniforms
from waggle.rl.update_rules import grpo
from waggle.sapo.fakes import plain_prompter
from waggle.sapo.prompt_form import PLAIN
from waggle.sapo.sharing.adaptive import Adaptive
from waggle.sapo.sharing.gated import Gated
from waggle.sapo.sharing.interface import Candidates, draw_uniformly
from waggle.sapo.stages import completion_of
from waggle.sapo.training_groups import TrainingSetSize, encode_external, lesson, weigh
from waggle.tasks.questions import EPOCH_SECONDS, Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.shipped_swarms import first_swarm

CHARTER = first_swarm()
EPOCH = 1000
TEXTS = (
    "<answer>42</answer>",
    "First, 17 + 25.\n<answer> 42 </answer> ",
    "¬p ∨ (q ∧ r) → ↔ 漢字 é 🐝",
    "a<|eos|>b",  # the stop token of one tokenizer, as text
    "a<end>b",  # and of the other
    "",
)


def tiny() -> Tokenizer:
    """Another tokenizer: byte pairs learned from English, with the stop token at another id."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["the answer is the first answer of the three"] * 3, trainer)
    tokenizer.add_special_tokens(["<end>"])
    stop = tokenizer.token_to_id("<end>")
    return Tokenizer(tokenizer, StopTokens((stop,), stop, stop))


def starter() -> Tokenizer:
    return load(paths.starter())


def sampled(tokenizer: Tokenizer, text: str, ended: bool = True) -> SampledCompletion:
    """A completion that a policy with this tokenizer sampled."""
    ids = np.append(tokenizer.encode(text), np.int32(tokenizer.stops[0])) if ended else tokenizer.encode(text)
    return SampledCompletion(tokens=ids.astype(np.int32), logp=np.zeros(len(ids), np.float32), ended=ended)


def sent(completions: list[Completion]) -> JudgedGroup:
    """A group after its way through a record, with rewards that teach."""
    group = Group(origin=b"p" * 38, id=QuestionId("bf", EPOCH, 7), completions=tuple(completions))
    travelling = rollout_record.shareable(group, CHARTER)
    assert travelling is not None
    blob = rollout_record.encode(
        rollout_record.RolloutRecord(origin=b"p" * 38, round=1, epoch=EPOCH, model="m", groups=(travelling,)), CHARTER
    )
    (arrived,) = rollout_record.decode(blob, CHARTER, origin=b"p" * 38, now=EPOCH * EPOCH_SECONDS).groups
    rewards = [1.0] + [0.0] * (len(completions) - 1)
    return judged(rewards, arrived)


def judged(rewards, group: Group | None = None, *, number: int = 0) -> JudgedGroup:
    rollout_group = group or Group(
        origin=b"p" * 38, id=QuestionId("bf", EPOCH, number), completions=(Completion(text="x", ended=True),) * len(rewards)
    )
    verdicts = tuple(Verdict(reward=reward, reason="") for reward in rewards)
    return JudgedGroup(group=rollout_group, question=Question(dataset="bf", seed=1, text="What?"), verdicts=verdicts)


@pytest.mark.parametrize(("writer", "reader"), [(starter, tiny), (tiny, starter), (starter, starter)])
def test_a_strangers_text_is_trained_on_in_ones_own_tokens_exactly_and_ends_with_ones_own_stop(writer, reader):
    theirs, mine = writer(), reader()
    arrived = sent([completion_of(theirs, sampled(theirs, text)) for text in TEXTS])
    draft = encode_external(plain_prompter(mine), arrived, longest=200)
    assert all(draft.fits)
    for text, ids in zip(TEXTS, draft.written.completions, strict=True):
        assert ids[-1] == mine.stops[0]
        assert mine.stops[0] not in ids[:-1], "a stop token inside a text must stay text"
        assert mine.decode(ids[:-1]) == text
    assert mine.decode(draft.written.prompt) == PLAIN.text("What?")


def test_the_two_tokenizers_of_these_tests_really_differ():
    first, other = starter(), tiny()
    assert first.stops != other.stops
    assert first.encode(TEXTS[0]).tolist() != other.encode(TEXTS[0]).tolist()


@pytest.mark.parametrize(("writer", "reader"), [(starter, tiny), (tiny, starter)])
def test_a_stop_token_is_learned_where_the_sender_stopped_and_only_there(writer, reader):
    theirs, mine = writer(), reader()
    arrived = sent([completion_of(theirs, sampled(theirs, "so 42", ended)) for ended in (True, False)])
    draft = encode_external(plain_prompter(mine), arrived, longest=50)
    ended, cut = (ids.tolist() for ids in draft.written.completions)
    assert ended == [*cut, mine.stops[0]]
    measure = TrainingSetSize(groups=8, tokens=sum(draft.lengths), longest=50, crumb_span=0.2)
    learned = lesson(weigh(draft, grpo.RULE, Gated(), measure), critic=False)
    assert learned.batch is not None
    (trained,) = learned.batch.completions  # the gate leaves the one that did better
    assert trained.tolist() == ended
    np.testing.assert_allclose(learned.batch.advantage, 1.0, rtol=1e-3)  # the stop token like every other
    np.testing.assert_allclose(learned.batch.weight, 1 / (8 * 2 * len(ended)), rtol=1e-6)


def test_a_completion_cut_inside_a_character_travels_without_the_broken_rest():
    mine = tiny()
    bee = mine.encode("ok 🐝")  # the bee is several tokens here
    cut = completion_of(mine, SampledCompletion(tokens=bee[:-1], logp=np.zeros(len(bee) - 1, np.float32), ended=False))
    assert cut.text.endswith("\ufffd")
    draft = encode_external(plain_prompter(starter()), sent([cut, Completion(text="no", ended=True)]), longest=50)
    assert starter().decode(draft.written.completions[0]) == "ok "


def test_the_log_probability_of_a_completion_stays_at_home():
    mine = starter()
    completion = completion_of(mine, sampled(mine, "42"))
    assert completion.logp is not None
    assert sent([completion, completion]).group.completions[0].logp is None


@pytest.mark.parametrize(
    ("places", "own", "waiting", "mixed"),
    [
        ((4, 4), 8, 9, (4, 4)),
        ((4, 4), 8, 4, (4, 4)),
        ((4, 4), 8, 3, (5, 3)),  # I = I + J - available
        ((4, 4), 8, 0, (8, 0)),
        ((2, 6), 8, 5, (3, 5)),
        ((4, 4), 5, 1, (5, 1)),  # nothing else is there
        ((8, 0), 8, 9, (8, 0)),
        ((0, 8), 8, 9, (0, 8)),
    ],
)
def test_own_groups_take_the_places_that_the_pool_cannot_fill(places, own, waiting, mixed):
    dull = [judged((0.05, 0.0), number=50), judged((1.0, 1.0), number=51)]
    useful = [judged((1.0, 0.0), number=i) for i in range(waiting)]
    training = draw_uniformly(Candidates([judged((0.0, 0.0))] * own, [*dull, *useful], *places, 0.2, np.random.default_rng(3)))
    assert (len(training.local), len(training.external)) == mixed
    assert sorted(set(training.local)) == list(training.local)
    assert all(group in useful for group in training.external)
    assert len({group.group.id for group in training.external}) == mixed[1]


@pytest.mark.parametrize(("places", "external"), [((4, 4), 8), ((8, 0), 0)])
def test_own_groups_that_teach_nothing_give_way_to_those_of_peers_unless_a_person_wants_none(places, external):
    useful = [judged((1.0, 0.0), number=i) for i in range(9)]
    training = Adaptive().choose(Candidates([judged((0.0, 0.0))] * 8, useful, *places, 0.2, np.random.default_rng(3)))
    assert (len(training.local), len(training.external)) == (8 - external, external)


def test_external_groups_are_drawn_uniformly():
    pool = [judged((1.0, 0.0), number=i) for i in range(6)]
    noise = np.random.default_rng(0)
    counts = np.zeros(6)
    for _ in range(3000):
        for group in draw_uniformly(Candidates([judged((0.0, 0.0))] * 2, pool, 0, 2, 0.2, noise)).external:
            counts[group.group.id.number] += 1
    assert abs(counts - 1000).max() < 4 * (3000 * 1 / 3 * 2 / 3) ** 0.5  # four standard deviations


def test_every_node_draws_samples_and_chooses_differently_and_the_same_again_after_a_restart():
    seeds = [_seed(bytes([i]) * 38, b"salt") for i in range(50)]
    assert len(set(seeds)) == 50
    assert seeds == [_seed(bytes([i]) * 38, b"salt") for i in range(50)]
    for stream in ("draw", "choose", "held_out"):
        assert len({generator(seed, stream, 1).random() for seed in seeds}) == 50
    assert len({uniforms(seed, "sample", 1, 1, 1, 4).tobytes() for seed in seeds}) == 50
