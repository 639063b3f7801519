"""Test that a node answers its exam once an epoch, in a small share of its time, and never during a pause."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from network.loopback import Ear, fresh_identity, options
from sapo.test_round import CHARTER, RULES, node
from waggle.core.errors import Stopped
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.services.leaderboard_exam import LeaderboardExam
from waggle.network.messages import answer_sheet
from waggle.network.messages.events import LeaderboardChanged
from waggle.network.open_node import open_node
from waggle.rl.batch import nothing
from waggle.sapo.prompt_form import PLAIN
from waggle.tasks.questions import EPOCH_SECONDS, epoch_at
from waggle.tasks.sandbox.verifier import Verifier

NOW = 2_000_000_000.0


async def test_answers_are_published_once_an_epoch_and_the_time_they_took_is_earned_first(
    tmp_path: Path, verifier: Verifier
) -> None:
    moment, ear = [NOW], Ear()
    swarm = open_node(options(leaderboard=True), CHARTER, fresh_identity(tmp_path, "me"), verifier, ear, clock=lambda: moment[0])
    await swarm.start()
    try:
        me = node(verifier)
        sit = LeaderboardExam(me, RULES, swarm.leaderboard, PauseGate(nothing), clock=lambda: moment[0])
        await asyncio.to_thread(sit, 12, 34)
        (entrant,) = (await ear.hear(LeaderboardChanged)).comparison.entrants
        assert (entrant.round, entrant.together, entrant.model, entrant.total) == (12, True, "fake", 16)

        await asyncio.to_thread(sit, 13, 35)  # the same epoch
        moment[0] += EPOCH_SECONDS
        await asyncio.to_thread(sit, 14, 36)  # another one, but answering took a while just now
        assert len(ear.all(LeaderboardChanged)) == 1
        sit._rests_until = 0.0
        await asyncio.to_thread(sit, 15, 0)
        later = await ear.hear(LeaderboardChanged, lambda news: news.comparison.sheets == 2)
        assert (later.comparison.entrants[0].round, later.comparison.entrants[0].together) == (15, False)
    finally:
        await swarm.close()


@pytest.mark.parametrize("readable", [9, 0])
async def test_a_question_longer_than_the_model_can_read_has_no_answer_and_its_place_on_the_sheet(
    tmp_path: Path, verifier: Verifier, readable: int
) -> None:
    me, ear = fresh_identity(tmp_path, "me"), Ear()
    swarm = open_node(options(leaderboard=True), CHARTER, me, verifier, ear, clock=lambda: NOW)
    await swarm.start()
    try:
        exam = swarm.leaderboard.exams.of(epoch_at(NOW))
        lengths = sorted(len(PLAIN.text(question.text)) for question in exam.questions)
        context = lengths[readable] - 1 + RULES.max_new
        sit = LeaderboardExam(
            node(verifier), replace(RULES, context=context), swarm.leaderboard, PauseGate(nothing), clock=lambda: NOW
        )
        await asyncio.to_thread(sit, 12, 34)
        await ear.hear(LeaderboardChanged)
        published = answer_sheet.read(swarm.leaderboard.own[0], CHARTER, origin=me.peer_id)
        answer_sheet.require_exam(published, exam)
        read = [len(PLAIN.text(question.text)) < lengths[readable] for question in exam.questions]
        assert [bool(answer.text) for answer in published.answers] == read
    finally:
        await swarm.close()


async def test_a_pause_in_the_midst_of_it_is_not_earned(tmp_path: Path, verifier: Verifier) -> None:
    loop, moment, ear = asyncio.get_running_loop(), [0.0], Ear()
    swarm = open_node(options(leaderboard=True), CHARTER, fresh_identity(tmp_path, "me"), verifier, ear, clock=lambda: NOW)

    def eight_hours_go_by() -> None:
        moment[0] += 8 * 3600.0
        loop.call_soon_threadsafe(gate.open)

    gate = PauseGate(eight_hours_go_by, clock=lambda: moment[0])
    gate()
    gate.close()
    await swarm.start()
    try:
        sit = LeaderboardExam(node(verifier), RULES, swarm.leaderboard, gate, clock=lambda: NOW)
        await asyncio.to_thread(sit, 12, 34)
        await ear.hear(LeaderboardChanged)
        assert moment[0] > 0.0
        assert sit._rests_until <= time.monotonic()
    finally:
        await swarm.close()


async def test_who_does_not_take_part_is_asked_nothing_and_a_stop_publishes_nothing(tmp_path: Path, verifier: Verifier) -> None:
    ear = Ear()
    swarm = open_node(options(), CHARTER, fresh_identity(tmp_path, "me"), verifier, ear)
    await swarm.start()

    gate = PauseGate(nothing)
    gate.stop()
    try:
        sit = LeaderboardExam(node(verifier), RULES, swarm.leaderboard, gate)
        await asyncio.to_thread(sit, 1, 0)  # it would have raised, had it asked the model
        swarm.leaderboard.enable(on=True)
        with pytest.raises(Stopped):
            await asyncio.to_thread(sit, 1, 0)
        assert ear.all(LeaderboardChanged) == []
    finally:
        await swarm.close()
