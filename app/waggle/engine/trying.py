"""Trying: a reserved question is put to the model as it is now and as it was, beside what a person answers. Trains nothing.

The model is loaded a second time for it, so that the round in progress is left alone.
"""

import asyncio
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from waggle import paths
from waggle.engine import album
from waggle.errors import EngineError
from waggle.policy.choose import open_policy
from waggle.policy.hub import WORDS
from waggle.protocol import commands, trying
from waggle.protocol.events import ShownCompletion
from waggle.rl.batch import SampleParams
from waggle.rl.noise import uniforms
from waggle.sapo.round import Node, Rules, completion_of
from waggle.tasks.group import Completion, Verdict
from waggle.tasks.questions import Question, split_of

MOST = 8  # moments
LARGEST = 3_000_000_000  # bytes of weights that are loaded a second time
COOL = 0.2  # the temperature: what it would rather say
LOOKED = 256  # questions among which a reserved one is looked for
SPREAD = 1 << 20  # of the seeds that numbers stand for


@dataclass(frozen=True)
class Trying:
    """Obeys the commands about trying. `folder` is the model that training began from."""

    home: paths.Home
    node: Node
    rules: Rules
    folder: Path
    device: str
    threads: int

    async def obey(self, command: commands.TryingCommand) -> tuple[trying.TryingEvent, ...]:
        """Raises WaggleError for what cannot be tried."""
        match command:
            case commands.PoseQuestion():
                question = await asyncio.to_thread(self._question, command.specialty, command.number)
                title = next(one.title for one in self.node.charter.specialties if one.dataset == command.specialty)
                posed = trying.QuestionPosed(
                    specialty=command.specialty, title=title, number=command.number, question=question.text
                )  # fmt: skip
                return (posed,)
            case commands.AskModel():
                return (await asyncio.to_thread(self._ask, command),)
            case _:
                assert_never(command)

    def _question(self, dataset: str, number: int) -> Question:
        """The first reserved one from a number on; raises EngineError where there is none near."""
        if dataset not in (one.dataset for one in self.node.charter.specialties):
            raise EngineError("This swarm does not ask such questions.", "Choose one of its specialties.")
        first = number % SPREAD * LOOKED
        made = self.node.verifier.questions([(dataset, seed) for seed in range(first, first + LOOKED)])
        for question in made:
            if split_of(dataset, question.text) != "train":
                return question
        raise EngineError("No question was found that is never trained on.", "Try another number.")

    def _ask(self, command: commands.AskModel) -> trying.QuestionAnswered:
        question = self._question(command.specialty, command.number)
        weights = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        if weights > LARGEST:
            raise EngineError("This model is too large to be loaded a second time.", "Its answers are on the page Live.")
        kept = album.pictures(self.home.checkpoints, self.home.album)
        moments = [(0, None), *_spread(kept, MOST - 1)]
        said = [self._answer(question, picture) for _, picture in moments]
        if command.mine.strip():
            said.append(Completion(text=f"<answer>{command.mine.strip()}</answer>", ended=True, by="human"))
        judged = self.node.verifier.judge([(question, one) for one in said])
        shown = [_shown(one, verdict) for one, verdict in zip(said, judged, strict=True)]
        answers = tuple(
            trying.Answered(rounds=number, completion=one) for (number, _), one in zip(moments, shown, strict=False)
        )  # fmt: skip
        mine = shown[-1] if len(shown) > len(moments) else None
        return trying.QuestionAnswered(specialty=command.specialty, number=command.number, answers=answers, mine=mine)

    def _answer(self, question: Question, picture: Path | None) -> Completion:
        """One answer of the model with these weights, or as training began."""
        with tempfile.TemporaryDirectory(prefix="waggle-try-", ignore_cleanup_errors=True) as scratch:
            folder = self.folder if picture is None else _model_with(self.folder, picture, Path(scratch))
            opened = open_policy(folder, device=self.device, threads=self.threads)
            prompt = opened.tokens.prompt(self.node.charter.prompt_for(question.text))
            noise = uniforms(question.seed % (1 << 32), "held_out", 0, 1, 1, self.rules.max_new)
            params = SampleParams(max_new=self.rules.max_new, stop=opened.tokens.stop, temperature=COOL)
            ((sampled,),) = opened.policy.sample([prompt], noise, params)
            return completion_of(opened.tokens, sampled)


def _model_with(base: Path, weights: Path, folder: Path) -> Path:
    """A model folder with these weights and the base's words."""
    for name in WORDS:
        if (base / name).is_file():
            _place(base / name, folder / name)
    _place(weights, folder / "model.safetensors")
    return folder


def _place(source: Path, place: Path) -> None:
    """The same file there: linked where this system lets a program do so, which Windows seldom does, else copied."""
    for link in (os.symlink, os.link):
        with suppress(OSError):
            link(source.absolute(), place)
            return
    shutil.copyfile(source, place)


def _spread(kept: list[tuple[int, Path]], most: int) -> list[tuple[int, Path]]:
    """At most so many, the first and the last among them."""
    if len(kept) <= most:
        return kept
    return [kept[round(i * (len(kept) - 1) / (most - 1))] for i in range(most)]


def _shown(one: Completion, verdict: Verdict) -> ShownCompletion:
    return ShownCompletion(
        text=one.text, ended=one.ended, judged=True, reward=round(verdict.reward, 4), reason=verdict.reason,
        start=verdict.start, length=verdict.length,
    )  # fmt: skip
