"""Runs a function in a process that is killed between two file operations."""

import os
import sys
from collections.abc import Callable

OPERATIONS = (
    "open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree", "sqlite3.connect",
)  # fmt: skip


def killed_after(operations: int, work: Callable[[], object]) -> bool:
    """Run `work` in a child process that ends at its operation number `operations` on files; returns whether it got that far."""
    child = os.fork()
    if child == 0:
        operations_to_go = operations

        def count(event: str, _arguments: tuple[object, ...]) -> None:
            nonlocal operations_to_go
            if event in OPERATIONS:
                operations_to_go -= 1
                if operations_to_go < 0:
                    os._exit(9)

        sys.addaudithook(count)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
