"""The verifier, with its real child."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import reasoning_gym

import waggle
from waggle.core.errors import CharterError, VerifierError, VerifierGone
from waggle.protocol import events
from waggle.tasks.charter import Specialty
from waggle.tasks.questions import QuestionKey, split_of
from waggle.tasks.rollout_group import UNTAGGED, Completion
from waggle.tasks.sandbox import child_process, messages
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import UNJUDGED, Verifier, datasets_of
from waggle.tasks.shipped_swarms import first_swarm

SCORERS = """
import sys
out, sys.stdout = sys.stdout, sys.stderr
import reasoning_gym
from waggle.tasks.sandbox import mended_datasets, reasoning_gym_patches
from waggle.tasks import audit_results

def score(dataset, text, entry):
    try:
        return dataset.score_answer(text, entry)
    except Exception as error:
        return type(error).__name__

reasoning_gym_patches.replace_scorers()
mended_datasets.mend_datasets()
reasoning_gym_patches.cache_data_files()
judged, differ = 0, []
listed = [one.dataset for one in audit_results.shipped_audit().findings.values() if one.listed]
for name in set(listed) & set(reasoning_gym.factory.DATASETS):
    made = [reasoning_gym.create_dataset(name, seed=seed, size=1) for seed in range(4)]
    entries = [dataset[0] for dataset in made]
    truths = [str(entry["metadata"].get("example_answer") or entry["answer"]) for entry in entries]
    for dataset, entry in zip(made, entries):
        for text in (*truths, *(truth[:-1] for truth in truths), "nonsense", "1/2", "5"):
            judged += 1
            if score(dataset, text, entry) != score(made[0], text, entry):
                differ.append(name)
