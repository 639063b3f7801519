"""The look-up of known vulnerabilities, against a server on this computer that answers as OSV does.

Formats: https://google.github.io/osv.dev/post-v1-querybatch/ and https://ossf.github.io/osv-schema/. The advisories are those of
https://vuln.go.dev, shortened.
"""

import datetime
import json
import shutil
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import go_build_info
import msgspec
import pytest
import vulnerabilities
from vulnerabilities import Accepted, Finding, LockError, Part, Unchecked

QUIC = Part("Go", "github.com/quic-go/quic-go", "0.40.0")
JINJA = Part("PyPI", "jinja2", "2.4.1")
RETIRING = {
    "schema_version": "1.3.1",
    "id": "GO-2024-2682",
    "modified": "2024-05-20T16:03:47Z",
    "published": "2024-04-10T20:29:09Z",
    "aliases": ["CVE-2024-22189", "GHSA-c33x-xqrf-c478"],
    "summary": "Denial of service via connection starvation in github.com/quic-go/quic-go",
    "details": "An attacker can cause its peer to run out of memory by sending a large number of NEW_CONNECTION_ID frames.",
    "affected": [
        {
            "package": {"name": "github.com/quic-go/quic-go", "ecosystem": "Go"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "0.42.0"}]}],
            "ecosystem_specific": {"imports": [{"path": "github.com/quic-go/quic-go", "symbols": ["framer.QueueControlFrame"]}]},
        }
    ],
    "references": [{"type": "FIX", "url": "https://github.com/quic-go/quic-go/commit/4a99b816ae3ab03ae5449d15aac45147c85ed47a"}],
    "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2024-2682", "review_status": "REVIEWED"},
}
WITHDRAWN = {"id": "GO-2023-2114", "modified": "2024-02-01T00:00:00Z", "withdrawn": "2024-01-17T00:00:00Z", "affected": []}
MODIFIED = "2024-05-20T16:03:47Z"
TODAY, LATER = datetime.date(2026, 11, 27), datetime.date(2027, 3, 31)
REASON = "It is not reached, because nothing calls it."


