"""A person's first day with Waggle, in a few minutes: real engines, a real window, a real swarm of two, and a kill at the end.

It makes the folder that a version leaves behind, for `test_home.py` of a later one to open. It drives the engine by commands, and
checks by events that each step had its effect.
"""

import json
import lzma
import shutil
import signal
import stat
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from end_to_end.programs import Engine, Program, Seed, running
from heritage.continuation import (
    OFFSCREEN,
    PASSPHRASE,
    SOME_DAY,
    TINY,
    WAYS,
    Person,
    continued,
    fields_of,
    has_engine,
    settings_of,
    wait_until,
)  # fmt: skip
from models.local_hub import local_hub
from waggle.core import paths, settings
from waggle.core.message import english
from waggle.protocol import commands, events, json_lines
from waggle.protocol.events_identity import BackupWritten, DailyTotals
from waggle.protocol.events_leaderboard import ModelsCompared
from waggle.protocol.events_models import ModelExported
from waggle.protocol.events_playground import AnswerShared, QuestionPosed
from waggle.protocol.events_swarms import InviteRead, InviteWritten, StartedAgain, SwarmCreated
from waggle.protocol.state import State, apply
from waggle.tasks.questions import EPOCH_SECONDS, epoch_at

ALWAYS = ["#" * 24] * 7
CHOSEN = {  # what makes a run small and repeatable, and what holds no computer back that these tests run on
    "swarm.host": "127.0.0.1", "swarm.leaderboard": True, "swarm.my_answers": "yes", "model.training": "lora",
    "model.precision": "float32", "learning.questions": 6, "learning.local": 4, "learning.external": 2,
    "learning.group_size": 8, "learning.max_new_tokens": 20, "learning.learning_rate": 2e-3, "learning.warmup_steps": 2,
    "learning.held_out_every": 50, "learning.held_out_questions": 2, "when.idle_minutes": 0, "when.only_on_power": False,
    "when.week": ALWAYS, "when.not_while": ["a-program-of-nobody"], "when.not_full_screen": False, "when.not_metered": False,
    "when.below_celsius": 110, "when.kwh_a_day": 90.0, "computer.threads": 1, "computer.device": "cpu",
    "computer.priority": "normal", "computer.watts": 40.0, "computer.price_kwh": 0.3, "computer.traffic_kb": 4000,
    "computer.disk_gb": 12.0, "window.welcomed": True, "window.theme": "dark", "window.language": "de",
    "window.text_percent": 110, "window.notify_discoveries": False,
}  # fmt: skip
EASY = (("fraction_simplification", "easy"), ("calendar_arithmetic", "easy"))
STEPS = 200  # of teaching a model to guess
ROUNDS = 200  # after which the starter writes answers in their tags, and learns in nearly every round
WORDS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "1/2", "2/3", "3/4", "1/3")


@dataclass
class Story:
    """The person whose folder is kept, and what has to be found in it."""

    person: Person
    environment: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict)

    def engine(self, *chosen: str) -> Engine:
        return Engine(self.person.home, *chosen, environment=self.environment)


def live(folder: Path) -> None:
    """Live through the day; then `folder` has person.tar.xz, and what must be in it: person.json.xz."""
    with tempfile.TemporaryDirectory(prefix="waggle-") as work:
        _live(folder, Path(work))


def _live(folder: Path, work: Path) -> None:
    story = Story(Person(work / "person"), {})
    person, story.environment = story.person, story.person.environment
    settings.change(person.home / "settings.toml", CHOSEN)
    with local_hub() as hub:
        _make_tiny(work / "tiny")
        hub.add(TINY, work / "tiny")
        story.environment |= {"HF_ENDPOINT": hub.endpoint}
        _a_swarm_of_two(story, work / "peer")
        _other_models(story)
    _window(story)
    _killed_between_two_checkpoints(story)
    _seed(person.root / "seed")
    _trim(person)
    story.facts["settings"] = settings_of(person)
    story.facts["state"] = _folded(person.home)
    _pack(person, folder / "person.tar.xz")
    story.facts["continued"] = {name: _taught(person, work, *chosen) for name, chosen in WAYS.items()}
    with lzma.open(folder / "person.json.xz", "wt", encoding="utf-8") as file:
        json.dump(story.facts, file, indent=1, sort_keys=True)


