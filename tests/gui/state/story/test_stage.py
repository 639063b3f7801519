"""The stage of Live: which question stands there, for how long, and what is said about its lesson."""

import pytest
from msgspec.structs import replace

from gui.recorded import ready
from waggle.core.settings import Settings
from waggle.gui.state.story.stage import DWELL, LINGER, SCENES, Stage, beginning_of, lesson_words
from waggle.protocol import events
from waggle.protocol.events_swarms import StartedAgain
from waggle.protocol.state import AnyEvent, State, apply

RIGHT = events.ShownCompletion(text="<answer>1</answer>", judged=True, reward=1.0, reason="right", start=8, length=1)
WRONG = events.ShownCompletion(text="<answer>2</answer>", judged=True, reason="wrong: 2", start=8, length=1)
OTTER, WREN, ME = (f"12D3KooW{name}" for name in ("BriskPtter", "C7everWren", "AmberFinch"))


def question(number: int, place: int, *answers: events.ShownCompletion) -> events.ShownGroup:
    return events.ShownGroup(key=f"me/{number}/{place}", specialty="Logic", question=f"{number}/{place}?", completions=answers)


class Played:
    """A State that plays rounds of two questions, and a stage with a clock of its own that follows it."""

    def __init__(self) -> None:
        self.time = 0.0
        self.stage = Stage(lambda: self.time)
        self.state = State()
        self.take(ready(node=ME, round=0), events.PhaseChanged(phase="contributing", round=0))

    def take(self, *events_of_engine: AnyEvent) -> None:
        for event in events_of_engine:
            self.state = apply(self.state, event)
        self.stage.take(self.state)

    def draw(self, number: int) -> None:
        blank = tuple(question(number, place) for place in range(2))
        self.take(events.QuestionsDrawn(round=number, epoch=0, groups=blank, group_size=2))

    def judge(self, number: int) -> None:
        groups = question(number, 0, WRONG, WRONG), question(number, 1, WRONG, RIGHT)
        self.take(events.GroupsJudged(round=number, groups=groups))

    def learn(self, number: int, *keys: str, left_out: events.LeftOut = "", taught: tuple[events.ShownGroup, ...] = ()) -> None:
        effects = (0, 0) if left_out else (1, 0)
        lessons = tuple(events.Lesson(key=key, effects=effects) for key in keys)
        metrics = events.Metrics()
        self.take(events.PolicyUpdated(round=number, step=1, metrics=metrics, lessons=lessons, left_out=left_out, taught=taught))

    def end(self, number: int, reward: float = 0.25) -> None:
        summary = events.RoundSummary(round=number, at=1.0, reward=reward, solved=0.25, seconds=1.0)
        self.take(events.RoundCompleted(summary=summary))

    def play(self, number: int) -> None:
        self.draw(number)
        self.judge(number)
        self.learn(number, f"me/{number}/1")
        self.end(number)

    def later(self, seconds: float, why: str = "") -> int | None:
        self.time += seconds
        self.stage.turn(why)
        return self.stage.round

    @property
    def words(self) -> str:
        assert self.stage.scene is not None
        return lesson_words(self.stage.scene, self.state)


def test_the_most_telling_question_of_the_newest_judged_round_stands_there() -> None:
    played = Played()
    played.draw(0)
    played.judge(0)
    played.later(DWELL)
    assert played.stage.scene is not None
    assert (played.stage.scene.card.question, played.stage.scene.reward) == ("0/1?", 0.25)
    played.end(0, reward=0.3)
    assert played.stage.scene.reward == 0.3


def test_before_any_round_is_judged_the_question_that_is_answered_stands_there() -> None:
    played = Played()
    assert played.stage.scene is None
    played.draw(0)
    played.take(events.CompletionsProgress(round=0, rows=((0, 0, "4", True), (0, 1, "5", False))))
    assert played.words == "1 of 2 answers are written."
    played.judge(0)
    assert played.later(DWELL, "the pointer") is None, "it does not leave under a person"
    assert played.stage.scene is not None
    assert (played.stage.scene.card.question, played.stage.scene.card.completions) == ("0/0?", (WRONG, WRONG))
    played.learn(0, "me/0/1")
    assert played.words == "Your model learned from 1 question of its own."
    assert played.later(LINGER) == 0
    assert played.stage.scene.card.question == "0/1?"


def test_a_question_stays_as_long_as_it_takes_to_read_however_fast_the_model_is() -> None:
    played = Played()
    for number in range(50):
        played.play(number)
        assert played.later(DWELL / 60) == 0
    assert played.later(DWELL / 5) == 49
    played.play(50)
    assert played.later(DWELL * 0.9) == 49
    assert played.later(DWELL * 0.2) == 50


def test_it_never_changes_under_a_person_and_lingers_after() -> None:
    played = Played()
    played.play(0)
    played.play(1)
    assert played.later(DWELL, "the pointer") == 0
    assert played.stage.is_held
    assert played.later(100 * DWELL, "the pointer") == 0
    assert played.later(LINGER / 2) == 0
    assert played.later(LINGER / 2) == 1
    assert not played.stage.is_held


def test_what_a_person_goes_back_to_stays_until_they_return() -> None:
    played = Played()
    for number in range(3):
        played.play(number)
    played.stage.go_to(0)
    for number in range(3, 3 + 2 * SCENES):
        played.play(number)
    assert played.later(100 * DWELL) == 0, "and is not forgotten meanwhile"
    assert len(played.stage.scenes) <= SCENES + 1
    assert played.stage.waiting == len(played.stage.scenes) - 1
    played.stage.leave()
    assert played.later(0.0) == 0
    played.stage.go_to(999)
    assert played.stage.round == 0, "there is no such round"
    played.stage.go_to_newest()
    assert (played.stage.round, played.stage.follows) == (2 + 2 * SCENES, True)


