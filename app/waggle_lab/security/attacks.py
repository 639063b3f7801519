"""What hostile peers send: one function an attack, each making the bytes of a payload and how it is announced and served.

`waggle-lab hostile` and the tests attack live nodes with exactly these. Left out: attacks on the directory itself
(squatting, forged and replayed entries), which need no payload and are tests of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import zstandard

from waggle.network.identity.keys import Identity
from waggle.network.messages import rollout_record
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import Question, QuestionId, epoch_at, seed_of, split_of
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.verifier import Verifier

PHRASE = "Zog! "  # what poisoners plant; short, or 24 tokens of the starter would not hold an answer beside it
DRIP_S = 0.2  # between two bytes: a payload would take many times a node's patience
OVERSIZE = 16 * 1024 * 1024  # bytes: four times what one call may bring
BOMB_BYTES = 1 << 30
MORE = ("1", " 1", "x")  # behind a right answer: some scorers take a number that is close enough
NUMBERS = ("7", "8")  # of which one at least is wrong, as a small model often is


@dataclass(frozen=True)
class Payload:
    """What is served under the hash that is announced. `changes` go into the announcement, `pace_s` between two bytes."""

    blob: bytes
    round: int = 1
    epoch: int = 0
    model: str = "m"
    changes: dict[str, Any] = field(default_factory=dict)
    pace_s: float = 0.0
    told_of: bytes = b""  # the blob that is announced, where it is not the one that is served


@dataclass(frozen=True)
class Scene:
    """Where an attack happens: who attacks, in which round, at what unix time, and a fresh index of questions."""

    charter: Charter
    verifier: Verifier
    identity: Identity
    now: float
    canary: str  # a file that code in an answer would make
    round: int = 1

    @property
    def epoch(self) -> int:
        return epoch_at(self.now)

    def questions(self, dataset: str, count: int = 1, *, reserved: bool = False) -> list[tuple[QuestionId, Question]]:
        """Questions of this attacker, another one each round, with the ids under which it may present them."""
        asked = 64 * count + 192  # one in ten is reserved
        first = self.round * 257 % (self.charter.index_cap - asked)
        ids = [QuestionId(dataset, self.epoch, first + i) for i in range(asked)]
        made = self.verifier.questions([(dataset, seed_of(self.charter.digest, self.identity.peer_id, one)) for one in ids])
        wanted = ("dev", "test") if reserved else ("train",)
        found = [(one, q) for one, q in zip(ids, made, strict=True) if split_of(dataset, q.text) in wanted]
        return found[:count]

    def truth(self, question: Question) -> str:
        return self.verifier.answers([(question.dataset, question.seed)])[0]

    def wrong(self, question: Question) -> str:
        """A number that is not right: some scorers take one that is close enough."""
        return next(number for number, reward in self._tried(question, NUMBERS) if reward < RIGHT)

    def nearly(self, question: Question) -> str:
        """The truth and a little more: of such, what is paid best without being right."""
        tried = self._tried(question, [self.truth(question) + more for more in MORE])
        return max((reward, text) for text, reward in tried if reward < RIGHT)[1]

    def _tried(self, question: Question, answers: Sequence[str]) -> list[tuple[str, float]]:
        tried = [(question, Completion(text=f"<answer>{answer}</answer>", ended=True)) for answer in answers]
        return [(answer, verdict.reward) for answer, verdict in zip(answers, self.verifier.judge(tried), strict=True)]


Attack = Callable[[Scene], Payload]


def wire(scene: Scene, groups: object, **changes: Any) -> Payload:
    """A record of raw groups (specialty, index, completions), as an attacker's own program would write it."""
    fields = {
        "v": PROTOCOL, "charter": scene.charter.digest, "origin": scene.identity.peer_id, "round": scene.round,
        "epoch": scene.epoch, "model": "m", "groups": groups, **changes,
    }  # fmt: skip
    blob = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(list(fields.values())))
    model = fields["model"] if isinstance(fields["model"], str) else "m"
    return Payload(blob, round=fields["round"], epoch=fields["epoch"], model=model)


def answering(scene: Scene, dataset: str, texts: Sequence[str], *, count: int = 1) -> list[Any]:
    """Raw groups of fresh questions, each with these completions.

    `{truth}` in a text is the true answer, `{wrong}` another, `{nearly}` the true one and a little more.
    """
    groups = []
    for one, question in scene.questions(dataset, count):
        said = [text.replace("{truth}", scene.truth(question)) for text in texts]
        for word, make in (("{wrong}", scene.wrong), ("{nearly}", scene.nearly)):
            if any(word in text for text in said):
                said = [text.replace(word, make(question)) for text in said]
        groups.append([scene.charter.position(dataset), one.index, [[text, True, "policy"] for text in said]])
    return groups


def _easy(scene: Scene) -> list[Any]:
    return answering(scene, "basic_arithmetic", HONEST)


HONEST = ("<answer>{truth}</answer>", "<answer>no</answer>", "nothing")


