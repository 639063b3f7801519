"""The decoders of `tasks`: charters, files of questions, and replies of the verifier process."""

import contextlib
import io
from pathlib import Path

import msgspec
import zstandard

from waggle.core.errors import CharterError, QuestionFileError
from waggle.core.message import Message
from waggle.tasks import charter as charters
from waggle.tasks import graders, shipped_swarms
from waggle.tasks.new_charter import new_charter
from waggle.tasks.question_file import packed, reader, rules
from waggle.tasks.question_file.preview import packed_file, preview_of
from waggle.tasks.rollout_group import Verdict
from waggle.tasks.sandbox import messages
from waggle_lab.security.decoders import Decoder

KINDS = (messages.Texts, messages.Verdicts, messages.Prepared, messages.Tripped, messages.Failed, messages.FileRefused)


def charter(scratch: Path) -> Decoder:
    """Charters, from seeds and from files."""
    first = shipped_swarms.first_swarm()

    def check(data: bytes) -> None:
        with contextlib.suppress(CharterError):
            charters.decode(data, expected=first.digest)
        try:
            decoded = charters.decode(data)
        except CharterError:  # refused, as documented
            return
        assert len(data) <= charters.MAX_BYTES
        assert decoded.protocol == charters.PROTOCOL
        assert 2 <= decoded.group_size_min <= decoded.group_size_max <= 16
        assert 1 <= len({specialty.dataset for specialty in decoded.specialties}) == len(decoded.specialties) <= 64
        assert charters.decode(charters.encode(decoded), expected=decoded.digest) == decoded

    small = first.__class__(name="n", specialties=first.specialties[:1])
    own = new_charter("o", {}, files=[("s", packed_file(reader.read_questions("sums.jsonl", _sums())).file)])
    return Decoder((charters.encode(first), charters.encode(small), charters.encode(own)), check)


def reply(scratch: Path) -> Decoder:
    """Frames from the verifier process, which reads hostile text."""
    verdict = Verdict(reward=0.5, reason=Message("close"), start=1, length=2, exact=True)
    replies = (
        messages.Texts(["a", "é"]),
        messages.Verdicts([verdict]),
        messages.Prepared("limited"),
        messages.Tripped("exec"),
        messages.Failed(Message("no")),
        messages.FileRefused(Message("no")),
    )

    def check(data: bytes) -> None:
        for pipe in (data, len(data).to_bytes(4, "big") + data):
            frame = messages.receive(io.BytesIO(pipe))
            if frame is not None:
                with contextlib.suppress(EOFError):
                    assert isinstance(messages.reply(frame), KINDS)

    return Decoder(tuple(_framed(reply) for reply in replies), check)


def _framed(message: messages.Reply) -> bytes:
    pipe = io.BytesIO()
    messages.send(pipe, message)
    return pipe.getvalue()[4:]


def question_file(scratch: Path) -> Decoder:
    """Packed files of questions, as they come from members of a swarm; also those without their compression."""
    table = reader.read_questions("sums.jsonl", _sums())
    first = packed_file(table)
    raw = zstandard.decompress(b"".join(first.pieces))

    def check(data: bytes) -> None:
        for content in (data, zstandard.compress(data)):
            questions = max(first.file.questions, data.count(b"\n"))
            for grader in graders.grader_names():
                file = msgspec.structs.replace(first.file, grader=grader, questions=questions, samples=())
                try:
                    rows = packed.unpack(content, file)
                except QuestionFileError as error:  # refused, as documented
                    assert error.title.isprintable()
                    continue
                assert len({rules.identity(row.question) for row in rows}) == questions
                assert packed.unpack(b"".join(packed.pack(rows)), file) == rows
                assert not any(rules.fault(row, graders.graders()[grader]) for row in rows)

    return Decoder((first.pieces[0], raw, raw[: len(raw) // 2]), check)


def own_questions(scratch: Path) -> Decoder:
    """People's own files, as JSON lines and as a table."""

    def check(data: bytes) -> None:
        for name in ("own.jsonl", "own.csv", "own"):
            try:
                table = reader.read_questions(name, data)
            except QuestionFileError as error:  # refused, as documented
                assert str(error).isprintable()
                assert error.advice
                continue
            preview = preview_of(table)
            assert table.grader in preview.possible_graders
            assert 0 <= preview.reserved <= preview.questions == len(table.rows)
            if not preview.refusal:
                own = packed_file(table)
                rows = packed.unpack(packed.joined(own.pieces, own.file), own.file)
                assert set(rows) == {each.row for each in table.rows}

    table = "question;answer\n" + "\n".join(f'"Is {i}\neven?";{"yes" if i % 2 else "no"}' for i in range(9))
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
    return Decoder(
        (
            _sums(),
            table.encode(),
            b'\xef\xbb\xbf{"prompt":"a","answer":[1,"b"]}\r\n{"prompt":"c","answer":{"d":null,"e":-1.5e3}}',
            msgspec.json.encode({"messages": [*conversation, {"role": "assistant", "content": "So\n#### 4"}]}),
        ),
        check,
    )


def graded_answer(scratch: Path) -> Decoder:
    """A true answer from a file and a model's answer, with a line break between them, for every grader."""

    def check(data: bytes) -> None:
        answer, _, text = data.decode("utf-8", "surrogateescape").partition("\n")
        for grader in graders.graders().values():
            assert 0.0 <= grader.score(text, answer, 0.5) <= 1.0
            if not grader.check(answer):
                assert grader.score(answer, answer, 0.0) == 1.0
                assert grader.score("", answer, 0.0) == 0.0

    fields = '{"a": null, "b": "x"}\n{"b": "X.", "a": null}'
    seeds = ("$1,234.50\n= 1234.5", "B\n(b) Berlin", "[1, 2]\n1; 2.0", fields, "é\ne\u0301.")
    return Decoder(tuple(seed.encode() for seed in seeds), check)


def _sums() -> bytes:
    return b"\n".join(msgspec.json.encode({"question": f"What is {i} + {i}?", "answer": 2 * i}) for i in range(40))
