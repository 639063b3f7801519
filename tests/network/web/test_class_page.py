"""The page of a class: who is here and what was found, names escaped, and an invite only for those who ask by its address."""

from pathlib import Path

import httpx2
import msgspec
import pytest

from network.loopback import judged
from waggle.core.peer_id import short_id, text_of
from waggle.network.identity.keys import load_or_create, name_of
from waggle.network.limits.reputation import PeerReputation
from waggle.network.messages.events import GroupsArrived, PeerChanged
from waggle.network.web import class_page
from waggle.network.web.class_statistics import LATEST, MOST_MEMBERS, PRESENT_S, ClassStatistics, ClassStatus, PupilStatus
from waggle.network.web.server import WebServer
from waggle.network.web.statistics import SwarmStatistics
from waggle.network.web.training_status import AhaStatus, TrainingStatus
from waggle.tasks.charter import Charter
from waggle.tasks.shipped_swarms import first_swarm

NOW, LINK = 1_800_000_000.0, "waggle://join?charter=" + "ab" * 32 + "#key=secret"


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lesson(clock: Clock) -> ClassStatistics:
    return ClassStatistics(first_swarm(), clock)


@pytest.fixture
def pupils(tmp_path: Path) -> list[bytes]:
    return [load_or_create(tmp_path / f"{number}.key").peer_id for number in range(2)]


def arrived(origin: bytes) -> GroupsArrived:
    return GroupsArrived(origin=origin, round=1, model="Starter", groups=(judged(1, 1), judged(1, 2)))


def called(origin: bytes, name: str, choice: str = "") -> PeerChanged:
    peer = PeerReputation(id=origin, name=name_of(origin), chosen_name=name, seen_at=NOW)
    return PeerChanged(peer=msgspec.structs.replace(peer, choice=choice))


def status_of(lesson: ClassStatistics, training: TrainingStatus | None = None) -> ClassStatus:
    return lesson.status(own_name="Teacher", training=training, link=LINK, page="http://192.0.2.1:8080/join")


def test_two_of_one_name_are_told_apart_by_their_keys(lesson: ClassStatistics, pupils: list[bytes]) -> None:
    for pupil in pupils:
        lesson.add(arrived(pupil))
        lesson.add(called(pupil, "Ada"))
    page = class_page.content(class_page.CLASS, status_of(lesson)).decode()
    assert page.count("<li><b>Ada</b>") == 2
    assert all(short_id(pupil) in page for pupil in pupils)


def test_the_first_right_answer_of_a_computer_is_found_once_and_by_whom(lesson: ClassStatistics, pupils: list[bytes]) -> None:
    for pupil in (*pupils, *pupils):
        lesson.add(arrived(pupil))
    status = status_of(lesson)
    programs = {each.title: each for each in status.specialties}["Tiny programs"]
    assert (programs.finders, programs.first and programs.first.fingerprint) == (2, short_id(pupils[0]))
    assert [find.specialty for find in status.latest] == ["Tiny programs"] * 2
    assert status.answers > status.right > 0
    assert [pupil.name for pupil in status.pupils] == sorted(map(name_of, pupils), key=str.casefold), "no name was chosen"


def test_who_chose_a_name_is_here_before_its_first_answers_came(lesson: ClassStatistics, pupils: list[bytes]) -> None:
    lesson.add(called(pupils[0], "Ada"))
    lesson.add(called(pupils[1], ""))
    assert [pupil.name for pupil in status_of(lesson).pupils] == ["Ada"], "the other one may be no member"


def test_who_is_muted_or_left_is_not_status_of(lesson: ClassStatistics, pupils: list[bytes], clock: Clock) -> None:
    for pupil in pupils:
        lesson.add(arrived(pupil))
    lesson.add(called(pupils[0], "A rude word", "muted"))
    status = status_of(lesson)
    assert [pupil.fingerprint for pupil in status.pupils] == [short_id(pupils[1])]
    assert all(find.by.name != "A rude word" for find in status.latest)
    clock.now += PRESENT_S + 1
    assert status_of(lesson).pupils == ()


def test_what_the_own_model_knew_before_is_not_found_first(lesson: ClassStatistics, pupils: list[bytes]) -> None:
    ahas = (AhaStatus(specialty="Logic", at=NOW - 9), AhaStatus(specialty="Tiny programs", at=NOW + 9))
    training = TrainingStatus(
        name="Brisk Otter", fingerprint="12345678", model="Starter", device="cpu", phase="contributing", says="", company="alone",
        connected=0, members=0, round=3, ahas=ahas,
    )  # fmt: skip
    status = status_of(lesson, training)
    by_title = {each.title: each for each in status.specialties}
    assert (by_title["Logic"].finders, by_title["Logic"].first) == (1, None)
    assert by_title["Tiny programs"].first == status.pupils[0]
    assert (status.pupils[0].name, status.pupils[0].right) == ("Teacher", None)


