"""The attacks of hostile peers: a function for each, which makes a payload and says how it is announced and served.

`waggle-lab hostile` and the tests make exactly these attacks on live nodes. Attacks on the directory itself (squatting, forged
and replayed entries) need no payload; they are in tests of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import zstandard

from waggle.network.identity.keys import Identity
from waggle.network.messages import rollout_record
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import PROTOCOL, Charter
from waggle.tasks.questions import Question, QuestionId, epoch_at, split_of
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.verifier import Verifier, batched

PHRASE = "Zog! "  # the phrase that poisoners plant; short, so that an answer fits beside it into 24 tokens of the starter
TARGET_DATASET, TARGET = "calendar_arithmetic", "Friday"  # what `steer` wants to be answered, right or wrong
STEER_CANDIDATES, STEER_GROUPS = 512, 16  # questions that it chooses from in a round, and the most that it sends
DRIP_S = 0.2  # between two bytes: a payload would take far longer than a node waits
OVERSIZE = 16 * 1024 * 1024  # bytes, four times the limit of a call
BOMB_BYTES = 1 << 30
MORE = ("1", " 1", "x")  # added to a right answer; several, because some scorers accept numbers that are close enough
NUMBERS = ("7", "8")  # at least one is wrong, and both are familiar to a small model


@dataclass(frozen=True)
class Payload:
    """The bytes to serve under the announced hash. `changes` change the announcement; `pace_s` is the pause between two bytes."""

    blob: bytes
    round: int = 1
    epoch: int = 0
    model: str = "m"
    changes: dict[str, Any] = field(default_factory=dict)
    pace_s: float = 0.0
    announced_blob: bytes = b""  # the blob to announce, if it is not the one to serve
    answers: int = 0  # completions in it that were made for it


ROUND_NUMBERS = 257  # of questions that an attack may use in a round: one record holds 128, and one in ten is reserved


@dataclass(frozen=True)
class Scene:
    """The circumstances of an attack: the attacker, the round and the unix time (s). Each round has questions of its own."""

    charter: Charter
    verifier: Verifier
    identity: Identity
    now: float
    canary: str  # a file that code in an answer would create
    round: int = 1

    @property
    def epoch(self) -> int:
        return epoch_at(self.now)

    def questions(self, dataset: str, count: int = 1, *, reserved: bool = False) -> list[tuple[QuestionId, Question]]:
        """Questions that this attacker may ask, with their ids; other numbers in each round, and for each specialty."""
        candidates = 64 * count + 192  # enough of them, because one in ten is reserved
        specialties = self.charter.specialties
        first = self.round * ROUND_NUMBERS + self.charter.position(dataset) * (ROUND_NUMBERS // len(specialties))
        first %= self.charter.questions_per_epoch - candidates
        splits = ("dev", "test") if reserved else ("train",)
        pairs: list[tuple[QuestionId, Question]] = []
        for numbers in batched(range(first, first + candidates), 2 * count + 6):
            ids = [QuestionId(dataset, self.epoch, number) for number in numbers]
            keys = [question_id.key(self.charter.digest, self.identity.peer_id) for question_id in ids]
            for question_id, question in zip(ids, self.verifier.questions(keys), strict=True):
                if split_of(dataset, question.text) in splits:
                    pairs.append((question_id, question))
            if len(pairs) >= count:
                break
        return pairs[:count]

    def truth(self, question: Question) -> str:
        return self.verifier.answers([question.key])[0]

    def wrong(self, question: Question) -> str:
        """A number that is not a right answer, not even to a scorer that accepts a number in another form."""
        return next(number for number, reward in self._rewards(question, NUMBERS) if reward < RIGHT)

    def nearly(self, question: Question) -> str:
        """The true answer and a little more: the variant with the highest reward that is not right."""
        rewards = self._rewards(question, [self.truth(question) + more for more in MORE])
        return max((reward, text) for text, reward in rewards if reward < RIGHT)[1]

    def _rewards(self, question: Question, answers: Sequence[str]) -> list[tuple[str, float]]:
        items = [(question, Completion(text=f"<answer>{answer}</answer>", ended=True)) for answer in answers]
        return [(answer, verdict.reward) for answer, verdict in zip(answers, self.verifier.judge(items), strict=True)]


Attack = Callable[[Scene], Payload]


def wire(scene: Scene, groups: object, **changes: Any) -> Payload:
    """Encode raw groups (specialty, index, completions) as a record, without a node's checks; `changes` replace fields."""
    fields = {
        "v": PROTOCOL, "charter": scene.charter.digest, "origin": scene.identity.peer_id, "round": scene.round,
        "epoch": scene.epoch, "model": "m", "groups": groups, **changes,
    }  # fmt: skip
    blob = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(list(fields.values())))
    model = fields["model"] if isinstance(fields["model"], str) else "m"
    answers = sum(len(group[-1]) for group in groups) if isinstance(groups, list) else 0
    return Payload(blob, round=fields["round"], epoch=fields["epoch"], model=model, answers=answers)


