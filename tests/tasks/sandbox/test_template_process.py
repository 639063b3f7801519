"""The process that renders chat templates: restricted even if a template escapes Jinja's sandbox."""

import subprocess
import sys

import pytest

from waggle.tasks.sandbox import messages

OUTSIDE = """
import os
from waggle.tasks.sandbox import template_process

jinja = template_process._environment

def broken():
    made = jinja()
    made.globals.update(open=open, fork=os.fork, remove=os.remove, run=os.system)
    return made

template_process._environment = broken
template_process.main()
"""  # what a template could name if the sandbox were none


def rendered(program: list[str], template: str) -> messages.TemplateReply:
    request = messages.frame_of(messages.RenderTemplate(template, {}, ("words",)))
    child = subprocess.run([sys.executable, *program], input=request, stdout=subprocess.PIPE, check=True, timeout=60)
    size = int.from_bytes(child.stdout[:4], "big")
    assert size == len(child.stdout) - 4, "it says one thing, and ends"
    return messages.template_reply(child.stdout[4:])


@pytest.mark.skipif(sys.platform == "win32", reason="a job object leaves files to Jinja's sandbox")
def test_what_gets_out_of_the_sandbox_finds_the_doors_closed(tmp_path):
    file = tmp_path / "kept"
    file.write_text("here")
    out = ["-c", OUTSIDE]
    assert rendered(out, "{{ open is defined }}") == messages.RenderedTemplate("True"), "the test's own way out"
    for tried in (f"open('{file}').read()", f"open('{file}', 'w')"):
        assert isinstance(rendered(out, f"{{{{ {tried} }}}}"), messages.Failed), tried
    if sys.platform == "linux":
        for tried in ("fork()", f"remove('{file}')"):
            assert isinstance(rendered(out, f"{{{{ {tried} }}}}"), messages.Failed), tried
        assert rendered(out, f"{{{{ run('rm {file}') }}}}") != messages.RenderedTemplate("0")
    assert file.read_text() == "here"


def test_a_template_sees_what_is_said_and_the_tokens_it_may_name_and_nothing_of_the_computer():
    child = ["-m", "waggle.tasks.sandbox.template_process"]
    assert rendered(child, "{{ messages[0].role }}: {{ messages[0].content }}") == messages.RenderedTemplate("user: words")
    assert rendered(
        child, "{{ open is defined }}{{ self._environment is defined }}{{ strftime_now('%Y') }}"
    ) == messages.RenderedTemplate("FalseFalse2024")
