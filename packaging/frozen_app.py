"""Where a frozen Waggle begins: the window and every other door; with CUDA, where that was downloaded."""

import multiprocessing
import os
import sys

from waggle import cuda_pack
from waggle.cli import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    if sys.stdout is None or sys.stderr is None:  # of a program with a window, on Windows: the engine as a task speaks to nobody
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    cuda_pack.use()
    sys.exit(main())