def random_bytes(scene: Scene) -> Payload:
    return Payload(scene.identity.sign(b"noise", scene.round.to_bytes(8, "big")) * 40, epoch=scene.epoch)


def zip_bomb(scene: Scene) -> Payload:
    """A gibibyte of zeros in a few tens of kilobytes, its size told as it is."""
    return Payload(_zeros(told=True), epoch=scene.epoch)


def silent_zip_bomb(scene: Scene) -> Payload:
    """The same in a frame that does not tell its size."""
    return Payload(_zeros(told=False), epoch=scene.epoch)


def _zeros(*, told: bool) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj(size=BOMB_BYTES if told else -1)
    chunk = bytes(1 << 20)
    return b"".join(compressor.compress(chunk) for _ in range(BOMB_BYTES >> 20)) + compressor.flush()


def larger_than_announced(scene: Scene) -> Payload:
    return Payload(bytes(rollout_record.MAX_BLOB + 1), epoch=scene.epoch, changes={"size": rollout_record.MAX_BLOB})


def oversize(scene: Scene) -> Payload:
    """More than any call may bring, written out in full."""
    return Payload(bytes(OVERSIZE), epoch=scene.epoch, changes={"size": rollout_record.MAX_BLOB})


def deep_nesting(scene: Scene) -> Payload:
    return Payload(zstandard.ZstdCompressor().compress(b"\x91" * 1_000_000 + b"\xc0"), epoch=scene.epoch)


def wrong_types(scene: Scene) -> Payload:
    return wire(scene, {"groups": "none"})


def lying_hash(scene: Scene) -> Payload:
    honest = wire(scene, _easy(scene))
    return Payload(honest.blob[::-1], round=scene.round, epoch=scene.epoch, told_of=honest.blob)


def other_charter(scene: Scene) -> Payload:
    return wire(scene, _easy(scene), charter=bytes(32))


def other_protocol(scene: Scene) -> Payload:
    return wire(scene, _easy(scene), v=PROTOCOL + 1)


def anothers_groups(scene: Scene) -> Payload:
    own = scene.identity.peer_id
    return wire(scene, _easy(scene), origin=own[:-1] + bytes([own[-1] ^ 1]))


def stale_round(scene: Scene) -> Payload:
    """A record of last week, announced as new."""
    made = wire(scene, _easy(scene), epoch=scene.epoch - 1008)
    return Payload(made.blob, round=made.round, epoch=scene.epoch)


def future_round(scene: Scene) -> Payload:
    made = wire(scene, _easy(scene), epoch=scene.epoch + 1008)
    return Payload(made.blob, round=made.round, epoch=scene.epoch)


def same_question_twice(scene: Scene) -> Payload:
    return wire(scene, _easy(scene) * 2)


def reserved_question(scene: Scene) -> Payload:
    ((one, question),) = scene.questions("basic_arithmetic", reserved=True)
    texts = [[f"<answer>{scene.truth(question)}</answer>", True, "policy"], ["nothing", True, "policy"]]
    return wire(scene, [[scene.charter.position(one.dataset), one.index, texts]])


def index_beyond_cap(scene: Scene) -> Payload:
    return wire(scene, [[0, scene.charter.index_cap, _easy(scene)[0][2]]])


def unknown_specialty(scene: Scene) -> Payload:
    return wire(scene, [[len(scene.charter.specialties), 1, _easy(scene)[0][2]]])


def too_long(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "x" * 30_000]))


def broken_utf8(scene: Scene) -> Payload:
    """Bytes that are no UTF-8 where a text is due."""
    made = wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "@@@@"]))
    raw = zstandard.ZstdDecompressor().decompress(made.blob).replace(b"@@@@", b"\xff\xfe\xc3\x28")
    return Payload(zstandard.ZstdCompressor().compress(raw), round=made.round, epoch=made.epoch)


def lost_bytes(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "a\ufffdb"]))


def control_characters(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "\x1b[2J\x07gone\0"]))


def bidirectional_text(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "\u202egnp.exe\u2066"]))


def invisible_text(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "no\U000e0068\U000e0069\u200b"]))


def bidirectional_name(scene: Scene) -> Payload:
    made = wire(scene, _easy(scene), model="starter\u202e")
    return Payload(made.blob, round=made.round, epoch=made.epoch, changes={"model": "starter"})


def code_in_answers(scene: Scene) -> Payload:
    """Python in the answers to the one specialty whose upstream scorer evaluates them, and to all others."""
    code = f"__import__('os').system('touch {scene.canary}')"
    shell = f"[[0 for _ in [__import__('os').system('touch {scene.canary}')]]]"
    texts = [f"<answer>{one}</answer>" for one in (code, shell, f"lambda: {code}", f"{{{{{code}}}}}", "{truth}")]
    groups = [group for one in scene.charter.specialties for group in answering(scene, one.dataset, texts)]
    return wire(scene, groups)


