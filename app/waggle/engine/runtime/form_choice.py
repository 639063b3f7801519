"""Chooses how the model is asked: as a person set it, as it was found before, or by trying which form yields readable answers."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.protocol.events import PromptFormChoice
from waggle.rl.batch import nothing
from waggle.sapo.answer_length import needed_limit
from waggle.sapo.form_trial import best_form, try_forms
from waggle.sapo.prompt_form import FORMS, PLAIN, PromptForm, forms_for
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.questions import Question

QUESTIONS = 24  # answers in each form: enough to tell a form that works from one that does not


class StoredChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file: the form that was found for a model, and how many of its answers could be read.

    `answer_tokens` is the answer length that these needed; 0 if too few could be read, and in files of earlier versions.
    """

    form: str
    readable: int
    total: int
    answer_tokens: int = 0
    raised: bool = False  # the answer length was too low, and is higher now


def settled_form(setting: str, is_starter: bool, node: Node, file: Path) -> PromptFormChoice | None:
    """The form that needs no trial; None if it has to be tried.

    A form of the setting that this model cannot be asked in (a chat form without a chat template) counts as "auto".
    """
    possible = {form.name for form in forms_for(node.tokenizer)} | {PLAIN.name}
    if setting in possible:
        return PromptFormChoice(form=setting, why="setting")
    if is_starter:
        return PromptFormChoice(form=PLAIN.name, why="starter")
    stored = read(file)
    if stored is not None and stored.form in possible:
        return PromptFormChoice(form=stored.form, why="trial", readable=stored.readable, total=stored.total)
    return None


def try_form(
    node: Node, rules: RoundSettings, questions: Sequence[Question], file: Path, pause_point: Callable[[], None],
    report: Callable[[int, int], None] = nothing,
) -> PromptFormChoice:  # fmt: skip
    """Try every form, and store the best one for the next start, unless no answer could be read.

    For `report` see `try_forms`. Runs in the policy thread; raises Stopped.
    """
    trials = try_forms(node, rules, questions, pause_point=pause_point, report=report)
    form = best_form(trials)
    trial = next(trial for trial in trials if trial.form is form)
    if trial.readable:
        needed = needed_limit(trial.lengths, rules.max_new)
        store(file, StoredChoice(form=form.name, readable=trial.readable, total=trial.total, answer_tokens=needed))
    return PromptFormChoice(form=form.name, why="trial", readable=trial.readable, total=trial.total)


def form_of(choice: PromptFormChoice) -> PromptForm:
    return FORMS[choice.form]


def store(file: Path, choice: StoredChoice) -> None:
    """Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    paths.write_atomically(file, msgspec.json.encode(choice))


def read(path: Path) -> StoredChoice | None:
    """The stored choice; None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=StoredChoice)
    except (OSError, *UNREADABLE):  # no file yet, or a damaged one: the trial is made again
        return None
