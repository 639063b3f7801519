"""The swarms that come with Waggle, which need no invite and no file of their charter, and which models they are for."""

from functools import cache

from waggle.tasks.charter import Charter, Specialty

REAL, SMALL = 10_000_000, 1_000_000_000  # weights: of the smallest model that is no toy, and of the smallest that is not small


@cache
def first_swarm() -> Charter:
    """First light, the default: the specialties of the SAPO paper (section 4.1) in easy levels.

    Deductions stand in place of its propositional logic.
    """
    titles = {
        "base_conversion": "Base conversion",
        "basic_arithmetic": "Arithmetic",
        "arc_1d": "Grids in a line",
        "bf": "Tiny programs",
        "logic_deduction": "Logic",
        "fraction_simplification": "Fractions",
        "decimal_arithmetic": "Decimals",
        "calendar_arithmetic": "Calendar",
        "binary_matrix": "Grids",
    }
    return Charter(
        name="First light",
        questions_digest="8bea320cb10261f812178edeb7aaf95270323abc0d105fca5469b1d668a01349",
        specialties=_easy(titles),
    )


@cache
def first_steps() -> Charter:
    """First steps, for small language models: specialties in which SmolLM2-135M learns (tests/measured/real_model)."""
    titles = {
        "aiw": "Alice's family",
        "basic_arithmetic": "Arithmetic",
        "chain_sum": "Sums",
        "calendar_arithmetic": "Calendar",
        "products": "Products",
    }
    return Charter(
        name="First steps",
        questions_digest="aa09e72c5b678753294e0f3059481309f7ebaf2413d15e5ed7f52b967fb49262",
        specialties=_easy(titles),
        model_hint="Small language models",
    )


def shipped_swarms() -> tuple[Charter, ...]:
    """All of them, the default first."""
    return first_swarm(), first_steps()


@cache
def shipped_swarm(digest: str) -> Charter | None:
    """The shipped swarm of this charter hash (hex); None if no shipped one has it."""
    return next((charter for charter in shipped_swarms() if charter.digest.hex() == digest), None)


def shipped_swarm_called(name: str) -> Charter | None:
    """The shipped swarm of this name, in whichever case; None if no shipped one has it."""
    return next((charter for charter in shipped_swarms() if charter.name.casefold() == name.strip().casefold()), None)


def is_shipped(charter: Charter) -> bool:
    """Whether this swarm comes with Waggle."""
    return charter in shipped_swarms()


def swarm_for(weights: int) -> Charter:
    """The shipped swarm to begin in with a model of so many weights."""
    return first_steps() if REAL <= weights < SMALL else first_swarm()


def better_swarm(here: Charter, weights: int) -> Charter | None:
    """The swarm to suggest to a model in another one: First steps to a small language model in First light, else None."""
    other = swarm_for(weights)
    return other if here == first_swarm() and other != here else None


def _easy(titles: dict[str, str]) -> tuple[Specialty, ...]:
    """Specialties in their easy level, from a title for each dataset."""
    return tuple(Specialty(dataset=dataset, title=title, levels=("easy",)) for dataset, title in titles.items())
