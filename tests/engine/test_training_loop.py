"""Test that the training loop stores rounds in a history before it publishes them, and continues them after a stop."""

import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sapo.test_round import CHARTER, LINES, RULES, external, node
from waggle.core.errors import CheckpointError, HistoryError, VerifierGone, WaggleError
from waggle.core.peer_id import text_of
from waggle.engine import training_loop
from waggle.engine.runtime import round_events
from waggle.engine.runtime.held_out_schedule import HeldOutPlan
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.services.models.current_weights import CurrentWeights, CurrentWeightsError
from waggle.engine.storage.history import History, read_days
from waggle.engine.training_loop import LoopCallbacks, Progress, TrainingLoop, TrainingPlan
from waggle.models.storage.checkpoint import CheckpointState
from waggle.protocol import events, json_lines
from waggle.protocol.state import Snapshot, State, apply
from waggle.rl.batch import nothing
from waggle.rl.update_rules import dapo
from waggle.sapo.evaluation import exam_of
from waggle.sapo.fakes import FakePolicy
from waggle.sapo.prompt_form import PLAIN
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import RIGHT, JudgedGroup
from waggle.tasks.sandbox.verifier import Verifier

PEER = b"p" * 38


@dataclass
class Recording:
    """What one run of an engine published and saved, in order, and its history."""

    history: History
    events: list["events.EngineEvent"] = field(default_factory=list)
    begun_after: list[int] = field(default_factory=list)  # rounds
    saved: list[CheckpointState] = field(default_factory=list)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


class Uneven(FakePolicy):
    """Reports completions once they are complete."""

    def sample(self, prompts, uniforms, params):
        rows = super().sample(prompts, uniforms, params)
        flat = [sample for row in rows for sample in row]
        tokens = np.zeros((len(flat), params.max_new), np.int32)
        for line, sample in zip(tokens, flat, strict=True):
            line[: len(sample.tokens)] = sample.tokens
        for written in self.lengths_shown(params.max_new):
            lengths = [min(written, len(sample.tokens)) for sample in flat]
            ended = [sample.ended and length == len(sample.tokens) for sample, length in zip(flat, lengths, strict=True)]
            params.watch(tokens, np.array(lengths), np.array(ended))
        return rows

    def lengths_shown(self, most):
        return (most,)


class Growing(Uneven):
    """Reports completions after each token."""

    def lengths_shown(self, most):
        return range(1, most + 1)


class Asleep(FakePolicy):
    """A computer that sleeps for a night while it answers."""

    now = 0.0

    def sample(self, prompts, uniforms, params):
        self.now += 8 * 3600.0
        return super().sample(prompts, uniforms, params)


class WithWeights(FakePolicy):
    """A policy that hands its weights out."""

    def weights(self) -> dict[str, np.ndarray]:
        return {"w": np.zeros(3, np.float32)}


class Numberless(FakePolicy):
    """A model whose logits are NaN."""

    def sample(self, prompts, uniforms, params):
        rows = super().sample(prompts, uniforms, params)
        return [[replace(sample, logp=sample.logp * np.nan) for sample in row] for row in rows]

    def logprobs(self, texts, temperature):
        return [values * np.nan for values in super().logprobs(texts, temperature)]

    def step(self, batches, params):
        return replace(super().step(batches, params), loss=float("inf"), gradient_norm=float("nan"))


class Overflowing(FakePolicy):
    """A policy whose step is not finite and so left out, except that of the third round."""

    def step(self, batches, params):
        metrics = super().step(batches, params)
        if len(self.learned) == 3:
            return metrics
        self.steps -= 1
        return replace(metrics, applied=False)


