"""Test the chat: both models answer and are seen while they write; long messages are refused; a person can stop the replies."""

import asyncio
import json
import re
import shutil
import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.settings import ComputerSettings
from waggle.engine.services.chat import ChatService
from waggle.engine.services.models.snapshots import ModelSnapshot, Snapshots
from waggle.engine.startup.model import open_snapshots
from waggle.engine.system.resource_limits import GB, memory_used
from waggle.models.backend import open_policy
from waggle.models.memory_fit import Workload
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint
from waggle.protocol import commands
from waggle.protocol import events_chat as protocol
from waggle.protocol.events_chat import ChatCleared, ChatOffer, Reply, Turn, TurnProgress
from waggle.rl.batch import TokenizedGroup

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|pad|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
FRACTION = "Simplify the fraction 108/120 to its lowest terms. Give only the simplified fraction as your final answer."
WORK = Workload(questions=1, groups=0, group_size=1, longest=24)
SAVED = checkpoint.CheckpointState(round=5, step=5, epoch=1, charter="ab" * 32, base="")


@dataclass
class Listener:
    """The events of growing replies; `then` is called at the first."""

    events: list[TurnProgress] = field(default_factory=list)
    then: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def __call__(self, event: TurnProgress) -> None:
        self.events.append(event)
        self.loop.call_soon_threadsafe(self.then.set)


@pytest.fixture
async def listener():
    return Listener()


@pytest.fixture
def moments(tmp_path):
    return Snapshots(paths.Home(tmp_path).prepare(), paths.starter(), "cpu", lambda: ComputerSettings(threads=1))


