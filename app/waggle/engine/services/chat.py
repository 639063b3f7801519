"""Chat: a message goes to the current model and to an earlier snapshot of it. Nothing of it is stored, shared or learned."""

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
from waggle.engine.services.snapshots import LOW_TEMPERATURE, ModelSnapshot, Snapshots
from waggle.models.shared import model_config
from waggle.models.shared.training_mode import Training
from waggle.models.tokenizer import Tokenizer
from waggle.models.tokenizer import load as load_tokenizer
from waggle.protocol import commands, events_chat
from waggle.protocol.events_chat import Reply, Turn
from waggle.rl.batch import Ids, SampleParams
from waggle.rl.random_streams import uniforms

MAX_REPLY_TOKENS = 256  # tokens of one reply, of a model that was taught to chat
MAX_CONTEXT_TOKENS = 2048  # tokens that are read at a time, at most, whatever a model says it can
GROWTH_SECONDS = 0.1
THREADS = ThreadPoolExecutor(2, thread_name_prefix="talk")  # as long as the process lasts: MLX keeps memory for each one ever
PAIR_LOCK = threading.Lock()  # whoever gets one of them gets the other one next


class TurnTaking:
    """Two that write in turn, a step each: together they take no more of this computer than one, and none is far ahead."""

    def __init__(self) -> None:
        self._passed = threading.Condition()
        self._next, self._writing = 0, {0, 1}

    @contextmanager
    def writing(self, me: int) -> Iterator[None]:
        """From my first step to my last."""
        with self._passed:
            self._passed.wait_for(lambda: self._next == me)
        try:
            yield
        finally:
            with self._passed:
                self._writing.discard(me)
                self._pass(me)

    def step(self, me: int) -> None:
        """The other one's step, while there is another."""
        with self._passed:
            self._pass(me)
            self._passed.wait_for(lambda: self._next == me)

    def _pass(self, me: int) -> None:
        self._next = 1 - me if 1 - me in self._writing else me
        self._passed.notify_all()


@dataclass(frozen=True)
class ReplyProgress:
    """Reports a reply while it is being written. Only the thread that writes the reply may use it."""

    command: commands.Say
    tell: Callable[[events_chat.TurnGrew], object]
    training: Training  # how both models are loaded
    left_out: int
    replies: list[Reply]
    _reported_at: list[float] = field(default_factory=lambda: [0.0])

    def grew(self, side: int, text: str) -> None:
        self.replies[side] = replace(self.replies[side], text=text)
        if time.monotonic() - self._reported_at[0] >= GROWTH_SECONDS:
            self._reported_at[0] = time.monotonic()
            self.tell(self.event())

    def event(self, *, finished: bool = False, stopped: bool = False) -> events_chat.TurnGrew:
        now, before = self.replies
        turn = Turn(words=self.command.words, replies=(now, before), left_out=self.left_out, finished=finished, stopped=stopped)
        return events_chat.TurnGrew(command_id=self.command.id, number=self.command.number, turn=turn)