def contribute(
    folder: Path,
    me,
    questions,
    *,
    first: int = 0,
    rounds: int = 3,
    completions: int = 0,
    seconds=time.perf_counter,
    rules=RULES,
    plan: HeldOutPlan | None = None,
    review=lambda summary: None,
) -> Recording:
    """Play rounds from `first` on, as an engine that is then stopped."""
    recording = Recording(History(folder / "history.sqlite"))
    gate = PauseGate(nothing, seconds)

    def save(saved: CheckpointState) -> int:
        assert saved.round - 1 in {summary.round for summary in recording.history.chart_points().rounds}, (
            "the round is in the history before its checkpoint"
        )
        recording.saved.append(saved)
        return 7

    def round_ended() -> None:
        if len(recording.saved) == rounds:
            gate.stop()

    TrainingLoop(
        me, TrainingPlan(rules=rules, base="b", rule="grpo", held_out=plan or HeldOutPlan(questions, 2)),
        Progress(round=first, completions=completions), recording.history, gate,
        LoopCallbacks(
            publish=recording.events.append, save=save, flush=nothing, report_blocker=lambda error: None,
            round_ended=round_ended, review_length=review,
            first_round_ended=lambda: recording.begun_after.append(len(recording.saved)),
        ),
        clock=lambda: 600_000.0,
    ).run()  # fmt: skip
    assert recording.begun_after == [1], "what was chosen has begun once a round was played"
    return recording


def in_arithmetic(judged_group: JudgedGroup) -> JudgedGroup:
    group = msgspec.structs.replace(judged_group.group, id=QuestionId("basic_arithmetic", 5, judged_group.group.id.number))
    return msgspec.structs.replace(
        judged_group,
        group=group,
        question=Question(dataset="basic_arithmetic", seed=judged_group.question.seed, text="How much?"),
    )


@pytest.fixture
def questions(verifier):
    return verifier.held_out("logic_deduction", "dev", 5)


def test_every_stage_of_a_round_is_told_in_order_and_what_was_kept_last(verifier, questions, tmp_path):
    recording = contribute(tmp_path, node(verifier, lines=("just words",)), questions, rounds=1)
    assert [type(event) for event in recording.events] == [
        events.RoundsRecalled,
        events.HeldOutMeasured,
        events.QuestionsDrawn,
        events.GroupsJudged,
        events.GroupsShared,
        events.GroupsGathered,
        events.PolicyUpdated,
        events.RoundCompleted,
        events.CheckpointSaved,
    ]
    assert recording.events[-1] == events.CheckpointSaved(round=1, bytes=7)


def test_questions_that_are_drawn_later_in_a_round_join_those_before(verifier, questions, tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "GROWTH_SECONDS", 0.0)
    me = replace(node(verifier), policy=Uneven(("just words",)))
    recording = contribute(tmp_path, me, questions, rounds=1, rules=replace(RULES, rule=dapo.RULE))
    assert [len(event.groups) for event in recording.of(events.QuestionsDrawn)] == [8, 16, 24]
    assert [len(event.rows) for event in recording.of(events.CompletionsProgress)] == [32, 64, 96]
    state = State()
    for event in recording.events[: [type(event) for event in recording.events].index(events.GroupsJudged)]:
        state = apply(state, event)
    assert (state.questions_drawn, state.answers_expected) == (24, 96)
    assert [completion.text for card in state.cards for completion in card.completions] == ["just words"] * 96
    (judged,), (summary,) = recording.of(events.GroupsJudged), recording.of(events.RoundCompleted)
    assert (len(judged.groups), summary.summary.completions) == (24, 96)


def test_a_right_answer_is_told_where_no_completion_has_one(verifier, questions, tmp_path):
    (judged,) = contribute(tmp_path, node(verifier, lines=("just words",)), questions, rounds=1).of(events.GroupsJudged)
    texts = {(group.key.split("/")[1], group.question): group.truth for group in judged.groups}
    sums = {question: truth for (dataset, question), truth in texts.items() if dataset == "basic_arithmetic"}
    assert all(texts.values())
    terms = [question.removeprefix("Calculate ").rstrip(".").replace("- ", "+ -").split(" + ") for question in sums]
    assert [str(sum(map(int, numbers))) for numbers in terms] == list(sums.values())
    state = apply(State(), events.QuestionsDrawn(round=0, epoch=0, groups=judged.groups, group_size=4))
    assert {card.truth for card in apply(state, judged).cards} == set(texts.values())