@pytest.fixture
def taught(tmp_path, moments):
    """The starter as if it were trained to chat. It never learned to stop, so it writes for long."""
    folder = tmp_path / "taught"
    shutil.copytree(paths.starter(), folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|pad|>", "chat_template": TEMPLATE}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))
    return replace(moments, folder=folder)


def talking_with(moments: Snapshots, listener: Listener) -> ChatService:
    return ChatService(moments, "{}\nAnswer:".format, 24, listener)


async def say(talking: ChatService, words: str = FRACTION, number: int = 0, earlier=(), before: int = 0) -> Turn:
    (answer,) = await talking.obey(commands.SendMessage(id="7", words=words, number=number, earlier=earlier, before=before))
    return answer.turn


def learned(moments: Snapshots, method: str) -> None:
    """Save a checkpoint whose weights are not the starter's."""
    policy = open_policy(paths.starter(), device="cpu", threads=1, training=TrainingMode(method=method)).policy
    weights, state = policy.state()
    policy.restore({name: weight + np.float32(0.05) for name, weight in weights.items()}, state, 5)
    checkpoint.save(moments.home.model.checkpoints, policy, SAVED)


@pytest.mark.parametrize("device", ["cpu", "mlx"])
async def test_the_model_of_now_and_that_of_before_both_answer_and_are_heard_while_they_write(moments, listener, device):
    if device == "mlx":
        pytest.importorskip("mlx.core")
    learned(moments, "full")
    talking = talking_with(replace(moments, device=device), listener)
    assert await talking.obey(commands.OfferChat(id="")) == (ChatOffer(moments=(0, 5), taught=False),)
    turn = await say(talking)
    assert turn.finished
    assert not turn.stopped
    assert [reply.rounds for reply in turn.replies] == [5, 0]
    assert re.match(r"\d+/\d+", turn.replies[1].text), "the starter answers with a fraction"
    assert turn.replies[0].text != turn.replies[1].text
    assert listener.events, "it was heard before it was finished"
    assert not any(event.turn.finished for event in listener.events)
    assert {event.command_id for event in listener.events} == {"7"}
    for event in listener.events:
        assert all(whole.text.startswith(part.text) for part, whole in zip(event.turn.replies, turn.replies, strict=True))


@pytest.mark.parametrize(
    ("device", "precision", "precisions"),
    [
        ("cuda", "bfloat16", ("float32", "bfloat16")),
        ("cuda", "float32", ("float32",)),
        ("cpu", "bfloat16", ("bfloat16",)),
    ],
)
def test_what_is_trained_on_a_card_answers_in_the_precision_that_suits_the_processor_while_memory_allows(
    moments, device, precision, precisions
):
    """With a small fp32 model. Memory is checked before each answer."""
    opened = open_policy(moments.folder, device="cpu", threads=1, training=TrainingMode("lean", precision))
    opened = replace(opened, device=device)
    allowed, models = [0.0], 100
    snapshots = open_snapshots(
        moments.home, moments.folder, opened, lambda: False, lambda: ComputerSettings(memory_gb=allowed[0])
    )
    assert (snapshots.device, [training.precision for training in snapshots.trainings]) == ("cpu", [*precisions])
    smaller, *larger = sorted(snapshots.foretold(models, WORK).values())
    enough, little = (larger or [smaller])[-1] * 1.2 / GB, smaller * 1.2 / GB
    for more, expected in ((enough, precisions[0]), (little, precisions[-1]), (enough, precisions[0])):
        allowed[0] = memory_used() / GB + more
        training = snapshots.require_room(models, WORK)
        assert training == TrainingMode("lean", expected)
        with snapshots.open(ModelSnapshot(0), training) as reopened:
            assert reopened.policy.training == training
    allowed[0] = memory_used() / GB + 0.5 * smaller / GB
    with pytest.raises(EngineError, match="of memory that you allow"):
        snapshots.require_room(models, WORK)


async def test_every_turn_is_written_in_the_same_two_threads_also_after_the_engine_began_again(moments, listener):
    """MLX never frees the memory of a thread, not even after its end."""
    writing: set[threading.Thread] = set()

    def leaving() -> bool:
        writing.add(threading.current_thread())
        return False

    for _ in range(2):
        talking = talking_with(replace(moments, is_leaving=leaving), listener)
        for number in range(2):
            await say(talking, number=number)
    assert len(writing) == 2


async def test_two_conversations_at_once_are_both_written(moments, listener):
    """As during a restart of the engine."""
    turns = await asyncio.gather(*(say(talking_with(moments, listener)) for _ in range(4)))
    assert all(turn.finished for turn in turns)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_what_was_learned_is_there_whether_as_weights_or_as_adapters(moments, method):
    learned(moments, method)
    training = TrainingMode(method=method)
    before, now = moments.saved()
    assert (before.rounds, now.rounds) == (0, 5)
    text = TokenizedGroup(np.arange(1, 9, dtype=np.int32), (np.arange(9, 20, dtype=np.int32),))
    with moments.open(before, training) as first, moments.open(now, training) as last:
        assert not np.allclose(first.policy.logprobs([text], 1.0)[0], last.policy.logprobs([text], 1.0)[0])


async def test_what_was_said_so_far_stays_when_it_is_stopped_and_then_one_can_go_on(taught, listener):
    talking = talking_with(taught, listener)
    saying = asyncio.ensure_future(say(talking))
    await listener.then.wait()
    with pytest.raises(EngineError, match="still being written"):
        await say(talking, "And this?")
    assert await talking.obey(commands.StopReplies(id="")) == ()
    turn = await saying
    assert turn.stopped
    assert turn.finished
    assert not any(reply.ended for reply in turn.replies)
    second = asyncio.ensure_future(talking.obey(commands.SendMessage(id="", words="And this?", number=1)))
    listener.then.clear()
    await listener.then.wait()
    assert await talking.obey(commands.ClearChat(id="")) == (ChatCleared(),)
    assert await second == (), "what was cleared does not come back"


async def test_nothing_is_told_of_a_conversation_that_was_cleared_though_it_was_on_its_way(taught, listener, monkeypatch):
    monkeypatch.setattr("waggle.engine.services.chat.GROWTH_SECONDS", 0.0)
    steps = threading.Semaphore(0)
    talking = talking_with(replace(taught, is_leaving=lambda: steps.release() is not None), listener)
    saying = asyncio.ensure_future(talking.obey(commands.SendMessage(id="", words="Hello", number=0)))
    await listener.then.wait()
    while steps.acquire(blocking=False):
        pass
    for _ in range(8):  # meanwhile this loop hears nothing
        assert steps.acquire(timeout=60)
    assert await talking.obey(commands.ClearChat(id="")) == (ChatCleared(),)
    count = len(listener.events)
    assert await saying == ()
    assert len(listener.events) == count


async def test_an_engine_that_ends_waits_for_no_answer(taught, listener):
    with pytest.raises(EngineError, match="ending"):
        await say(talking_with(replace(taught, is_leaving=listener.then.is_set), listener))


async def test_a_talk_is_refused_that_would_take_more_memory_than_a_person_allows_all_of_the_engine(
    moments, listener, monkeypatch
):
    monkeypatch.setattr("waggle.engine.services.models.snapshots.memory_used", lambda: GB)
    allowed = [1.001]
    talking = talking_with(replace(moments, computer=lambda: ComputerSettings(threads=1, memory_gb=allowed[0])), listener)
    with pytest.raises(EngineError, match=r"and 0\.0 GB are free of the 1\.001 GB of memory that you allow"):
        await say(talking)
    allowed[0] += 100.0
    assert (await say(talking)).finished


async def test_turns_that_do_not_fit_are_left_out_and_counted(taught, listener):
    talking = talking_with(taught, listener)
    long = Turn(words="a" * 350, replies=(Reply(rounds=0, text="b" * 10), Reply(rounds=0, text="c" * 350)), finished=True)
    short = replace_words(long, "x")
    assert talking._prompts(commands.SendMessage(id="", words="x", number=2, earlier=(short, short)))[1] == 0
    assert talking._prompts(commands.SendMessage(id="", words="x", number=3, earlier=(long, long, short)))[1] == 2
    assert talking._prompts(commands.SendMessage(id="", words="x", number=9, earlier=(short,)))[1] == 8, "not even sent"
    now, before = talking._prompts(commands.SendMessage(id="", words="x", number=1, earlier=(long,)))[0]
    assert len(now) < len(before), "each reads its own answers"


async def test_a_message_that_is_too_long_or_empty_is_refused_in_words(taught, listener):
    talking = talking_with(taught, listener)
    with pytest.raises(EngineError, match="reads 768 tokens at a time"):
        await say(talking, "a" * 2000)
    with pytest.raises(EngineError, match="nothing to answer"):
        await say(talking, "  \n")
    with pytest.raises(EngineError, match="not kept any more"):
        await say(talking, before=3)
    assert (await say(talking_with(replace(taught, folder=paths.starter()), listener))).finished, "and nothing is stuck"


def replace_words(turn: Turn, words: str) -> Turn:
    reply = Reply(rounds=0, text=words)
    return Turn(words=words, replies=(reply, reply), finished=turn.finished)


async def test_what_is_longer_than_can_be_told_is_cut(taught, listener, monkeypatch):
    monkeypatch.setattr(protocol, "LONGEST_REPLY", 7)
    turn = await say(talking_with(taught, listener))
    assert [len(reply.text) for reply in turn.replies] == [7, 7]
    assert max(len(reply.text) for event in listener.events for reply in event.turn.replies) == 7
