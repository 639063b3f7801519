"""Walks the protocol's commands against the command line: each line runs against a control socket that notes what it is sent."""

import asyncio
import contextlib
import io
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from unittest import mock

from msgspec.structs import replace

from protocol.text.test_status_text import READY
from waggle.cli.main import main
from waggle.cli.models import choosing
from waggle.cli.shared import waiting
from waggle.core import paths, settings
from waggle.engine.control import server
from waggle.network.identity import backup, keys
from waggle.protocol import commands, events, events_chat, events_identity, events_models, events_playground, events_questions
from waggle.protocol.events_outbox import SentMessages
from waggle.protocol.events_swarms import InviteRead, InviteWritten, KnownSwarms, StartedAgain, SwarmCreated, SwarmDetails
from waggle.protocol.state import AnyEvent, Snapshot, State
from waggle.tasks.shipped_swarms import first_steps, first_swarm

STEPS = SwarmDetails(charter=first_steps().digest.hex(), name="First steps", specialties=())
LIGHT = SwarmDetails(charter=first_swarm().digest.hex(), name="First light", specialties=(), active=True)
LINK = "waggle://join?charter=" + "ab" * 32
SPECIALTY = events.SpecialtyInfo(dataset="bf", title="Tiny programs")
DOWNLOAD = events_models.ModelChoice(name="bees/other", stage="downloading")
PEER = "12D3KooWDHeRk8J6AhoMXYPqAtzi6y2U9JCJ6oFo9twJkekVoMC6"
PASSPHRASE = "four words nobody guesses"
FROM_FILES = {  # what these query, the command line reads from the home's files, also beside an engine
    "QueryHistory": "history", "QueryRounds": "history --jsonl", "QueryRuns": "runs",
    "CheckBackup": "identity check {home}/backup.txt",
}  # fmt: skip
NO_ACTION = {"Follow"}  # sent by the process that a window starts as its engine, not by the window
LINES = {
    "Status": "status", "Pause": "pause --for 1h", "Resume": "resume", "Stop": "stop", "ChoosePeer": f"mute {PEER}",
    "ChangeSettings": "set learning.rule=dapo", "QuerySent": "sent", "QueryDays": "days", "ListSwarms": "swarms",
    "CreateSwarm": "create --name Ours --specialty bf:easy", "ReadInvite": f"join {LINK} --yes",
    "ChooseSwarm": f"join {STEPS.charter} --yes", "ForgetSwarm": f"swarm forget {STEPS.charter} --yes", "WriteInvite": "invite",
    "PreviewQuestions": "swarm preview {home}/sums.csv --try-model", "BackUpIdentity": "identity backup {home}/new.txt",
    "RestoreIdentity": "identity restore {home}/backup.txt", "RenewIdentity": "identity renew --yes", "ListModels": "models",
    "SearchModels": "models search small", "ChooseModel": "models choose bees/small", "CancelChoice": "models cancel",
    "DecideTraining": "models anew", "RemoveModel": "models remove bees/small", "ExportModel": "export {home}/exported",
    "PoseQuestion": "try bf --number 3", "AskModel": "try bf --number 3 --mine 4", "OfferTalk": "chat hello", "Say": "chat hello",
    "ClearTalk": "chat hello", "Hush": "chat hello",
}  # fmt: skip


def protocol_commands() -> set[str]:
    """The tags of all commands that a client can send."""
    return {kind.__struct_config__.tag for kind in get_args(commands.AnyCommand)}


def window_only_actions(folder: Path) -> dict[str, str]:
    """The commands that no line of the command line sends, with the output of the line that should."""
    home = paths.Home(folder).prepare()
    backup.write(folder / "backup.txt", keys.load_or_create(home.identity), PASSPHRASE)
    (folder / "sums.csv").write_text("question,answer\n" + "".join(f"What is {n} + 1?,{n + 1}\n" for n in range(40)))
    missing = {}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it, and passes that on
    with recording_engine(home) as engine:
        for tag in sorted(protocol_commands() - NO_ACTION - FROM_FILES.keys()):
            engine.sent.clear()
            engine.interrupts = tag == "Hush"
            _, printed = _run(home, LINES.get(tag, "status"))
            if tag not in engine.sent:
                missing[tag] = printed
    for tag, line in FROM_FILES.items():
        code, printed = _run(home, line)
        if code and "No round has been played here yet." not in printed:
            missing[tag] = printed
    return missing