def test_where_a_completion_is_right_no_other_answer_is_told(verifier, questions, tmp_path):
    judged = contribute(tmp_path, node(verifier), questions, rounds=4).of(events.GroupsJudged)
    groups = [group for event in judged for group in event.groups]
    has_truth = {any(each.reward >= 1 for each in group.completions): group.truth != "" for group in groups}
    assert has_truth == {True: False, False: True}


def test_each_round_says_by_which_shares_its_questions_were_drawn(verifier, questions, tmp_path):
    me = node(verifier, lines=("just words",))
    first, second = contribute(tmp_path, me, questions, rounds=2).of(events.QuestionsDrawn)
    assert [share.specialty for share in first.shares] == [specialty.title for specialty in CHARTER.specialties]
    assert len({part for share in first.shares for part in share.levels.values()}) == 1, "all are equal before the first round"
    shares = [part for share in second.shares for part in share.levels.values()]
    assert sum(shares) == pytest.approx(1.0, abs=1e-3)
    assert len(set(shares)) > 1, "what was answered with words alone in the first round is asked less"


def test_completions_are_counted_on_over_restarts(verifier, questions, tmp_path):
    each = RULES.questions * RULES.group_size
    first = contribute(tmp_path, node(verifier), questions)
    assert [(saved.round, saved.completions) for saved in first.saved] == [(1, each), (2, 2 * each), (3, 3 * each)]
    second = contribute(tmp_path, node(verifier), questions, first=3, rounds=1, completions=3 * each)
    assert [(saved.round, saved.completions) for saved in second.saved] == [(4, 4 * each)]
    assert [summary.round for summary in second.history.chart_points().rounds] == [0, 1, 2, 3]


def test_the_honest_score_is_taken_when_it_is_due_and_never_twice(verifier, questions, tmp_path):
    first = contribute(tmp_path, node(verifier), questions, rounds=2)
    assert [event.score.round for event in first.of(events.HeldOutMeasured)] == [0, 2]
    assert {(event.score.total, event.score.exam) for event in first.of(events.HeldOutMeasured)} == {(5, exam_of(questions))}
    for event in first.of(events.HeldOutMeasured):
        parts = event.score.by_specialty
        assert set(parts) <= {specialty.title for specialty in node(verifier).charter.specialties}
        assert tuple(map(sum, zip(*parts.values(), strict=True))) == (event.score.right, event.score.total)
    second = contribute(tmp_path, node(verifier), questions, first=2, rounds=2)
    assert [event.score.round for event in second.of(events.HeldOutMeasured)] == [4], "2 is in the history already"
    assert [score.round for score in second.history.chart_points().held_out] == [0, 2, 4]


def test_it_is_told_how_far_a_test_is_before_its_score_is(verifier, questions, tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "GROWTH_SECONDS", 0.0)
    recording = contribute(tmp_path, replace(node(verifier), policy=Uneven(LINES)), questions, rounds=1)
    about_test = [event for event in recording.events if isinstance(event, events.HeldOutProgress | events.HeldOutMeasured)]
    assert about_test[0] == events.HeldOutProgress(done=5, total=5)
    assert isinstance(about_test[-1], events.HeldOutMeasured)


def test_how_far_a_test_is_is_told_ten_times_a_second_at_most(verifier, questions, tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "GROWTH_SECONDS", 1e9)
    loop_events = contribute(tmp_path, replace(node(verifier), policy=Uneven(LINES)), questions, rounds=3).events
    assert sum(isinstance(event, events.HeldOutProgress) for event in loop_events) <= 1


