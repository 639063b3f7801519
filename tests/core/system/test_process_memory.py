import os
import subprocess
import sys

from waggle.core.system.process_memory import resident_bytes


def test_a_process_holds_memory_until_it_has_ended():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert 0 < resident_bytes(child.pid) < resident_bytes(os.getpid())
    assert resident_bytes(child.pid) == 0