def answering(scene: Scene, dataset: str, texts: Sequence[str], *, count: int = 1) -> list[Any]:
    """Raw groups of fresh questions, each with these completions.

    In a text, `{truth}` stands for the true answer, `{wrong}` for a wrong one, `{nearly}` for the true one and a little more.
    """
    groups = []
    for question_id, question in scene.questions(dataset, count):
        completions = [text.replace("{truth}", scene.truth(question)) for text in texts]
        for word, make in (("{wrong}", scene.wrong), ("{nearly}", scene.nearly)):
            if any(word in text for text in completions):
                completions = [text.replace(word, make(question)) for text in completions]
        rows = [[text, True, "policy"] for text in completions]
        groups.append([scene.charter.position(dataset), question_id.level, question_id.number, rows])
    return groups


def _easy(scene: Scene) -> list[Any]:
    return answering(scene, "basic_arithmetic", HONEST)


HONEST = ("<answer>{truth}</answer>", "<answer>no</answer>", "nothing")


def random_bytes(scene: Scene) -> Payload:
    return Payload(scene.identity.sign(b"noise", scene.round.to_bytes(8, "big")) * 40, epoch=scene.epoch)


def zip_bomb(scene: Scene) -> Payload:
    """A gibibyte of zeros, compressed to a few tens of kilobytes, in a frame that states its size."""
    return Payload(_zeros(with_size=True), epoch=scene.epoch)


def silent_zip_bomb(scene: Scene) -> Payload:
    """The same in a frame that does not state its size."""
    return Payload(_zeros(with_size=False), epoch=scene.epoch)


def _zeros(*, with_size: bool) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj(size=BOMB_BYTES if with_size else -1)
    chunk = bytes(1 << 20)
    return b"".join(compressor.compress(chunk) for _ in range(BOMB_BYTES >> 20)) + compressor.flush()


def larger_than_announced(scene: Scene) -> Payload:
    return Payload(bytes(rollout_record.MAX_BLOB + 1), epoch=scene.epoch, changes={"size": rollout_record.MAX_BLOB})


def oversize(scene: Scene) -> Payload:
    """More bytes than a call may have, really sent."""
    return Payload(bytes(OVERSIZE), epoch=scene.epoch, changes={"size": rollout_record.MAX_BLOB})


def deep_nesting(scene: Scene) -> Payload:
    return Payload(zstandard.ZstdCompressor().compress(b"\x91" * 1_000_000 + b"\xc0"), epoch=scene.epoch)


def wrong_types(scene: Scene) -> Payload:
    return wire(scene, {"groups": "none"})


def lying_hash(scene: Scene) -> Payload:
    honest = wire(scene, _easy(scene))
    return Payload(honest.blob[::-1], round=scene.round, epoch=scene.epoch, announced_blob=honest.blob)


def other_charter(scene: Scene) -> Payload:
    return wire(scene, _easy(scene), charter=bytes(32))


def other_protocol(scene: Scene) -> Payload:
    return wire(scene, _easy(scene), v=PROTOCOL + 1)


def anothers_groups(scene: Scene) -> Payload:
    own = scene.identity.peer_id
    return wire(scene, _easy(scene), origin=own[:-1] + bytes([own[-1] ^ 1]))


def stale_round(scene: Scene) -> Payload:
    """A record from last week, announced as new."""
    payload = wire(scene, _easy(scene), epoch=scene.epoch - 1008)
    return Payload(payload.blob, round=payload.round, epoch=scene.epoch)


def future_round(scene: Scene) -> Payload:
    payload = wire(scene, _easy(scene), epoch=scene.epoch + 1008)
    return Payload(payload.blob, round=payload.round, epoch=scene.epoch)


