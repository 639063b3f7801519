"""Entry point of the frozen app: the window and all other commands, with CUDA if it was downloaded."""

import multiprocessing
import sys

from waggle.cli.main import main
from waggle.core import cuda_download

if __name__ == "__main__":
    multiprocessing.freeze_support()
    cuda_download.use()
    sys.exit(main())
