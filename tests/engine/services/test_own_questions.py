"""A swarm from a person's own file: created, joined by its invite, and trained in; and files that are refused in words."""

import csv
import io
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from network.loopback import Ear, fresh_identity
from tasks.question_file.questions import sums
from waggle.core import paths
from waggle.core.errors import QuestionFileError, WaggleError
from waggle.core.settings import ComputerSettings, Settings, SwarmSettings
from waggle.engine.services.models.snapshots import Snapshots
from waggle.engine.services.own_questions import OwnQuestionsService
from waggle.engine.services.playground import PlaygroundService
from waggle.engine.services.swarms import swarm_connection, swarms
from waggle.engine.services.swarms.swarms import CurrentSwarm, SwarmService
from waggle.engine.storage.stored_swarm import known_charter
from waggle.models.backend import open_policy
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import GroupsArrived, ReachChanged
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.network.solo_node import SoloNode
from waggle.network.transport.availability import has_hivemind
from waggle.protocol import commands
from waggle.sapo.fakes import FakePolicy
from waggle.sapo.prompt_form import FORMS
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.questions import QuestionId, epoch_at, split_of
from waggle.tasks.rollout_group import Completion, Group
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

LOOPBACK = Settings(swarm=SwarmSettings(host="127.0.0.1"))


def service_of(home: paths.Home, current: CurrentSwarm | None = None) -> SwarmService:
    return SwarmService(home, LOOPBACK, lambda reason, back: None, lambda values: None, current=lambda: current)


def create(path: Path, **changes) -> commands.CreateSwarm:
    file = commands.NewQuestionFile(path=str(path), **changes.pop("file", {}))
    return commands.CreateSwarm(id="1", name="Ours", specialties=changes.pop("specialties", ()), files=(file,), **changes)


@pytest.fixture
def home(tmp_path: Path) -> paths.Home:
    return paths.Home(tmp_path / "home").prepare()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "double_sums.jsonl"
    path.write_bytes(sums(60))
    return path


class Member:
    """A node in a swarm of own questions, with its real verifier."""

    def __init__(self, home: paths.Home, chosen: Settings, charter: Charter, identity: Identity) -> None:
        self.charter, self.identity, self.ear = charter, identity, Ear()
        self.verifier = Verifier(charter, files=PieceStore(home.questions, charter).files())
        options = swarm_connection.options_of(home, chosen, charter=charter.digest.hex())
        self.node: SwarmNode = open_node(options, charter, identity, self.verifier, self.ear)

    def groups(self, count: int = 3) -> list[Group]:
        (dataset,) = (specialty.dataset for specialty in self.charter.specialties)
        ids = [QuestionId(dataset, epoch_at(time.time()), number) for number in range(40)]
        keys = [each.key(self.charter.digest, self.identity.peer_id) for each in ids]
        answers = zip(ids, self.verifier.questions(keys), self.verifier.answers(keys), strict=True)
        return [
            Group(
                origin=self.identity.peer_id,
                id=each,
                completions=(
                    Completion(text=f"It is <answer>{answer}</answer>", ended=True),
                    Completion(text="<answer>no idea</answer>", ended=True),
                ),
            )
            for each, question, answer in answers
            if split_of(dataset, question.text) == "train"
        ][:count]