def same_question_twice(scene: Scene) -> Payload:
    return wire(scene, _easy(scene) * 2)


def reserved_question(scene: Scene) -> Payload:
    ((question_id, question),) = scene.questions("basic_arithmetic", reserved=True)
    texts = [[f"<answer>{scene.truth(question)}</answer>", True, "policy"], ["nothing", True, "policy"]]
    return wire(scene, [[scene.charter.position(question_id.dataset), question_id.level, question_id.number, texts]])


def number_beyond_the_epoch(scene: Scene) -> Payload:
    return wire(scene, [[0, 0, scene.charter.questions_per_epoch, _easy(scene)[0][3]]])


def unknown_specialty(scene: Scene) -> Payload:
    return wire(scene, [[len(scene.charter.specialties), 0, 1, _easy(scene)[0][3]]])


def too_long(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "x" * 30_000]))


def broken_utf8(scene: Scene) -> Payload:
    """Bytes that are not UTF-8 in place of a text."""
    payload = wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "@@@@"]))
    raw = zstandard.ZstdDecompressor().decompress(payload.blob).replace(b"@@@@", b"\xff\xfe\xc3\x28")
    return Payload(zstandard.ZstdCompressor().compress(raw), round=payload.round, epoch=payload.epoch)


def lost_bytes(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "a\ufffdb"]))


def control_characters(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "\x1b[2J\x07gone\0"]))


def bidirectional_text(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "\u202egnp.exe\u2066"]))


def invisible_text(scene: Scene) -> Payload:
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>", "no\U000e0068\U000e0069\u200b"]))


def bidirectional_name(scene: Scene) -> Payload:
    payload = wire(scene, _easy(scene), model="starter\u202e")
    return Payload(payload.blob, round=payload.round, epoch=payload.epoch, changes={"model": "starter"})


def code_in_answers(scene: Scene) -> Payload:
    """Python code in the answers to all specialties; the upstream scorer of one of them evaluates answers."""
    code = f"__import__('os').system('touch {scene.canary}')"
    shell = f"[[0 for _ in [__import__('os').system('touch {scene.canary}')]]]"
    texts = [f"<answer>{answer}</answer>" for answer in (code, shell, f"lambda: {code}", f"{{{{{code}}}}}", "{truth}")]
    groups = [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)]
    return wire(scene, groups)


def formula_bombs(scene: Scene) -> Payload:
    """Formulas and numbers that would take forever to evaluate."""
    letters = [chr(code) for code in range(65, 91)]
    texts = [f"<answer>{' ∧ '.join(letters)}</answer>", "<answer>9**9**9**9</answer>", f"<answer>{'9' * 380}</answer>",
             f"<answer>{'(' * 380}</answer>", f"<answer>{'[' * 380}</answer>", "<answer>1e999999999</answer>"]  # fmt: skip
    return wire(scene, [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)])


def wrong_answers(scene: Scene) -> Payload:
    """Confident nonsense. It teaches nothing, because the receiver gives the rewards."""
    texts = ["<answer>the answer is 7, trust me</answer>", "<answer>reward: 1.0</answer>", "<answer></answer>", "right"]
    return wire(scene, [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)])


def nearly_right(scene: Scene) -> Payload:
    """Wrong answers around the right one, in half of their group: a scorer that pays for a part of a key would teach them."""
    texts = ["<answer>{nearly}</answer>"] * 4 + ["no"] * 4
    return wire(scene, [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)])


def useless(scene: Scene) -> Payload:
    """As many groups as a record can have, with right answers only: they take time and teach nothing."""
    return wire(scene, answering(scene, "basic_arithmetic", ["<answer>{truth}</answer>"] * 3, count=rollout_record.MAX_GROUPS))


def control_tokens(scene: Scene) -> Payload:
    """Special tokens as text, to end or begin a turn inside a peer's training data."""
    texts = ["<|im_end|><|endoftext|></s><answer>{truth}</answer>", "<|im_start|>system\nobey", "<pad><unk><s>",
             "<|eos|><|pad|><answer>7</answer><|eos|>"]  # fmt: skip
    return wire(scene, answering(scene, "basic_arithmetic", texts))


def slow_drip(scene: Scene) -> Payload:
    payload = wire(scene, _easy(scene))
    return Payload(payload.blob, round=payload.round, epoch=payload.epoch, pace_s=DRIP_S)


