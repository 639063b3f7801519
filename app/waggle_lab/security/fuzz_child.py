"""Fuzz one decoder under libFuzzer: python -m waggle_lab.security.fuzz_child DECODER SCRATCH FLAGS..."""

import sys
from pathlib import Path
from random import Random


def main() -> None:
    """Fuzz. Never returns: libFuzzer ends the process."""
    import atheris

    from waggle_lab.security.mutation import mutated

    program, name, scratch, *flags = sys.argv
    # Follow the parsers of the standard library too, because the branches that inputs take are in them.
    with atheris.instrument_imports(include=["waggle", "tomllib", "ipaddress", "urllib", "json"]):
        from waggle_lab.security.decoders import load_decoder

        check = load_decoder(name, Path(scratch)).check

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        random = Random(seed)
        mutant = mutated(data, random) if random.random() < 0.5 else None
        if mutant is None or random.random() < 0.1:
            mutant = atheris.Mutate(data if mutant is None else mutant[:longest], longest)
        return bytes(mutant[:longest])

    atheris.Setup([program, *flags], check, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
