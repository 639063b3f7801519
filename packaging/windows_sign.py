"""Signs programs for Windows: `python packaging/windows_sign.py FILE...`; does nothing without a certificate.

The environment variables: `SIGNTOOL` is the path of signtool, `SIGN_CERTIFICATE` a .pfx file, `SIGN_PASSWORD` its password.
make_windows.py signs the installed programs with it, makensis the installer and the uninstaller.
"""

import os
import subprocess
import sys

CLOCK = "http://timestamp.digicert.com"


def sign(*files: str) -> None:
    """Sign the files; raises CalledProcessError if a signature fails."""
    if certificate := os.environ.get("SIGN_CERTIFICATE"):
        with_it = ("/f", certificate, "/p", os.environ["SIGN_PASSWORD"])
        subprocess.run(
            [os.environ["SIGNTOOL"], "sign", *with_it, "/fd", "sha256", "/tr", CLOCK, "/td", "sha256", *files], check=True
        )


if __name__ == "__main__":
    sign(*sys.argv[1:])
