"""The user's token for the model hub, stored only in the operating system's keychain.

It is read where it is used, and never written to the settings, the log, an event or the screen.
"""

from waggle.core.errors import TokenError
from waggle.core.message import Message

SERVICE, USER = "waggle", "huggingface"
LONGEST = 500  # characters; anything longer was pasted by mistake
TOKENS = "https://huggingface.co/settings/tokens"  # the page on which a person makes one


def stored_token() -> str | None:
    """The token; None if none is stored. Raises TokenError if the keychain cannot be opened."""
    import keyring
    from keyring.errors import KeyringError, NoKeyringError

    try:
        return keyring.get_password(SERVICE, USER)
    except NoKeyringError:  # so nothing can be stored
        return None
    except KeyringError as error:
        raise _keychain_error(error) from error


def store(token: str) -> None:
    """Store a token. Raises TokenError if it is malformed, or the keychain cannot be used."""
    import keyring
    from keyring.errors import KeyringError

    if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError("That is not a Hugging Face token.", Message("Make one on %1.", TOKENS))
    try:
        keyring.set_password(SERVICE, USER, token)
    except KeyringError as error:
        raise _keychain_error(error) from error


def forget() -> None:
    """Remove the token from the keychain. Raises TokenError."""
    import keyring
    from keyring.errors import KeyringError

    if stored_token() is None:
        return
    try:
        keyring.delete_password(SERVICE, USER)
    except KeyringError as error:
        raise _keychain_error(error) from error


def _keychain_error(error: Exception) -> TokenError:
    return TokenError(
        Message("The keychain of this computer cannot be used (%1).", type(error).__name__),
        "Unlock it; on Linux, GNOME Keyring or KWallet has to run. Waggle keeps a token nowhere else.",
    )
