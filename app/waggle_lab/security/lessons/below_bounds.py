"""An attacker that reads Waggle's bounds on peers and stays just below them, with the longest answers that they let pass.

It plays rounds like an honest node, on the same starter, so its model is about as far as the victims' models. It measures its own
texts as they would (`selection.strangeness`), and pads right answers with whatever is as familiar as the strangest of its own
completions. Where the victims count answers (`AnswerBalance`), it counts as they do, and sends its target as often as a fair
sender might.
"""

import torch

from waggle.core import paths
from waggle.core.message import NOTHING
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import TokenizedGroup, nothing
from waggle.sapo import round as sapo
from waggle.sapo.answer_balance import AnswerBalance
from waggle.sapo.interfaces import Swarm
from waggle.sapo.selection import inexcusable_tokens, select, strangeness
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import TAGS, Completion, Group, JudgedGroup, Verdict
from waggle_lab.security.attacks import TARGET, TARGET_DATASET, Payload, Scene, wire
from waggle_lab.security.lessons.interface import HALF, WRONG, Lesson, beside
from waggle_lab.security.lessons.victims_model import MOST_TOKENS, tokenizer

PADDINGS = (" ", "\n", " so", " the", " 1", " 0", ".", "a")
LENGTHS = (1, 2, 4, 8, 16)  # how often a padding is repeated
TARGET_QUESTIONS, TARGET_GROUPS = 24, 4  # looked at in a round, and sent
ROUNDS_LOOKED_AT = 3  # whose strangest completion is the limit: the victims' varies from round to round


class BelowBounds:
    """The attack of one hostile node, from its first round to its last."""

    def __init__(self, swarm: Swarm) -> None:
        self._swarm = swarm
        self._rules = RoundSettings()
        self._node: Node | None = None
        self._balance: AnswerBalance | None = None
        self._strangest: list[float] = []

    def __call__(self, scene: Scene) -> Payload:
        node = self._node = self._node or self._open(scene)
        self._play(scene, node)
        groups, numbers = [], set[int]()
        for specialty in scene.charter.specialties:
            if specialty.dataset == TARGET_DATASET:
                chosen = self._one_sided(scene, node)
            else:
                chosen = [(pair, scene.truth(pair[1])) for pair in scene.questions(specialty.dataset)]
            for (question_id, question), truth in chosen:
                if question_id.number in numbers:  # a specialty with many reserved questions reaches into the numbers of the next
                    continue
                numbers.add(question_id.number)
                right = self._longest(node, question, truth)
                rows = [[text, True, "policy"] for text in [right] * HALF + [WRONG] * HALF]
                groups.append([scene.charter.position(question_id.dataset), question_id.level, question_id.number, rows])
        return wire(scene, groups)

    def _open(self, scene: Scene) -> Node:
        torch.set_num_threads(1)  # as on the honest side
        self._rules = self._rules.under(scene.charter)
        return Node(
            policy=TorchPolicy(paths.starter()), tokenizer=tokenizer(), swarm=self._swarm, verifier=scene.verifier,
            charter=scene.charter, origin=scene.identity.peer_id, seed=int.from_bytes(scene.identity.peer_id[-7:], "big"),
        )  # fmt: skip

    def _play(self, scene: Scene, node: Node) -> None:
        """Learn as the victims do, and note how strange the strangest of the own completions is."""
        drawn = sapo.draw(scene.round, scene.epoch, node, self._rules)
        sampled = sapo.answer(scene.round, node, self._rules, drawn, pause_point=nothing, watch=nothing)
        judged = sapo.judge(scene.round, node, self._rules, drawn, sampled)
        selection = select(scene.round, node, self._rules, judged, sampled)
        sapo.learn(scene.round, node, self._rules, selection.groups, nothing)
        strangest = max(strangeness(sample.logp) for row in sampled for sample in row)
        self._strangest = [*self._strangest, strangest][-ROUNDS_LOOKED_AT:]

    def _longest(self, node: Node, question: Question, truth: str) -> str:
        """The longest right completion that is no stranger than the own ones."""
        right = f"{TAGS[0]}{truth}{TAGS[1]}"
        texts = [right]
        for padding in PADDINGS:
            texts += [text for times in LENGTHS for text in (padding * times + right, right + padding * times)]
        prompt = node.prompter.prompt(question)
        encoded = [(text, node.prompter.continuation(prompt, text)) for text in texts]
        fitting = [(text, ids) for text, ids in encoded if len(ids) < MOST_TOKENS]
        if not fitting:
            return right
        logp = node.policy.logprobs([TokenizedGroup(prompt.ids, tuple(ids for _, ids in fitting))], self._rules.temperature)[0]
        familiar, first = [(0, right)], 0
        for text, ids in fitting:
            verdict = Verdict(reward=1.0, reason=NOTHING, start=text.index(truth), length=len(truth), exact=True)
            counted = inexcusable_tokens(node.prompter.offsets(prompt, text), verdict, len(ids))
            if strangeness(logp[first : first + len(ids)], counted) <= min(self._strangest):
                familiar.append((len(ids), text))
            first += len(ids)
        return max(familiar)[1]

    def _one_sided(self, scene: Scene, node: Node) -> list[tuple[tuple[QuestionId, Question], str]]:
        """Questions with the target for an answer as long as a fair sender might send one more, then others."""
        balance = self._balance = self._balance or AnswerBalance(scene.verifier.answers, node._sample)
        pairs = scene.questions(TARGET_DATASET, TARGET_QUESTIONS)
        answers = scene.verifier.answers([question.key for _, question in pairs])
        answered = list(zip(pairs, answers, strict=True))
        target = [pair for pair in answered if pair[1] == TARGET]
        others = [pair for pair in answered if pair[1] != TARGET]
        chosen: list[tuple[tuple[QuestionId, Question], str]] = []
        while len(chosen) < TARGET_GROUPS and (target or others):
            next_one = target[0] if target and balance.allows(_right(scene, target[0]), scene.identity.peer_id) else None
            if next_one is None and not others:
                break
            each = target.pop(0) if next_one is not None else others.pop(0)
            balance.record(_right(scene, each), scene.identity.peer_id)
            chosen.append(each)
        return chosen


def _right(scene: Scene, answered: tuple[tuple[QuestionId, Question], str]) -> JudgedGroup:
    """A group with a right answer to a question."""
    (question_id, question), truth = answered
    group = Group(origin=scene.identity.peer_id, id=question_id, completions=(Completion(text=truth, ended=True),))
    verdict = Verdict(reward=1.0, reason=NOTHING, length=len(truth), exact=True)
    return JudgedGroup(group=group, question=question, verdicts=(verdict,))


LESSON = Lesson(lambda swarm, _number: BelowBounds(swarm), shows=lambda text: bool(beside(text)))
