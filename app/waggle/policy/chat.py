"""The chat template of a model that was taught to chat: what stands before and after a person's words, rendered in a sandbox.

A template comes with the model, from strangers, and is a program: it runs in Jinja's sandbox, as in transformers, once, with a
mark in the place of the words. So no question or answer ever reaches it. Left out: tools, several turns, and the date, so that
equal questions are equal prompts on every day.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from waggle.errors import ModelError

MARK = "\ue000words\ue000"  # of the private use area: no template says this


@dataclass(frozen=True)
class Chat:
    """What a prompt is between, as text with special tokens, and the token that ends the model's turn."""

    before: str
    after: str
    stop: str


def read(folder: Path) -> Chat | None:
    """The chat of a transformers folder, or None where it has no template; raises ModelError for one that cannot be used."""
    settings = _settings(folder / "tokenizer_config.json")
    template = _template(folder, settings)
    if template is None:
        return None
    specials = {name: _text(settings.get(name)) for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
    try:
        rendered = _environment().from_string(template).render(
            messages=[{"role": "user", "content": MARK}], add_generation_prompt=True, enable_thinking=False, tools=None,
            documents=None, **specials,
        )  # fmt: skip
    except (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise _unusable(folder, str(error)) from error
    if rendered.count(MARK) != 1:
        raise _unusable(folder, "it does not say a person's words once")
    before, after = rendered.split(MARK)
    return Chat(before, after, specials["eos_token"])


def _settings(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}  # a model needs none
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.", "Copy or download the model again.") from error
    return found if isinstance(found, dict) else {}


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


def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    made.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    made.globals["raise_exception"] = _refuse
    return made


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _unusable(folder: Path, why: str) -> ModelError:
    return ModelError(f"The chat template in {folder} cannot be used: {why}.", "Choose another model.")