def test_where_training_begins_anew_so_does_its_history_and_the_days_go_on(verifier, questions, tmp_path):
    before = contribute(tmp_path, node(verifier, lines=LINES), questions, rounds=20)
    days_before, _newest = read_days(tmp_path / "history.sqlite")  # two where midnight passes
    assert before.of(events.AhaHappened)
    anew = contribute(tmp_path, node(verifier, lines=LINES), questions, rounds=2)
    assert [event.score.round for event in anew.of(events.HeldOutMeasured)] == [0, 2]
    content = anew.history.chart_points()
    assert ([each.round for each in content.rounds], [each.round for each in content.held_out]) == ([0, 1], [0, 2])
    assert content.ahas == tuple(event.aha for event in anew.of(events.AhaHappened))
    days, _newest = read_days(tmp_path / "history.sqlite")
    answers_a_round = sum(day.answers for day in days_before) // 20
    assert (sum(day.rounds for day in days), sum(day.answers for day in days)) == (22, 22 * answers_a_round)


def test_of_questions_that_the_model_cannot_read_there_is_no_score(verifier, questions, tmp_path):
    longest = min(len(PLAIN.text(question.text)) for question in questions) - 1
    recording = contribute(tmp_path, node(verifier), questions, rounds=1, rules=replace(RULES, context=longest + RULES.max_new))
    assert not recording.of(events.HeldOutMeasured)
    assert not recording.history.has_score(0)


def test_a_teacher_and_a_first_success_survive_a_restart(verifier, questions, tmp_path):
    pool = [in_arithmetic(external(number)) for number in range(3)]
    taught = contribute(tmp_path, node(verifier, lines=("just words",), pool=pool), questions, rounds=1)
    assert taught.history.successes.teachers() == {"basic_arithmetic": PEER}
    assert not taught.of(events.AhaHappened)

    able = contribute(tmp_path, node(verifier, lines=LINES), questions, first=1, rounds=40)
    successes = [event.aha for event in able.of(events.AhaHappened)]
    assert able.history.chart_points().ahas == tuple(successes)
    assert len({aha.specialty for aha in successes}) == len(successes) > 1
    assert {aha.specialty: aha.origin for aha in successes}["Arithmetic"] == text_of(PEER)

    second = contribute(tmp_path, node(verifier, lines=LINES), questions, first=1, rounds=40)  # as after a lost checkpoint
    assert not second.of(events.AhaHappened), "each is the first only once"


def test_how_many_groups_of_peers_a_model_was_trained_on_goes_with_its_state(verifier, questions, tmp_path):
    pool = [external(number) for number in range(4)]
    recording = contribute(tmp_path, node(verifier, lines=LINES, pool=pool), questions, rounds=3)
    took = [event.summary.external for event in recording.of(events.RoundCompleted)]
    assert sum(took) > 0
    assert [saved.learned for saved in recording.saved] == [sum(took[: place + 1]) for place in range(3)]


