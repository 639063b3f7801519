"""The person's token of the model hub, kept in the keychain of the operating system and nowhere else.

It is read where it is used, and never told: not to the settings, the log, an event, or the screen.
"""

from waggle.core.errors import TokenError

SERVICE, USER = "waggle", "huggingface"
LONGEST = 500  # characters: it is some text pasted by mistake then
WHERE = "Make one on https://huggingface.co/settings/tokens."


def stored() -> str | None:
    """The token, where one was stored; raises TokenError when the keychain does not open."""
    import keyring
    from keyring.errors import KeyringError, NoKeyringError

    try:
        return keyring.get_password(SERVICE, USER)
    except NoKeyringError:  # then nothing can have been stored
        return None
    except KeyringError as error:
        raise _closed(error) from error


def store(token: str) -> None:
    """Raises TokenError."""
    import keyring
    from keyring.errors import KeyringError

    if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError("That is no token of the hub.", WHERE)
    try:
        keyring.set_password(SERVICE, USER, token)
    except KeyringError as error:
        raise _closed(error) from error


def forget() -> None:
    """Raises TokenError."""
    import keyring
    from keyring.errors import KeyringError

    if stored() is None:
        return
    try:
        keyring.delete_password(SERVICE, USER)
    except KeyringError as error:
        raise _closed(error) from error


def _closed(error: Exception) -> TokenError:
    return TokenError(
        f"The keychain of this computer cannot be used ({type(error).__name__}).",
        "Unlock it; on Linux, GNOME Keyring or KWallet has to run. Waggle keeps a token nowhere else.",
    )
