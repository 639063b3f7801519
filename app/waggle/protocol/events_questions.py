"""Events about a person's own file of questions, before a swarm is created from it. Its texts are plain text, and bounded."""

import msgspec

from waggle.core.message import NOTHING, Message
from waggle.protocol.events import Count, Event, ShownCompletion


class GraderOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A way to grade that fits all answers of the file. `uses_tolerance`: a tolerance makes a difference."""

    name: str
    title: str
    uses_tolerance: bool = False


class QuestionExample(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the file with its true answer; a long one is cut."""

    question: str
    answer: str


class ModelTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What the own model earned with one answer to each of some questions of the file, and one of these answers.

    `too_long` questions of the file are longer than the model can read; it does not try them.
    """

    questions: Count
    too_long: Count = 0
    mean_reward: float
    example: QuestionExample
    completion: ShownCompletion


class QuestionsPreviewed(Event, frozen=True, kw_only=True, tag=True):
    """What a file contains. Lengths are in characters.

    `refusal` says why no swarm can be created from the file, in one or two sentences; empty: one can. If the file cannot even be
    read, the counts are 0. `trial` is None if no model is open, or if it could not answer: `trial_refusal` says why.
    `hint` is a sentence about an answer that looks like a slip, or empty. `command_id`: of the PreviewQuestions that this
    answers.
    """

    command_id: str = ""
    path: str
    title: str = ""  # a suggestion, from the file's name
    questions: Count = 0
    duplicates: Count = 0
    reserved: Count = 0
    longest_question: Count = 0
    longest_answer: Count = 0
    examples: tuple[QuestionExample, ...] = ()
    grader: str = ""
    grader_title: str = ""
    possible_graders: tuple[GraderOffer, ...] = ()
    tolerance: float = 0.0
    refusal: Message = NOTHING
    hint: Message = NOTHING
    trial: ModelTrial | None = None
    trial_refusal: Message = NOTHING


QuestionsEvent = QuestionsPreviewed
