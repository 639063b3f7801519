"""Test that the settings reach the round."""

import asyncio
import json
import os
import shutil
import typing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from transformers import AutoModelForCausalLM, Qwen3Config

from end_to_end.programs import children_named
from engine.test_resume import LEARNED_MIX
from waggle.core import paths, settings
from waggle.core.errors import ModelError, SettingsError
from waggle.core.settings import ComputerSettings, LearningSettings, ModelSettings, Settings, SwarmSettings
from waggle.engine.runtime import model_fit
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.startup import answer_checker, round_settings
from waggle.engine.startup.host import LiveChoices, ModelOpening, NodeHost
from waggle.engine.startup.node import PreparedNode, prepare_node
from waggle.engine.startup.round_settings import FORM_PAY
from waggle.engine.storage import round_saver
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.models import memory_fit
from waggle.models.shared.configuration import model_config
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import CheckpointState
from waggle.network.identity import keys
from waggle.protocol import json_lines
from waggle.protocol.events import AnswerLength, Preparing, PromptFormChoice, Ready
from waggle.rl.update_rules import rule, table
from waggle.sapo import answer_length
from waggle.sapo.prompt_form import PLAIN
from waggle.sapo.sharing.replay import Replay
from waggle.tasks.sandbox import verifier_process
from waggle.tasks.sandbox.verifier import Verifier


async def prepared(
    folder, learning: LearningSettings, parts_for: Callable[[int], int] = int, gate: PauseGate | None = None,
    requested: Callable[[], ComputerSettings] | None = None, **more: Any
) -> PreparedNode:  # fmt: skip
    home = paths.Home(folder).prepare()
    chosen = Settings(swarm=SwarmSettings(solo=True), learning=learning, **more)
    async with AsyncExitStack() as stack:
        publisher = EventPublisher(home.events)
        stack.callback(publisher.close)
        threads = stack.enter_context(ThreadPoolExecutor(1))
        return await prepare_node(
            home, chosen, NodeHost(publisher, threads, gate or PauseGate(lambda: None), asyncio.Event()),
            LiveChoices(requested or (lambda: chosen.computer)), ModelOpening(parts_for), stack,
        )  # fmt: skip


def preparations(folder) -> list[Preparing]:
    """What the engine of this home said of its start."""
    (record,) = (folder / "events").glob("*.jsonl")
    return [event for event in map(json_lines.event, record.read_bytes().splitlines()) if isinstance(event, Preparing)]


class Lent:
    """The verifier of the test session, which closing leaves running."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def __getattr__(self, name: str) -> object:
        return getattr(self._verifier, name)

    def close(self) -> None:
        pass


@pytest.fixture
def lent(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the verifier, as its start takes long and these tests are about something else."""
    monkeypatch.setattr("waggle.engine.startup.answer_checker.Verifier", lambda *_, **__: Lent(verifier))


async def test_the_rule_and_the_specialties_that_were_chosen_are_played_by(tmp_path):
    node = await prepared(tmp_path, LearningSettings(rule="dr_grpo", specialties=("bf", "arc_1d"), held_out_questions=1))
    assert node.plan.rules.rule is rule("dr_grpo")
    assert node.node.specialties == ("bf", "arc_1d")
    datasets = {question.dataset for question in node.plan.held_out.questions}
    assert datasets > {"bf", "arc_1d"}, "the honest score covers the whole charter"


@pytest.mark.usefixtures("lent")
async def test_the_share_of_the_time_holds_before_a_round_is_learned_again(tmp_path):
    gate, computer = PauseGate(lambda: None), ComputerSettings(device="cpu", threads=1, cpu_percent=40)
    await prepared(tmp_path, LearningSettings(held_out_questions=1), gate=gate, computer=computer)
    assert gate.percent == 40


