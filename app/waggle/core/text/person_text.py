"""The text of a file that a person wrote, saved or sent: editors, shells and mail leave marks in it that are no part of it."""

import codecs

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # PowerShell's `>` writes it


def decoded(content: bytes, errors: str = "strict") -> str:
    """UTF-8, or UTF-16 with its mark; without a byte order mark, and with one kind of line break. Raises UnicodeDecodeError."""
    encoding = "utf-16" if content.startswith(UTF_16) else "utf-8-sig"
    return content.decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")
