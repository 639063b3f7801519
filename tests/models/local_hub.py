"""A local hub that implements what huggingface_hub needs of the real one, and records its requests.

It serves large files (LFS) from another origin (`localhost`, not 127.0.0.1), as the real one does through its CDN.
"""

import base64
import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

COMMIT, NEWER = "c0ffee" + "0" * 34, "c0ffee" + "1" * 34
LARGE = (".safetensors", ".bin")
TOKEN = "hf_a_token_of_a_test"


@dataclass(frozen=True)
class HubRequest:
    method: str
    path: str
    range: str
    token: str


@dataclass
class Hub:
    """The hub's content, its faults, and its requests. Files are bytes by name, by repository."""

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    newer: dict[str, dict[str, bytes]] = field(default_factory=dict)  # the small files of a newer commit
    gated: set[str] = field(default_factory=set)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # what it says of a model beside its files
    private: set[str] = field(default_factory=set)
    damage: dict[str, int] = field(default_factory=dict)  # a file's name: how many times it is sent with a wrong byte
    cut: dict[str, list[int]] = field(default_factory=dict)  # after how many bytes each connection breaks, in order
    hold: dict[str, int] = field(default_factory=dict)  # after how many bytes it stalls until it is released
    sizes: dict[str, int] = field(default_factory=dict)  # wrong sizes of files that it reports
    knows_range: bool = True
    circles: bool = False  # whether it redirects each request to the same address
    trouble: int = 0  # the status of each answer about a model
    says: bytes = b""  # the body of each answer about a model
    requests: list[HubRequest] = field(default_factory=list)
    bytes_sent: dict[str, int] = field(default_factory=dict)  # for each file
    uploaded: dict[str, dict[str, bytes]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    large: dict[str, bytes] = field(default_factory=dict)  # uploads to the large storage, by checksum
    endpoint: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def add(self, repository: str, folder: Path, **more: bytes) -> None:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.repositories[repository] = files | {name.replace("__", "."): content for name, content in more.items()}

    def requests_for(self, name: str) -> list[HubRequest]:
        return [request for request in self.requests if request.path.endswith(name)]


@contextmanager
def local_hub() -> Iterator[Hub]:
    """Run the hub until the end of the block."""
    hub = Hub()

    class Answer(_Answer):
        pass

    Answer.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    serving.start()
    try:
        yield hub
    finally:
        hub.released.set()
        server.shutdown()
        server.server_close()


@contextmanager
def no_hub() -> Iterator[str]:
    """An endpoint that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class _Answer(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _noted(self) -> bytes:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.requests.append(HubRequest(self.command, self.path, self.headers.get("Range", ""), token))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self) -> None:
        self._noted()
        if self.hub.circles:
            self._lead(self.path)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/?]+)(?:/revision/([^?]+))?(?:\?.*)?", self.path):
            self._tell_model(match[1], match[2])
        elif urlsplit(self.path).path == "/api/models":
            self._search(parse_qs(urlsplit(self.path).query))
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path):
            self._resolve(match[1], match[2], match[3])
        elif match := re.fullmatch(r"/cdn/([^/]+/[^/]+)/(.+)", self.path):
            self._give(self.hub.repositories[match[1]][match[2]], match[2])
        else:
            self._refuse(404, "")

    def _tell_model(self, repository: str, revision: str | None) -> None:
        if self.hub.trouble:
            self._refuse(self.hub.trouble, "")
        elif self.hub.says:
            self._write(self.hub.says)
        elif not self._allowed(repository):
            self._refuse(401, "RepoNotFound")
        elif revision not in (None, "main", COMMIT):
            self._refuse(404, "RevisionNotFound")
        else:
            commit = NEWER if repository in self.hub.newer and revision != COMMIT else COMMIT
            files = self._files(repository, commit)
            siblings = [self._sibling(*file) for file in files.items()]
            self._json({**self._facts(repository), "id": repository, "sha": commit, "siblings": siblings})

    def _search(self, query: dict[str, list[str]]) -> None:
        """The list of models as the real hub sends it: by name and tag, sorted, with the properties that were to be expanded."""
        if self.hub.trouble:
            self._refuse(self.hub.trouble, "")
            return
        if self.hub.says:
            self._write(self.hub.says)
            return
        words, tags = query.get("search", [""])[0].lower(), set(query.get("filter", []))
        fitting = [
            {"_id": git_sum(name.encode())[:24], "id": name, **self._facts(name)}
            for name in self.hub.repositories
            if words in name.lower() and tags <= set(self._facts(name)["tags"]) and name not in self.hub.private
        ]
        fitting.sort(key=lambda model: -model[query["sort"][0]])
        fields = {"_id", "id", *query.get("expand", [])}
        self._json([{key: model[key] for key in model if key in fields} for model in fitting[: int(query["limit"][0])]])

    def _facts(self, repository: str) -> dict[str, Any]:
        files = self.hub.repositories[repository]
        form = ["safetensors"] if any(name.endswith(".safetensors") for name in files) else []
        usual = {"tags": ["transformers", *form], "gated": "manual" if repository in self.hub.gated else False,
                 "downloads": 0, "pipeline_tag": "text-generation"}  # fmt: skip
        return usual | self.hub.facts.get(repository, {})

    def _files(self, repository: str, commit: str) -> dict[str, bytes]:
        return self.hub.repositories[repository] | (self.hub.newer.get(repository, {}) if commit == NEWER else {})

    def _sibling(self, name: str, content: bytes) -> dict[str, Any]:
        size = self.hub.sizes.get(name, len(content))
        description = {"rfilename": name, "size": size, "blobId": git_sum(content)}
        if name.endswith(LARGE):
            description["lfs"] = {"size": size, "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 134}
        return description

    def _resolve(self, repository: str, commit: str, name: str) -> None:
        if not self._allowed(repository):
            self._refuse(401, "RepoNotFound")
        elif repository in self.hub.gated and not self.headers.get("Authorization"):
            self._refuse(403, "GatedRepo")
        elif commit not in (COMMIT, NEWER):
            self._refuse(404, "RevisionNotFound")
        elif name not in self._files(repository, commit):
            self._refuse(404, "EntryNotFound")
        elif name.endswith(LARGE):
            self._lead(f"http://localhost:{self.server.server_port}/cdn/{repository}/{name}")
        else:
            self._give(self._files(repository, commit)[name], name)

    def _allowed(self, repository: str) -> bool:
        secret = repository in self.hub.private and self.headers.get("Authorization") != f"Bearer {TOKEN}"
        return repository in self.hub.repositories and not secret

    def _give(self, content: bytes, name: str) -> None:
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if self.hub.knows_range else None
        start = int(byte_range[1]) if byte_range else 0
        if self.hub.damage.get(name, 0) > 0:
            self.hub.damage[name] -= 1
            content = content[:-1] + bytes([content[-1] ^ 1])
        self.send_response(206 if byte_range else 200)
        whole = len(content)
        content = content[: int(byte_range[2]) + 1] if byte_range and byte_range[2] else content
        self.send_header("Content-Length", str(len(content) - start))
        if byte_range:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{whole}")
        self.end_headers()
        with suppress(ConnectionError):  # the client was killed, or stopped
            self._write_some(content, start, name)

    def _write_some(self, content: bytes, start: int, name: str) -> None:
        cuts = self.hub.cut.get(name)
        last = cuts.pop(0) if cuts else self.hub.hold.get(name, len(content))
        self.wfile.write(content[start:last])
        self.hub.bytes_sent[name] = self.hub.bytes_sent.get(name, 0) + len(content[start:last])
        if cuts is not None and last < len(content):
            self.close_connection = True
        elif last < len(content):
            self.hub.released.wait()
            self.wfile.write(content[max(start, last) :])
            self.hub.bytes_sent[name] += len(content[max(start, last) :])

    def do_POST(self) -> None:
        body = self._noted()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(401, "")
        elif self.path == "/api/repos/create":
            self.hub.created.append(repository := json.loads(body))
            self._json({"url": f"{self.hub.endpoint}/{repository['organization']}/{repository['name']}"})
        elif self.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            self._json({"files": [{"path": name, "shouldIgnore": False,
                                   "uploadMode": "lfs" if name.endswith(LARGE) else "regular"} for name in names]})  # fmt: skip
        elif self.path.endswith("/info/lfs/objects/batch"):
            self._json({"objects": [entry | {"actions": {"upload": {"href": f"{self.hub.endpoint}/put/{entry['oid']}"}}}
                                    for entry in json.loads(body)["objects"]]})  # fmt: skip
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", self.path):
            self._commit(match[1], body)
        else:
            self._refuse(404, "")

    def do_PUT(self) -> None:
        self.hub.large[self.path.removeprefix("/put/")] = self._noted()
        self._json({})

    def _commit(self, repository: str, body: bytes) -> None:
        files = self.hub.uploaded.setdefault(repository, {})
        for line in map(json.loads, body.splitlines()):
            match line["key"]:
                case "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
                case "lfsFile":
                    files[line["value"]["path"]] = self.hub.large[line["value"]["oid"]]
        self._json({"commitUrl": f"{self.hub.endpoint}/{repository}/commit/{COMMIT}", "commitOid": COMMIT})

    def _json(self, content: dict[str, Any] | list[dict[str, Any]]) -> None:
        self._write(json.dumps(content).encode())

    def _write(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _lead(self, elsewhere: str) -> None:
        self.send_response(302)
        self.send_header("Location", elsewhere)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def git_sum(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
