"""What Home says about learning: measured figures only, and the difference between a rise and chance."""

import pytest
from msgspec.structs import replace

from gui.recorded import ready
from gui.state.test_measured_curves import MEASURED, SMOLLM2
from waggle.gui.state.story.learning_story import Skill, score_text, sharing_text, skills
from waggle.gui.state.story.next_step import next_step
from waggle.gui.state.story.tries import Try, card_tries, kind_of, merged_tries, most_telling, says_more
from waggle.protocol.events import UNTAGGED, Aha, HeldOutScore, PeerInfo, RoundSummary, ShownCompletion
from waggle.protocol.state import Card, State

PEER = PeerInfo(id="p", name="Brisk Otter", received=9, groups_pulled=1)
TAUGHT = Aha(round=40, at=1.0, specialty="Fractions", origin="p", name="Brisk Otter")
ALONE = Aha(round=30, at=1.0, specialty="Chain sum")
LEARNED = RoundSummary(round=1, at=1.0, reward=0.4, solved=0.4, seconds=1.0, external=4)


def score(number: int, right: int, total: int = 100, *, early: bool = False) -> HeldOutScore:
    return HeldOutScore(round=number, at=1.0, right=right, total=total, early=early)


def running(**changes: object) -> State:
    return State(**{"phase": "contributing", "ready": ready(), "reach": "connected", **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "says", "marked"),
    [
        ((), "Your model is taking its first test.", ""),
        ((score(0, 1),), "Your model solves 1 of 100 new questions.", "1 of 100"),
        ((score(0, 1), score(50, 24)), "Your model solves 24 of 100 new questions. It began at 1.", "24 of 100"),
        ((score(0, 4, 16, early=True),), "Your model solves 4 of 16 questions of a short test.", "4 of 16"),
        (
            (score(0, 4, 16, early=True), score(9, 6, 16, early=True)),
            "Your model solves 6 of 16 questions of a short test. It began at 4.",
            "6 of 16",
        ),
        (
            (score(0, 4, 16, early=True), score(9, 6, 16, early=True), score(25, 40), score(50, 45)),
            "Your model solves 45 of 100 new questions. It began at about 25.",
            "45 of 100",
        ),
        (
            (score(0, 9), score(9, 3, 10), score(19, 5, 10)),
            "Your model solves 50 of 100 new questions. It began at 30.",
            "50 of 100",
        ),
        ((score(0, 0, 0),), "Your model is taking its first test.", ""),
    ],
)
def test_the_score_is_one_sentence_with_its_figure_marked(scores: tuple[HeldOutScore, ...], says: str, marked: str) -> None:
    words = score_text(running(held_out=scores))
    assert words.says.replace("\u00a0", " ") == says
    assert words.says[words.start : words.start + words.length] == marked


def test_below_the_score_stands_how_many_answers_were_right_after_how_many_rounds() -> None:
    words = score_text(running(held_out=(score(0, 3, 270), score(200, 79, 270))))
    assert words.detail == "79 of 270 right in the test after 200 rounds. It never trains on these questions."


@pytest.mark.parametrize(
    ("every", "soon"),
    [
        (25, " (next after 225)"),
        (40, " (next after 240)"),
        (0, ""),  # tests come by time
    ],
)
def test_the_next_test_is_named_where_it_comes_by_rounds(every: int, soon: str) -> None:
    scores = (score(0, 3, 270), score(200, 79, 270))
    state = running(held_out=scores, ready=ready(test_every=every), round=217)
    assert score_text(state, brief=True).detail == f"It began at 1. 79 of 270 right in the test after 200 rounds{soon}."
    assert "next after" not in score_text(replace(state, phase="paused")).detail, "nothing trains"


def test_few_questions_say_how_little_they_mean() -> None:
    assert "may really be 10 to 49 of 100" in score_text(running(held_out=(score(0, 4, 16, early=True),))).detail


@pytest.mark.parametrize(
    ("changes", "says", "page"),
    [
        ({"reach": "solo"}, "You train alone", "race"),
        ({"reach": "alone"}, "Too early to say", "invite"),
        ({"peers": {"p": PEER}}, "Too early to say", ""),
        ({"peers": {"p": PEER}, "rounds": (LEARNED,)}, "Not measured yet", "race"),
        ({"ahas": (ALONE, TAUGHT)}, "Not measured yet", "race"),
    ],
)
def test_without_measured_curves_nothing_is_claimed_but_what_happened(changes: dict[str, object], says: str, page: str) -> None:
    sharing = sharing_text(running(**changes))
    assert (sharing.says, sharing.offers[1]) == (says, page)


@pytest.mark.parametrize(("right", "says"), [(80, "43 of 100 more"), (38, "Too early to say"), (2, "35 of 100 fewer")])
def test_beside_training_alone_only_what_is_no_chance_counts(right: int, says: str) -> None:
    assert SMOLLM2.alone[3] == 0.367
    state = running(ready=MEASURED, rounds=(LEARNED,), held_out=(score(0, 5), score(75, right)))
    sharing = sharing_text(state)
    assert sharing.says.startswith(says)
    assert sharing_text(replace(state, rounds=())).says == "Too early to say", "nothing was learned from peers"
    assert "than alone" not in sharing_text(replace(state, held_out=(score(0, 5), score(7500, right)))).says, (
        "longer than measured"
    )


