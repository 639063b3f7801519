import os
import subprocess
import sys

from waggle.core.process_memory import held_by


def test_a_process_holds_memory_until_it_has_ended():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert 0 < held_by(child.pid) < held_by(os.getpid())
    assert held_by(child.pid) == 0
