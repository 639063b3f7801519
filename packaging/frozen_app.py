"""Where a frozen Waggle begins: the window and every other door; with CUDA, where that was downloaded."""

import multiprocessing
import sys

from waggle.cli.main import main
from waggle.core import cuda_download

if __name__ == "__main__":
    multiprocessing.freeze_support()
    cuda_download.use()
    sys.exit(main())