class Osv(BaseHTTPRequestHandler):
    """Answers with what the test put into the server."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.batches.append(body["queries"])
        self._answer(self.server.batch(body["queries"]))

    def do_GET(self):
        identifier = self.path.removeprefix("/v1/vulns/")
        known = self.server.advisories.get(identifier)
        self._answer(known if known is not None else {"code": 5, "message": "Bug not found."}, 200 if known is not None else 404)

    def _answer(self, content, status=200):
        if callable(content):
            content(self)
            return
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def osv():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Osv)
    server.daemon_threads = True
    server.batches, server.advisories = [], {each["id"]: each for each in (RETIRING, WITHDRAWN)}
    server.vulnerable = {}  # name: ids
    server.batch = lambda queries: {
        "results": [_result(server.vulnerable.get(query["package"]["name"], [])) for query in queries]
    }
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def _result(ids, token=""):
    result = {"vulns": [{"id": identifier, "modified": MODIFIED} for identifier in ids]} if ids else {}
    return {**result, "next_page_token": token} if token else result


def _accepted(**changes):
    return Accepted(**{"package": "Go:" + QUIC.name, "ids": ["CVE-2024-22189"], "reason": REASON, "until": LATER, **changes})


def test_what_osv_knows_of_a_part_has_all_its_names(osv):
    osv.vulnerable = {QUIC.name: ["GO-2024-2682"]}
    names = frozenset({"GO-2024-2682", "CVE-2024-22189", "GHSA-c33x-xqrf-c478"})
    assert vulnerabilities.look_up([JINJA, QUIC], osv.url) == [Finding(QUIC, names, RETIRING["summary"])]
    assert osv.batches == [
        [
            {"package": {"ecosystem": "PyPI", "name": "jinja2"}, "version": "2.4.1"},
            {"package": {"ecosystem": "Go", "name": QUIC.name}, "version": "0.40.0"},
        ]
    ]


def test_a_withdrawn_advisory_is_none(osv):
    osv.vulnerable = {QUIC.name: ["GO-2023-2114"]}
    assert vulnerabilities.look_up([QUIC], osv.url) == []


def test_every_page_is_read_and_only_those_that_go_on_are_asked_about(osv):
    def batch(queries):
        if "page_token" in queries[0]:
            return {"results": [_result(["GO-2024-2682"])]}
        return {"results": [_result([]), _result(["GO-2023-2114"], token="more")]}

    osv.batch = batch
    assert [finding.part for finding in vulnerabilities.look_up([JINJA, QUIC], osv.url)] == [QUIC]
    assert [[query.get("page_token") for query in queries] for queries in osv.batches] == [[None, None], ["more"]]


def test_pages_without_end_are_given_up(osv):
    osv.batch = lambda queries: {"results": [_result([], token="more") for _ in queries]}
    with pytest.raises(Unchecked, match="pages"):
        vulnerabilities.look_up([QUIC], osv.url)
    assert len(osv.batches) == vulnerabilities.MAX_PAGES


def test_many_parts_are_asked_about_in_several_requests(osv, monkeypatch):
    monkeypatch.setattr(vulnerabilities, "BATCH", 2)
    osv.vulnerable = {QUIC.name: ["GO-2024-2682"]}
    parts = [JINJA, Part("PyPI", "torch", "2.13.0"), QUIC]
    assert [finding.part for finding in vulnerabilities.look_up(parts, osv.url)] == [QUIC]
    assert [len(queries) for queries in osv.batches] == [2, 1]


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"{", b"[]", b"<html>sign in to this network</html>", b"\xff\xfe", b'{"results": null}', b'{"results": {}}', b"{}",
        b'{"results": []}', b'{"results": [{}, {}]}', b'{"results": [{"vulns": [{}]}]}', b'{"results": [{"vulns": [{"id": 7}]}]}',
        b'{"results": [{"vulns": [{"id": "../../x"}]}]}', b'{"results": [{"vulns": [{"id": "GO-1\\n::error::"}]}]}',
        b'{"code": 3, "message": "Invalid query."}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_not_taken_for_a_clear_one(osv, answer):
    osv.batch = lambda _: answer
    with pytest.raises(Unchecked):
        vulnerabilities.look_up([QUIC], osv.url)


def test_an_advisory_that_is_missing_or_another_one_is_not_passed_over(osv):
    osv.vulnerable = {QUIC.name: ["GO-2099-0001"]}
    with pytest.raises(Unchecked, match="status 404"):
        vulnerabilities.look_up([QUIC], osv.url)
    osv.advisories["GO-2099-0001"] = WITHDRAWN
    with pytest.raises(Unchecked, match="another advisory"):
        vulnerabilities.look_up([QUIC], osv.url)


def test_a_huge_answer_is_read_no_further_than_its_limit(osv, monkeypatch):
    monkeypatch.setattr(vulnerabilities, "MAX_ANSWER", 1 << 20)
    osv.batch = lambda _: b" " * (64 << 20)
    with pytest.raises(Unchecked, match="larger than 1 MiB"):
        vulnerabilities.look_up([QUIC], osv.url)


def test_a_packed_answer_counts_unpacked(osv, monkeypatch):
    import gzip

    monkeypatch.setattr(vulnerabilities, "MAX_ANSWER", 1 << 20)
    bomb = gzip.compress(b" " * (64 << 20))

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(bomb)))
        handler.end_headers()
        handler.wfile.write(bomb)

    osv.batch = lambda _: answer
    with pytest.raises(Unchecked, match="larger than 1 MiB"):
        vulnerabilities.look_up([QUIC], osv.url)


def test_too_many_findings_are_not_fetched_one_by_one(osv, monkeypatch):
    monkeypatch.setattr(vulnerabilities, "MAX_FINDINGS", 10)
    osv.vulnerable = {QUIC.name: [f"GO-2099-{number}" for number in range(11)]}
    with pytest.raises(Unchecked, match="more than 10"):
        vulnerabilities.look_up([QUIC], osv.url)


def test_a_server_that_says_nothing_is_given_up(osv):
    released = threading.Event()
    osv.batch = lambda _: lambda handler: released.wait(60)
    try:
        with pytest.raises(Unchecked, match="ReadTimeout"):
            vulnerabilities.look_up([QUIC], osv.url, timeout_s=0.2)
    finally:
        released.set()


def test_a_server_that_drips_is_given_up(osv, monkeypatch):
    monkeypatch.setattr(vulnerabilities, "ANSWER_S", 0.2)

    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" ")
                time.sleep(0.01)
        except OSError:  # given up
            pass

    osv.batch = lambda _: drip
    with pytest.raises(Unchecked, match="takes longer"):
        vulnerabilities.look_up([QUIC], osv.url)


def test_a_redirection_is_not_followed(osv):
    def elsewhere(handler):
        handler.send_response(302)
        handler.send_header("Location", f"{osv.url}/v1/vulns/GO-2024-2682")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    osv.batch = lambda _: elsewhere
    with pytest.raises(Unchecked, match="status 302"):
        vulnerabilities.look_up([QUIC], osv.url)


def _main(osv_url, tmp_path, monkeypatch, listed=""):
    """The whole check, of a lock with two packages and without p2pd's modules but one."""
    known = tmp_path / "known.toml"
    known.write_text(listed, encoding="utf-8")
    monkeypatch.setattr(vulnerabilities, "locked_parts", lambda _: [JINJA])
    monkeypatch.setattr(vulnerabilities, "cuda_parts", lambda _: [])
    monkeypatch.setattr(vulnerabilities, "p2pd", lambda: tmp_path)  # hivemind is not installed on Windows
    monkeypatch.setattr(vulnerabilities, "go_parts", lambda *_: [QUIC])
    return vulnerabilities.main(["--notes", str(tmp_path / "dist/notes.md")], url=osv_url, known=known)


