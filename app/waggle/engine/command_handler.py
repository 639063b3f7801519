"""Obeys commands: hands each to the lifecycle or to a service.

While the engine starts, `node` returns None, and the commands that need a node are answered with an error.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from waggle.core.errors import EngineError
from waggle.core.paths import Home
from waggle.core.settings import Value
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import applies_at_once
from waggle.engine.services.chat import ChatService
from waggle.engine.services.identity import IdentityService
from waggle.engine.services.models.earlier_runs import earlier_runs
from waggle.engine.services.models.models import ModelService
from waggle.engine.services.own_questions import OwnQuestionsService
from waggle.engine.services.playground import PlaygroundService
from waggle.engine.services.swarms.swarms import SwarmService
from waggle.engine.storage.history import History
from waggle.network.limits.reputation import Choice
from waggle.protocol import commands, events
from waggle.protocol.events_outbox import SentMessage, SentMessages
from waggle.protocol.events_swarms import StartedAgain
from waggle.protocol.state import AnyEvent, Snapshot

SETTINGS_CHANGED = "The settings have changed."


@dataclass(frozen=True)
class NodeServices:
    """The services that need a model and a swarm, and so exist after startup only."""

    choose_peer: Callable[[str, Choice], None]
    sent: Callable[[], tuple[SentMessage, ...]]  # the last messages that left this computer
    playground: PlaygroundService
    chat: ChatService


@dataclass(frozen=True)
class Services:
    """The services that answer during startup, too."""

    identity: IdentityService
    models: ModelService
    swarms: SwarmService
    questions: OwnQuestionsService
    change_settings: Callable[[Mapping[str, Value]], Callable[[], object]]  # returns how to undo that


@dataclass(frozen=True)
class EngineHandler:
    """The `CommandHandler` of this process's own engine."""

    lifecycle: Lifecycle
    publisher: EventPublisher
    history: History
    home: Home
    services: Services | None = None
    node: Callable[[], NodeServices | None] = lambda: None

    def stop(self) -> None:
        """End the engine after the step in progress."""
        self.lifecycle.stop()

    async def obey(self, command: commands.AnyCommand) -> tuple[AnyEvent, ...]:
        """Obey, then return the answers for the sender, CommandDone last.

        Raises WaggleError for what cannot be done, and EngineError for what has not started yet.
        """
        answers: list[AnyEvent] = []
        match command:
            case commands.Pause() | commands.Resume() | commands.Stop():
                return await self.lifecycle.obey(command)
            case commands.ChoosePeer():
                self._node("The swarm is not joined yet.").choose_peer(command.peer, command.choice)
            case (
                commands.ListSwarms() | commands.CreateSwarm() | commands.ReadInvite() | commands.ChooseSwarm()
                | commands.ForgetSwarm() | commands.WriteInvite()
            ):  # fmt: skip
                answers += await self._services.swarms.obey(command)
            case commands.PreviewQuestions():
                answers.append(await self._services.questions.obey(command))
            case (
                commands.QueryDays() | commands.BackUpIdentity() | commands.CheckBackup() | commands.RestoreIdentity()
                | commands.RenewIdentity()
            ):  # fmt: skip
                answers += await self._services.identity.obey(command)
            case (
                commands.ListModels() | commands.SearchModels() | commands.ChooseModel() | commands.CancelChoice()
                | commands.DecideTraining() | commands.RemoveModel() | commands.ExportModel()
            ):  # fmt: skip
                answers += await self._services.models.obey(command)
            case commands.PoseQuestion() | commands.AskModel():
                answers += await self._node("Waggle is still starting.").playground.obey(command)
            case commands.OfferChat() | commands.SendMessage() | commands.StopReplies() | commands.ClearChat():
                answers += await self._node("Waggle is still starting.").chat.obey(command)
            case commands.ChangeSettings():
                undo = self._services.change_settings(command.values)
                waiting = [key for key in self.publisher.state.after_restart if not applies_at_once(key)]
                if command.restart and waiting:
                    self.lifecycle.restart(SETTINGS_CHANGED, undo)
                    answers.append(StartedAgain(reason=SETTINGS_CHANGED))
            case commands.Status():
                answers.append(Snapshot(state=self.publisher.state))
            case commands.Follow():  # from stdin; the control socket answers this command itself
                raise EngineError("This engine belongs to a window.", "Close that window first.")
            case commands.QueryHistory():
                answers.append(self.history.chart_points())
            case commands.QueryRounds():
                answers.append(self.history.rounds_after(command.after))
            case commands.QueryRuns():
                answers.append(await asyncio.to_thread(earlier_runs, self.home))
            case commands.QuerySent():
                answers.append(SentMessages(messages=node.sent() if (node := self.node()) else ()))
            case _:
                assert_never(command)
        return tuple(self.publisher.stamp(event) for event in (*answers, events.CommandDone(id=command.id)))

    @property
    def _services(self) -> Services:
        if self.services is None:
            raise EngineError("Waggle is still starting.", "Try again in a moment.")
        return self.services

    def _node(self, reason: str) -> NodeServices:
        if (node := self.node()) is None:
            raise EngineError(reason, "Try again in a moment.")
        return node