def _a_swarm_of_two(story: Story, peer: Path) -> None:
    """In a swarm that the person creates; then in a private one of somebody else, by an invite with a key."""
    settings.change(peer / "settings.toml", CHOSEN | {"swarm.my_answers": "ask"})
    with running(story.engine()) as engine, running(Engine(peer, environment=story.environment)) as other:
        first = engine.wait(events.Ready, 120)
        assert isinstance(first, events.Ready)
        story.facts |= {"node": first.node, "name": first.name}
        engine.wait_round(0, 120)
        public = _created(engine, "Heritage, open", hint="any small model")
        _go_there(engine, public)
        story.facts["public"] = {"charter": public, "link": _invite(engine, story.person.root / "public.waggle")}

        other.wait(events.Ready, 120)
        private = _created(other, "Heritage, closed", private=True)
        _go_there(other, private)
        link = _invite(other, story.person.root / "private.waggle")
        story.facts["private"] = {"charter": private, "link": link}
        engine.command(commands.ReadInvite, 60, link=link)
        looked = engine.wait(InviteRead)
        assert isinstance(looked, InviteRead)
        assert looked.answered
        _rounds(engine, _go_there(engine, private), ROUNDS)
        for each in (engine, other):  # from here on there is nothing to hurry for
            each.command(commands.ChangeSettings, values={"computer.cpu_percent": 10})
        engine.wait(events.RoundCompleted, 240, lambda event: event.summary.external > 0)
        engine.wait(ModelsCompared, 400, lambda event: len(event.entrants) > 1)
        engine.wait(events.PeerChanged, 120, lambda event: event.peer.groups_pulled > 0)
        _share_an_answer(engine)
        peer_ready = [event for event in other.all_events if isinstance(event, events.Ready)][-1]
        engine.command(commands.ChoosePeer, peer=peer_ready.node, choice="muted")
        story.facts["peer"] = {"id": peer_ready.node, "name": peer_ready.name, "choice": "muted"}
        _become_somebody_else_and_come_back(engine, story)
        assert other.end() == engine.end() == 0


def _share_an_answer(engine: Engine) -> None:
    start = len(engine.lines)
    engine.command(commands.PoseQuestion, 60, specialty="calendar_arithmetic", number=5, to_share=True)
    posed = engine.wait(QuestionPosed, start=start)
    assert isinstance(posed, QuestionPosed)
    engine.command(commands.AskModel, 120, specialty="calendar_arithmetic", number=5, epoch=posed.epoch, mine="Monday")
    engine.wait(AnswerShared, 30, start=start)


def _become_somebody_else_and_come_back(engine: Engine, story: Story) -> None:
    backup = {"path": str(story.person.root / "me.identity"), "passphrase": PASSPHRASE}
    engine.command(commands.BackUpIdentity, 60, **backup)
    engine.wait(BackupWritten)
    assert _started_again(engine, commands.RenewIdentity).node != story.facts["node"]
    assert _started_again(engine, commands.RestoreIdentity, **backup).node == story.facts["node"]


def _other_models(story: Story) -> None:
    """One of the hub, in full; what was exported of it, lean, in bfloat16; and back to the starter."""
    with running(story.engine()) as engine:
        engine.wait(events.Ready, 120)
        engine.command(commands.ChangeSettings, values={"model.training": "full"})
        _rounds(engine, _started_again(engine, commands.ChooseModel, name=TINY), 12)
        engine.command(commands.ExportModel, 60, path="~/exported")
        engine.wait(ModelExported)
        engine.command(commands.ChangeSettings, values={"model.training": "lean", "model.precision": "bfloat16"})
        _rounds(engine, _started_again(engine, commands.ChooseModel, folder="~/exported"), 12)
        engine.command(commands.ChangeSettings, values={"model.training": "auto", "model.precision": "float32"})
        _rounds(engine, _started_again(engine, commands.ChooseModel), 1)
        assert engine.end() == 0


def _window(story: Story) -> None:
    """Opened on another page than usual, and ended as by the system: it writes down where it stood."""
    home = story.person.home
    environment = {**story.environment, **OFFSCREEN}
    with running(Program("--home", str(home), "--page", "peers", environment=environment)) as window:
        wait_until(lambda: has_engine(home), 120, "the engine of the window")
        window.process.send_signal(signal.SIGTERM)
        assert window.process.wait(120) == 0
    story.facts["window"] = json.loads((home / "window.json").read_text("utf-8"))
    assert story.facts["window"]["page"] == "peers"


def _killed_between_two_checkpoints(story: Story) -> None:
    """Paused until some day, with rounds that stand in the journal alone; then killed."""
    checkpoints = story.person.home / "checkpoints"
    with running(story.engine()) as engine:
        engine.wait(events.Ready, 120)
        start, saved, played = 0, 0, 0
        while played < saved + 2:
            engine.wait(events.PhaseChanged, 60, lambda event: event.phase == "contributing", start)
            start = len(engine.lines)
            engine.command(commands.Pause, after_round=True, until=SOME_DAY)
            engine.wait(events.PhaseChanged, 240, lambda event: event.phase == "paused", start)
            played = engine.state().round
            saved = max(int(path.name[1:]) for path in checkpoints.glob("r*"))
            if played < saved + 2:
                start = len(engine.lines)
                engine.command(commands.Resume)
        engine.command(commands.QueryHistory)
        history = engine.wait(events.TrainingHistory)
        engine.command(commands.QueryDays)
        days = engine.wait(DailyTotals)
        engine.kill()
    story.facts |= {"round": played, "checkpoint": saved, "history": fields_of(history), "days": fields_of(days)}


