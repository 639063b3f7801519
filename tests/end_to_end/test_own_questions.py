"""A user creates a swarm from a file of questions; another joins by link, downloads the questions, and both share."""

from end_to_end.programs import Engine, running
from end_to_end.test_invite import SETTINGS, go_there, index_of
from tasks.question_file.questions import sums
from waggle.protocol import commands, events
from waggle.protocol.events_questions import QuestionsPreviewed
from waggle.protocol.events_swarms import InviteRead, InviteWritten, StartedAgain, SwarmCreated


def test_two_engines_train_on_the_questions_of_a_file(tmp_path):
    file = tmp_path / "sums.jsonl"
    file.write_bytes(sums(60))
    with running(Engine(tmp_path / "a", *SETTINGS)) as first, running(Engine(tmp_path / "b", *SETTINGS)) as second:
        first.wait(events.Ready, 120)
        first.command(commands.PreviewQuestions, 120, path=str(file))
        previewed = first.wait(QuestionsPreviewed)
        assert (previewed.questions, previewed.grader, previewed.refusal) == (60, "number", "")
        assert previewed.trial is not None, previewed.trial_refusal
        assert previewed.trial.questions == 5
        assert previewed.trial.completion.judged

        own = commands.NewQuestionFile(path=str(file), title="Sums")
        first.command(commands.CreateSwarm, 60, name="Our sums", specialties=(), files=(own,))
        swarm = first.wait(SwarmCreated).swarm
        go_there(first, swarm.charter)
        first.command(commands.WriteInvite)
        link = first.wait(InviteWritten).link

        second.wait(events.Ready, 120)
        second.command(commands.ReadInvite, link=link)
        (looked,) = second.wait(InviteRead).swarm.specialties
        assert (looked.title, looked.questions, len(looked.samples)) == ("Sums", 60, 3)
        go_there(second, swarm.charter)
        parts = [event.part for event in second.all_events if isinstance(event, events.Preparing)]
        assert "Downloading the swarm's questions: 0 of 1 parts" in parts

        for engine in (first, second):
            start = index_of(engine, StartedAgain)
            engine.wait(events.PeerGroupsArrived, 120, start=start)
        assert second.end() == first.end() == 0
