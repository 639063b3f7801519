"""The decoder of the file with the finished runs of a study."""

from pathlib import Path

import msgspec

from waggle.core.errors import LabError
from waggle.practice.results import Aha, Book, Key, Run
from waggle_lab.security.decoders import Decoder


def book(scratch: Path) -> Decoder:
    """A file of runs; its last line may be incomplete."""
    path = scratch / "runs.jsonl"
    key = Key(setting="sparse", configuration="4/4", seed=1, learning_rate=5e-4, rounds=10, split="dev")
    run = Run(
        key=key,
        commit="c",
        cpu_seconds=1.5,
        models=("m",),
        specialties=("bf",),
        reward=(0.5,),
        completions=(64,),
        node_reward=((0.5,),),
        specialty_reward=((0.5,),),
        external_share=(0.25,),
        entropy=(1.0,),
        measured_at=(0, 10),
        held_out=((0.1, 0.2),),
        specialty_held_out=((0.1, 0.2),),
        ahas=(Aha(node=0, specialty="bf", round=3),),
    )

    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            decoded = Book(path, Run)
        except LabError as refused:
            assert refused.advice
            assert path.read_bytes() == data
            return
        assert path.read_bytes() == data
        assert all(decoded[recorded_run.key] == recorded_run for recorded_run in decoded.runs)
        decoded.keep(run)
        assert Book(path, Run).runs == decoded.runs

    line = msgspec.json.encode(run) + b"\n"
    return Decoder((line, line + line.replace(b'"seed":1', b'"seed":2') + b'{"key'), check)
