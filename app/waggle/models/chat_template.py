"""Chat templates: the text around each message of a conversation, for models that were trained to chat.

A template comes with a model, from strangers, and is a program. A sandboxed process (tasks/sandbox/template_process.py) renders
it with placeholders instead of messages, so that it never sees a question or an answer.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from waggle.core.errors import ModelError
from waggle.core.message import Message, as_message
from waggle.core.system.os_faults import fault_of
from waggle.models.shared.configuration.model_config import table_in
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.child_process import ChildKilled, ChildProcess, ChildStarved

MARK = "\ue000words {}\ue000"  # U+E000 is a private use character, which no template contains
LARGEST = 1 << 20  # characters of a template
START_SECONDS = 60.0  # wall-clock limit, process start included, on a busy computer
SPECIALS = ("bos_token", "eos_token", "unk_token", "pad_token")  # that a template may use
CACHE_SIZE = 32  # rendered conversations
RENDER_SECONDS = 3.0  # CPU time: thousands of times what a template takes


class ChatTemplateError(ModelError):
    """A chat template that can never be used: `reason` says why in a few words, which may be a stranger's."""

    def __init__(self, title: str, advice: str, *, reason: str) -> None:
        super().__init__(title, advice)
        self.reason = as_message(reason)


@dataclass(frozen=True)
class ChatTemplate:
    """A model's chat template and its special tokens."""

    folder: Path
    template: str
    specials: tuple[tuple[str, str], ...]  # (name, text) of the tokens that a template may use

    @property
    def stop(self) -> str:
        """The token that ends the model's turn."""
        return dict(self.specials)["eos_token"]

    def after_answer(self) -> str:
        """The text between a message of the model and the next one; empty if the template knows no turns of the model."""
        try:
            return self.pieces_around(3)[2]
        except ChatTemplateError:
            return ""

    def pieces_around(self, texts: int) -> tuple[str, ...]:
        """The pieces of text before, between and after this many messages, which the person begins and ends.

        Special tokens appear as their texts. Raises ChatTemplateError if the template does not repeat each message exactly once.
        """
        marks = [MARK.format(place) for place in range(texts)]
        rest, pieces = _render(self, tuple(marks)), []
        for mark in marks:
            if rest.count(mark) != 1:
                raise _unusable(self.folder, "it does not say a person's words once")
            piece, rest = rest.split(mark)
            pieces.append(piece)
        return (*pieces, rest)


def _render(chat: ChatTemplate, texts: tuple[str, ...]) -> str:
    reply = _rendered(chat, texts)
    if isinstance(reply, messages.Failed):
        raise _unusable(chat.folder, reply.reason)
    return reply.text


@lru_cache(CACHE_SIZE)
def _rendered(chat: ChatTemplate, texts: tuple[str, ...]) -> messages.TemplateReply:
    """Render in a process of its own. Cached by the number of messages, because starting a process takes long."""
    try:
        child = ChildProcess("waggle.tasks.sandbox.template_process", messages.template_reply)
    except OSError as error:  # short of memory or of processes
        raise _interrupted(chat.folder, fault_of(error).reason) from error
    try:
        return child.ask(messages.RenderTemplate(chat.template, dict(chat.specials), texts), START_SECONDS, RENDER_SECONDS)
    except (ChildStarved, ChildKilled) as error:  # the computer's fault, not the template's
        raise _interrupted(chat.folder, str(error)) from error
    except (EOFError, TimeoutError) as error:
        return messages.Failed(as_message(str(error)))
    finally:
        child.end()


def _unusable(folder: Path, reason: str) -> ChatTemplateError:
    return ChatTemplateError(
        Message("The chat template in %1 cannot be used: %2.", folder, reason), "Choose another model.", reason=reason
    )


def _interrupted(folder: Path, why: str) -> ModelError:
    return ModelError(Message("The chat template in %1 cannot be read now: %2.", folder, why), "Try again later.")


def read(folder: Path) -> ChatTemplate | None:
    """The chat template of a transformers folder; None if it has none. Raises ChatTemplateError."""
    path = folder / "tokenizer_config.json"
    settings = table_in(path) if path.is_file() else {}  # the file is optional
    template = template_of(folder, settings)
    if template is None:
        return None
    if len(template) > LARGEST:
        raise _unusable(folder, "it is too long")
    chat = ChatTemplate(folder, template, tuple((name, text_of(settings.get(name))) for name in SPECIALS))
    chat.pieces_around(1)  # raises if the template is unusable
    return chat


def template_of(folder: Path, settings: dict[str, Any]) -> str | None:
    """The text of the chat template of a folder with these settings in tokenizer_config.json; None if there is none."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(LARGEST + 1)  # of a longer one no more than is needed to refuse it
    template = settings.get("chat_template")
    if isinstance(template, list):  # several templates, by name
        named = {variant.get("name"): variant.get("template") for variant in template if isinstance(variant, dict)}
        template = named.get("default")
    return template if isinstance(template, str) and template else None


def text_of(token: Any) -> str:
    """The text of a special token, which is written as a string or as a table."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""