def test_whoever_watches_sees_texts_without_their_stop_token(verifier, questions, tmp_path):
    me = node(verifier)
    recording = contribute(tmp_path, replace(me, policy=Uneven(LINES)), questions, rounds=1)
    (grown,) = recording.of(events.CompletionsProgress)
    assert {text for _, _, text, _ in grown.rows} == set(LINES)
    assert [row[:2] for row in grown.rows] == [(i // RULES.group_size, i % RULES.group_size) for i in range(len(grown.rows))]


def test_what_did_not_grow_since_it_was_told_is_not_told_again_and_nothing_is_missed(verifier, questions, tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "GROWTH_SECONDS", 0.0)
    recording = contribute(tmp_path, replace(node(verifier), policy=Growing(LINES)), questions, rounds=1)
    grown, (judged,) = recording.of(events.CompletionsProgress), recording.of(events.GroupsJudged)
    rows = [row for event in grown for row in event.rows]
    assert all(event.rows for event in grown)
    assert len(set(rows)) == len(rows)
    state = State()
    for event in (*recording.of(events.QuestionsDrawn), *grown):
        state = apply(state, event)
    written, finished = (
        [[(completion.text, completion.ended) for completion in each.completions] for each in some]
        for some in (state.cards, judged.groups)
    )
    assert written == finished


def test_what_is_written_as_in_the_round_before_is_told_all_the_same(verifier, questions, tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "GROWTH_SECONDS", 0.0)
    recording = contribute(tmp_path, replace(node(verifier), policy=Uneven(("just words",))), questions, rounds=2)
    assert [(event.round, len(event.rows)) for event in recording.of(events.CompletionsProgress)] == [(0, 32), (1, 32)]


def test_of_a_long_text_as_much_is_told_as_a_window_shows(verifier, questions, tmp_path, monkeypatch):
    monkeypatch.setattr(round_events, "LONGEST_SHOWN", 4)
    recording = contribute(tmp_path, replace(node(verifier), policy=Uneven(("just words",))), questions, rounds=1)
    (grown,), (judged,) = recording.of(events.CompletionsProgress), recording.of(events.GroupsJudged)
    assert {text for _, _, text, _ in grown.rows} == {"just"}
    assert {completion.text for group in judged.groups for completion in group.completions} == {"just"}


def test_what_a_model_says_that_computes_no_numbers_any_more_can_be_read(verifier, questions, tmp_path):
    me = node(verifier, pool=[external(number) for number in range(4)])
    recording = contribute(tmp_path, replace(me, policy=Numberless(LINES)), questions, rounds=2)
    state = State()
    for event in recording.events:
        assert json_lines.event(json_lines.line(event)) == event
        state = apply(state, event)
    assert json_lines.event(json_lines.line(Snapshot(state=state))) == Snapshot(state=state)
    assert [summary.metrics.entropy for summary in recording.history.chart_points().rounds] == [0.0, 0.0]


def test_a_night_asleep_is_hardly_counted_as_work(tmp_path, verifier, questions):
    policy = Asleep(LINES)
    recording = contribute(tmp_path, replace(node(verifier), policy=policy), questions, rounds=2, seconds=lambda: policy.now)
    assert [event.summary.seconds for event in recording.of(events.RoundCompleted)] == [600.0, 600.0]


def test_a_round_that_a_full_disk_refused_is_kept_once_there_is_room(tmp_path, verifier):
    me = node(verifier)
    refused = CheckpointError("No room.", "Make some.")
    answers: list[object] = [refused, refused, 7]
    blockers: list[object] = []
    gate = PauseGate(nothing)
    history = History(tmp_path / "history.sqlite")
    sent: list[events.EngineEvent] = []

    def save(saved: CheckpointState) -> int:
        answer = answers.pop(0)
        if isinstance(answer, CheckpointError):
            raise answer
        return answer

    TrainingLoop(
        me, TrainingPlan(rules=RULES, base="b", held_out=HeldOutPlan((), 99), retry_seconds=0.01), Progress(round=1),
        history, gate,
        LoopCallbacks(
            publish=sent.append, save=save, flush=nothing, report_blocker=blockers.append, round_ended=gate.stop,
        ),
        clock=lambda: 600_000.0,
    ).run()  # fmt: skip
    assert blockers == [refused, refused, None]
    assert [event.summary.round for event in sent if isinstance(event, events.RoundCompleted)] == [1]


def test_a_step_that_is_not_finite_teaches_nothing_and_the_first_in_a_row_is_warned_of(tmp_path, verifier):
    me = replace(node(verifier, pool=[external(number) for number in range(20)]), policy=Overflowing(LINES))
    recording = contribute(tmp_path, me, (), rounds=4)
    updates, completed = recording.of(events.PolicyUpdated), recording.of(events.RoundCompleted)
    assert [update.left_out for update in updates] == ["not_finite", "not_finite", "", "not_finite"]
    assert [update.step for update in updates] == [0, 0, 1, 1]
    assert [any(map(any, (lesson.effects for lesson in update.lessons))) for update in updates] == [False, False, True, False]
    assert [len(update.taught) for update in updates] == [0, 0, 1, 0], "one peer taught"
    example = updates[2].taught[0]
    assert not example.key.startswith(me.origin[-6:].hex())
    assert any(completion.reward >= RIGHT for completion in example.completions)
    assert [event.summary.left_out for event in completed] == [True, True, False, True]
    assert [event.summary.taught > 0 for event in completed] == [False, False, True, False]
    assert [warned.title for warned in recording.of(events.Warned)] == [
        f"Round {number} taught something that is no number." for number in (1, 4)
    ]


def test_while_a_full_disk_refuses_a_round_the_weights_of_now_are_refused_in_words(tmp_path, verifier):
    gate, history = PauseGate(nothing), History(tmp_path / "history.sqlite")
    policy = WithWeights(LINES)
    before = CheckpointState(round=1, step=0, epoch=1, charter="c", base="b")
    current = CurrentWeights(gate, policy, lambda: before)
    answers: list[object] = []

    def save(saved: CheckpointState) -> int:
        assert saved.step == 1, "it learned something"
        raise CheckpointError("No room.", "Make some.")

    def ask(error: object) -> None:
        other_thread.submit(copy_and_stop)  # which also ends the hour of waiting

    def copy_and_stop() -> None:
        try:
            answers.append(current.copy())
        except CurrentWeightsError as error:
            answers.append(error.title)
        gate.stop()

    with ThreadPoolExecutor(1) as other_thread:
        TrainingLoop(
            replace(node(verifier, pool=[external(number) for number in range(4)]), policy=policy),
            TrainingPlan(rules=RULES, base="b", held_out=HeldOutPlan((), 99), retry_seconds=3600.0), Progress(round=1),
            history, gate,
            LoopCallbacks(publish=nothing, save=save, flush=nothing, report_blocker=ask, round_ended=nothing),
            clock=lambda: 600_000.0,
        ).run()  # fmt: skip
    assert answers == ["Training stands still in a round that is not stored yet."]


def test_an_honest_score_that_a_full_disk_refused_is_kept_once_there_is_room(tmp_path, verifier, questions):
    blockers: list[object] = []
    gate = PauseGate(nothing)
    history = History(tmp_path / "history.sqlite")
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)

    def report(error: object) -> None:
        blockers.append(error)
        if error is not None:
            other.execute("drop trigger full")

    other.execute("create trigger full before insert on held_out begin select abs(-9223372036854775808); end")
    TrainingLoop(
        node(verifier),
        TrainingPlan(rules=RULES, base="b", held_out=HeldOutPlan(tuple(questions), 1), retry_seconds=0.01),
        Progress(), history, gate,
        LoopCallbacks(
            publish=lambda event: None, save=lambda saved: 1, flush=nothing, report_blocker=report, round_ended=gate.stop,
        ),
        clock=lambda: 600_000.0,
    ).run()  # fmt: skip
    assert isinstance(blockers[0], HistoryError)
    assert history.has_score(0)
    other.close()


class Trouble:
    """A verifier whose process is killed, and cannot be started again until three attempts have failed."""

    def __init__(self, monkeypatch) -> None:
        self.verifier, self.blockers, self._monkeypatch = Verifier(CHARTER), list[WaggleError | None](), monkeypatch

    def begin(self) -> None:
        self._monkeypatch.setenv("PYTHONHOME", "/nowhere")
        os.kill(self.verifier.pid, signal.SIGKILL)

    def report(self, error: WaggleError | None) -> None:
        self.blockers.append(error)
        if self.blockers[-3:].count(None) == 0 and len(self.blockers) >= 3:
            self._monkeypatch.delenv("PYTHONHOME")


@pytest.fixture
def trouble(monkeypatch):
    new_trouble = Trouble(monkeypatch)
    yield new_trouble
    new_trouble.verifier.close()


def test_a_verifier_that_cannot_be_started_is_waited_for_and_the_round_is_played_again(tmp_path, trouble, questions):
    me, gate, history = node(trouble.verifier), PauseGate(nothing), History(tmp_path / "history.sqlite")
    sent: list[events.EngineEvent] = []
    ended: list[int] = []

    def round_ended() -> None:
        ended.append(len(trouble.blockers))
        (trouble.begin if len(ended) == 1 else gate.stop)()

    TrainingLoop(
        me, TrainingPlan(rules=RULES, base="b", held_out=HeldOutPlan(tuple(questions), 99), retry_seconds=0.01),
        Progress(round=1), history, gate,
        LoopCallbacks(
            publish=sent.append, save=lambda saved: 1, flush=nothing, report_blocker=trouble.report, round_ended=round_ended,
        ),
        clock=lambda: 600_000.0,
    ).run()  # fmt: skip
    assert [event.summary.round for event in sent if isinstance(event, events.RoundCompleted)] == [1, 2]
    errors = [error for error in trouble.blockers if error is not None]
    assert [type(error) for error in errors] == [VerifierGone] * 3
    assert trouble.blockers[-1] is None


def test_a_verifier_that_fails_before_any_round_was_played_is_not_waited_for_without_end(tmp_path, trouble):
    me, history = node(trouble.verifier), History(tmp_path / "history.sqlite")
    trouble.begin()
    with pytest.raises(VerifierGone):
        TrainingLoop(
            me, TrainingPlan(rules=RULES, base="b", held_out=HeldOutPlan((), 99), retry_seconds=0.01), Progress(round=1),
            history, PauseGate(nothing),
            LoopCallbacks(
                publish=lambda event: None, save=lambda saved: 1, flush=nothing, report_blocker=trouble.report,
                round_ended=nothing,
            ),
            clock=lambda: 600_000.0,
        ).run()  # fmt: skip
    assert len(trouble.blockers) == training_loop.VERIFIER_TRIES - 1


def test_a_model_that_is_scored_by_time_has_a_first_score_on_few_questions_before_its_first_round(verifier, tmp_path):
    questions = tuple(verifier.held_out("logic_deduction", "test", 6))
    plan = HeldOutPlan(questions, 0, questions[:2])
    recording = contribute(tmp_path, node(verifier), (), rounds=3, plan=plan)
    (score,) = (event.score for event in recording.of(events.HeldOutMeasured))
    assert (score.round, score.total, score.early, score.exam) == (0, 2, True, exam_of(questions[:2]))
    second = contribute(tmp_path, node(verifier), (), first=3, rounds=2, plan=plan)
    assert not second.of(events.HeldOutMeasured), "the score is in the history, and not much was trained since"


def test_answers_may_be_longer_from_the_round_on_after_a_review_said_so(verifier, questions, tmp_path):
    me = replace(node(verifier), policy=Uneven(("a long text " * 9,)))
    longer = events.AnswerLength(tokens=RULES.max_new + 20, why="raised")
    recording = contribute(
        tmp_path, me, (), rounds=3, plan=HeldOutPlan((), 99), review=lambda summary: longer if summary.round == 1 else None
    )
    lengths = [event.summary.metrics.completion_tokens for event in recording.of(events.RoundCompleted)]
    assert lengths == [RULES.max_new, RULES.max_new, RULES.max_new + 20]
    assert [event.length for event in recording.of(events.AnswersLengthened)] == [longer]


def test_a_round_says_in_which_swarm_and_by_which_rule_it_was_played_and_what_memory_it_took(verifier, questions, tmp_path):
    (completed,) = contribute(tmp_path, node(verifier), questions, rounds=1).of(events.RoundCompleted)
    assert (completed.summary.swarm, completed.summary.rule) == (CHARTER.name, "grpo")
    assert completed.summary.memory > 10_000_000
