"""The libraries of tools for research, which are not part of Waggle, and how a person installs one.

Waggle has not published a package: one of this name belongs to somebody else, so no advice may name it to pip.
"""

import sys

from waggle.core.message import Message

REQUIREMENTS = {"pyarrow": "pyarrow", "tensorboard": "tensorboard>=2.20", "trackio": "trackio>=0.43", "wandb": "wandb>=0.20"}


def advice(library: str) -> Message:
    """How to install a library of REQUIREMENTS, as a sentence that ends with the command."""
    if getattr(sys, "frozen", False):
        return Message("The installed app comes without it. Run Waggle from its source to use it.")
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    return Message("Install it with: %1", f'{python} -m pip install "{REQUIREMENTS[library]}"')  # cmd.exe knows only these quotes