@pytest.mark.usefixtures("lent")
async def test_a_share_that_is_changed_while_rounds_are_learned_again_holds_at_once(tmp_path, monkeypatch):
    gate, shares, waits = PauseGate(lambda: None), [100], []

    def restore(*_: object, pause_point: Callable[[], None], report: object, is_sound: object) -> tuple[None, None, list[object]]:
        for shares[0] in (40, 20):
            pause_point()
            waits.append(gate.percent)
        return None, None, []

    monkeypatch.setattr(round_saver, "restore", restore)
    computer = lambda: ComputerSettings(device="cpu", threads=1, cpu_percent=shares[0])  # noqa: E731
    await prepared(tmp_path, LearningSettings(held_out_questions=1), gate=gate, requested=computer)
    assert waits == [40, 20]


@pytest.mark.usefixtures("lent")
async def test_a_window_may_pause_while_rounds_are_learned_again(tmp_path, monkeypatch):
    def restore(
        *_: object, pause_point: object, report: Callable[[int, int], None], is_sound: object
    ) -> tuple[None, None, list[object]]:
        report(3, 40)
        return None, None, []

    monkeypatch.setattr(round_saver, "restore", restore)
    await prepared(tmp_path, LearningSettings(held_out_questions=1))
    parts = preparations(tmp_path)
    assert [event.long for event in parts if "3 of 40 rounds" in event.part] == [True]
    assert sum(event.long for event in parts) == 1


async def test_a_checker_that_starts_slowly_is_waited_for_and_that_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_checker, "SLOW_SECONDS", 0.0)
    await prepared(tmp_path, LearningSettings(held_out_questions=1))
    assert [event.part for event in preparations(tmp_path)].count(answer_checker.SLOW_PART) == 1


async def test_a_model_that_cannot_be_opened_is_named_and_the_checker_that_started_beside_it_ends(tmp_path):
    folder = shutil.copytree(paths.starter(), tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"damage")
    before = children_named(os.getpid(), verifier_process.__name__)  # of other tests
    with pytest.raises(ModelError, match="cannot be read"):
        await prepared(tmp_path, LearningSettings(held_out_questions=1), model=ModelSettings(folder=str(folder)))
    assert children_named(os.getpid(), verifier_process.__name__) == before


@pytest.mark.usefixtures("lent")
async def test_a_model_that_begins_anew_is_not_taken_for_the_one_of_the_pictures_before(tmp_path):
    pictures = tmp_path / "album"
    pictures.mkdir()
    (pictures / "r00000064.safetensors").write_bytes(b"weights")
    node = await prepared(tmp_path, LearningSettings(held_out_questions=1))
    assert node.progress.round == 0
    assert [snapshot.rounds for snapshot in node.services.playground.snapshots.saved()] == [0]
    assert [path.read_bytes() for path in pictures.iterdir()] == [b"weights"], "nothing is lost"


async def test_a_specialty_the_swarm_does_not_have_is_answered_with_those_it_has(tmp_path):
    with pytest.raises(SettingsError, match="has no specialty chess") as caught:
        await prepared(tmp_path, LearningSettings(specialties=("bf", "chess")))
    assert "Base conversion" in caught.value.advice
    assert not paths.Home(tmp_path).identity.exists(), "refused before anything was made"


def test_the_settings_offer_exactly_the_rules_there_are():
    assert set(typing.get_args(typing.get_type_hints(LearningSettings)["rule"])) == set(table())


@pytest.fixture(scope="module")
def twelve_million(tmp_path_factory):
    """A folder with a model too large to count as small."""
    folder = tmp_path_factory.mktemp("model")
    tokens = model_config.read(paths.starter()).vocab_size
    small = {"vocab_size": tokens, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 12, "head_dim": 64,
             "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": None, "eos_token_id": 1}  # fmt: skip
    AutoModelForCausalLM.from_config(Qwen3Config(**small)).save_pretrained(folder)
    for words in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(paths.starter() / words, folder)
    return folder


def noted(home):
    """What the engine says of the model it trains."""
    return next(event.model_note for event in recorded(home) if isinstance(event, Ready))


