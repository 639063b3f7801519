"""The signed list of versions that `waggle update` reads, and the key that signs it.

python3 packaging/feed.py key PRIVATE.pem            makes a key; prints the public half for resources/updates.toml
python3 packaging/feed.py sign FEED.json OUT.json    signs with the key in WAGGLE_FEED_KEY (the text of the .pem)
"""

import base64
import json
import os
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from waggle.engine.updates import DOMAIN


def make_key(private: Path) -> str:
    """The private half goes into the file, which only its owner may read; the public one is returned in hex."""
    key = Ed25519PrivateKey.generate()
    with os.fdopen(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key.public_key().public_bytes_raw().hex()


def signed(feed: bytes, private: bytes) -> bytes:
    """What is served."""
    key = load_pem_private_key(private, None)
    if not isinstance(key, Ed25519PrivateKey):
        sys.exit("The key for the list of versions must be an Ed25519 key.")
    served = {"feed": base64.b64encode(feed).decode(), "signature": base64.b64encode(key.sign(DOMAIN + feed)).decode()}
    return json.dumps(served).encode()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["key", private]:
            print(make_key(Path(private)))
        case ["sign", feed, out]:
            Path(out).write_bytes(signed(Path(feed).read_bytes(), os.environ["WAGGLE_FEED_KEY"].encode()))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
