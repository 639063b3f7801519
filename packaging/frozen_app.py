"""Where a frozen Waggle begins: the window and every other door."""

import multiprocessing
import sys

from waggle.cli import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(main())