@pytest.mark.usefixtures("lent")
async def test_a_model_in_a_folder_is_trained_as_the_memory_that_is_allowed_lets_it_and_the_engine_says_so(
    tmp_path, twelve_million
):
    learning = LearningSettings(held_out_questions=1, max_new_tokens=24)
    model = ModelSettings(folder=str(twelve_million), precision="bfloat16")  # else it is the one that is faster on this processor
    little = ComputerSettings(memory_gb=0.66, device="cpu", threads=1)
    node = await prepared(tmp_path, learning, model=model, computer=little)
    assert node.model.opened.policy.training == TrainingMode("lean", "bfloat16", recompute=True)
    note = noted(tmp_path)
    assert note.startswith("Fits: about ")
    assert "answers an hour or more, 0.5 of 0.5 GB of memory. All weights are trained with little memory in bfloat16." in note
    assert node.plan.rules.learning_rate == pytest.approx(memory_fit.rate_for(model_config.read(twelve_million), "lean"))
    less = ComputerSettings(memory_gb=0.56, device="cpu", threads=1)
    divided = await prepared(tmp_path / "less", learning, model=model, computer=less)
    assert divided.model.opened.policy.training == TrainingMode("lora", "bfloat16", recompute=True, parts=4)
    with pytest.raises(ModelError, match=r"does not fit: it needs at least 0.5 GB of memory, and Waggle may use 0.3 GB"):
        await prepared(
            tmp_path / "other", learning, model=model, computer=ComputerSettings(memory_gb=0.4, device="cpu", threads=1)
        )


@pytest.mark.usefixtures("lent")
async def test_a_model_that_fits_in_parts_only_and_runs_short_goes_on_in_smaller_parts_and_the_engine_says_so(
    tmp_path, twelve_million
):
    learning, less = (
        LearningSettings(held_out_questions=1, max_new_tokens=24),
        ComputerSettings(memory_gb=0.56, device="cpu", threads=1),
    )
    backoff = MemoryBackoff(paths.Home(tmp_path).prepare(), "")
    backoff.back_off()
    model = ModelSettings(folder=str(twelve_million))
    node = await prepared(tmp_path, learning, backoff.parts_for, model=model, computer=less)
    assert node.model.opened.policy.training == TrainingMode("lora", "bfloat16", recompute=True, parts=8)
    assert "is divided into 8 parts." in noted(tmp_path)


def test_half_of_what_a_model_can_read_is_left_to_the_question(twelve_million, tmp_path):
    shutil.copytree(twelve_million, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 256}))
    lengths = [
        model_fit.answer_limit(Settings(learning=LearningSettings(max_new_tokens=max_new)), model_config.read(tmp_path))
        for max_new in (0, 24, 512)
    ]
    assert lengths == [128, 24, 128]


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize("same_swarm", [True, False])
async def test_which_questions_taught_most_is_remembered_in_the_same_swarm_only(tmp_path, same_swarm):
    first = await prepared(tmp_path, LearningSettings(held_out_questions=1))
    charter = first.node.charter.digest.hex() if same_swarm else "ab" * 32
    saved = CheckpointState(round=1, step=0, epoch=1, charter=charter, base=first.plan.base, mix=LEARNED_MIX)
    checkpoint.save(paths.Home(tmp_path).model.checkpoints, first.model.opened.policy, saved)
    continued = await prepared(tmp_path, LearningSettings(held_out_questions=1))
    assert continued.progress.round == 1
    assert (continued.node.mix.state == LEARNED_MIX) is same_swarm


def trying(published):
    """What was published while the forms were tried, and whether that may take long."""
    preparing = [event for event in published if isinstance(event, Preparing)]
    return [(event.part, event.long) for event in preparing if event.part.startswith("Trying how to ask")]


