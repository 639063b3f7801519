"""What is wrong with a web connection where this computer's own settings, or something on the way, are the cause.

Everything else is reported as no connection.
"""

import os
import ssl
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of

if TYPE_CHECKING:
    import httpx2

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # environment variables that the client reads
HUB = "HF_ENDPOINT"  # the address of another model hub
PROXY_LOGIN = 407
CAPTIVE = (302, 303, 307, 511)  # what the login page of a network answers


class ConnectionFault(NamedTuple):
    """Why a connection failed, in words that callers raise as an error of their own kind, and the error that it came from."""

    title: Message
    advice: Message
    error: Exception | None = None


def require_usable_settings(kind: Callable[[str, str], Exception], *, hub: bool = False) -> None:
    """Raise an error of this kind if no web connection can be made with this computer's settings.

    That is with a certificate file that is missing or malformed, with a SOCKS proxy or a malformed address of one; and for a
    connection to the `hub`, with a HF_ENDPOINT that is no address.
    """
    if fault := _settings_fault(hub=hub):
        raise kind(fault.title, fault.advice) from fault.error


def _settings_fault(*, hub: bool) -> ConnectionFault | None:
    import httpx2

    address = os.environ.get(HUB, "").strip() if hub else ""
    if address and not _is_web_address(address):
        return ConnectionFault(
            Message("%1 is %2, which is no web address.", HUB, address),
            Message("Write https:// in front of it, or unset %1.", HUB),
        )
    for name in CERTIFICATES:
        path = os.environ.get(name, "")
        if path and not Path(path).exists():
            return ConnectionFault(
                Message("%1 names %2, which is not there.", name, path), Message("Correct %1, or unset it.", name)
            )
    try:
        httpx2.Client().close()
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        return ConnectionFault(
            Message("This computer's network proxy cannot be used."),
            Message("Waggle goes through web proxies (HTTP), not through SOCKS: choose one, or none."),
            error,
        )
    except OSError as error:  # ssl.SSLError, too: a file without certificates
        names = " and ".join(name for name in CERTIFICATES if os.environ.get(name))
        return ConnectionFault(
            Message("The certificates of this computer cannot be read: %1.", fault_of(error).reason),
            Message("Correct %1, or unset it.", names) if names else Message("Install the system's certificates."),
            error,
        )
    return None


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket that is not closed
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def cause_of(error: BaseException) -> ConnectionFault | None:
    """The cause of a connection that failed, if it is no absence of one; None if nothing better is known."""
    import httpx2

    for each in _chain(error):
        if refusal := _proxy_refusal(each):
            return ConnectionFault(
                Message("The proxy %1 refused the connection: %2.", _proxy(), refusal),
                Message("It asks for a name and a password: write them into its address, as in http://name:password@host:port.")
                if refusal.startswith(str(PROXY_LOGIN))
                else Message("Ask this network's operator, or choose another proxy, or none."),
            )
        if isinstance(each, httpx2.ConnectError | httpx2.ConnectTimeout) and _passes_proxy(each):
            return ConnectionFault(
                Message("The proxy %1 does not answer.", _proxy()), Message("Start it, correct its address, or use none.")
            )
        if isinstance(each, ssl.SSLCertVerificationError):
            return ConnectionFault(
                Message("The connection is not safe: %1.", each.verify_message),
                Message(
                    "Check this computer's clock. A network that looks into connections needs its certificate in SSL_CERT_FILE."
                ),
            )
        if isinstance(each, httpx2.HTTPStatusError) and each.response.status_code in CAPTIVE:
            return ConnectionFault(
                Message("The network answers in place of the server."),
                Message("Does it ask you to log in first? Open a page in your browser."),
            )
    return None


def _proxy_refusal(error: BaseException) -> str:
    """The answer of a proxy that refuses, with its number; empty if it is none. Without encryption it answers like a server."""
    import httpx2

    if isinstance(error, httpx2.HTTPStatusError) and error.response.status_code == PROXY_LOGIN:
        return f"{PROXY_LOGIN} {error.response.reason_phrase}".strip()
    return str(error) if isinstance(error, httpx2.ProxyError) else ""


def _passes_proxy(error: "httpx2.RequestError") -> bool:
    """Whether the connection went to a proxy in place of the server."""
    try:
        url = error.request.url
    except RuntimeError:  # the error of no request
        return False
    proxies = urllib.request.getproxies()
    return bool(proxies.get(url.scheme) or proxies.get("all")) and not urllib.request.proxy_bypass(url.host)


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and those that it came from."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _proxy() -> str:
    """Host and port of the system's proxy, without a password."""
    proxies = urllib.request.getproxies()
    address = urlsplit(proxies.get("https") or proxies.get("all") or proxies.get("http") or "")
    port = f":{address.port}" if address.port else ""
    return f"{address.hostname}{port}" if address.hostname else "of this network"
