"""What a trial is saved with, besides the weights and moments of its nodes and the arrays of its log: strict types, no pickle."""

from typing import TypeVar

import msgspec

from waggle.core.message import packed_message, unpacked_message
from waggle.practice.simulated_swarm import SwarmState
from waggle.practice.trial_log import LogState
from waggle.sapo.answer_balance import TaughtAnswers
from waggle.sapo.sharing.interface import Memory
from waggle.tasks.rollout_group import GroupKey

Value = TypeVar("Value")


class NodeState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node between two rounds."""

    round: int
    useful: float  # moving share of own groups that teach
    mix: dict[str, float]  # see QuestionMix
    taught: tuple[TaughtAnswers, ...]  # see AnswerBalance
    known: frozenset[str]  # see FirstSuccessTracker, as `taught_by`
    taught_by: dict[str, bytes]
    memory: bytes  # of its sharing strategy, packed


class TrialState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trial between two ticks."""

    nodes: tuple[NodeState, ...]
    swarm: SwarmState
    log: LogState
    written: dict[GroupKey, int]  # the tick in which each group was written


def packed(value: object) -> bytes:
    """For `unpacked`. MessagePack, because it keeps every float as it is, also those that are no numbers."""
    return msgspec.msgpack.encode(value, enc_hook=packed_message)


def unpacked(data: bytes, kind: type[Value]) -> Value:
    """A value of this kind again. Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=unpacked_message)


def fill(memory: Memory, data: bytes) -> None:
    """Set all fields of a strategy's memory to those of a packed one. Raises msgspec.DecodeError."""
    saved = unpacked(data, type(memory))
    for name in memory.__struct_fields__:
        setattr(memory, name, getattr(saved, name))
