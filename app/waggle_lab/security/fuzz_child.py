"""One decoder under libFuzzer, in a process of its own: python -m waggle_lab.security.fuzz_child DECODER SCRATCH FLAGS..."""

import sys
from pathlib import Path
from random import Random


def main() -> None:
    """Never returns: libFuzzer ends the process."""
    import atheris

    from waggle_lab.security.mutation import mutated

    program, name, scratch, *flags = sys.argv
    # The parsers that Python itself brings along are followed too: their branches are the ones that inputs take.
    with atheris.instrument_imports(include=["waggle", "tomllib", "ipaddress", "urllib", "json"]):
        from waggle_lab.security.decoders import decoder

        check = decoder(name, Path(scratch)).check

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        random = Random(seed)
        made = mutated(data, random) if random.random() < 0.5 else None
        if made is None or random.random() < 0.1:
            made = atheris.Mutate(data if made is None else made[:longest], longest)
        return bytes(made[:longest])

    atheris.Setup([program, *flags], check, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
