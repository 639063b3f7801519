"""The decoder of the settings file and of an override from the command line."""

from pathlib import Path

import msgspec

from waggle.core import settings as core_settings
from waggle.core.errors import SettingsError
from waggle_lab.security.decoders import Decoder

SEEDS = (
    b'[swarm]\nport = 4001\nseeds = ["/ip4/192.0.2.1/tcp/4001/p2p/12D3"]\n[learning]\nlocal = 4\nlearning_rate = 5e-4\n'
    b"\0swarm.solo=true",
    b'[learning]\nspecialties = ["bf"]\nrule = "ppo"\n[computer]\nthreads = 2\n[window]\ntheme = "dark"\n\0model.folder=/a b',
)


def settings(scratch: Path) -> Decoder:
    """A file and, after a zero byte, one override."""
    path = scratch / "settings.toml"

    def check(data: bytes) -> None:
        content, mark, override = data.partition(b"\0")
        path.write_bytes(content)
        try:
            decoded = core_settings.read(path, (override.decode("utf-8", "surrogateescape"),) if mark else ())
        except SettingsError as refused:
            assert refused.title
            assert refused.advice
            return
        finally:
            assert path.read_bytes() == content
        assert decoded.learning.local + decoded.learning.external > 0
        assert msgspec.convert(msgspec.to_builtins(decoded), core_settings.Settings) == decoded

    return Decoder(SEEDS, check)
