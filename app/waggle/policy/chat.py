"""The chat template of a model that was taught to chat: what stands before and after a person's words.

A template comes with the model, from strangers, and is a program: a process of its own renders it (see
tasks/template_child.py), with a mark in the place of all that is said. So no question or answer ever reaches it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waggle.errors import ModelError
from waggle.policy.configuration import table_in
from waggle.tasks import wire
from waggle.tasks.child import Child

MARK = "\ue000words {}\ue000"  # of the private use area: no template says this
LARGEST = 1 << 20  # characters of a template
START_SECONDS = 60.0  # of the clock, for a process on a busy computer
RENDER_SECONDS = 3.0  # of the processor: thousands of times what a template takes


class Chat:
    """How a model was taught to chat. Raises ModelError for a template that cannot be used."""

    def __init__(self, folder: Path, template: str, specials: Mapping[str, str]) -> None:
        self._folder, self._template, self._specials = folder, template, dict(specials)
        self._pieces: dict[int, tuple[str, ...]] = {}
        self.around(1)

    @property
    def stop(self) -> str:
        """The token that ends the model's turn."""
        return self._specials["eos_token"]

    def around(self, said: int) -> tuple[str, ...]:
        """What stands before, between and behind so much that a person and the model say in turn, as text with special tokens.

        The person begins and ends. Raises ModelError where the template does not say it so.
        """
        if said not in self._pieces:
            lengths = range(said, 0, -2)  # who finds this too long asks for less
            for length, text in zip(lengths, self._rendered(lengths), strict=True):
                self._pieces[length] = self._split(text, length)
        return self._pieces[said]

    def _rendered(self, lengths: range) -> list[str]:
        conversations = [[MARK.format(place) for place in range(length)] for length in lengths]
        try:
            child = Child("waggle.tasks.template_child", wire.template_reply)
        except OSError as error:  # short of memory or of processes
            raise self._unusable(f"{error.strerror}") from error
        try:
            reply = child.ask(wire.Render(self._template, self._specials, conversations), START_SECONDS, RENDER_SECONDS)
        except (EOFError, TimeoutError) as error:
            raise self._unusable(str(error)) from error
        finally:
            child.end()
        if not isinstance(reply, wire.Texts):
            raise self._unusable(reply.reason)
        return reply.texts

    def _split(self, left: str, said: int) -> tuple[str, ...]:
        pieces = []
        for place in range(said):
            mark = MARK.format(place)
            if left.count(mark) != 1:
                raise self._unusable("it does not say a person's words once")
            piece, left = left.split(mark)
            pieces.append(piece)
        return (*pieces, left)

    def _unusable(self, why: str) -> ModelError:
        return _unusable(self._folder, why)


def read(folder: Path) -> Chat | None:
    """The chat of a transformers folder, or None where it has no template; raises ModelError for one that cannot be used."""
    path = folder / "tokenizer_config.json"
    settings = table_in(path) if path.is_file() else {}  # a model needs none
    template = _template(folder, settings)
    if template is None:
        return None
    if len(template) > LARGEST:
        raise _unusable(folder, "it is too long")
    specials = {name: _text(settings.get(name)) for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
    return Chat(folder, template, specials)


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST + 1)
    found = settings.get("chat_template")
    if isinstance(found, list):  # several by name
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) and found else None


def _text(token: Any) -> str:
    """A special token is written as its text, or as a table that holds it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def _unusable(folder: Path, why: str) -> ModelError:
    return ModelError(f"The chat template in {folder} cannot be used: {why}.", "Choose another model.")