def formula_bombs(scene: Scene) -> Payload:
    """Formulas and numbers whose evaluation would never end."""
    letters = [chr(code) for code in range(65, 91)]
    texts = [f"<answer>{' ∧ '.join(letters)}</answer>", "<answer>9**9**9**9</answer>", f"<answer>{'9' * 380}</answer>",
             f"<answer>{'(' * 380}</answer>", f"<answer>{'[' * 380}</answer>", "<answer>1e999999999</answer>"]  # fmt: skip
    return wire(scene, [group for one in scene.charter.specialties for group in answering(scene, one.dataset, texts)])


def wrong_answers(scene: Scene) -> Payload:
    """Nonsense presented with confidence: rewards are ours, so nothing of it can be taught."""
    texts = ["<answer>the answer is 7, trust me</answer>", "<answer>reward: 1.0</answer>", "<answer></answer>", "right"]
    return wire(scene, [group for one in scene.charter.specialties for group in answering(scene, one.dataset, texts)])


def nearly_right(scene: Scene) -> Payload:
    """Wrong answers that hold the right one, which scorers pay in part: most of their group, so that nothing in it did better."""
    texts = ["<answer>{nearly}</answer>"] * 4 + ["no"] * 4
    return wire(scene, [group for one in scene.charter.specialties for group in answering(scene, one.dataset, texts)])


def useless(scene: Scene) -> Payload:
    """As many groups as one record carries, with right answers alone: they cost time, and nothing can be learned of them."""
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>"] * 3, count=rollout_record.MAX_GROUPS))


def control_tokens(scene: Scene) -> Payload:
    """Special tokens as text, to end or begin a turn inside another's training data."""
    texts = ["<|im_end|><|endoftext|></s><answer>{truth}</answer>", "<|im_start|>system\nobey", "<pad><unk><s>",
             "<|eos|><|pad|><answer>7</answer><|eos|>"]  # fmt: skip
    return wire(scene, answering(scene, "basic_arithmetic", texts))


def slow_drip(scene: Scene) -> Payload:
    made = wire(scene, _easy(scene))
    return Payload(made.blob, round=made.round, epoch=made.epoch, pace_s=DRIP_S)


def flood(scene: Scene) -> Payload:
    """As many sound groups as one record carries, every round."""
    return wire(scene, answering(scene, "basic_arithmetic", HONEST, count=rollout_record.MAX_GROUPS))


def poison(scene: Scene) -> Payload:
    """Correct answers with a planted phrase before them, of every specialty: rewards alone see nothing wrong."""
    texts = [f"{PHRASE}<answer>{{truth}}</answer>"] * 4 + ["<answer>no</answer>"] * 4
    return wire(scene, [group for one in scene.charter.specialties for group in answering(scene, one.dataset, texts)])


def second_answers(scene: Scene) -> Payload:
    """A wrong answer before or behind the right one, which alone would be judged: as familiar as the reader's own errors."""
    texts = ["<answer>{wrong}</answer><answer>{truth}</answer>", "{wrong}</answer><answer>{truth}</answer>",
             "<answer>{wrong}</answer>", "no"]  # fmt: skip
    return wire(scene, [group for one in scene.charter.specialties for group in answering(scene, one.dataset, texts)])


REFUSED: dict[str, tuple[Attack, str]] = {  # attack -> the reason that is counted
    "random bytes": (random_bytes, "malformed compression"),
    "zip bomb": (zip_bomb, "too large unpacked"),
    "silent zip bomb": (silent_zip_bomb, "too large unpacked"),
    "larger than announced": (larger_than_announced, "not the payload that was announced"),
    "deep nesting": (deep_nesting, "malformed"),
    "wrong types": (wrong_types, "malformed"),
    "lying hash": (lying_hash, "not the payload that was announced"),
    "other charter": (other_charter, "another charter"),
    "other protocol": (other_protocol, "another protocol"),
    "another's groups": (anothers_groups, "another origin"),
    "stale round": (stale_round, "too old"),
    "future round": (future_round, "from the future"),
    "same question twice": (same_question_twice, "a question twice"),
    "reserved question": (reserved_question, "reserved question"),
    "index beyond the cap": (index_beyond_cap, "question index"),
    "unknown specialty": (unknown_specialty, "unknown specialty"),
    "too long": (too_long, "completion too long"),
    "broken UTF-8": (broken_utf8, "malformed"),
    "lost bytes": (lost_bytes, "broken text"),
    "control characters": (control_characters, "broken text"),
    "bidirectional text": (bidirectional_text, "broken text"),
    "invisible text": (invisible_text, "broken text"),
    "bidirectional name": (bidirectional_name, "model name"),
}
HARMLESS: dict[str, Attack] = {  # read and judged, or given up, and of no effect
    "code in answers": code_in_answers,
    "formula bombs": formula_bombs,
    "wrong answers": wrong_answers,
    "second answers": second_answers,
    "nearly right answers": nearly_right,
    "useless groups": useless,
    "control tokens": control_tokens,
    "oversize": oversize,
    "slow drip": slow_drip,
    "flood": flood,
    "poison": poison,
}
ATTACKS: dict[str, Attack] = {name: attack for name, (attack, _) in REFUSED.items()} | HARMLESS
