"""The decoders of the protocol: commands, and recordings with the State that they fold into."""

from pathlib import Path

from waggle.core.errors import EngineError
from waggle.core.message import Message
from waggle.protocol import commands, events, json_lines
from waggle.protocol.events_chat import Reply, Turn, TurnProgress
from waggle.protocol.state import PEERS, ROUNDS, AnyEvent, Snapshot, State, apply
from waggle_lab.security.decoders import Decoder


def command(scratch: Path) -> Decoder:
    """Commands on the control socket and on the engine's stdin."""
    examples = (
        commands.Pause(id="1", until=2.5, after_round=True),
        commands.Resume(id="é"),
        commands.Stop(id=""),
        commands.Status(id="3"),
        commands.QueryHistory(id="4"),
        commands.SendMessage(id="5", words="a", number=1, earlier=(Turn(words="b", replies=(Reply(rounds=0), Reply(rounds=1))),)),
    )

    def check(data: bytes) -> None:
        try:
            decoded = json_lines.command(data)
        except EngineError as refused:
            assert refused.advice
            return
        assert json_lines.command(json_lines.line(decoded)) == decoded

    return Decoder(tuple(json_lines.line(example) for example in examples), check)


def recording(scratch: Path) -> Decoder:
    """Recordings, which a replay and a crash report read."""
    path = scratch / "run.jsonl"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        state = State()
        for event in json_lines.recording(path):
            if event is not None:
                assert json_lines.event(json_lines.line(event)) == event
                state = apply(state, event)
        if b"Snapshot" not in data:  # only the engine writes a Snapshot, with a whole State
            assert len(state.rounds) <= ROUNDS
            assert len(state.peers) <= PEERS
        for line in data.split(b"\n"):
            _read(line)

    lines = tuple(json_lines.line(event) for event in _example_events())
    return Decoder((*lines, b"".join(lines)), check)


def _read(line: bytes) -> None:
    try:
        json_lines.event(line)
    except EngineError as refused:
        assert refused.advice


def _example_events() -> tuple[AnyEvent, ...]:
    completion = events.ShownCompletion(text="<answer>1</answer>", ended=True)
    group = events.ShownGroup(key="1", specialty="Logic", question="1?", completions=(completion, completion))
    return (
        events.PhaseChanged(phase="contributing", round=1, until=5.0),
        events.QuestionsDrawn(round=1, epoch=5, group_size=2, groups=(group,)),
        events.CompletionsProgress(round=1, rows=((0, 1, "a\nb", True),)),
        events.GroupsJudged(round=1, groups=(group,)),
        events.PeerGroupsArrived(origin="12D3", name="n", model="m", round=1, groups=(group,)),
        events.HeldOutProgress(done=2, total=3),
        events.HeldOutMeasured(score=events.HeldOutScore(round=1, at=1.0, right=2, total=3)),
        events.PeerChanged(peer=events.PeerInfo(id="a", name="n")),
        events.EngineFailed(title=Message("t"), advice=Message("a")),
        TurnProgress(number=0, turn=Turn(words="a", replies=(Reply(rounds=0, text="b"), Reply(rounds=3, text="c", ended=True)))),
        Snapshot(state=State(peers={"a": events.PeerInfo(id="a", name="n")})),
    )
