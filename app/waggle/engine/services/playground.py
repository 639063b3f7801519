"""The playground: the current model, earlier snapshots and the person answer the same question. Nothing of it is trained on here.

A person's answer is shared only if the settings allow it, in a group of its own beside completions of the current model.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

from waggle.core.errors import EngineError
from waggle.engine.runtime import round_events
from waggle.engine.runtime.true_answers import true_answers
from waggle.engine.services.models.snapshots import LOW_TEMPERATURE, ModelSnapshot, Snapshots
from waggle.models.memory_fit import Workload
from waggle.models.shared.training_mode import TrainingMode
from waggle.network.messages.rollout_record import oldest_epoch
from waggle.protocol import commands, events_playground
from waggle.protocol.events import ShownCompletion
from waggle.rl.batch import SamplingParams
from waggle.rl.random_streams import uniforms
from waggle.sapo.stages import Node, RoundSettings, fits
from waggle.tasks.questions import Question, QuestionId, QuestionKey, epoch_at, split_of
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.sandbox.verifier import batched

MAX_SNAPSHOTS = 8  # that answer one question
SEARCHED_QUESTIONS = 256  # among which to look for a reserved one: about one in ten is
BATCH_SIZE = 16  # questions per request to the verifier
SEED_RANGE = 1 << 20  # numbers beyond it repeat earlier questions
THREAD = ThreadPoolExecutor(1, thread_name_prefix="try")  # for the life of the process: MLX never frees a thread's memory

Result = TypeVar("Result")


@dataclass(frozen=True)
class PlaygroundService:
    """Obeys the commands of the playground. `may_share` returns the setting, `round` the round being played."""

    snapshots: Snapshots
    node: Node
    rules: RoundSettings
    may_share: Callable[[], bool] = lambda: False
    round: Callable[[], int] = lambda: 0
    clock: Callable[[], float] = time.time
    _shared: set[QuestionId] = field(default_factory=set, init=False)  # each question is shared at most once

    async def obey(self, command: commands.TryingCommand) -> tuple[events_playground.PlaygroundEvent, ...]:
        """Obey, and return the events for the sender. Raises WaggleError for what cannot be done."""
        match command:
            case commands.PoseQuestion():
                return (await asyncio.to_thread(self._pose, command),)
            case commands.AskModel():
                return await asyncio.get_running_loop().run_in_executor(THREAD, self._ask, command)
            case _:
                assert_never(command)

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Do work in the thread in which snapshots answer."""
        return await asyncio.get_running_loop().run_in_executor(THREAD, work)

    def newest_answers(self, questions: Sequence[Question]) -> list[Completion]:
        """A completion of the model of now for each question. Only in the thread of `in_thread`. Raises WaggleError."""
        answering = self.snapshots.answering(1, self._workload(questions))
        now, training = answering.snapshots[-1], answering.training
        return [self._answers(question, now, training, 1, LOW_TEMPERATURE)[0] for question in questions]

    def readable(self, questions: Iterable[Question]) -> list[Question]:
        """The questions that the model can read together with an answer. Raises EngineError if the engine ends."""
        readable: list[Question] = []
        for question in questions:
            self.snapshots.pause_point()
            if fits(self.node, self.rules, question):
                readable.append(question)
        return readable

    def _pose(self, command: commands.PoseQuestion) -> events_playground.QuestionPosed:
        epoch = epoch_at(self.clock()) if command.to_share else 0
        question = self._question_of(command.specialty, command.number, epoch)[1]
        title = next(specialty.title for specialty in self.node.charter.specialties if specialty.dataset == command.specialty)
        return events_playground.QuestionPosed(
            specialty=command.specialty, title=title, number=command.number, question=question.text, epoch=epoch
        )  # fmt: skip

    def _question_of(self, dataset: str, number: int, epoch: int) -> tuple[QuestionId | None, Question]:
        """The question of a command and its id; a reserved question has none, as it never travels. Raises EngineError."""
        if dataset not in (specialty.dataset for specialty in self.node.charter.specialties):
            raise EngineError("This swarm does not ask such questions.", "Choose one of its specialties.")
        if not epoch:
            return None, self._reserved_question(dataset, number)
        charter, cap = self.node.charter, self.node.charter.questions_per_epoch
        levels = len(charter.specialties[charter.position(dataset)].levels)
        ids = [QuestionId(dataset, epoch, (number + step) % cap, number % levels) for step in range(SEARCHED_QUESTIONS)]
        questions = self._questions([question_id.key(charter.digest, self.node.origin) for question_id in ids])
        for question_id, question in zip(ids, questions, strict=False):
            if split_of(dataset, question.text) == "train":
                return question_id, question
        raise EngineError("No question was found that others take.", "Try another number.")

    def _reserved_question(self, dataset: str, number: int) -> Question:
        """The first reserved question from a number on. Raises EngineError if there is none among SEARCHED_QUESTIONS."""
        first = number % SEED_RANGE * SEARCHED_QUESTIONS
        levels = len(self.node.charter.specialties[self.node.charter.position(dataset)].levels)
        seeds = range(first, first + SEARCHED_QUESTIONS)
        for question in self._questions([QuestionKey(dataset, seed, number % levels) for seed in seeds]):
            if split_of(dataset, question.text) in ("dev", "test"):
                return question
        raise EngineError("No question was found that is never trained on.", "Try another number.")

    def _questions(self, keys: Sequence[QuestionKey]) -> Iterator[Question]:
        """The questions of these keys, a few at a time, as long as they are asked for: the round is judged between them."""
        for some in batched(keys, BATCH_SIZE):
            yield from self.node.verifier.questions(some)

    def _ask(self, command: commands.AskModel) -> tuple[events_playground.PlaygroundEvent, ...]:
        self.snapshots.pause_point()  # the engine may have left while others were answered
        named, question = self._question_of(command.specialty, command.number, command.epoch)
        goes = named if command.mine.strip() and self.may_share() else None
        if goes is not None:
            self._require_fresh(goes)
        answering = self.snapshots.answering(1, self._workload([question], self._shared_answers if goes is not None else 1))
        training, snapshots = answering.training, _pick_evenly(list(answering.snapshots), MAX_SNAPSHOTS)
        completions = [self._answers(question, snapshot, training, 1, LOW_TEMPERATURE)[0] for snapshot in snapshots]
        if command.mine.strip():
            completions.append(_by_hand(command.mine))
        judged = self.node.verifier.judge([(question, completion) for completion in completions])
        judged_completions = [
            shown_completion(completion, verdict) for completion, verdict in zip(completions, judged, strict=True)
        ]
        answers = tuple(
            events_playground.SnapshotAnswer(rounds=snapshot.rounds, completion=judged_completion)
            for snapshot, judged_completion in zip(snapshots, judged_completions, strict=False)
        )
        mine = judged_completions[-1] if len(judged_completions) > len(snapshots) else None
        shared = self._share(goes, question, completions[-1], snapshots[-1], training) if goes is not None else ()
        answered = events_playground.QuestionAnswered(
            specialty=command.specialty, number=command.number, answers=answers, mine=mine, shared=bool(shared),
            truth=true_answers(self.node.verifier, [question])[0], not_now=answering.not_now,
        )  # fmt: skip
        return (*shared, answered)

    def _require_fresh(self, named: QuestionId) -> None:
        """Raise EngineError if an answer to this question cannot be shared any more."""
        if named in self._shared:
            raise EngineError("You shared an answer to this question already.", "Ask for another one.")
        if named.epoch < oldest_epoch(self.node.charter, self.clock()) + 1:
            raise EngineError("This question has become too old to be shared.", "Ask for another one.")

    def _share(
        self, named: QuestionId, question: Question, mine: Completion, now: ModelSnapshot, training: TrainingMode
    ) -> tuple[events_playground.AnswerShared, ...]:
        """Share a person's answer and completions of the current model as one group, without training on it here.

        Returns nothing if nobody is connected, or if the settings forbid it.
        """
        count = self._shared_answers
        completions = (*self._answers(question, now, training, count, self.rules.temperature), mine)
        group = Group(origin=self.node.origin, id=named, completions=completions)
        number = self.round()
        if not self.may_share():
            return ()
        travelled, _ = self.node.swarm.share(number, named.epoch, [group], self.node.model)
        if not travelled:
            return ()
        self._shared.add(named)
        verdicts = self.node.verifier.judge([(question, completion) for completion in completions])
        judged = JudgedGroup(group=group, question=question, verdicts=tuple(verdicts), round=number, model=self.node.model)
        (group_event,) = round_events.shown_groups((judged,), round_events.Titles(self.node.charter))
        return (events_playground.AnswerShared(round=number, group=group_event, at=self.clock()),)

    @property
    def _shared_answers(self) -> int:
        """How many completions are shared beside a person's answer."""
        charter = self.node.charter
        return max(charter.group_size_min, min(self.rules.group_size, charter.group_size_max)) - 1

    def _workload(self, questions: Sequence[Question], count: int = 1) -> Workload:
        """So many completions of the longest of these questions."""
        longest = max((len(self.node.prompt(question)) for question in questions), default=0)
        return Workload(1, 0, max(1, count), self.rules.max_new, longest)

    def _answers(
        self, question: Question, snapshot: ModelSnapshot, training: TrainingMode, count: int, temperature: float
    ) -> Sequence[Completion]:
        """Completions of a snapshot."""
        with self.snapshots.open(snapshot, training) as opened:
            prompt = self.node.prompt(question)
            noise = uniforms(question.seed % (1 << 32), "held_out", 0, 1, count, self.rules.max_new)
            params = SamplingParams(
                max_new=self.rules.max_new, stops=opened.tokenizer.stops, temperature=temperature,
                pause_point=self.snapshots.pause_point,
            )  # fmt: skip
            (row,) = opened.policy.sample([prompt], noise, params)
            return [self.node.completion(sampled) for sampled in row]


def _by_hand(mine: str) -> Completion:
    """A person's answer as a completion, inside the tag that the verifier looks for."""
    return Completion(text=f"<answer>{mine.strip()}</answer>", ended=True, by="human")


def _pick_evenly(snapshots: list[ModelSnapshot], most: int) -> list[ModelSnapshot]:
    """At most `most` snapshots, evenly spread, including the first and the last."""
    if len(snapshots) <= most:
        return snapshots
    return [snapshots[round(i * (len(snapshots) - 1) / (most - 1))] for i in range(most)]


def shown_completion(completion: Completion, verdict: Verdict) -> ShownCompletion:
    return ShownCompletion(
        text=completion.text, ended=completion.ended, judged=True, reward=round(verdict.reward, 4), reason=verdict.reason,
        start=verdict.start, length=verdict.length,
    )  # fmt: skip
