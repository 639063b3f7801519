"""Whether this computer is a Mac with Apple Silicon, where MLX computes and the installed app has no torch."""

import platform
import sys


def is_apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"
