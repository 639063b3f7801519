"""Signs programs for Windows: `python packaging/windows_sign.py FILE...`; where there is no certificate, nothing is done.

`SIGNTOOL` is the program that signs, `SIGN_CERTIFICATE` a .pfx file, `SIGN_PASSWORD` its password. Called by make_windows.py for
what is installed, and by makensis for the installer and for the uninstaller that is made in it.
"""

import os
import subprocess
import sys

CLOCK = "http://timestamp.digicert.com"


def sign(*files: str) -> None:
    """Ends the build where a signature fails."""
    if certificate := os.environ.get("SIGN_CERTIFICATE"):
        with_it = ("/f", certificate, "/p", os.environ["SIGN_PASSWORD"])
        subprocess.run(
            [os.environ["SIGNTOOL"], "sign", *with_it, "/fd", "sha256", "/tr", CLOCK, "/td", "sha256", *files], check=True
        )


if __name__ == "__main__":
    sign(*sys.argv[1:])
