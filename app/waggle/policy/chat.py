"""The chat template of a model that was taught to chat: what stands before and after a person's words, rendered in a sandbox.

A template comes with the model, from strangers, and is a program: it runs in Jinja's sandbox, as in transformers, once, with a
mark in the place of all that is said. So no question or answer ever reaches it. Left out: tools, and today's date: it is always
the same day, so that equal questions are equal prompts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from waggle.errors import ModelError
from waggle.policy.configuration import table_in

MARK = "\ue000words {}\ue000"  # of the private use area: no template says this
LARGEST = 1 << 20  # number that a template computes with
DATE = date(2024, 7, 26)  # which templates of Llama take where nobody tells them one


@dataclass(frozen=True)
class Chat:
    """How a model was taught to chat. `stop` is the token that ends its turn."""

    folder: Path
    template: Template
    specials: Mapping[str, str]

    @property
    def stop(self) -> str:
        return self.specials["eos_token"]

    def around(self, said: int) -> tuple[str, ...]:
        """What stands before, between and behind so much that a person and the model say in turn, as text with special tokens.

        The person begins and ends. Raises ModelError where the template does not say it so.
        """
        marks = [MARK.format(place) for place in range(said)]
        roles = ("user", "assistant")
        messages = [{"role": roles[place % 2], "content": mark} for place, mark in enumerate(marks)]
        try:
            left = self.template.render(
                messages=messages, add_generation_prompt=True, enable_thinking=False, tools=None, documents=None, **self.specials
            )
        except Exception as error:  # a program of strangers may raise anything
            raise _unusable(self.folder, str(error)) from error
        pieces = []
        for mark in marks:
            if left.count(mark) != 1:
                raise _unusable(self.folder, "it does not say a person's words once")
            piece, left = left.split(mark)
            pieces.append(piece)
        return (*pieces, left)


def read(folder: Path) -> Chat | None:
    """The chat of a transformers folder, or None where it has no template; raises ModelError for one that cannot be used."""
    path = folder / "tokenizer_config.json"
    settings = table_in(path) if path.is_file() else {}  # a model needs none
    template = _template(folder, settings)
    if template is None:
        return None
    specials = {name: _text(settings.get(name)) for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
    try:
        made = _environment().from_string(template)
    except Exception as error:  # what is computed from nothing but constants is computed here
        raise _unusable(folder, str(error)) from error
    chat = Chat(folder, made, specials)
    chat.around(1)  # raises where it is of no use
    return chat


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    found = settings.get("chat_template")
    if isinstance(found, list):  # several by name
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) and found else None


def _text(token: Any) -> str:
    """A special token is written as its text, or as a table that holds it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox that multiplies and formats nothing large. Loops and words put together may still take long, or much."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Only numbers that are not large."""
        if not all(isinstance(one, int | float) and abs(one) <= LARGEST for one in (left, right)) or operator == "**":
            raise TemplateError(f"it computes {operator} with more than small numbers")
        return super().call_binop(context, operator, left, right)


def _environment() -> _Environment:
    made = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    made.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    made.globals["raise_exception"] = _refuse
    made.globals["strftime_now"] = DATE.strftime
    return made


class _Generation(Extension):
    """What stands between `generation` and `endgeneration`, as it is: transformers marks there what the model says."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja has it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _unusable(folder: Path, why: str) -> ModelError:
    return ModelError(f"The chat template in {folder} cannot be used: {why}.", "Choose another model.")