LISTED = f'[[accepted]]\npackage = "Go:{QUIC.name}"\nids = ["CVE-2024-22189"]\nreason = "{REASON}"\nuntil = 2999-12-31\n'


def test_a_finding_fails_the_check_and_a_listed_one_does_not(osv, tmp_path, monkeypatch, capsys):
    osv.vulnerable = {QUIC.name: ["GO-2024-2682"]}
    assert _main(osv.url, tmp_path, monkeypatch) == vulnerabilities.VULNERABLE
    assert "::error::VULNERABLE: Go:github.com/quic-go/quic-go 0.40.0: CVE-2024-22189" in capsys.readouterr().out
    assert _main(osv.url, tmp_path, monkeypatch, LISTED) == vulnerabilities.CLEAR
    assert "open, listed" in capsys.readouterr().out
    assert not (tmp_path / "dist/notes.md").exists()


def test_without_a_connection_it_says_not_checked_and_does_not_pass(tmp_path, monkeypatch, capsys):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        status = _main(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path, monkeypatch, LISTED)
    assert status == vulnerabilities.UNCHECKED
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["::warning::NOT CHECKED for known vulnerabilities: 2 parts: OSV cannot be reached (ConnectError)"]
    assert (tmp_path / "dist/notes.md").read_text(encoding="utf-8") == (
        "- Not checked for known vulnerabilities: 2 parts: OSV cannot be reached (ConnectError)\n"
    )


def test_a_p2pd_that_cannot_be_read_is_not_passed_over(osv, tmp_path, monkeypatch, capsys):
    known = tmp_path / "known.toml"
    known.write_text("", encoding="utf-8")
    monkeypatch.setattr(vulnerabilities, "p2pd", lambda: tmp_path / "away")
    assert vulnerabilities.main([], url=osv.url, known=known) == vulnerabilities.UNCHECKED
    assert "NOT CHECKED for known vulnerabilities: p2pd: away cannot be read" in capsys.readouterr().out


def test_a_reason_counts_until_its_day_for_its_package_and_its_ids(capsys):
    finding = Finding(QUIC, frozenset({"GO-2024-2682", "CVE-2024-22189"}), "")
    for entry, status in (
        (_accepted(), vulnerabilities.CLEAR),
        (_accepted(until=TODAY), vulnerabilities.CLEAR),
        (_accepted(until=TODAY - datetime.timedelta(days=1)), vulnerabilities.VULNERABLE),
        (_accepted(package="PyPI:" + QUIC.name), vulnerabilities.VULNERABLE),
        (_accepted(ids=["CVE-2023-49295"]), vulnerabilities.VULNERABLE),
    ):
        assert vulnerabilities.report([finding], [entry], TODAY, everything=True) == status
    assert "the reason expired on 2026-11-26" in capsys.readouterr().out


def test_what_is_no_longer_known_is_named_only_after_a_whole_check(capsys):
    vulnerabilities.report([], [_accepted()], TODAY, everything=False)
    assert capsys.readouterr().out == ""
    assert vulnerabilities.report([], [_accepted()], TODAY, everything=True) == vulnerabilities.CLEAR
    assert "no longer known" in capsys.readouterr().out