@pytest.mark.skipif(not has_hivemind(), reason="a node without hivemind has no address of its own")
async def test_members_get_the_questions_by_the_invite_and_exchange_groups(tmp_path, home, file):
    created, _ = await service_of(home).obey(create(file))
    (details,) = created.swarm.specialties
    assert (details.title, details.questions, details.grader_title, len(details.samples)) == ("double sums", 60, "Number", 3)
    stored = known_charter(home, created.swarm.charter)
    async with AsyncExitStack() as stack:
        author = Member(home, LOOPBACK, stored, fresh_identity(tmp_path, "author"))
        stack.callback(author.verifier.close)
        author.verifier.check_charter()
        stack.push_async_callback(author.node.close)
        await author.node.start()

        (written,) = await service_of(home, CurrentSwarm(stored, author.node.addresses)).obey(commands.WriteInvite(id="2"))
        there = paths.Home(tmp_path / "there").prepare()
        joining = service_of(there)
        (looked,) = await joining.obey(commands.ReadInvite(id="3", link=written.link))
        assert looked.swarm.specialties == (details,)
        await joining.obey(commands.ChooseSwarm(id="4", charter=created.swarm.charter))
        chosen = swarms.with_chosen_swarm(there, LOOPBACK)
        charter = await swarm_connection.charter_of(there, chosen)
        own = fresh_identity(tmp_path, "member")
        reports = []
        await swarm_connection.download_missing_questions(there, chosen, charter, own, None, lambda *parts: reports.append(parts))
        assert reports == [(0, 1), (1, 1)]
        assert {message.kind for message in author.node.outbox.newest()} >= {"questions"}

        member = Member(there, chosen, charter, own)
        stack.callback(member.verifier.close)
        member.verifier.check_charter()
        stack.push_async_callback(member.node.close)
        await member.node.start()
        await member.ear.hear(ReachChanged, lambda news: news.reach == "connected")
        for giver, receiver in ((author, member), (member, author)):
            groups = giver.groups()
            assert giver.node.share(1, groups[0].id.epoch, groups, "starter")[0] == 3
            arrived = await receiver.ear.hear(GroupsArrived)
            assert [judged.group for judged in arrived.groups] == groups
            assert [judged.rewards[0] for judged in arrived.groups] == [1.0] * 3


async def test_questions_are_removed_with_the_last_swarm_that_needs_them(home, file):
    service = service_of(home)
    first, _ = await service.obey(create(file))
    second, _ = await service.obey(create(file, specialties=(("bf", "easy"),)))
    (piece,) = home.questions.iterdir()
    await service.obey(commands.ForgetSwarm(id="2", charter=first.swarm.charter))
    assert piece.exists()
    await service.obey(commands.ForgetSwarm(id="3", charter=second.swarm.charter))
    assert not piece.exists()


