"""Creates the key for the list of versions that `waggle update` reads, and signs the list.

Run it with the Python of .venv and PYTHONPATH=app:

python packaging/feed.py key PRIVATE.pem            create a key; print the public half for resources/updates.toml
python packaging/feed.py sign FEED.json OUT.json    sign with the key in WAGGLE_FEED_KEY (the text of the .pem)
"""

import base64
import json
import os
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from waggle.cli import update
from waggle.core.errors import UpdateError


def make_key(private: Path) -> str:
    """Write the private key to a new file that only its owner may read; returns the public key in hex."""
    key = Ed25519PrivateKey.generate()
    with os.fdopen(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key.public_key().public_bytes_raw().hex()


def key_of(private: bytes) -> Ed25519PrivateKey:
    key = load_pem_private_key(private, None)
    if not isinstance(key, Ed25519PrivateKey):
        sys.exit("The key for the list of versions must be an Ed25519 key.")
    return key


def sign(feed: bytes, private: bytes) -> bytes:
    """The list and its signature, as one JSON document."""
    key = key_of(private)
    served = {"feed": base64.b64encode(feed).decode(), "signature": base64.b64encode(key.sign(update.DOMAIN + feed)).decode()}
    return json.dumps(served).encode()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["key", private]:
            print(make_key(Path(private)))
        case ["sign", feed, out]:
            private = os.environ["WAGGLE_FEED_KEY"].encode()
            served = sign(Path(feed).read_bytes(), private)
            try:
                update.read(served, key_of(private).public_key().public_bytes_raw().hex())
            except UpdateError as error:
                sys.exit(f"{feed} is not a list that Waggle can read: {error}")
            Path(out).write_bytes(served)
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
