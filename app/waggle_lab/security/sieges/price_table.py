"""The two prices of an attack: what the attackers paid, beside what it cost the victims, against a siege without an attack."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import msgspec

from waggle_lab.security.sieges.attack_process import NO_ATTACK
from waggle_lab.security.sieges.prices import AttackerPrice, VictimPrice
from waggle_lab.security.sieges.siege import Siege
from waggle_lab.study.comparison import DEFAULT

KIB = 1024
COLUMNS = {  # of the table: title -> figure
    "attack": "attack",
    "hostile": "hostile",
    "rounds": "rounds",
    "seeds": "seeds",
    "attackers: answers": "attacker_answers",
    "KiB sent": "attacker_kib",
    "CPU s": "attacker_cpu_s",
    "victims: held-out ratio": "heldout_ratio",
    "right lost": "right_lost",
    "tokens/answer": "tokens_per_answer",
    "without": "tokens_per_answer_without",
    "shows it": "shown",
    "without it": "shown_without",
    "hostile pull": "hostile_pull",
    "KiB read": "victim_kib",
    "more CPU s": "victim_cpu_s",
    "honest groups ratio": "honest_received_ratio",
    "calls at a bystander": "bystander_calls",
}


def comparisons(sieges: Sequence[Siege]) -> list[dict[str, object]]:
    """One for each attack and number of hostile nodes: figures as in COLUMNS, means over the seeds.

    `right_lost` is a share of the right completions of the same nodes without attackers, negative if there were more; only of
    scored sieges. Live and simulated sieges are apart.
    """
    groups: dict[tuple[str, int, bool, str], list[tuple[Siege, Siege | None]]] = {}
    for siege in sieges:
        key = siege.key
        if key.attack != NO_ATTACK and siege.attackers and siege.victims:
            groups.setdefault((key.attack, key.hostile, key.simulated, key.configuration), []).append(
                (siege, _without(siege, sieges))
            )
    return [_comparison(pairs) for pairs in groups.values()]


def table(sieges: Sequence[Siege]) -> str:
    """A table in Markdown, empty without sieges whose prices are known."""
    rows = [f"| {' | '.join(COLUMNS)} |\n", "|" + " --- |" * len(COLUMNS) + "\n"]
    for figures in comparisons(sieges):
        rows.append(f"| {' | '.join(str(figures.get(name, '-')) for name in COLUMNS.values())} |\n")
    return "".join(rows) if len(rows) > 2 else ""


def _without(siege: Siege, sieges: Sequence[Siege]) -> Siege | None:
    """The siege of the same honest nodes, in which nobody attacks."""
    key = siege.key
    same = [
        other
        for other in sieges
        if other.key.attack == NO_ATTACK
        and other.victims
        and msgspec.structs.replace(other.key, attack=key.attack, hostile=key.hostile) == key
    ]
    return same[0] if same else None


def _comparison(pairs: Sequence[tuple[Siege, Siege | None]]) -> dict[str, object]:
    key = pairs[0][0].key
    attackers = [siege.attackers for siege, _ in pairs if siege.attackers]
    victims = [siege.victims for siege, _ in pairs if siege.victims]
    others = [without.victims for _, without in pairs if without and without.victims]
    figures: dict[str, object] = {
        "attack": key.attack if key.configuration == DEFAULT else f"{key.attack} ({key.configuration})",
        "hostile": key.hostile,
        "simulated": key.simulated,
        "rounds": key.rounds,
        "seeds": len(pairs),
        **_paid(attackers),
        "tokens_per_answer": round(fmean(price.tokens_per_answer for price in victims), 2),
        "hostile_pull": round(fmean(price.hostile_pull for price in victims), 4),
        **_shares_showing(key.attack, victims, others),
    }
    if read := [price.received_bytes for price in victims if price.received_bytes is not None]:
        figures["victim_kib"] = round(fmean(read) / KIB)
    if named := [siege.bystander_calls for siege, _ in pairs if siege.bystander_calls is not None]:
        figures["bystander_calls"] = sum(named)
    if len(others) == len(victims):
        figures |= {
            "tokens_per_answer_without": round(fmean(price.tokens_per_answer for price in others), 2),
            "victim_cpu_s": round(fmean(map(_cpu_seconds, victims)) - fmean(map(_cpu_seconds, others)), 1),
        }
    if not key.simulated and (arrived := [_arrived(siege, without) for siege, without in pairs if without]):
        figures["honest_received_ratio"] = round(fmean(arrived), 2)
    if ratios := list(_held_out_ratios(pairs)):
        figures |= {
            "heldout_ratio": round(fmean(ratios), 3),
            "heldout_ratios": [round(ratio, 3) for ratio in ratios],
            "right_lost": round(1 - sum(map(_right_share, victims)) / (sum(map(_right_share, others)) or 1.0), 3),
        }
    return figures


def _paid(attackers: Sequence[AttackerPrice]) -> dict[str, object]:
    return {
        "attacker_answers": round(fmean(price.answers for price in attackers)),
        "attacker_kib": round(fmean(price.sent_bytes for price in attackers) / KIB),
        "attacker_cpu_s": round(fmean(price.cpu_seconds for price in attackers), 1),
    }


def _shares_showing(attack: str, victims: Sequence[VictimPrice], others: Sequence[VictimPrice]) -> dict[str, object]:
    """How many of the victims' completions show the lesson, if the attack is one."""
    shares = {"shown": victims, "shown_without": others}
    return {name: round(fmean(price.shares_showing[attack] for price in prices), 4) for name, prices in shares.items()
            if prices and all(attack in price.shares_showing for price in prices)}  # fmt: skip


def _cpu_seconds(price: VictimPrice) -> float:
    return price.cpu_seconds


def _right_share(price: VictimPrice) -> float:
    return price.right / max(1, price.answers)


def _arrived(siege: Siege, without: Siege) -> float:
    """Groups of honest nodes that arrived at honest nodes per round, over those without an attack."""
    rates = [each.honest_received / (each.played or 1) for each in (siege, without)]
    return rates[0] / (rates[1] or 1.0)


def _held_out_ratios(pairs: Sequence[tuple[Siege, Siege | None]]) -> Iterator[float]:
    for siege, without in pairs:
        if without and siege.held_out and without.held_out and fmean(without.held_out):
            yield fmean(siege.held_out) / fmean(without.held_out)
