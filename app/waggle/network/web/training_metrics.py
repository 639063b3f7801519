"""How a node's own model learns, as Prometheus metrics. Names say `node`, as other metrics are of what came from others."""

import typing

from waggle.network.web.prometheus import metric
from waggle.network.web.training_status import SpecialtyScore, TrainingStatus

PHASES = ("preparing", "contributing", "finishing", "waiting", "paused", "stopped", "problem")
COMPANY = ("solo", "connecting", "alone", "together")
LAST_ROUND: tuple[tuple[str, str, str], ...] = (  # name, field of TrainingStatus, words
    ("waggle_node_reward_mean", "reward", "Mean reward of this node's answers in its last round"),
    ("waggle_node_solved_ratio", "solved", "Share of right answers in its last round"),
    ("waggle_node_external_ratio", "external_share", "Share of peers in what its last round learned"),
    ("waggle_node_learning_rate", "learning_rate", "Learning rate of its last round"),
    ("waggle_node_entropy_nats", "entropy", "Entropy of its policy in its last round, per token"),
    ("waggle_node_tokens_per_second", "tokens_per_second", "Tokens of answers written in its last rounds"),
    ("waggle_node_memory_bytes", "memory", "Memory that the engine and its children used at the end of its last round"),
)


def lines(training: TrainingStatus) -> list[str]:
    """The metrics of this node, line by line."""
    score = training.held_out
    specialties = score.specialties if score is not None else ()
    about = {
        "name": training.name, "fingerprint": training.fingerprint, "model": training.model, "device": training.device,
    }  # fmt: skip
    return [
        *metric("waggle_node_info", "gauge", "This node, whose model trains", [(about, 1)]),
        *metric("waggle_node_round", "gauge", "The round in progress, counted from 0", [({}, training.round)]),
        *metric(
            "waggle_node_phase", "gauge", "1 for what the engine does now",
            [({"phase": phase}, int(phase == training.phase)) for phase in PHASES],
        ),
        *metric(
            "waggle_node_company", "gauge", "1 for with whom it trains: nobody by choice (solo), nobody, others",
            [({"company": company}, int(company == training.company)) for company in COMPANY],
        ),
        *metric("waggle_node_peers", "gauge", "Connected peers", [({}, training.connected)]),
        *metric("waggle_node_training_peers", "gauge", "Connected peers that train with this node", [({}, training.members)]),
        *(
            line
            for name, field, words in LAST_ROUND
            for line in metric(name, "gauge", words, [({}, typing.cast("float | None", getattr(training, field)))])
        ),
        *metric(
            "waggle_node_held_out_ratio", "gauge", "Share of right answers to all reserved questions",
            [({}, score.right / score.total if score and score.total else None)],
        ),
        *metric("waggle_node_held_out_round", "gauge", "Rounds after which that was measured",
            [({}, score.round if score else None)],
        ),
        *metric("waggle_node_held_out_right", "gauge", "Right answers to the reserved questions of a specialty",
            [(_specialty(kind), kind.right) for kind in specialties],
        ),
        *metric("waggle_node_held_out_questions", "gauge", "Reserved questions of a specialty",
            [(_specialty(kind), kind.total) for kind in specialties],
        ),
    ]  # fmt: skip


def _specialty(kind: SpecialtyScore) -> dict[str, str]:
    return {"specialty": kind.dataset}