def test_skills_are_filled_by_the_newest_test_that_counted_them_and_name_their_teacher() -> None:
    counted = replace(score(25, 3), by_specialty={"Fractions": (3, 10), "Chain sum": (0, 10)})
    known = skills(running(held_out=(score(0, 1), counted, score(50, 5)), ahas=(ALONE, TAUGHT)))
    assert known == (
        Skill("Fractions", 3, 10, "Brisk Otter", 40), Skill("Base conversion", 0, 0), Skill("Chain sum", 0, 10, "", 30),
    )  # fmt: skip
    assert skills(State()) == ()
    assert skills(State(held_out=(counted,))) == (Skill("Fractions", 3, 10), Skill("Chain sum", 0, 10)), "without an engine"


def answer(text: str, reward: float = 0.0, reason: str = "", **changes: object) -> ShownCompletion:
    return ShownCompletion(text=text, judged=True, reward=reward, reason=reason, **changes)  # type: ignore[arg-type]


RIGHT = answer("<answer>9</answer>", 1.0, "right", start=8, length=1)


def test_equal_tries_are_one_and_the_best_stands_first() -> None:
    answers = (answer("10"), answer("9", reason=UNTAGGED), answer("10"), RIGHT, answer("9</answer>", reason=UNTAGGED))
    assert merged_tries(answers) == [Try("9", "right", 1), Try("9", "untagged", 2), Try("10", "wrong", 2)]
    assert kind_of(answer("9", reason="cut off")) == "cut"
    assert kind_of(ShownCompletion(text="9", ended=False)) == "writing"
    assert merged_tries((answer(""), RIGHT))[1].text == "(nothing)"


def test_a_card_tells_apart_what_learning_did_and_merges_nothing_that_is_still_written() -> None:
    judged = Card(
        key="k", round=1, at=0.0, specialty="s", question="q", completions=(RIGHT, RIGHT, answer("10")), effects=(1, 0, -1)
    )
    assert card_tries(judged) == [Try("9", "right", 1, effect=1), Try("9", "right", 1), Try("10", "wrong", 1, effect=-1)]
    writing = Card(
        key="k", round=1, at=0.0, specialty="s", question="q", completions=(ShownCompletion(text="", ended=False),) * 2
    )
    assert card_tries(writing) == [Try("", "writing", 1)] * 2


def test_only_words_around_the_judged_answer_are_more_to_read() -> None:
    assert not says_more(RIGHT)
    assert not says_more(answer("9")), "all of it is shown"
    assert says_more(answer("So: <answer>9</answer>", 1.0, "right", start=12, length=1))


def test_the_question_that_shows_most_comes_first() -> None:
    def card(key: str, *answers: ShownCompletion, number: int = 1, origin: str = "") -> Card:
        return Card(key=key, round=number, at=1.0, specialty="s", question="q", completions=answers, origin=origin)

    wrong, plain = card("w", answer("1"), answer("2")), card("u", answer("9", reason=UNTAGGED), answer("9", reason=UNTAGGED))
    mixed, old = card("m", answer("9", reason=UNTAGGED), answer("2")), card("o", RIGHT, number=0)
    theirs, going = card("t", RIGHT, origin="p"), card("g", ShownCompletion(text="", ended=False), number=2)
    assert [each.key for each in most_telling((going, wrong, plain, mixed, old, theirs))] == ["m", "u", "w"]
    assert most_telling((going,)) == []


def with_fractions(number: int, fractions: tuple[int, int]) -> HeldOutScore:
    return replace(score(number, 24), by_specialty={"Fractions": fractions, "Chain sum": (1, 10)})


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"phase": "preparing"}, ""),
        ({}, "Why it begins so low"),
        ({"held_out": (score(50, 24),), "ahas": (TAUGHT,)}, "Its first right answer in Fractions"),
        (
            {"held_out": (with_fractions(50, (3, 10)),), "ahas": (TAUGHT,), "peers": {"p": PEER}},
            "Try your model",
        ),  # 3 of 10 say more
        ({"held_out": (score(50, 24),), "reach": "alone"}, "Invite a friend"),
        ({"held_out": (score(50, 24),), "peers": {"p": PEER}}, "Try your model"),
    ],
)
def test_the_next_step_follows_the_state(changes: dict[str, object], title: str) -> None:
    step = next_step(running(**changes), now=2.0)
    assert (step.title if step else "") == title


def test_a_first_right_answer_promises_no_more_and_what_it_can_do_is_named() -> None:
    taught = next_step(running(held_out=(score(50, 24),), ahas=(TAUGHT,)), now=2.0)
    assert taught is not None
    assert taught.says == "Brisk Otter was right first. Expect it to be wrong more often than right."
    for fractions, says in (((3, 10), " It is best at Fractions (30% right)."), ((1, 10), "")):
        tried = next_step(running(held_out=(with_fractions(50, fractions),), peers={"p": PEER}), now=2.0)
        assert tried is not None
        assert tried.says == f"You answer a puzzle, then your model does.{says}"
