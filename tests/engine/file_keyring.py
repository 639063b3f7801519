"""A keychain for tests: a real `keyring` backend that stores everything in the file KEYCHAIN_FILE."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):
    priority = -1.0  # below that of no keychain: used where it is named, and not by every test of a process that imported it

    def _read(self) -> dict[str, str]:
        path = Path(os.environ["KEYCHAIN_FILE"])
        if path.suffix == ".locked":
            raise KeyringLocked
        return json.loads(path.read_text()) if path.exists() else {}

    def _write(self, tokens: dict[str, str]) -> None:
        Path(os.environ["KEYCHAIN_FILE"]).write_text(json.dumps(tokens))

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write(self._read() | {f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        tokens = self._read()
        if tokens.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError
        self._write(tokens)