print(judged, *differ, sep="\\n", file=out)
"""
DATASETS = [specialty.dataset for specialty in first_swarm().specialties]


def completion_of(text: str, *, ended: bool = True) -> Completion:
    return Completion(text=text, ended=ended)


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_true_answer_in_its_tag_earns_everything_in_every_specialty(verifier, dataset):
    keys = [QuestionKey(dataset, seed) for seed in range(50)]
    questions = verifier.questions(keys)
    items = [
        (question, completion_of(f"so <answer>{answer}</answer>"))
        for question, answer in zip(questions, verifier.answers(keys), strict=True)
    ]
    verdicts = verifier.judge(items)
    assert all(verdict.reward == 1.0 and verdict.reason == "right" for verdict in verdicts)
    judged = items[0][1].text[verdicts[0].start : verdicts[0].start + verdicts[0].length]
    assert judged == verifier.answers(keys)[0]


def test_text_without_an_answer_tag_earns_nothing(verifier):
    (question,), (answer,) = verifier.questions([QuestionKey("bf", 1)]), verifier.answers([QuestionKey("bf", 1)])
    verdicts = verifier.judge(
        [
            (question, completion_of(answer)),
            (question, completion_of(f" {answer}</answer>")),
            (question, completion_of(f"{answer} it is")),
            (question, completion_of("")),
            (question, completion_of(answer, ended=False)),
            (question, completion_of("<answer></answer>")),
        ]
    )
    assert [(verdict.reward, verdict.reason) for verdict in verdicts] == [
        (0.0, UNTAGGED),
        (0.0, UNTAGGED),
        (0.0, "no answer tag"),
        (0.0, "no answer tag"),
        (0.0, "cut off"),
        (0.0, "empty answer"),
    ]
    assert events.UNTAGGED == UNTAGGED


def test_code_in_an_answer_is_not_run(verifier, tmp_path):
    trap = tmp_path / "ran"
    (question,) = verifier.questions([QuestionKey("binary_matrix", 3)])
    code = f"<answer>__import__('pathlib').Path({str(trap)!r}).touch()</answer>"
    assert verifier.judge([(question, completion_of(code))])[0].reward == 0.0
    assert not trap.exists()


def test_a_matrix_written_as_a_list_earns_what_upstream_pays(verifier):
    (question,), (answer,) = (
        verifier.questions([QuestionKey("binary_matrix", 3)]),
        verifier.answers([QuestionKey("binary_matrix", 3)]),
    )
    rows = [[int(cell) for cell in row.split()] for row in answer.splitlines()]
    assert verifier.judge([(question, completion_of(f"<answer>{rows}</answer>"))])[0].reward == pytest.approx(0.1)


def test_questions_are_the_same_in_another_process_and_the_digest_says_so(verifier):
    other = Verifier(first_swarm())
    try:
        keys = [QuestionKey(dataset, 2**62 + i) for dataset in DATASETS for i in range(20)]
        assert other.questions(keys) == verifier.questions(keys)
        assert other.digest() == first_swarm().questions_digest
        other.check_charter()
    finally:
        other.close()


def test_no_swarm_is_joined_whose_charter_does_not_name_the_questions_or_names_others():
    only = msgspec.structs.replace(first_swarm(), specialties=first_swarm().specialties[:1])
    own = Verifier(msgspec.structs.replace(only, questions_digest=""))
    try:
        with pytest.raises(CharterError, match="does not say which questions") as refused:
            own.check_charter()
        assert own.digest() in refused.value.advice
    finally:
        own.close()
    other = Verifier(only)  # which says what all nine make
    try:
        with pytest.raises(CharterError, match="makes other questions than First light agreed on"):
            other.check_charter()
    finally:
        other.close()


def test_held_out_questions_are_reserved_ones_and_all_different(verifier):
    questions = verifier.held_out("base_conversion", "test", 30)
    assert len({question.text for question in questions}) == 30
    assert {split_of(question.dataset, question.text) for question in questions} == {"test"}


TWO_LEVELS = msgspec.structs.replace(
    first_swarm(),
    specialties=(
        Specialty(dataset="chain_sum", title="Sums", levels=("hard", "easy")),
        Specialty(dataset="bf", title="Programs", levels=("easy",)),
    ),
)


@pytest.fixture(scope="module")
def of_two_levels() -> Iterator[Verifier]:
    own = Verifier(TWO_LEVELS)
    yield own
    own.close()


def test_each_level_makes_questions_of_its_own_which_its_own_answers_are_right_for(of_two_levels):
    keys = [QuestionKey("chain_sum", seed, level) for level in (0, 1) for seed in range(10)]
    questions, answers = of_two_levels.questions(keys), of_two_levels.answers(keys)
    assert [(question.seed, question.level) for question in questions] == [(key.seed, key.level) for key in keys]
    hard, easy = (sum(len(question.text) for question in part) for part in (questions[:10], questions[10:]))
    assert hard > easy
    answered = [completion_of(f"<answer>{answer}</answer>") for answer in answers]
    assert {verdict.reward for verdict in of_two_levels.judge(zip(questions, answered, strict=True))} == {1.0}
    swapped = of_two_levels.judge(zip(questions, answered[10:] + answered[:10], strict=True))
    assert sum(verdict.reward < 1.0 for verdict in swapped) > 10, "a few sums are the same by chance"


@pytest.mark.parametrize("key", [QuestionKey("chain_sum", 1, 2), QuestionKey("bf", 1, 1), QuestionKey("gcd", 1)])
def test_a_level_or_dataset_that_the_charter_lacks_is_no_question(of_two_levels, key):
    with pytest.raises(CharterError, match="cannot be made"):
        of_two_levels.questions([key])
    with pytest.raises(CharterError, match="cannot be made"):
        of_two_levels.answers([key])
    assert of_two_levels.questions([QuestionKey("bf", 1)])[0].text, "the child goes on"


@pytest.mark.parametrize("count", [1, 6, 7])
def test_levels_take_turns_among_held_out_questions(of_two_levels, count):
    questions = of_two_levels.held_out("chain_sum", "test", count)
    assert [question.level for question in questions] == [place % 2 for place in range(count)]
    assert {split_of(question.dataset, question.text) for question in questions} == {"test"}
    assert len({question.text for question in questions}) == count
    assert questions == of_two_levels.held_out("chain_sum", "test", 9)[:count], "more questions begin with the same"


def test_every_level_counts_in_the_digest_and_so_does_their_order():
    def digest(*levels: dict) -> str:
        own = Verifier(first_swarm(), datasets=(DatasetLevels("chain_sum", levels),))
        try:
            return own.digest()
        finally:
            own.close()

    easy, hard, harder = {"max_terms": 2}, {"max_terms": 6}, {"max_terms": 8}
    assert len({digest(easy, hard), digest(hard, easy), digest(easy, harder), digest(easy)}) == 4


def test_where_few_questions_can_be_made_the_reserved_ones_are_not_looked_for_long(monkeypatch):
    own = Verifier(first_swarm(), datasets=(DatasetLevels("jugs", ({"difficulty": 5},)),))  # makes 198 questions
    keys_generated, make = [], own.questions
    monkeypatch.setattr(own, "questions", lambda keys: keys_generated.extend(keys) or make(keys))
    try:
        questions = own.held_out("jugs", "test", 30)
        assert len(questions) == len({question.text for question in questions}) == 12
        assert len(keys_generated) < 4000
    finally:
        own.close()


def test_a_seed_of_which_a_dataset_makes_no_question_is_passed_over():
    hard = {"min_board_size": 5, "max_board_size": 15, "max_stones": 13}
    verifier = Verifier(first_swarm(), datasets=(DatasetLevels("tsumego", (hard,)),))
    try:
        questions = verifier.questions([QuestionKey("tsumego", seed) for seed in range(80, 144)])
        nothing = [question for question in questions if not question.text]
        assert [question.seed for question in nothing] == [86, 113, 139]
        assert {split_of(question.dataset, question.text) for question in nothing} == {"none"}
        assert [bool(question.text) for question in verifier.held_out("tsumego", "dev", 4)] == [True] * 4
        with pytest.raises(CharterError, match="cannot be made"):
            verifier.questions([QuestionKey("chain_sum", 1)])
    finally:
        verifier.close()


def test_the_game_of_life_is_upstreams_though_its_library_finds_nothing_to_draw_with():
    game = Specialty(title="Game of life", dataset="game_of_life")
    verifier = Verifier(msgspec.structs.replace(first_swarm(), specialties=(game,)))
    try:
        if sys.platform == "linux":
            mapped = Path(f"/proc/{verifier.pid}/maps").read_text()
            assert ("numpy" in mapped, "matplotlib" in mapped) == (True, False)
        for question in verifier.questions([QuestionKey("game_of_life", seed) for seed in range(5)]):
            dataset = reasoning_gym.create_dataset("game_of_life", seed=question.seed, size=1)
            assert question.text == dataset[0]["question"]
            for answer in (dataset[0]["answer"], dataset[0]["answer"].replace("1", "0"), "[[0, 1]]"):
                (verdict,) = verifier.judge([(question, completion_of(f"<answer>{answer}</answer>"))])
                theirs = dataset.score_answer(answer, dataset[0])
                assert verdict.reward == pytest.approx(theirs if theirs == 1.0 else theirs / 10)  # see mended_datasets.py
    finally:
        verifier.close()


def test_a_verifier_starts_where_a_dataset_makes_no_question_of_its_first_seeds():
    small = DatasetLevels("tsumego", ({"min_board_size": 5, "max_board_size": 5, "max_stones": 15},))
    verifier = Verifier(first_swarm(), datasets=(small,))
    try:
        questions = verifier.questions([QuestionKey("tsumego", seed) for seed in range(20)])
        assert [question.seed for question in questions if question.text] == [0, 5, 9, 11, 12, 15]  # of those to arm with: 22
    finally:
        verifier.close()


def test_a_killed_child_is_started_again_and_judging_goes_on():
    reasons: list[str] = []
    own = Verifier(first_swarm(), restarted=reasons.append)
    try:
        first = own.pid
        os.kill(first, signal.SIGKILL)
        (question,), (answer,) = own.questions([QuestionKey("bf", 9)]), own.answers([QuestionKey("bf", 9)])
        assert own.judge([(question, completion_of(f"<answer>{answer}</answer>"))])[0].reward == 1.0
        assert own.pid != first
        assert len(reasons) == 1
    finally:
        own.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only there a limit can be put on another process")
def test_a_child_that_is_out_of_memory_is_started_again_and_no_question_is_to_blame():
    import resource

    verifier = Verifier(first_swarm())
    try:
        keys = [QuestionKey("arc_1d", seed) for seed in range(2000)]
        before = verifier.questions(keys[:1])
        full = psutil.Process(pid := verifier.pid).memory_info().vms
        resource.prlimit(pid, resource.RLIMIT_AS, (full, full))
        assert [each.text != "" for each in verifier.questions(keys)] == [True] * 2000
        assert verifier.pid != pid, "it ran out of memory"
        assert verifier.questions(keys[:1]) == before
    finally:
        verifier.close()


def test_a_child_outlives_the_ctrl_c_of_the_terminal_that_its_engine_runs_in():
    own = Verifier(first_swarm())
    try:
        first = own.pid
        os.kill(first, signal.SIGINT)
        assert len(own.answers([QuestionKey("bf", 9)])) == 1
        assert own.pid == first
    finally:
        own.close()


def test_a_child_that_answers_too_little_is_started_again_and_nothing_stays_unjudged(monkeypatch):
    own = Verifier(first_swarm())
    try:
        (question,), (answer,), first = own.questions([QuestionKey("bf", 9)]), own.answers([QuestionKey("bf", 9)]), own.pid
        monkeypatch.setattr(own._child, "ask", lambda *_: messages.Verdicts([]))
        assert [verdict.reward for verdict in own.judge([(question, completion_of(f"<answer>{answer}</answer>"))])] == [1.0]
        assert own.pid != first
    finally:
        own.close()


def test_what_lies_in_the_folder_that_waggle_was_started_in_is_never_imported(tmp_path, monkeypatch):
    for module in ("calendar", "decimal", "waggle"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('a program of others ran')")
    monkeypatch.chdir(tmp_path)
    own = Verifier(first_swarm())
    try:
        assert len(own.answers([QuestionKey("bf", 9)])) == 1
    finally:
        own.close()


def test_a_child_that_was_long_dead_when_it_was_asked_is_started_again_too():
    reasons: list[str] = []
    own = Verifier(first_swarm(), restarted=reasons.append)
    try:
        os.kill(own.pid, signal.SIGKILL)
        os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
        assert len(own.answers([QuestionKey("bf", 9)])) == 1
        assert reasons == ["it ended with signal 9"]
    finally:
        own.close()


def test_much_is_judged_a_little_at_a_time_and_none_of_it_is_lost(verifier, monkeypatch):
    sizes: list[int] = []
    ask = verifier._child.ask

    def counted(request, *limits):
        sizes.append(len(request.items))
        return ask(request, *limits)

    (question,), (answer,) = verifier.questions([QuestionKey("bf", 9)]), verifier.answers([QuestionKey("bf", 9)])
    texts = [answer if place % 3 else "nothing" for place in range(150)]
    monkeypatch.setattr(verifier._child, "ask", counted)
    verdicts = verifier.judge([(question, completion_of(f"<answer>{text}</answer>")) for text in texts])
    assert [verdict.reward == 1.0 for verdict in verdicts] == [text == answer for text in texts]
    assert sizes == [64, 64, 22]


def test_a_completion_that_cannot_be_judged_costs_only_itself(verifier):
    (question,), (answer,) = verifier.questions([QuestionKey("bf", 9)]), verifier.answers([QuestionKey("bf", 9)])
    foreign = msgspec.structs.replace(question, dataset="no_such_dataset")
    right = completion_of(f"<answer>{answer}</answer>")
    verdicts = verifier.judge([(question, right), (foreign, right), (question, right)])
    assert [verdict.reward for verdict in verdicts] == [1.0, 0.0, 1.0]
    assert verdicts[1] == UNJUDGED


def test_a_charter_with_an_unknown_specialty_is_refused_in_words():
    charter = msgspec.structs.replace(first_swarm(), specialties=(Specialty(dataset="no_such", title="None"),))
    with pytest.raises(CharterError, match="no no_such at the level standard"):
        Verifier(charter)


def test_a_specialty_that_sets_the_precision_of_decimals_does_not_set_it_for_others():
    first = first_swarm()
    chain = DatasetLevels("decimal_chain_sum", ({"min_terms": 4, "max_terms": 4, "max_digits": 6},))
    alone = Verifier(first, datasets=(chain,))
    beside = Verifier(first, datasets=(*datasets_of(first), chain))
    try:
        keys = [QuestionKey("decimal_chain_sum", seed) for seed in range(20)]
        beside.questions([QuestionKey("decimal_arithmetic", 1)])
        assert beside.answers(keys) == alone.answers(keys)
    finally:
        alone.close()
        beside.close()


def no_process(*_, **__):
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


@pytest.mark.parametrize(
    ("module", "name", "broken", "says"),
    [(verifying, "START_SECONDS", 0.001, "couldn't start"), (child_process.subprocess, "Popen", no_process, "cannot be started")],
)
def test_after_a_restart_that_failed_each_reply_belongs_to_its_request_and_nobody_is_blamed(
    module, name, broken, says, monkeypatch
):
    own = Verifier(first_swarm())
    try:
        keys = [QuestionKey(dataset, 5) for dataset in DATASETS]
        truths = [own.answers([key]) for key in keys]
        question = own.questions(keys[:1])
        with monkeypatch.context() as trouble:
            trouble.setattr(module, name, broken)
            os.kill(own.pid, signal.SIGKILL)
            for ask in (own.answers, own.questions):
                with pytest.raises(VerifierGone, match=says):
                    ask(keys)
            for judge in (own.judge, own.judge_strangers):
                with pytest.raises(VerifierGone, match=says):
                    judge([(question[0], completion_of("<answer>1</answer>"))])
            assert not Path(f"/proc/{own.pid}").exists(), "a child that was too late is ended"
        assert [own.answers([key]) for key in keys] == truths
    finally:
        own.close()


SLOW = """
import time
from waggle.tasks.sandbox import verifier_process
ready = verifier_process.ready
def slowly(*given):
    until = time.monotonic() + {seconds}
    while time.monotonic() < until:
        time.sleep(0.01) or sum(range(60_000))
    return ready(*given)