@dataclass
class ChatService:
    """Obeys the commands about a conversation, of which there is one. A model that was never taught to chat is asked as it was
    trained, with `prompt_for`, each message by itself, and answers in as many tokens as there."""

    snapshots: Snapshots
    prompt_for: Callable[[str], str]
    longest: int  # tokens of an answer in training
    tell: Callable[[events_chat.TurnGrew], None]
    _hushed: threading.Event | None = field(default=None, init=False)
    _cleared: bool = field(default=False, init=False)  # while an answer was written: nobody waits for it

    async def obey(self, command: commands.TalkCommand) -> tuple[events_chat.TalkEvent, ...]:
        """Raises WaggleError for what cannot be said."""
        match command:
            case commands.OfferTalk():
                return (await asyncio.to_thread(self._offer),)
            case commands.Say():
                return await self._say(command)
            case commands.Hush():
                self._hush()
                return ()
            case commands.ClearTalk():
                self._hush()
                self._cleared = True
                return (events_chat.TalkCleared(),)
            case _:
                assert_never(command)

    def _hush(self) -> None:
        if self._hushed is not None:
            self._hushed.set()

    def _offer(self) -> events_chat.TalkOffered:
        taught = load_tokenizer(self.snapshots.folder).taught_to_chat
        return events_chat.TalkOffered(moments=tuple(snapshot.rounds for snapshot in self.snapshots.available()), taught=taught)

    async def _say(self, command: commands.Say) -> tuple[events_chat.TurnGrew, ...]:
        if not command.words.strip():
            raise EngineError("There is nothing to answer.", "Write something first.")
        if self._hushed is not None:
            raise EngineError("An answer is still being written.", "Wait for it, or stop it.")
        hushed = self._hushed = threading.Event()
        self._cleared = False
        try:
            loop = asyncio.get_running_loop()
            grew = lambda event: loop.call_soon_threadsafe(self._grew, event)  # noqa: E731 - from the threads that write
            last_event = await asyncio.to_thread(self._answer, command, hushed, grew)
            return () if self._cleared else (last_event,)
        finally:
            self._hushed = None

    def _grew(self, event: events_chat.TurnGrew) -> None:
        """What was on its way when the conversation was cleared would begin it anew."""
        if not self._cleared:
            self.tell(event)

    def _answer(
        self, command: commands.Say, hushed: threading.Event, grew: Callable[[events_chat.TurnGrew], object]
    ) -> events_chat.TurnGrew:
        training = self.snapshots.require_room(2)
        snapshots = self.snapshots.available()
        then = next((snapshot for snapshot in snapshots if snapshot.rounds == command.before), None)
        if then is None:
            raise EngineError(f"The model after {command.before} rounds is not kept any more.", "Choose another snapshot.")
        sides = (snapshots[-1], then)
        prompts, left_out = self._prompts(command)
        replies = [Reply(rounds=snapshot.rounds) for snapshot in sides]
        telling, turns = ReplyProgress(command, grew, training, left_out, replies), TurnTaking()

        def write(side: int) -> bool:
            with turns.writing(side):
                return self._write(side, sides[side], prompts[side], telling, lambda: turns.step(side), hushed)

        with PAIR_LOCK:
            written = [THREADS.submit(write, side) for side in (0, 1)]
        wait(written)
        whole = [each.result() for each in written]
        return telling.event(finished=True, stopped=not all(whole))

    def _write(
        self,
        side: int,
        snapshot: ModelSnapshot,
        prompt: Ids,
        telling: ReplyProgress,
        step: Callable[[], None],
        hushed: threading.Event,
    ) -> bool:
        """One model's reply; False where it was hushed. What ends one of the two ends the other."""

        def pause_point() -> None:
            step()
            self.snapshots.pause_point()
            if hushed.is_set():
                raise Stopped

        try:
            with self.snapshots.open(snapshot, telling.training) as opened:
                tokenizer, count = opened.tokenizer, self._count(opened.tokenizer)

                def watch(ids: Ids, lengths: Ids, ended: NDArray[np.bool_]) -> None:
                    telling.grew(side, _text(tokenizer, ids[0, : lengths[0]], ended=bool(ended[0])))

                noise = uniforms(zlib.crc32(telling.command.words.encode()), "held_out", telling.command.number, 1, 1, count)
                params = SampleParams(
                    max_new=count, stop=tokenizer.stop, temperature=LOW_TEMPERATURE, pause_point=pause_point, watch=watch
                )  # fmt: skip
                ((reply,),) = opened.policy.sample([prompt], noise, params)
                text = _text(tokenizer, reply.tokens, ended=reply.ended)
                telling.replies[side] = Reply(rounds=snapshot.rounds, text=text, ended=reply.ended)
        except Stopped:  # what was said so far stays
            return False
        except WaggleError:  # it is told instead of both
            hushed.set()
            raise
        return True

    def _count(self, tokenizer: Tokenizer) -> int:
        """Tokens that a reply may have."""
        return MAX_REPLY_TOKENS if tokenizer.taught_to_chat else self.longest

    def _prompts(self, command: commands.Say) -> tuple[tuple[Ids, Ids], int]:
        """What each of the two reads, and how many turns before are left out for want of room. Raises EngineError, ModelError."""
        tokenizer = load_tokenizer(self.snapshots.folder)
        room = min(MAX_CONTEXT_TOKENS, model_config.read(self.snapshots.folder).max_position_embeddings) - self._count(tokenizer)
        words = command.words if tokenizer.taught_to_chat else self.prompt_for(command.words)
        earlier = command.earlier if tokenizer.taught_to_chat else ()
        for first in range(len(earlier) + 1):
            now, before = (tokenizer.conversation(_messages(earlier[first:], words, side)) for side in (0, 1))
            if max(len(now), len(before)) <= room:
                return (now, before), command.number - len(earlier) + first if tokenizer.taught_to_chat else 0
        raise EngineError(f"This message is too long for this model, which reads {max(0, room)} tokens at a time.", "Shorten it.")


def _messages(earlier: Sequence[Turn], words: str, side: int) -> list[str]:
    """All that a person and one of the two said, in turn."""
    return [message for turn in earlier for message in (turn.words, turn.replies[side].text)] + [words]


def _text(tokenizer: Tokenizer, ids: Ids, *, ended: bool) -> str:
    """Without the stop token, a character of which only a part is written, and what is too long to be told."""
    return tokenizer.decode(ids[:-1] if ended else ids).rstrip("\ufffd")[: events_chat.LONGEST_REPLY]