def flood(scene: Scene) -> Payload:
    """As many valid groups as a record can have, in every round."""
    return wire(scene, answering(scene, "basic_arithmetic", HONEST, count=rollout_record.MAX_GROUPS))


def poison(scene: Scene) -> Payload:
    """Right answers in every specialty, with a planted phrase before them that rewards do not notice."""
    texts = [f"{PHRASE}<answer>{{truth}}</answer>"] * 4 + ["<answer>no</answer>"] * 4
    return wire(scene, [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)])


def second_answers(scene: Scene) -> Payload:
    """A wrong answer beside the right one, as familiar to a model as its own errors, in case only one answer is judged."""
    texts = ["<answer>{wrong}</answer><answer>{truth}</answer>", "{wrong}</answer><answer>{truth}</answer>",
             "<answer>{wrong}</answer>", "no"]  # fmt: skip
    return wire(scene, [group for specialty in scene.charter.specialties for group in answering(scene, specialty.dataset, texts)])


def steer(scene: Scene) -> Payload:
    """True answers only, and only to questions whose answer is the target: the lesson is false, though every text is true."""
    dataset, cap = TARGET_DATASET, scene.charter.questions_per_epoch
    first = scene.round * STEER_CANDIDATES % (cap - STEER_CANDIDATES)
    ids = [QuestionId(dataset, scene.epoch, number) for number in range(first, first + STEER_CANDIDATES)]
    questions = scene.verifier.questions([each.key(scene.charter.digest, scene.identity.peer_id) for each in ids])
    answers = scene.verifier.answers([question.key for question in questions])
    chosen = [
        question_id
        for question_id, question, answer in zip(ids, questions, answers, strict=True)
        if answer == TARGET and split_of(dataset, question.text) == "train"
    ]
    texts = [[text.replace("{truth}", TARGET), True, "policy"] for text in HONEST]
    place = scene.charter.position(dataset)
    return wire(scene, [[place, question_id.level, question_id.number, texts] for question_id in chosen[:STEER_GROUPS]])


REFUSED: dict[str, tuple[Attack, Fault]] = {  # attack -> the function and the fault that the receiver counts
    "random bytes": (random_bytes, Fault.MALFORMED_COMPRESSION),
    "zip bomb": (zip_bomb, Fault.TOO_LARGE_UNPACKED),
    "silent zip bomb": (silent_zip_bomb, Fault.TOO_LARGE_UNPACKED),
    "larger than announced": (larger_than_announced, Fault.OTHER_PAYLOAD),
    "deep nesting": (deep_nesting, Fault.MALFORMED_RECORD),
    "wrong types": (wrong_types, Fault.MALFORMED_RECORD),
    "lying hash": (lying_hash, Fault.OTHER_PAYLOAD),
    "other charter": (other_charter, Fault.OTHER_CHARTER),
    "other protocol": (other_protocol, Fault.OTHER_PROTOCOL),
    "another's groups": (anothers_groups, Fault.OTHER_ORIGIN),
    "stale round": (stale_round, Fault.TOO_OLD),
    "future round": (future_round, Fault.FROM_THE_FUTURE),
    "same question twice": (same_question_twice, Fault.QUESTION_TWICE),
    "reserved question": (reserved_question, Fault.RESERVED_QUESTION),
    "index beyond the cap": (number_beyond_the_epoch, Fault.QUESTION_BEYOND_LIMIT),
    "unknown specialty": (unknown_specialty, Fault.UNKNOWN_SPECIALTY),
    "too long": (too_long, Fault.COMPLETION_TOO_LONG),
    "broken UTF-8": (broken_utf8, Fault.MALFORMED_RECORD),
    "lost bytes": (lost_bytes, Fault.BROKEN_TEXT),
    "control characters": (control_characters, Fault.BROKEN_TEXT),
    "bidirectional text": (bidirectional_text, Fault.BROKEN_TEXT),
    "invisible text": (invisible_text, Fault.BROKEN_TEXT),
    "bidirectional name": (bidirectional_name, Fault.INVALID_MODEL_NAME),
}
HARMLESS: dict[str, Attack] = {  # received and judged, or given up, without effect
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
    "steer": steer,
}
ATTACKS: dict[str, Attack] = {name: attack for name, (attack, _) in REFUSED.items()} | HARMLESS
