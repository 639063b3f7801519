"""The process that renders a chat template, which comes with a model, from strangers, and is a program.

It runs in Jinja's sandbox, as in transformers, which keeps it from Python but not from taking all memory, or for ever. So it
runs here, behind the same closed doors as the text of strangers, and the parent ends it where it takes too much of either (see
child_process.py). Without the tripwire: Jinja compiles a template, which no scorer may. It is started for one request.
"""

import json
import signal
import sys
from datetime import date

import jinja2.debug  # noqa: F401 - else imported at a template's first error, when nothing can be opened any more
import msgspec
from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from waggle.tasks.sandbox import hardening, messages

LONGEST = 1 << 20  # characters that a template says
SECONDS = 120.0  # of the clock, where nobody is left who ends it sooner
DATE = date(2024, 7, 26)  # which templates of Llama take where nobody tells them one
ROLES = ("user", "assistant")
EVERYTHING = "{{ '\\n' | tojson(indent=1) }}{{ strftime_now('%d') }}"  # what Jinja imports only when it is needed


def rendered(request: messages.RenderTemplate) -> str:
    """What the template makes of it. Left out: tools, and today's date, which is always the same, so that equal questions are
    equal prompts. Raises whatever the template does."""
    template = _environment().from_string(request.template)
    turns = [{"role": ROLES[place % 2], "content": words} for place, words in enumerate(request.texts)]
    text = template.render(
        messages=turns, add_generation_prompt=True, enable_thinking=False, tools=None, documents=None, **request.specials
    )
    if len(text) > LONGEST:
        raise TemplateError(f"it says more than {LONGEST:,} characters")
    text.encode()  # raises for what is no text
    return text


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = DATE.strftime
    return environment


class _Generation(Extension):
    """What stands between `generation` and `endgeneration`, as it is: transformers marks there what the model says."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja has it

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
    rendered(messages.RenderTemplate(EVERYTHING, {}, ("words",)))
    hardening.drop_privileges()
    reply: messages.TemplateReply
    try:
        reply = messages.RenderedTemplate(rendered(msgspec.msgpack.decode(frame, type=messages.RenderTemplate)))
    except Exception as error:  # noqa: BLE001 - a program of strangers may raise anything
        reason = str(error) or type(error).__name__
        reply = messages.Failed(reason.encode(errors="replace").decode()[: messages.REASON])
    messages.send(sys.stdout.buffer, reply)


if __name__ == "__main__":
    main()