def test_words_of_osv_give_the_workflow_no_commands(osv, capsys):
    osv.advisories["GO-2024-2682"] = {**RETIRING, "summary": "x\n::set-output name=y::z"}
    osv.vulnerable = {QUIC.name: ["GO-2024-2682"]}
    vulnerabilities.report(vulnerabilities.look_up([QUIC], osv.url), [], TODAY, everything=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("x :set-output name=y:z")


def test_the_list_of_this_release_is_read_and_names_the_holes_of_quic():
    accepted = vulnerabilities.accepted_vulnerabilities(vulnerabilities.KNOWN)
    of_quic = {identifier: entry.reason for entry in accepted if entry.package == f"Go:{QUIC.name}" for identifier in entry.ids}
    assert of_quic["CVE-2023-49295"].startswith("Open.")
    assert of_quic["CVE-2024-22189"].startswith("Open.")
    named = [(entry.package, identifier) for entry in accepted for identifier in entry.ids]
    assert len(set(named)) == len(named)


@pytest.mark.parametrize(
    "listed",
    [
        "[[accepted]", LISTED.replace(REASON, "no"), LISTED.replace('["CVE-2024-22189"]', "[]"),
        LISTED.replace("2999-12-31", '"x"'), LISTED.replace("reason", "because"), LISTED.replace("until = 2999-12-31", ""),
    ],
)  # fmt: skip
def test_a_list_that_says_too_little_is_refused(tmp_path, listed):
    path = tmp_path / "known.toml"
    path.write_text(listed, encoding="utf-8")
    with pytest.raises(LockError):
        vulnerabilities.accepted_vulnerabilities(path)


def test_every_line_of_the_locks_is_a_part():
    locks = sorted(vulnerabilities.HERE.glob("*lock*.txt"))
    lines = {line for lock in locks for line in lock.read_text(encoding="utf-8").splitlines() if "==" in line}
    parts = vulnerabilities.locked_parts(locks)
    assert len(parts) == len(lines) > 100
    assert "mypy-extensions" in {part.name for part in parts}
    assert any(part.name.startswith("nvidia-") for part in vulnerabilities.cuda_parts(vulnerabilities.CUDA))


def test_a_lock_with_hashes_markers_and_local_versions_is_read(tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text(
        "# by pip\n--extra-index-url https://download.pytorch.org/whl/cpu\ntorch==2.13.0+cpu ; sys_platform == 'win32' \\\n"
        "    --hash=sha256:00 \\\n    --hash=sha256:01\n\nRuamel.yaml==0.18.6  # why\n",
        encoding="utf-8",
    )
    assert vulnerabilities.locked_parts([lock]) == [Part("PyPI", "torch", "2.13.0"), Part("PyPI", "ruamel-yaml", "0.18.6")]


@pytest.mark.parametrize("line", ["torch>=2", "torch", "torch==2.*", "torch==2,!=3", "-r other.txt", "./torch.whl", ""])
def test_a_lock_that_does_not_lock_is_refused(tmp_path, line):
    lock = tmp_path / "lock.txt"
    lock.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(LockError):
        vulnerabilities.locked_parts([lock])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="p2pd is packed and can be looked into on Linux only")
def test_p2pd_says_of_what_it_is_built():
    parts = vulnerabilities.go_parts(vulnerabilities.p2pd(), lambda _: None)
    versions = {part.name: part.version for part in parts}
    assert (versions["stdlib"], versions["github.com/libp2p/go-libp2p"]) == ("1.20.11", "0.32.1")
    assert versions["github.com/quic-go/quic-go"] == "0.40.0"
    listed = {entry.package for entry in vulnerabilities.accepted_vulnerabilities(vulnerabilities.KNOWN)}
    assert listed <= {f"{part.ecosystem}:{part.name}" for part in parts}


def _build_info(go, table):
    def text(words):
        words = words.encode()
        size = bytes([len(words) & 0x7F | 0x80, len(words) >> 7]) if len(words) > 127 else bytes([len(words)])
        return size + words

    around = "0" * go_build_info.SENTINEL
    return b"\x7fELF" + go_build_info.MAGIC + b"\x08\x02" + bytes(16) + text(go) + text(around + table + around)


def test_a_replaced_module_is_the_one_that_replaces_it():
    table = (
        "path\tx/p2pd\nmod\tx\t(devel)\t\ndep\ta.org/b\tv1.2.3\th1:x\ndep\tc.org/d\tv0.1.0\n=>\te.org/d\tv0.2.0-rc.1\th1:y\n"
        "dep\tf.org/g\tv2.0.0+incompatible\th1:z\nbuild\tGOOS=linux\n"
    )
    modules = {"a.org/b": "1.2.3", "e.org/d": "0.2.0-rc.1", "f.org/g": "2.0.0+incompatible"}
    build = go_build_info.parse(_build_info("go1.22.1 X:nocoverageredesign", table))
    assert build == go_build_info.GoBuild("1.22.1", modules, ("x",))


@pytest.mark.parametrize("end", range(0, 100, 7))
def test_build_information_that_was_cut_off_is_refused(end):
    whole = _build_info("go1.20.11", "dep\ta.org/b\tv1.2.3\th1:x\n" * 3)
    with pytest.raises(go_build_info.UnreadableBuildInfo):
        go_build_info.parse(whole[:end])


def test_an_executable_that_is_no_go_program_is_refused(tmp_path):
    plain = tmp_path / "plain"
    shutil.copyfile(sys.executable, plain)
    with pytest.raises(go_build_info.UnreadableBuildInfo, match="no build information"):
        go_build_info.read(plain)


def test_a_packed_executable_that_does_not_start_is_refused(tmp_path):
    packed = tmp_path / "packed"
    packed.write_bytes(go_build_info.PACKED)
    packed.chmod(0o700)
    with pytest.raises(go_build_info.UnreadableBuildInfo):
        go_build_info.read(packed)


def test_an_advisory_may_carry_what_we_do_not_know():
    assert msgspec.json.decode(json.dumps(RETIRING), type=vulnerabilities._Advisory).aliases == RETIRING["aliases"]
