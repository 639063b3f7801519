"""A process that renders one chat template. Templates come with models, from strangers, and are programs.

Jinja's sandbox, which transformers uses too, keeps a template away from Python, but bounds neither its memory nor its time. So
this process drops its privileges before it renders, and the parent kills it if it takes too much (see child_process.py). There is
no tripwire, because Jinja compiles templates to Python code. It serves one request.
"""

import json
import signal
import sys
from datetime import date

import jinja2.debug  # noqa: F401 - Jinja imports it at a template's first error, when no file can be opened
import msgspec
from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from waggle.core.message import Figure, Message, as_message
from waggle.tasks.sandbox import hardening, messages

LONGEST = 1 << 20  # characters of a rendered text
SECONDS = 120.0  # wall-clock limit in case the parent is gone
DATE = date(2024, 7, 26)  # the default date of Llama's templates
ROLES = ("user", "assistant")
EVERYTHING = "{{ '\\n' | tojson(indent=1) }}{{ strftime_now('%d') }}"  # makes Jinja import what it imports lazily


def render(request: messages.RenderTemplate) -> str:
    """Render a template for texts that a person and the model said in turn. Raises what the template raises.

    Not supported: tools, and today's date: it is constant, so that equal questions give equal prompts.
    """
    template = _environment().from_string(request.template)
    turns = [{"role": ROLES[place % 2], "content": words} for place, words in enumerate(request.texts)]
    text = template.render(
        messages=turns, add_generation_prompt=True, enable_thinking=False, tools=None, documents=None, **request.specials
    )
    if len(text) > LONGEST:
        raise TemplateError(Message("it says more than %1 characters", Figure(LONGEST)))
    text.encode()  # raises for lone surrogates
    return text


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = DATE.strftime
    return environment


class _Generation(Extension):
    """The tags `generation` and `endgeneration` of transformers, which mark the model's words: renders what is between them."""

    tags = {"generation"}  # noqa: RUF012 - the type that Jinja expects

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches every process of a terminal: the engine ends this one
    frame = messages.receive(sys.stdin.buffer)
    if frame is None:
        return
    hardening.limit_memory()
    hardening.set_deadline(SECONDS)
    render(messages.RenderTemplate(EVERYTHING, {}, ("words",)))
    hardening.drop_privileges()
    reply: messages.TemplateReply
    try:
        reply = messages.RenderedTemplate(render(msgspec.msgpack.decode(frame, type=messages.RenderTemplate)))
    except Exception as error:  # noqa: BLE001 - a program of strangers may raise anything
        reason = str(error) or type(error).__name__
        reply = messages.Failed(as_message(reason.encode(errors="replace").decode()[: messages.REASON]))
    messages.send(sys.stdout.buffer, reply)


if __name__ == "__main__":
    main()
