"""Entry point of the frozen app: the window and all other commands, with CUDA if it was downloaded."""

import multiprocessing
import sys

from waggle.cli.main import main
from waggle.core import cuda_download

INSPECTION, GGUF = ["inspect-model"], ["read-gguf"]  # see paths.module_command

if __name__ == "__main__":
    multiprocessing.freeze_support()
    if sys.argv[1:] == INSPECTION:
        from waggle.models.inspection.process import main as inspect

        sys.exit(inspect())
    if sys.argv[1:] == GGUF:
        from waggle.models.gguf.process import main as read_gguf

        sys.exit(read_gguf())
    cuda_download.use()
    sys.exit(main())