def test_what_the_own_model_learned_alone_before_the_class_came_is_not_found_first(
    lesson: ClassStatistics, pupils: list[bytes], clock: Clock
) -> None:
    ahas = (AhaStatus(specialty="Tiny programs", at=NOW + 9), AhaStatus(specialty="Logic", at=NOW + 7200))
    training = TrainingStatus(
        name="Brisk Otter", fingerprint="12345678", model="Starter", device="cpu", phase="contributing", says="", company="alone",
        connected=1, members=1, round=3, ahas=ahas,
    )  # fmt: skip
    clock.now = NOW + 3600
    lesson.add(arrived(pupils[0]))
    by_title = {each.title: each for each in status_of(lesson, training).specialties}
    assert by_title["Tiny programs"].first == PupilStatus(
        name=name_of(pupils[0]), fingerprint=short_id(pupils[0]), right=by_title["Tiny programs"].first.right
    )
    assert by_title["Tiny programs"].finders == 2
    assert by_title["Logic"].first is not None
    assert by_title["Logic"].first.name == "Teacher", "found while the class was there"


def test_a_long_name_stands_whole_in_smaller_letters(lesson: ClassStatistics, pupils: list[bytes]) -> None:
    for pupil, name in zip(pupils, ("Ada", "Ada Lovelace the second"), strict=True):
        lesson.add(arrived(pupil))
        lesson.add(called(pupil, name))
    page = class_page.content(class_page.CLASS, status_of(lesson)).decode()
    assert "<li><b>Ada</b>" in page
    assert '<li><b class="long">Ada Lovelace the second</b>' in page


def test_whose_answer_was_learned_from_stands_by_the_chosen_name_with_the_key(
    lesson: ClassStatistics, pupils: list[bytes]
) -> None:
    ahas = (AhaStatus(specialty="Tiny programs", at=NOW + 9, origin=text_of(pupils[0])),)
    training = TrainingStatus(
        name="Brisk Otter", fingerprint="12345678", model="Starter", device="cpu", phase="contributing", says="", company="alone",
        connected=1, members=1, round=3, ahas=ahas,
    )  # fmt: skip
    lesson.add(arrived(pupils[0]))
    for choice, name in (("", "Ada"), ("muted", name_of(pupils[0]))):
        lesson.add(called(pupils[0], "Ada", choice))
        page = class_page.content(class_page.CLASS, status_of(lesson, training)).decode()
        assert f'learned from <b>{name}</b> <span class="key">{short_id(pupils[0])}</span>' in page


def test_a_crowd_in_a_class_pushes_out_those_longest_unseen(lesson: ClassStatistics, clock: Clock) -> None:
    crowd = [number.to_bytes(38, "big") for number in range(MOST_MEMBERS + 1)]
    for each in crowd:
        clock.now += 0.01
        lesson.add(arrived(each))
    assert set(lesson._members) == set(crowd[1:])
    assert len(status_of(lesson).latest) == LATEST


def test_every_word_of_others_is_escaped(lesson: ClassStatistics, pupils: list[bytes]) -> None:
    hostile = '<img src=x onerror="alert(1)">'
    lesson.add(arrived(pupils[0]))
    lesson.add(called(pupils[0], hostile))
    status = status_of(lesson)
    for path in (class_page.CLASS, class_page.JOIN):
        page = class_page.content(path, status).decode()
        assert "<img" not in page
        assert "<script" not in page
    assert "&lt;img" in class_page.content(class_page.CLASS, status).decode()


@pytest.mark.parametrize(
    ("host", "addresses", "page"),
    [
        ("0.0.0.0", ["/ip4/127.0.0.1/tcp/1/p2p/x", "/ip4/192.168.1.7/tcp/1/p2p/x"], "http://192.168.1.7:80/join"),
        ("0.0.0.0", ["/ip4/8.8.8.8/tcp/1/p2p/x", "/ip4/192.168.1.7/tcp/1/p2p/x"], "http://192.168.1.7:80/join"),
        ("0.0.0.0", ["/ip4/8.8.8.8/tcp/1/p2p/x/p2p-circuit/p2p/y"], ""),
        ("::", ["/ip6/2001:db8::7/tcp/1/p2p/x"], "http://[2001:db8::7]:80/join"),
        ("127.0.0.1", ["/ip4/192.168.1.7/tcp/1/p2p/x"], ""),
        ("192.168.1.7", [], "http://192.168.1.7:80/join"),
        ("localhost", [], ""),
    ],
)
def test_the_address_to_join_by_is_one_that_the_class_can_open(host: str, addresses: list[str], page: str) -> None:
    assert class_page.address(host, 80, addresses) == page


async def test_the_pages_of_a_class_are_served_by_their_address_alone_and_only_where_chosen(
    charter: Charter, lesson: ClassStatistics
) -> None:
    for in_class, code in ((None, 404), (lambda: status_of(lesson), 200)):
        web = WebServer(lambda: SwarmStatistics(charter).status(()), in_class=in_class)
        await web.start("0.0.0.0", 0)
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{web.port}") as client:
                for path in class_page.KINDS:
                    page = await client.get(path)
                    assert page.status_code == code
                    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
                    assert ("secret" in page.text) == (code == 200 and path != class_page.CLASS)
                    foreign = await client.get(path, headers={"Host": f"evil.example:{web.port}"})
                    assert "secret" not in foreign.text, "a name made to lead here reads no key"
        finally:
            await web.close()
