"""The chat template of a model that was taught to chat: what stands before and after a person's words.

A template comes with the model, from strangers, and is a program: a process of its own renders it (see
tasks/sandbox/template_process.py), with a mark in the place of all that is said. So no question or answer ever reaches it.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from waggle.core.errors import ModelError
from waggle.models.shared.model_config import table_in
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.child_process import ChildProcess

MARK = "\ue000words {}\ue000"  # of the private use area: no template says this
LARGEST = 1 << 20  # characters of a template
START_SECONDS = 60.0  # of the clock, for a process on a busy computer
CACHE_SIZE = 32  # of what was rendered
RENDER_SECONDS = 3.0  # of the processor: thousands of times what a template takes


@dataclass(frozen=True)
class ChatTemplate:
    """How a model was taught to chat."""

    folder: Path
    template: str
    specials: tuple[tuple[str, str], ...]  # names and texts of the tokens that it may name

    @property
    def stop(self) -> str:
        """The token that ends the model's turn."""
        return dict(self.specials)["eos_token"]

    def around(self, texts: int) -> tuple[str, ...]:
        """What stands before, between and behind so much that a person and the model say in turn, as text with special tokens.

        The person begins and ends. Raises ModelError where the template does not say it so.
        """
        marks = [MARK.format(place) for place in range(texts)]
        rest, pieces = _rendered(self, tuple(marks)), []
        for mark in marks:
            if rest.count(mark) != 1:
                raise _unusable(self.folder, "it does not say a person's words once")
            piece, rest = rest.split(mark)
            pieces.append(piece)
        return (*pieces, rest)


@lru_cache(CACHE_SIZE)
def _rendered(chat: ChatTemplate, texts: tuple[str, ...]) -> str:
    """By a process of its own, once for as many turns: a model is opened often, and talks go on."""
    try:
        child = ChildProcess("waggle.tasks.sandbox.template_process", messages.template_reply)
    except OSError as error:  # short of memory or of processes
        raise _unusable(chat.folder, f"{error.strerror}") from error
    try:
        reply = child.ask(messages.RenderTemplate(chat.template, dict(chat.specials), texts), START_SECONDS, RENDER_SECONDS)
    except (EOFError, TimeoutError) as error:
        raise _unusable(chat.folder, str(error)) from error
    finally:
        child.end()
    if isinstance(reply, messages.Failed):
        raise _unusable(chat.folder, reply.reason)
    return reply.text


def read(folder: Path) -> ChatTemplate | None:
    """The chat of a transformers folder, or None where it has no template; raises ModelError for one that cannot be used."""
    path = folder / "tokenizer_config.json"
    settings = table_in(path) if path.is_file() else {}  # a model needs none
    template = _template(folder, settings)
    if template is None:
        return None
    if len(template) > LARGEST:
        raise _unusable(folder, "it is too long")
    names = ("bos_token", "eos_token", "unk_token", "pad_token")
    chat = ChatTemplate(folder, template, tuple((name, _text(settings.get(name))) for name in names))
    chat.around(1)  # raises where it is of no use
    return chat


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST + 1)
    template = settings.get("chat_template")
    if isinstance(template, list):  # several by name
        named = {variant.get("name"): variant.get("template") for variant in template if isinstance(variant, dict)}
        template = named.get("default")
    return template if isinstance(template, str) and template else None


def _text(token: Any) -> str:
    """A special token is written as its text, or as a table that holds it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def _unusable(folder: Path, why: str) -> ModelError:
    return ModelError(f"The chat template in {folder} cannot be used: {why}.", "Choose another model.")
