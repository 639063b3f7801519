"""`python -m waggle`."""

import sys

from waggle.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
