"""Why groups and records of a peer were refused, in words.

A reason is the value of a selection Reason (groups) or of a network Fault (records), of this version or an earlier one.
"""

from collections.abc import Mapping

from waggle.gui.i18n.formatting import figure, plural, tr, visible

MOST_REASONS = 3  # of each kind that are named, the most frequent first; the others are only counted


def refusal_sentences(counts: Mapping[str, int]) -> str:
    """One sentence on groups and one on records, from the counts of `State.refusals`; empty without any."""
    reasons = sorted(counts, key=lambda reason: (-counts[reason], reason))
    groups = {reason: words for reason in reasons if (words := group_words(reason, counts[reason]))}
    records = {reason: f"{visible(tr(reason))} ({figure(counts[reason])})" for reason in reasons if reason not in groups}
    sentences = (tr("Left out: %1."), groups), (tr("Dropped because it broke a rule: %1."), records)
    return " ".join(sentence.replace("%1", _reason_list(words, counts)) for sentence, words in sentences if words)


def group_words(reason: str, count: int) -> str:
    """How many groups were refused for this reason; empty if it is the value of no `waggle.sapo.selection.Reason`."""
    match reason:
        case "teaches_nothing":
            return plural(count, "%n taught nothing new", "%n taught nothing new")
        case "too_long":
            return plural(count, "%n was too long for your model", "%n were too long for your model")
        case "unfamiliar":
            return plural(count, "%n had unusual text", "%n had unusual text")
        case "one_sided":
            return plural(
                count,
                "%n taught one answer more often than the questions have it",
                "%n taught one answer more often than the questions have it",
            )
        case "over_share_of_places" | "over_share_of_pull":
            return plural(count, "%n was more than the peer's share", "%n were more than the peer's share")
        case _:
            return ""


def _reason_list(words: Mapping[str, str], counts: Mapping[str, int]) -> str:
    named = ", ".join(list(words.values())[:MOST_REASONS])
    others = sum(counts[reason] for reason in list(words)[MOST_REASONS:])
    return named + (plural(others, " and %n more", " and %n more") if others else "")
