"""Chat: the current model and an earlier snapshot of it answer a message. Nothing of it is stored, shared or learned."""

import asyncio
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from waggle.core.errors import EngineError, Stopped, WaggleError
from waggle.core.message import NOTHING, Message
from waggle.engine.services.models.snapshots import LOW_TEMPERATURE, ModelSnapshot, Snapshots
from waggle.models.memory_fit import Workload
from waggle.models.shared import generic_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.tokenizer import Tokenizer
from waggle.models.tokenizer import load as load_tokenizer
from waggle.protocol import commands, events_chat
from waggle.protocol.events_chat import Reply, Turn
from waggle.rl.batch import Ids, SamplingParams
from waggle.rl.random_streams import uniforms

MAX_REPLY_TOKENS = 256  # of a model that was trained to chat
MAX_CONTEXT_TOKENS = 2048  # of prompt and reply, also for models that could read more
GROWTH_SECONDS = 0.1  # between two events of a growing reply
THREADS = ThreadPoolExecutor(2, thread_name_prefix="talk")  # for the life of the process: MLX never frees a thread's memory
PAIR_LOCK = threading.Lock()  # around both submissions of a turn: two turns must not get one thread each and wait for another


class TurnTaking:
    """Lets two writers take turns, step by step: together they load the computer like one, and neither gets far ahead."""

    def __init__(self) -> None:
        self._passed = threading.Condition()
        self._next, self._writing = 0, {0, 1}

    @contextmanager
    def take_turns(self, me: int) -> Iterator[None]:
        """Context from this writer's first step to its last."""
        with self._passed:
            self._passed.wait_for(lambda: self._next == me)
        try:
            yield
        finally:
            with self._passed:
                self._writing.discard(me)
                self._pass_turn(me)

    def step(self, me: int) -> None:
        """Let the other writer take a step, if it has not finished."""
        with self._passed:
            self._pass_turn(me)
            self._passed.wait_for(lambda: self._next == me)

    def _pass_turn(self, me: int) -> None:
        self._next = 1 - me if 1 - me in self._writing else me
        self._passed.notify_all()


@dataclass(frozen=True)
class ReplyProgress:
    """Publishes a turn while its two replies grow. Each thread changes its own reply only."""

    command: commands.SendMessage
    publish: Callable[[events_chat.TurnProgress], object]
    training: TrainingMode  # how both models are loaded
    left_out: int
    replies: list[Reply]
    not_now: Message = NOTHING  # see `Turn`
    _reported_at: list[float] = field(default_factory=lambda: [0.0])

    def update(self, side: int, text: str) -> None:
        self.replies[side] = replace(self.replies[side], text=text)
        if time.monotonic() - self._reported_at[0] >= GROWTH_SECONDS:
            self._reported_at[0] = time.monotonic()
            self.publish(self.event())

    def event(self, *, finished: bool = False, stopped: bool = False) -> events_chat.TurnProgress:
        now, before = self.replies
        turn = Turn(
            words=self.command.words, replies=(now, before), left_out=self.left_out, finished=finished, stopped=stopped,
            not_now=self.not_now,
        )  # fmt: skip
        return events_chat.TurnProgress(command_id=self.command.id, number=self.command.number, turn=turn)