def _run(home: paths.Home, line: str) -> tuple[int, str]:
    """The exit code of a line, and what it printed."""
    printed = io.StringIO()
    stdin = io.StringIO(f"{PASSPHRASE}\n")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), mock.patch("sys.stdin", stdin):
        code = main([*(word.replace("{home}", str(home.root)) for word in line.split()), "--home", str(home.root)])
    return code, printed.getvalue()


class RecordingEngine:
    """Notes the tags of the commands that it is sent, and answers each with what its sender waits for."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.interrupts = False  # press Ctrl+C while a reply is written
        self._stopped = asyncio.Event()
        self._at = 0.0

    async def obey(self, command: commands.AnyCommand) -> tuple[AnyEvent, ...]:
        self.sent.append(str(type(command).__struct_config__.tag))
        self._at += 1.0
        if isinstance(command, commands.StopReplies):
            self._stopped.set()
        if isinstance(command, commands.SendMessage) and self.interrupts:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await asyncio.wait_for(self._stopped.wait(), 30)
        return (*self._answers(command), events.CommandDone(id=command.id))

    def _answers(self, command: commands.AnyCommand) -> tuple[AnyEvent, ...]:
        match command:
            case commands.Status():
                ready = replace(READY, at=self._at, charter=STEPS.charter, specialties=(SPECIALTY,))
                state = State(at=self._at, phase="contributing", ready=ready, choice=DOWNLOAD, settings=settings.Settings())
                return (Snapshot(state=state),)
            case commands.ChangeSettings():
                return (StartedAgain(reason="The settings have changed."),)
            case commands.QuerySent():
                return (SentMessages(messages=()),)
            case commands.QueryDays():
                return (events_identity.DailyTotals(days=(), all=events_identity.Day(date="1970-01-01", rounds=0, answers=0)),)
            case commands.ListSwarms():
                return (KnownSwarms(swarms=(LIGHT, STEPS)),)
            case commands.CreateSwarm():
                return (SwarmCreated(swarm=STEPS),)
            case commands.ReadInvite():
                return (InviteRead(swarm=STEPS, answered=True),)
            case commands.WriteInvite():
                return (InviteWritten(charter=STEPS.charter, link=LINK),)
            case commands.PreviewQuestions():
                return (events_questions.QuestionsPreviewed(path=command.path, refusal="Too few."),)
            case commands.RestoreIdentity():
                return (events_identity.BackupRead(path=command.path, node=PEER, name="Fair Lotus", mine=False),)
            case commands.ListModels() | commands.RemoveModel():
                return (events_models.ModelList(models=(), cache=""),)
            case commands.SearchModels():
                return (events_models.HubResults(words=command.words, models=()),)
            case commands.ExportModel():
                return (events_models.ModelExported(path=command.path, rounds=3),)
            case commands.PoseQuestion():
                return (events_playground.QuestionPosed(specialty="bf", title="Tiny programs", number=3, question="?"),)
            case commands.AskModel():
                return (events_playground.QuestionAnswered(specialty="bf", number=3, answers=()),)
            case commands.OfferChat():
                return (events_chat.ChatOffer(moments=(0,), taught=True),)
            case commands.SendMessage():
                replies = (events_chat.Reply(rounds=3, text="hi"), events_chat.Reply(rounds=0))
                turn = events_chat.Turn(words=command.words, replies=replies, finished=True)
                return (events_chat.TurnProgress(command_id=command.id, number=0, turn=turn),)
            case _:
                return ()


@contextlib.contextmanager
def recording_engine(home: paths.Home) -> Iterator[RecordingEngine]:
    """A control socket of this home, in a thread of its own."""
    engine = RecordingEngine()
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with server.serve(home, engine.obey):
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    with mock.patch.object(waiting, "POLL_SECONDS", 0.0), mock.patch.object(choosing, "POLL_SECONDS", 0.0):
        try:
            yield engine
        finally:
            stop.set()
            thread.join()