verifier_process.ready = slowly
verifier_process.main()
"""


@pytest.fixture
def slow_start(monkeypatch):
    """Make the child's start take this long, in which it gets on little by little, or not at all."""

    popen = subprocess.Popen

    def start_slowly(code):
        monkeypatch.setattr(
            child_process.subprocess, "Popen", lambda _command, **named: popen([sys.executable, "-c", code], **named)
        )

    return start_slowly


def test_a_slow_start_is_waited_for_as_long_as_it_gets_on(slow_start, monkeypatch):
    monkeypatch.setattr(verifying, "START_SECONDS", 2.0)
    slow_start(SLOW.format(seconds=5))
    waited = []
    own = Verifier(first_swarm(), waiting=waited.append)
    own.close()
    assert waited[-1] > 4.0, "longer than it may take without getting on"
    assert waited == sorted(waited)


def test_a_start_that_gets_nowhere_or_never_ends_is_an_error(slow_start, monkeypatch):
    monkeypatch.setattr(verifying, "START_SECONDS", 1.0)
    slow_start("import time; time.sleep(600)")
    with pytest.raises(VerifierError, match="no answer within 1 s"):
        Verifier(first_swarm())
    monkeypatch.setattr(verifying, "START_WORK_SECONDS", 1.0)
    slow_start("while True: pass")
    with pytest.raises(VerifierError, match="no answer within 1 s of work"):
        Verifier(first_swarm())


