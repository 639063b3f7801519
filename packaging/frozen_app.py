"""Entry point of the frozen app: the window and all other commands, with CUDA if it was downloaded."""

import multiprocessing
import sys

from waggle.cli.main import main
from waggle.core import cuda_download

INSPECTION = ["inspect-model"]  # see paths.module_command

if __name__ == "__main__":
    multiprocessing.freeze_support()
    if sys.argv[1:] == INSPECTION:
        from waggle.models.inspection.process import main as inspect

        sys.exit(inspect())
    cuda_download.use()
    sys.exit(main())