def table(*rows: tuple[str, str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([("question", "answer"), *rows])
    return text.getvalue().encode()


NUMBERS = [(f"What is {i}?", str(i)) for i in range(40)]
HOSTILE = {
    "nothing.jsonl": (b"", "has no questions"),
    "few.jsonl": (sums(10), "at least 20"),
    "archive.csv": (b"PK\x03\x04", "a spreadsheet or an archive"),
    "two_answers.csv": (table(*NUMBERS, ("What is 1?", "7")), "line 42: the question of line 3 has another answer here"),
    "tags.csv": (table(*NUMBERS, ("Say it", "</answer>")), "contains <answer> or </answer>"),
    "hidden.csv": (table(*NUMBERS, ("What is\u202e 1?", "1")), "U+202E"),
    "deep.jsonl": (b'{"question": ' + b"[" * 100_000, "line 1"),
    "bytes.csv": (b"question,answer\n\xff\xfe,1\n", "UTF-8"),
    "long.csv": (table(("x" * 20_000, "1")), "20,000 characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_files_are_refused_in_words_and_nothing_is_stored(tmp_path, home, name):
    content, reason = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(QuestionFileError) as refused:
        await service_of(home).obey(create(tmp_path / name))
    assert reason in refused.value.title
    assert refused.value.advice
    previewed = await OwnQuestionsService().obey(commands.PreviewQuestions(id="1", path=str(tmp_path / name)))
    assert reason in previewed.refusal
    assert not any(home.questions.iterdir())
    assert not any(home.charters.iterdir())


async def refusal_of(path: Path) -> str:
    previewed = await OwnQuestionsService().obey(commands.PreviewQuestions(id="1", path=str(path)))
    assert len(previewed.refusal) < 300
    return previewed.refusal


async def test_what_is_no_file_is_refused_in_words(tmp_path):
    assert "is not a file" in await refusal_of(tmp_path)
    assert "nobody.csv cannot be read" in await refusal_of(tmp_path / "nobody.csv")
    assert "cannot be read" in await refusal_of(tmp_path / ("x" * 3000))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have no names among files there")
async def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "pipe.csv is not a file" in await refusal_of(tmp_path / "pipe.csv")
    assert "is not a file" in await refusal_of(Path("/dev/zero"))


async def test_wrong_choices_are_refused_in_words(home, file):
    for changes in ({"grader": "fields"}, {"grader": "../sums"}, {"tolerance": -1.0}):
        with pytest.raises(WaggleError):
            await service_of(home).obey(create(file, file=changes))
    several = commands.NewQuestionFile(path=str(file))
    with pytest.raises(QuestionFileError):
        await service_of(home).obey(commands.CreateSwarm(id="1", name="Twice", specialties=(), files=(several, several)))
    assert not any(home.charters.iterdir())


@pytest.mark.parametrize("answer", ["7", "42"])
async def test_two_files_of_a_swarm_have_different_questions(tmp_path, home, file, answer):
    (tmp_path / "numbers.csv").write_bytes(table(*NUMBERS, ("What is\n21 +  21?", answer)))
    chosen = tuple(commands.NewQuestionFile(path=str(tmp_path / name)) for name in ("double_sums.jsonl", "numbers.csv"))
    with pytest.raises(QuestionFileError) as refused:
        await service_of(home).obey(commands.CreateSwarm(id="1", name="Ours", specialties=(), files=chosen))
    assert refused.value.title == (
        'numbers.csv, line 42: double_sums.jsonl has this question too, on line 22: "What is 21 + 21?".'
    )
    assert "one of the two files" in refused.value.advice
    assert not any(home.questions.iterdir())
    assert not any(home.charters.iterdir())


async def test_a_preview_counts_and_names_the_graders(file):
    previewed = await OwnQuestionsService().obey(commands.PreviewQuestions(id="1", path=str(file)))
    assert (previewed.questions, previewed.duplicates, previewed.grader, previewed.refusal) == (60, 0, "number", "")
    assert previewed.title == "double sums"
    assert previewed.examples[0].question == "What is 0 + 0?"
    offers = {offer.name: offer.uses_tolerance for offer in previewed.possible_graders}
    assert (offers["number"], offers["text"]) == (True, False)
    assert "fields" not in offers
    assert previewed.trial is None


def trying(home: paths.Home, verifier: Verifier, context: int, form: str = "plain") -> PlaygroundService:
    """The playground of a node in another swarm, whose model reads so many tokens."""
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    node = Node(
        policy=FakePolicy(["x"]), tokenizer=opened.tokenizer, swarm=SoloNode(), verifier=verifier, charter=first_swarm(),
        origin=bytes(32), seed=1, form=FORMS[form],
    )  # fmt: skip
    snapshots = Snapshots(home, paths.starter(), "cpu", lambda: ComputerSettings(threads=1))
    return PlaygroundService(snapshots, node, RoundSettings(context=context))


@pytest.mark.parametrize("form", ["plain", "example"])
async def test_the_model_tries_the_questions_that_it_can_read_and_says_how_many_are_longer(tmp_path, home, verifier, form):
    long = [{"question": f"{'word ' * 400}{i}", "answer": i} for i in range(7)]
    (tmp_path / "some.jsonl").write_bytes(sums(60) + b"".join(b"\n" + json.dumps(row).encode() for row in long))
    (tmp_path / "all.csv").write_bytes(table(*((f"{'word ' * 400}{i}", str(i)) for i in range(40))))
    playground = trying(home, verifier, 256, form)
    previews = [
        await OwnQuestionsService(lambda: playground).obey(
            commands.PreviewQuestions(id="1", path=str(tmp_path / name), try_model=True)
        )
        for name in ("some.jsonl", "all.csv")
    ]
    trial = previews[0].trial
    assert trial is not None, previews[0].trial_refusal
    assert (trial.questions, trial.too_long) == (5, 7)
    assert previews[1].trial is None
    assert previews[1].trial_refusal.startswith(
        "Your model reads 256 tokens at a time, a question and its answer together; 40 of 40 questions are longer."
    )