@dataclass
class ChatService:
    """Obeys the commands about the one conversation.

    A model that was never trained to chat gets each message alone, in its prompt form (`prompt_text`), and answers in
    as many tokens as in training.
    """

    snapshots: Snapshots
    prompt_text: Callable[[str], str]
    max_new: int  # tokens of a completion in training
    publish: Callable[[events_chat.TurnProgress], None]
    _stop_requested: threading.Event | None = field(default=None, init=False)
    _cleared: bool = field(default=False, init=False)  # while a reply was written: it must not reappear

    async def obey(self, command: commands.ChatCommand) -> tuple[events_chat.ChatEvent, ...]:
        """Obey, and return the events for the sender. Raises WaggleError for what cannot be answered."""
        match command:
            case commands.OfferChat():
                return (await asyncio.to_thread(self._offer),)
            case commands.SendMessage():
                return await self._say(command)
            case commands.StopReplies():
                self._stop()
                return ()
            case commands.ClearChat():
                self._stop()
                self._cleared = True
                return (events_chat.ChatCleared(),)
            case _:
                assert_never(command)

    def _stop(self) -> None:
        if self._stop_requested is not None:
            self._stop_requested.set()

    def _offer(self) -> events_chat.ChatOffer:
        taught = load_tokenizer(self.snapshots.folder).has_chat_template
        return events_chat.ChatOffer(moments=tuple(self.snapshots.rounds()), taught=taught)

    async def _say(self, command: commands.SendMessage) -> tuple[events_chat.TurnProgress, ...]:
        if not command.words.strip():
            raise EngineError("There is nothing to answer.", "Write something first.")
        if self._stop_requested is not None:
            raise EngineError("An answer is still being written.", "Wait for it, or stop it.")
        stop_requested = self._stop_requested = threading.Event()
        self._cleared = False
        try:
            loop = asyncio.get_running_loop()
            on_growth = lambda event: loop.call_soon_threadsafe(self._publish_growth, event)  # noqa: E731 - from the threads that write
            last_event = await asyncio.to_thread(self._answer, command, stop_requested, on_growth)
            return () if self._cleared else (last_event,)
        finally:
            self._stop_requested = None

    def _publish_growth(self, event: events_chat.TurnProgress) -> None:
        """Publish growth, except after the conversation was cleared: an event on its way would begin it again."""
        if not self._cleared:
            self.publish(event)

    def _answer(
        self,
        command: commands.SendMessage,
        stop_requested: threading.Event,
        on_growth: Callable[[events_chat.TurnProgress], object],
    ) -> events_chat.TurnProgress:
        prompts, left_out = self._prompts(command)
        longest = max(map(len, prompts))
        answers = Workload(1, 0, 1, self._count(load_tokenizer(self.snapshots.folder)), longest)
        answering = self.snapshots.answering(2, answers)
        then = next((snapshot for snapshot in answering.snapshots if snapshot.rounds == command.before), None)
        if then is None:
            raise EngineError(
                Message("The model after %1 rounds is not kept any more.", command.before), "Choose another moment."
            )
        sides = (answering.snapshots[-1], then)
        replies = [Reply(rounds=snapshot.rounds) for snapshot in sides]
        progress = ReplyProgress(command, on_growth, answering.training, left_out, replies, answering.not_now)
        turns = TurnTaking()

        def write(side: int) -> bool:
            with turns.take_turns(side):
                return self._write(side, sides[side], prompts[side], progress, lambda: turns.step(side), stop_requested)

        with PAIR_LOCK:
            written = [THREADS.submit(write, side) for side in (0, 1)]
        wait(written)
        finished = [future.result() for future in written]
        return progress.event(finished=True, stopped=not all(finished))

    def _write(
        self,
        side: int,
        snapshot: ModelSnapshot,
        prompt: Ids,
        progress: ReplyProgress,
        step: Callable[[], None],
        stop_requested: threading.Event,
    ) -> bool:
        """Write one model's reply; return False if it was stopped. A failure of one reply stops the other."""

        def pause_point() -> None:
            step()
            self.snapshots.pause_point()
            if stop_requested.is_set():
                raise Stopped

        try:
            with self.snapshots.open(snapshot, progress.training) as opened:
                tokenizer, count = opened.tokenizer, self._count(opened.tokenizer)

                def watch(ids: Ids, lengths: Ids, ended: NDArray[np.bool_]) -> None:
                    progress.update(side, _text(tokenizer, ids[0, : lengths[0]], ended=bool(ended[0])))

                noise = uniforms(zlib.crc32(progress.command.words.encode()), "held_out", progress.command.number, 1, 1, count)
                params = SamplingParams(
                    max_new=count, stops=tokenizer.stops, temperature=LOW_TEMPERATURE, pause_point=pause_point, watch=watch
                )  # fmt: skip
                ((reply,),) = opened.policy.sample([prompt], noise, params)
                text = _text(tokenizer, reply.tokens, ended=reply.ended)
                progress.replies[side] = Reply(rounds=snapshot.rounds, text=text, ended=reply.ended)
        except Stopped:  # the text so far stays
            return False
        except WaggleError:  # the error is the answer to the command
            stop_requested.set()
            raise
        return True

    def _count(self, tokenizer: Tokenizer) -> int:
        """The most tokens of a reply."""
        return MAX_REPLY_TOKENS if tokenizer.has_chat_template else self.max_new

    def _prompts(self, command: commands.SendMessage) -> tuple[tuple[Ids, Ids], int]:
        """The prompts of the two models, and how many earlier turns do not fit into them. Raises EngineError and ModelError."""
        tokenizer = load_tokenizer(self.snapshots.folder)
        context = generic_config.read_any(self.snapshots.folder).max_position_embeddings
        room = min(MAX_CONTEXT_TOKENS, context) - self._count(tokenizer)
        words = command.words if tokenizer.has_chat_template else self.prompt_text(command.words)
        earlier = command.earlier if tokenizer.has_chat_template else ()
        for first in range(len(earlier) + 1):
            now, before = (tokenizer.conversation(_messages(earlier[first:], words, side)).ids for side in (0, 1))
            if max(len(now), len(before)) <= room:
                return (now, before), command.number - len(earlier) + first if tokenizer.has_chat_template else 0
        raise EngineError(
            Message("This message is too long for this model, which reads %1 tokens at a time.", max(0, room)), "Shorten it."
        )


def _messages(earlier: Sequence[Turn], words: str, side: int) -> list[str]:
    """The messages of the person and of one of the two models, alternating."""
    return [message for turn in earlier for message in (turn.words, turn.replies[side].text)] + [words]


def _text(tokenizer: Tokenizer, ids: Ids, *, ended: bool) -> str:
    """Decode a reply without its stop token and without an incomplete character at its end; cut it to LONGEST_REPLY."""
    return tokenizer.decode(ids[:-1] if ended else ids).rstrip("\ufffd")[: events_chat.LONGEST_REPLY]
