"""Where a frozen Waggle begins: the window and every other door; with CUDA, where that was downloaded."""

import multiprocessing
import sys

from waggle import cuda_pack
from waggle.cli import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    cuda_pack.use()
    sys.exit(main())
