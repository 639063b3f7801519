"""A connection that fails for a reason on this computer or on the way is told with that reason."""

import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

import system_folders
from waggle.core import connection_faults
from waggle.core.errors import ModelError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "HF_ENDPOINT", "no_proxy", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@contextmanager
def server(code: int, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A web server, or a proxy, that answers everything with this code; host:port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_CONNECT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{listening.server_address[1]}"
    finally:
        listening.shutdown()
        listening.server_close()


def failure(address: str) -> httpx2.HTTPError:
    with pytest.raises(httpx2.HTTPError) as caught:
        httpx2.get(address, timeout=10).raise_for_status()
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "title"),
    [
        (
            "SSL_CERT_FILE",
            "/opt/gone/cacert.pem",
            "SSL_CERT_FILE names /opt/gone/cacert.pem, which is not there.",
        ),
        ("SSL_CERT_DIR", "/opt/gone", "SSL_CERT_DIR names /opt/gone, which is not there."),
        ("HF_ENDPOINT", "127.0.0.1:8471", "HF_ENDPOINT is 127.0.0.1:8471, which is no web address."),
        ("HF_ENDPOINT", "https://[hub", "HF_ENDPOINT is https://[hub, which is no web address."),
        ("HF_ENDPOINT", "https://", "HF_ENDPOINT is https://, which is no web address."),
        ("HTTPS_PROXY", "socks5://127.0.0.1:9", "This computer's network proxy cannot be used."),
        ("HTTPS_PROXY", "http://127.0.0.1:port", "This computer's network proxy cannot be used."),
    ],
)
def test_a_setting_of_this_computer_that_rules_out_connections_is_named(monkeypatch, name, value, title):
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelError) as caught:
        connection_faults.require_usable_settings(ModelError, hub=True)
    assert caught.value.title == title
    assert caught.value.advice


@pytest.mark.parametrize("value", ["http://127.0.0.1:8471", "https://mirror.example/", " https://mirror.example ", ""])
def test_the_address_of_another_hub_is_taken(monkeypatch, value):
    monkeypatch.setenv("HF_ENDPOINT", value)
    connection_faults.require_usable_settings(ModelError, hub=True)


def test_a_wrong_hub_address_does_not_matter_where_no_hub_is_asked(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "nowhere")
    connection_faults.require_usable_settings(ModelError)


def test_a_file_without_certificates_is_named(monkeypatch, tmp_path):
    (tmp_path / "cacert.pem").write_text("none\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cacert.pem"))
    with pytest.raises(ModelError, match=r"certificates of this computer cannot be read.*Correct SSL_CERT_FILE, or unset it"):
        connection_faults.require_usable_settings(ModelError)


@pytest.mark.parametrize(("code", "advice"), [(407, "name and a password"), (404, "this network's operator"), (403, "operator")])
def test_a_proxy_that_refuses_is_named_without_its_password(monkeypatch, code, advice):
    with server(code) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://ann:secret@{proxy}")
        cause = connection_faults.cause_of(failure("https://example.org/"))
    assert cause is not None
    assert cause.title.startswith(f"The proxy {proxy} refused the connection: {code}")
    assert advice in cause.advice
    assert "secret" not in str(cause)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_that_is_not_trusted_is_no_absence_of_a_connection(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "1"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with server(200, context) as address:
        cause = connection_faults.cause_of(failure(f"https://{address}/"))
    assert cause is not None
    assert "not safe" in cause.title
    assert "clock" in cause.advice


def test_a_proxy_that_refuses_what_is_not_encrypted_is_named_too(monkeypatch):
    with server(407) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy}")
        monkeypatch.setenv("http_proxy", f"http://{proxy}")
        cause = connection_faults.cause_of(failure("http://example.org/"))
    assert cause is not None
    assert cause.title.startswith(f"The proxy {proxy} refused the connection: 407")
    assert "name and a password" in cause.advice


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_does_not_answer_is_named_and_only_where_it_is_used(monkeypatch, scheme):
    with server(200) as address:
        pass  # its port is free now
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
        monkeypatch.setenv(name, f"http://ann:secret@{address}")
    cause = connection_faults.cause_of(failure(f"{scheme}://example.org/"))
    assert cause is not None
    assert cause.title == f"The proxy {address} does not answer."
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert connection_faults.cause_of(failure(f"{scheme}://{address}/")) is None, "a server that is away is no fault of a proxy"


def test_the_login_page_of_a_network_is_told_as_one():
    with server(511) as address:
        cause = connection_faults.cause_of(failure(f"http://{address}/"))
    assert cause is not None
    assert "log in first" in cause.advice


def test_no_connection_has_no_other_cause():
    with server(200) as address:
        pass  # nobody listens there now
    assert connection_faults.cause_of(failure(f"http://{address}/")) is None


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("SSL_CERT_FILE", "/nowhere/cacert.pem", "SSL_CERT_FILE names"), ("HF_ENDPOINT", "127.0.0.1:8471", "HF_ENDPOINT is")],
)
def test_the_command_line_says_the_cause(tmp_path: Path, name: str, value: str, says: str):
    words = [sys.executable, "-m", "waggle", "fit", "--home", str(tmp_path), "owner/name"]
    environment = {**os.environ, system_folders.HOME: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), name: value}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 1
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
