"""Every decoder accepts or refuses any bytes from the network, links and files in the documented way.

`corpus/` holds inputs that the fuzzer selected, `found/` those on which a decoder once failed: one line of hex each.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from almost_valid import almost_valid
from waggle.core.errors import LabError
from waggle_lab.security import decoders
from waggle_lab.security.decoders import NAMES, Decoder, load_decoder

HERE = Path(__file__).parent
Open = Callable[[str], Decoder]


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Open each decoder once."""
    decoders_by_name: dict[str, Decoder] = {}

    def open_one(name: str) -> Decoder:
        if name not in decoders_by_name:
            decoders_by_name[name] = load_decoder(name, tmp_path_factory.mktemp(name))
        return decoders_by_name[name]

    return open_one


@pytest.mark.parametrize("name", NAMES)
def test_every_input_kept_from_fuzzing_is_read_or_refused(name: str, opened: Open) -> None:
    inputs = (*opened(name).seeds, *decoders.read_corpus(HERE / "corpus", name), *decoders.read_corpus(HERE / "found", name))
    assert len(inputs) > len(opened(name).seeds)
    for data in inputs:
        opened(name).check(data)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150)
@given(st.data())
def test_bytes_near_a_valid_message_are_read_or_refused(name: str, opened: Open, data: st.DataObject) -> None:
    opened(name).check(data.draw(almost_valid(opened(name).seeds)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b"a.", b"a=[", b'{"x":{"y":[', b"\x91", b"\x81\xa1a", b"(", b"%", b"#"])
def test_endless_nesting_is_refused(name: str, opening: bytes, opened: Open) -> None:
    opened(name).check(opening * 3000)


def test_a_decoder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no decoder nothing"):
        load_decoder("nothing", tmp_path)