def test_going_back_to_the_newest_follows_again() -> None:
    played = Played()
    played.play(0)
    played.play(1)
    played.stage.go_to(0)
    played.stage.go_to(1)
    played.play(2)
    assert played.later(DWELL) == 2


def test_whoever_returns_sees_the_newest_at_once() -> None:
    played = Played()
    played.play(0)
    played.stage.leave()
    played.play(1)
    assert played.later(0.0) == 1


def test_the_chosen_question_of_a_round_stays_when_the_state_drops_cards() -> None:
    played = Played()
    played.play(0)
    played.stage.go_to(0)
    for number in range(1, 30):
        played.play(number)
    assert played.stage.scene is not None
    assert played.stage.scene.card.question == "0/1?"
    assert played.words == "Your model learned from 1 question of its own."


def test_another_swarm_or_model_or_an_earlier_state_leaves_nothing_of_before() -> None:
    played = Played()
    played.play(0)
    played.take(StartedAgain(reason="Another swarm was chosen."))
    assert (played.stage.scenes, played.stage.round) == ({}, None)
    played.take(ready(node=ME, round=0))
    for number in range(4):
        played.play(number)
    played.take(ready(node=ME, round=2))
    assert max(played.stage.scenes) == 2, "the engine went back to the state before round 2"
    arrived = question(9, 9, RIGHT)
    played.take(events.PeerGroupsArrived(origin=OTTER, name="Otter", round=1, model="m", groups=(arrived,)))
    played.take(ready(node=ME, round=0, base="another"))
    assert played.stage.scene is None


def test_a_round_that_is_played_again_is_shown_as_it_is_now() -> None:
    played = Played()
    played.play(0)
    played.draw(1)
    played.judge(1)
    played.later(DWELL)
    played.draw(1)
    other = events.ShownGroup(key="me/1/7", specialty="Logic", question="again?", completions=(RIGHT, WRONG))
    blank = replace(other, completions=())
    played.take(events.QuestionsDrawn(round=1, epoch=0, groups=(blank,), group_size=2))
    played.take(events.GroupsJudged(round=1, groups=(other,)))
    assert played.stage.scene is not None
    assert played.stage.scene.card.question == "again?"


def test_what_was_learned_and_from_whom_is_one_sentence() -> None:
    played = Played()
    peers = (events.PeerInfo(id=OTTER, name="Brisk\nOtter"), events.PeerInfo(id=WREN, name="Clever Wren"))
    played.take(*(events.PeerChanged(peer=peer) for peer in peers))
    shared = events.ShownGroup(key=f"{beginning_of(WREN)}/logic/0/1", specialty="Logic", question="?", completions=(RIGHT,))
    played.take(events.PeerGroupsArrived(origin=WREN, name="Clever Wren", round=1, model="m", groups=(shared,)))
    played.draw(0)
    played.judge(0)
    assert played.words == "Your model learns from this round next."
    played.take(events.PhaseChanged(phase="paused", round=0))
    assert played.words == "Your model learns from this round when training resumes."
    played.take(events.PhaseChanged(phase="contributing", round=0))
    keys = [f"{beginning_of(OTTER)}/logic/0/{number}" for number in range(2)]
    played.learn(0, "me/0/0", "me/0/1", *keys, shared.key, "0123456789ab/logic/0/1")
    assert (
        played.words == "Your model learned from 2 questions of its own and 4 examples from Brisk Otter, Clever Wren and a peer."
    )
    assert played.stage.scene is not None
    teachers = played.stage.scene.teachers
    assert [(teacher.origin, teacher.datasets) for teacher in teachers[:2]] == [(OTTER, ("logic",) * 2), (WREN, ("logic",))]
    assert [teacher.example is not None for teacher in teachers] == [False, True, False]
    played.end(0)
    assert played.stage.scene.taught == 4, "it is remembered"


def test_an_example_of_a_peer_may_come_along_with_the_step() -> None:
    played = Played()
    played.draw(0)
    played.judge(0)
    group = events.ShownGroup(key=f"{beginning_of(OTTER)}/logic/0/1", specialty="Logic", question="Why?", completions=(RIGHT,))
    played.learn(0, "me/0/0", f"{beginning_of(OTTER)}/logic/0/0", group.key, taught=(group,))
    assert played.stage.scene is not None
    (teacher,) = played.stage.scene.teachers
    assert teacher.example is not None
    assert (teacher.example.question, teacher.example.completions) == ("Why?", (RIGHT,))
    assert not teacher.example.mine


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        ("no_lesson", "Nothing to learn in this round: no answer stood out."),
        ("not_finite", "Nothing was learned in this round: its step was left out."),
    ],
)
def test_a_round_without_a_lesson_says_so(left_out: events.LeftOut, words: str) -> None:
    played = Played()
    played.draw(0)
    played.judge(0)
    played.learn(0, "me/0/1", left_out=left_out)
    assert played.words == words


def test_own_groups_are_told_by_their_key_when_their_card_is_gone() -> None:
    played = Played()
    played.draw(0)
    played.judge(0)
    played.learn(0, f"{beginning_of(ME)}/logic/0/5")
    assert played.words == "Your model learned from 1 question of its own."


def test_a_round_whose_engine_ended_was_not_finished() -> None:
    played = Played()
    played.draw(0)
    played.judge(0)
    played.take(events.EngineGone(code=9, restarts=1))
    assert played.words == "This round was not finished."
    played.take(events.SettingsChanged(settings=Settings()))
    assert played.stage.scene is not None


def test_what_is_no_peer_id_begins_no_key() -> None:
    assert beginning_of("not a peer id") == ""
    assert len(beginning_of(OTTER)) == 12