@pytest.mark.usefixtures("lent")
async def test_another_model_than_the_starter_is_tried_once_and_asked_in_the_form_of_most_readable_answers(tmp_path):
    folder = shutil.copytree(paths.starter(), tmp_path / "model")
    learning, model = LearningSettings(held_out_questions=1, seed=1), ModelSettings(folder=str(folder))  # else it is luck
    home = tmp_path / "home"
    first = await prepared(home, learning, model=model)
    published = recorded(home)
    choice = next(event for event in published if isinstance(event, Ready)).prompt_form
    assert (choice.why, choice.total) == ("trial", 18), "two questions of each of nine specialties"
    assert choice.readable > 0
    assert first.node.form.name == choice.form == "example_opened", "with the tag opened, it has only to close it"
    assert trying(published) == [(f"Trying how to ask this model: {done} of 3 ways", True) for done in range(3)]
    assert first.plan.rules.form_pay == FORM_PAY
    length = next(event for event in published if isinstance(event, Ready)).answer_length
    assert choice.readable >= answer_length.ENOUGH
    assert (length.tokens, length.why) == (first.plan.rules.max_new, "trial"), "they needed no more than the starter has"
    assert first.plan.rules.external_max == model_fit.STARTER_ANSWER_TOKENS
    rules, fit = first.plan.rules, noted(home).values[0]
    work = memory_fit.Workload(rules.questions, rules.local + rules.external, rules.group_size, length.tokens)
    foretold = memory_fit.answers_an_hour(
        model_config.read(folder), first.model.machine, work, first.model.opened.policy.training
    )
    assert fit.values[0].number == foretold, "of the length that was settled"
    plan = first.plan.held_out
    assert (plan.every, plan.few, len(plan.questions)) == (0, plan.questions, 9), "by time, and one question of each is few"

    restarted = await prepared(home, learning, model=model)
    published = recorded(home)[len(published) :]
    ready = next(event for event in published if isinstance(event, Ready))
    assert (ready.prompt_form, ready.answer_length, ready.test_every) == (choice, length, 0)
    assert restarted.node.form == first.node.form
    assert not trying(published)

    chosen = await prepared(
        home, LearningSettings(held_out_questions=1, form_pay="off"), model=replace(model, prompt_form="plain")
    )
    assert (chosen.node.form, chosen.plan.rules.form_pay) == (PLAIN, 0.0)


@pytest.mark.usefixtures("lent")
async def test_the_starter_is_not_tried(tmp_path):
    starter = await prepared(tmp_path, LearningSettings(held_out_questions=1))
    assert (starter.node.form, starter.plan.rules.form_pay) == (PLAIN, 0.0)
    (ready,) = (event for event in recorded(tmp_path) if isinstance(event, Ready))
    assert ready.prompt_form == PromptFormChoice(form="plain", why="starter")
    assert ready.answer_length == AnswerLength(tokens=24, why="usual")
    assert ready.test_every == 25
    assert (ready.questions, ready.group_size) == (8, 8)
    assert (starter.plan.held_out.every, starter.plan.held_out.few) == (25, ())
    assert not paths.Home(tmp_path).model.prompt_form.exists()
    paid = await prepared(tmp_path, LearningSettings(held_out_questions=1, form_pay="on"))
    assert paid.plan.rules.form_pay == FORM_PAY


def recorded(home):
    """All events of a home."""
    lines = [line for path in sorted((home / "events").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    return list(map(json_lines.event, lines))


@pytest.mark.usefixtures("lent")
async def test_the_sharing_strategy_that_was_chosen_decides_what_a_node_learns_from(tmp_path):
    prepared_node = await prepared(tmp_path, LearningSettings(sharing="replay", held_out_questions=1))
    assert type(prepared_node.node.sharing) is Replay


def test_a_seed_takes_the_place_of_key_and_salt_only_where_a_node_trains_alone(tmp_path):
    published = []
    publisher = SimpleNamespace(publish=published.append)
    homes = [paths.Home(tmp_path / name).prepare() for name in ("first", "second")]
    identities = [keys.load_or_create(home.identity) for home in homes]

    def randomness(place: int, *overrides: str) -> tuple[bytes, int]:
        chosen = settings.read(tmp_path / "none", overrides)
        return round_settings.randomness(homes[place], chosen, identities[place], publisher)

    alone = ("swarm.solo=true", "learning.seed=7")
    assert randomness(0, *alone) == randomness(1, *alone)
    assert randomness(0, *alone) != randomness(0, "swarm.solo=true", "learning.seed=8")
    assert published == []
    assert randomness(0, "learning.seed=7") == randomness(0), "beside peers it has no effect"
    assert randomness(0) != randomness(1)
    assert "The seed has no effect beside peers" in published[0].title