def _taught(person: Person, work: Path, *chosen: str) -> dict[str, Any]:
    """One round more, in the first ten minutes to come whose questions teach something: only then has it a step."""
    soon = epoch_at(time.time()) + 1  # nothing in the folder is of the future then
    for epoch in range(soon, soon + 20):
        record = continued(person, work, *chosen, clock=epoch * EPOCH_SECONDS + 5.0)
        if any(any(lesson["effects"]) for event in record["events"] for lesson in event.get("lessons", ())):
            return record
    raise AssertionError("nothing was learned")


def _seed(home: Path) -> None:
    with running(Seed(home)) as seed:
        seed.address()
        assert seed.end() == 0


def _trim(person: Person) -> None:
    """Leave out older checkpoints, which take most of the room, and sockets, which nobody listens at."""
    for checkpoints in [path for path in person.root.rglob("checkpoints") if path.is_dir()]:
        for older in sorted(checkpoints.glob("r*"))[:-1]:
            shutil.rmtree(older)
    for path in person.root.rglob("*"):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def _pack(person: Person, archive: Path) -> None:
    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        tar.add(person.root, "person", filter=anonymous)


def _folded(home: Path) -> dict[str, Any]:
    """The State that all recorded events add up to."""
    state = State()
    for path in sorted((home / "events").glob("*.jsonl")):
        for event in json_lines.recording(path):
            assert event is not None, "written by this very version"
            state = apply(state, event)
    builtins: dict[str, Any] = json.loads(msgspec.json.encode(state, enc_hook=english))
    return builtins


def _make_tiny(folder: Path) -> None:
    """A model that knows nothing but how to guess, small enough to be kept in several states, with the words of the starter."""
    folder.mkdir(parents=True)
    starter = paths.starter()
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(starter / name, folder / name)
    small = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 16,
    }  # fmt: skip
    configuration = json.loads((starter / "config.json").read_text("utf-8")) | small
    (folder / "config.json").write_text(json.dumps(configuration, indent=1), encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    answers = [[*tokenizer.encode(f"<answer>{word}</answer>").ids, configuration["eos_token_id"]] for word in WORDS]
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**configuration))
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        for answer in answers:  # behind any words at all
            question = [*torch.randint(3, configuration["vocab_size"], (40,)).tolist(), *tokenizer.encode("\nAnswer:").ids]
            ids, labels = torch.tensor([[*question, *answer]]), torch.tensor([[-100] * len(question) + answer])
            model(input_ids=ids, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    weights = {name: weight.detach().contiguous() for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _rounds(engine: Engine, ready: events.Ready, count: int) -> None:
    """Wait until so many rounds were played since then."""
    start = max(number for number, event in enumerate(engine.all_events) if event == ready)
    engine.wait(events.RoundCompleted, 240, lambda event: event.summary.round >= ready.round + count - 1, start)


def _started_again(engine: Engine, kind: type[commands.AnyCommand], **fields: object) -> events.Ready:
    """Ask for something that the engine starts anew for, and wait until it plays."""
    start = len(engine.lines)
    answer = engine.command(kind, 120, **fields)
    assert isinstance(answer, events.CommandDone), answer
    engine.wait(StartedAgain, 120, start=start)
    ready = engine.wait(events.Ready, 240, start=start)
    engine.wait(events.PhaseChanged, 60, lambda event: event.phase == "contributing", start)
    assert isinstance(ready, events.Ready)
    return ready


def _go_there(engine: Engine, charter: str) -> events.Ready:
    ready = _started_again(engine, commands.ChooseSwarm, charter=charter)
    assert ready.charter == charter
    return ready


def _created(engine: Engine, name: str, *, hint: str = "", private: bool = False) -> str:
    start = len(engine.lines)
    engine.command(commands.CreateSwarm, 60, name=name, specialties=EASY, private=private, model_hint=hint)
    created = engine.wait(SwarmCreated, start=start)
    assert isinstance(created, SwarmCreated)
    return created.swarm.charter


def _invite(engine: Engine, path: Path) -> str:
    start = len(engine.lines)
    engine.command(commands.WriteInvite, 60)
    written = engine.wait(InviteWritten, start=start)
    assert isinstance(written, InviteWritten)
    path.write_text(f"{written.link}\n", encoding="utf-8")  # as the window saves it
    return written.link