def test_a_start_that_nobody_wants_any_more_is_ended(slow_start):
    class Unwanted(Exception):
        pass

    def refuse(seconds):
        raise Unwanted

    slow_start("import time; time.sleep(600)")
    with pytest.raises(Unwanted):
        Verifier(first_swarm(), waiting=refuse)
    assert not [child for child in psutil.Process().children() if "time.sleep(600)" in child.cmdline()]


def test_a_closed_verifier_starts_nothing_again(monkeypatch):
    own = Verifier(first_swarm())
    own.close()
    monkeypatch.setattr(child_process.subprocess, "Popen", no_process)
    with pytest.raises(VerifierGone, match="was closed"):
        own.questions([QuestionKey("bf", 1)])
    own.close()


def test_a_child_that_is_too_late_is_ended_lest_its_reply_be_taken_for_another():
    late = child_process.ChildProcess("waggle.tasks.sandbox.verifier_process", messages.reply)
    with pytest.raises(TimeoutError):
        late.ask(messages.Prepare(datasets_of(first_swarm())), 0.001)
    assert late.process.poll() is not None
    with pytest.raises(child_process.ChildKilled):
        late.ask(messages.GenerateQuestions([QuestionKey("bf", 1)]), 60)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
def test_a_swarm_of_questions_that_each_read_a_book_is_entered_in_little_memory():
    book = Specialty(dataset="spell_backward", title="Spell backward")
    own = Verifier(msgspec.structs.replace(first_swarm(), specialties=(book,), questions_digest=""))
    try:
        before = megabytes(own.pid)
        assert len(own.held_out("spell_backward", "test", 8)) == 8
        texts = set()
        for first in range(0, 96, 24):  # each question reads the book anew
            keys = [QuestionKey("spell_backward", first + seed) for seed in range(24)]
            texts |= {question.text for question in own.questions(keys)}
        assert len(texts) > 90
        assert megabytes(own.pid) - before < 100, "one book takes 10 MB"
    finally:
        own.close()


def megabytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


def test_no_listed_scorer_looks_at_the_seed_of_the_dataset_that_made_the_question():
    environment = dict(os.environ, PYTHONPATH=str(Path(waggle.__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", SCORERS], env=environment, capture_output=True, check=True)
    judged, *differ = done.stdout.decode().splitlines()
    assert (int(judged) > 2000, differ) == (True, [])
