"""What the settings mean for a round of this charter with this model, and what identifies such a training run."""

import hashlib

import msgspec

from waggle.core import paths
from waggle.core.message import Message
from waggle.core.peer_id import PEER_ID_PREFIX
from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.held_out_schedule import USUAL_ROUNDS, HeldOutPlan
from waggle.engine.storage import noise_salt
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.training_mode import Method
from waggle.network.identity import keys
from waggle.protocol import events
from waggle.rl import update_rules
from waggle.sapo.evaluation import few_of
from waggle.sapo.stages import RoundSettings
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question

FORM_PAY = 0.25  # a little above the span of rewards that counts as crumbs


def round_settings(chosen: Settings, charter: Charter, model: ModelConfig, method: Method, *, is_starter: bool) -> RoundSettings:
    learning = chosen.learning
    return RoundSettings(
        questions=learning.questions,
        local=learning.local,
        external=learning.external,
        group_size=learning.group_size,
        max_new=model_fit.answer_limit(chosen, model),
        context=model.max_position_embeddings,
        temperature=learning.temperature,
        top_p=learning.top_p,
        learning_rate=model_fit.learning_rate(chosen, model, method),
        warmup_steps=learning.warmup_steps,
        updates=learning.updates,
        form_pay=FORM_PAY if learning.form_pay == "on" or (learning.form_pay == "auto" and not is_starter) else 0.0,
        rule=update_rules.rule(learning.rule),
    ).under(charter)


def held_out_plan(every: int, questions: tuple[Question, ...], rules: RoundSettings, *, is_starter: bool) -> HeldOutPlan:
    """A first score takes no more answers than a round, except for the starter: it is fast, and its runs are compared."""
    if every != USUAL_ROUNDS or is_starter:
        return HeldOutPlan(questions, every)
    return HeldOutPlan(questions, 0, few_of(questions, rules.questions * rules.group_size))


def recipe_of(chosen: Settings, charter: Charter, form: events.PromptFormChoice, rules: RoundSettings) -> str:
    """Identifies what decides whether a round teaches anything."""
    learning = msgspec.to_builtins(chosen.learning)
    if not learning["seed"]:  # a run without one has the name that earlier versions gave it
        del learning["seed"]
    sizes = msgspec.json.encode((chosen.model, learning, rules.questions, rules.max_new))
    parts = (sizes, charter.digest, form.form.encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def randomness(home: paths.Home, chosen: Settings, identity: keys.Identity, publisher: EventPublisher) -> tuple[bytes, int]:
    """The origin, from which questions are made, and the seed of the random streams.

    With `learning.seed` both come from it alone, for a node without peers: its questions then belong to no key.
    """
    if chosen.learning.seed and chosen.swarm.solo:
        origin = PEER_ID_PREFIX + hashlib.sha256(b"waggle/repeat/1 %d" % chosen.learning.seed).digest()
        return origin, _seed(origin, b"")
    if chosen.learning.seed:
        publisher.publish(
            events.Warned(
                title=Message("The seed has no effect beside peers, as what they send cannot be repeated."),
                advice=Message("It counts only while “Train alone” is on in Settings."),
            )
        )
    return identity.peer_id, _seed(identity.peer_id, noise_salt.salt_of(home))


def _seed(peer_id: bytes, salt: bytes) -> int:
    """The seed of a node's random streams: another for each node and each copy of its home, and the same after a restart."""
    return int.from_bytes(hashlib.sha256(b"waggle/noise/2" + peer_id + salt).digest()[:8], "big")
