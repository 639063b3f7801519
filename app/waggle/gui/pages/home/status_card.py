"""Home's first card: the status sentence, its action, and the progress of the round; one slim strip while training goes well."""

from collections.abc import Awaitable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QMenu, QSizePolicy

from waggle.core import cuda_download
from waggle.core.errors import EngineError
from waggle.gui.coroutines import start
from waggle.gui.i18n.formatting import clock, local, tr, visible
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.home.lesson_advice import LessonAdvice
from waggle.gui.pages.home.rules_popup import RulesPopup, no_rule_text
from waggle.gui.state.notifications import recent_warnings
from waggle.gui.state.starter_offer import TRAIN_STARTER, choose_starter, offers_starter
from waggle.gui.state.story.round_steps import TITLES
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.controls import pause_menu
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import SingleClickButton
from waggle.gui.widgets.controls.copy_button import SAID_MS
from waggle.gui.widgets.controls.usage_profile import UsageProfile
from waggle.gui.widgets.layout import FLUSH, as_widget, column, restyle, row
from waggle.gui.widgets.painted_widgets import Chip, Icon, StageProgress, sign_column
from waggle.gui.widgets.swarm_suggestion import SwarmSuggestionLine
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.commands import ChangeSettings, ChooseModel, DecideTraining, Pause, Resume, new_id
from waggle.protocol.events import CommandDone, Phase, Warned
from waggle.protocol.schedule import moment
from waggle.protocol.state import HALTED_PHASES, STAGES, State
from waggle.protocol.text import pauses
from waggle.protocol.text.lesson_diagnosis import diagnosis
from waggle.protocol.text.status_text import Sentence, sentence
from waggle.protocol.zone import time_there

ROOM = 980  # pixels of width at a text size of 100%, below which the label of the profile is left out
SIGN_INK = {"accent": "accent_line", "bad": "bad"}  # by the tone of the sentence; all others are plain
DISK_LIMIT = "computer.disk_gb"
DETAIL_WIDE = 760  # pixels, before text scaling
SIGN, BESIDE_SIGN = 22, 12  # pixels: the sign of the sentence, and between them
CALM: tuple[Phase, ...] = ("preparing", "contributing", "finishing")  # nothing to decide: the sentence is one line


def progress_words(state: State) -> tuple[str, int, int]:
    """Progress of the round or of the start-up: words, cells filled, cells in all (0: nothing to show)."""
    if state.waits_for_choice:  # nothing moves until the person decides
        return "", 0, 0
    if state.phase == "preparing" and state.preparing is not None:
        part = state.preparing
        words = tr("Step %1 of %2").replace("%1", str(min(part.done + 1, part.parts))).replace("%2", str(part.parts))
        return words, part.done, part.parts
    if state.phase not in HALTED_PHASES or state.stage is None:  # while it trains, the sentence says the step
        return "", 0, 0
    words = tr("Stopped at: %1").replace("%1", tr(TITLES[state.stage]))
    return words, STAGES.index(state.stage), len(STAGES)


def _start_words(state: State) -> str:
    """Of the start, above its steps, which say the rest."""
    return tr("Getting ready") if state.downloading is None else tr("Downloading the model")


def pending_action(state: State) -> tuple[str, float, str]:
    """The phase, the unix time of its start, and the offered action."""
    return state.phase, state.phase_since, sentence(state).action


class StatusCard(QFrame):
    """While training goes well, one line for the sentence and a small one below it, beside the buttons.

    `start_wanted`: start an engine; `setting_wanted` carries the key of a setting to change.

    `aside_wanted`: set the unusable settings file aside, then start an engine. `swarms_wanted`: show the page Swarms.
    `page_wanted` carries a page that may help, and its part.
    """

    commanded = Signal(object)
    start_wanted = Signal()
    setting_wanted = Signal(str)
    aside_wanted = Signal()
    swarms_wanted = Signal()
    page_wanted = Signal(str, str)

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        theme = context.theme
        self._context, self._can_start = context, context.engine.can_start
        self._over = False  # the recording has ended
        self._dismissed: set[Warned] = set()
        self._newest: Warned | None = None  # the warning that is shown
        self._state = State()
        self._offers_aside = False
        self._copied = QTimer(self)  # how long the button says "Copied"
        self._copied.setSingleShot(True)
        self._copied.setInterval(SAID_MS)
        self._copied.timeout.connect(lambda: self._show_action(sentence(self._state)))
        self._pressed_for: tuple[str, float, str] | None = None  # the `pending_action` when a button was pressed
        self._chip = Chip(theme)
        self._chip.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)  # the state is never cut
        self._since = ElidedLabel(theme, role="small", tone="text_faint")
        self._says = text(theme, "", "display", wrap=True)
        self._detail = text(theme, "", "body", "soft", wrap=True)
        self._detail.setMaximumWidth(theme.px(DETAIL_WIDE))  # a longer line is hard to read
        self._why = RulesPopup(theme, self)
        self._why.commanded.connect(self.commanded)
        self._why.setting_wanted.connect(self.setting_wanted)
        self._why_button = Button(theme, tr("Why?"), "link")
        self._why_button.clicked.connect(self._show_why)
        self.profile = UsageProfile(theme)
        self.profile.chosen.connect(context.settings.set)
        host = self._host = visible(context.engine.name)
        use = tr("Use of %1").replace("%1", host) if host else tr("Use of this computer")
        self._use = text(theme, use, "small", "soft")
        self._computer = ElidedLabel(theme, tr("On %1").replace("%1", host) if host else "", "small", "text_soft")
        self._computer.setVisible(bool(host))
        self._make_warning(theme)
        self._advice = LessonAdvice(theme, SIGN, BESIDE_SIGN)
        self._advice.page_wanted.connect(self.page_wanted)
        self._suggestion = SwarmSuggestionLine(theme, context.settings, wide=SIGN, beside=BESIDE_SIGN)
        self._suggestion.setContentsMargins(0, 8, 0, 0)
        self._suggestion.swarm_wanted.connect(lambda charter: self.page_wanted.emit("swarms", charter))
        self._fact = text(theme, "", "small", "soft", wrap=True)
        self._stage = ElidedLabel(theme, role="small", tone="text_soft", right=True)
        self._cells = StageProgress(theme)
        self._make_buttons(theme)
        self._theme = theme
        self._sign = Icon(theme, "on", "accent_line", SIGN)
        self._head_line = as_widget(row(self._chip, self._computer, self._since, FLUSH, self._why_button, None, gap=10))
        self._slot = column(self._head_line, gap=2)  # where the sentence stands while training goes well
        head = as_widget(self._slot)
        dial = as_widget(row(None, self._use, self.profile, gap=10))
        self._words = column(self._says, row((self._detail, 1000), None))
        self._progress = as_widget(row(self._stage, self._cells))
        progress = column(None, self._progress, None, gap=0)
        self._line = as_widget(row(self._sign, row((self._words, 1), progress, gap=24), gap=BESIDE_SIGN))
        self._beside, self._below = column(self._buttons), column()  # where the buttons stand: below what a person has to decide
        top = StretchRow((head, 1), (dial, 0), (as_widget(self._beside), 0), gap=16)
        self._box = column(top, self._line, self._fact, self._warned, self._advice, self._suggestion, self._below, gap=0)
        self.setLayout(self._box)
        self._calm = self._compact = self._alone = self._above_steps = False
        self.set_compact(False)

    def _show_computer(self, state: State, now: float) -> None:
        """Name the computer of the engine, if it is another one, and the time there, if its zone is another one, too."""
        there = time_there(state.utc_offset, now)
        words = tr("%2 on %1") if there else tr("On %1")
        self._computer.say(words.replace("%2", there).replace("%1", self._host) if self._host else "")
        self._since.setVisible(not (self._host and there))  # the line has no room for both, and cuts a long name, not the time

    def _make_warning(self, theme: Theme) -> None:
        self._warning = text(theme, "", "label", wrap=True)
        self._warning_advice = text(theme, "", "small", "soft", wrap=True)
        self._warning_sign = sign_column(theme, "warn", "accent_line", SIGN)
        links = {
            "swarms": (tr("See swarms"), self.swarms_wanted.emit),
            "you": (tr("See your identity"), lambda: self.page_wanted.emit("you", "")),
            "disk": (tr("Change the limit"), lambda: self.setting_wanted.emit(DISK_LIMIT)),
        }
        self._see: dict[str, Button] = {}
        for page, (words, show) in links.items():
            self._see[page] = link = Button(theme, words, "link")
            link.setFixedHeight(self._warning.fontMetrics().height() + 2)  # as one line of the warning beside it
            link.clicked.connect(show)
        self._dismiss = Button(theme, tr("Dismiss"), "link").with_name(tr("Dismiss this warning"))
        self._dismiss.setFixedHeight(self._warning.fontMetrics().height() + 2)
        self._dismiss.clicked.connect(self._dismiss_warning)
        both, links_beside = column(self._warning, self._warning_advice, gap=1), row(*self._see.values(), self._dismiss, gap=16)
        self._warned = as_widget(
            row(self._warning_sign, (both, 1), column(links_beside, None), gap=BESIDE_SIGN, margins=(0, 8, 0, 0))
        )

    def _make_buttons(self, theme: Theme) -> None:
        self._main = SingleClickButton(theme, tr("Pause"), "primary", "pause", join="left")
        self._main.clicked.connect(self.act)
        self._more = Button(theme, "", "plain", "down", join="right").with_name(tr("Pause for a while"))
        self._more.setMenu(self._pause_menu())
        self._second = Button(theme, tr("Copy report"))
        self._second.clicked.connect(self._act_otherwise)
        self._retry = Button(theme, tr("Try again"))
        self._retry.clicked.connect(self.start_wanted)
        self._button_row = row(None, self._retry, self._second, row(self._main, self._more, gap=1), gap=8)
        self._buttons = as_widget(self._button_row)

    def _pause_menu(self) -> QMenu:
        menu = QMenu(self)
        pause_menu.fill(menu, self._ask, self._context.store.now)
        return menu

    def set_compact(self, compact: bool) -> None:
        """In the compact form, the sentence stands beside the buttons also when training does not go well."""
        pad = 16 if compact else 20
        self._box.setContentsMargins(20, pad - 4, 20, pad - 4)
        changed, self._compact = compact != self._compact, compact
        self._arrange()
        if changed:
            self.show_state(self._state, self._context.store.now())

    def set_alone(self, alone: bool) -> None:
        """Where it is the only card of the page, its buttons follow what a person has to read."""
        if alone != self._alone:
            self._alone = alone
            self.show_state(self._state, self._context.store.now())

    def set_above_steps(self, above: bool) -> None:
        """Where the steps of the start stand below, it does not say them."""
        if above != self._above_steps:
            self._above_steps = above
            self.show_state(self._state, self._context.store.now())

    @property
    def repeats_steps(self) -> bool:
        """Whether the steps of the start below say all that it would."""
        state = self._state
        above = self._above_steps and state.phase == "preparing" and not state.waits_for_choice
        says_more = self._host or self._newest is not None or sentence(state).action != "none"
        return above and not says_more

    def _arrange(self) -> None:
        """While training goes well, the sentence stands beside the buttons; what a person has to read stands large below."""
        box = self._slot if self._calm else self._box
        if box.indexOf(self._line) < 0:
            box.insertWidget(0 if self._calm else 1, self._line)  # which resets its fonts
            self._head_line.setContentsMargins(SIGN + BESIDE_SIGN if self._calm else 0, 0, 0, 0)  # below the sentence
        self._words.setSpacing(0 if self._calm else 2 if self._compact else 4)
        self._line.setContentsMargins(0, 0 if self._calm else 8, 0, 0)
        self._says.setFont(self._theme.font("heading" if self._calm else "title" if self._compact else "display"))
        self._detail.setFont(self._theme.font("small" if self._calm else "body"))

    def _place_buttons(self, *, below: bool) -> None:
        """Beside the sentence, or below all that a person reads before deciding; there, what is to be done comes first."""
        box, ways = self._below if below else self._beside, QBoxLayout.Direction
        if box.indexOf(self._buttons) < 0:
            box.addWidget(self._buttons)
            self._button_row.setDirection(ways.RightToLeft if below else ways.LeftToRight)
            self._below.setContentsMargins(0, 16 if below else 0, 0, 4 if below else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_profile(self._state)

    def show_state(self, state: State, now: float) -> None:
        if state.problem is not self._state.problem:
            self._copied.stop()  # the report of another problem
        self._state = state
        status = sentence(state)
        self._chip.say(tr(status.word), "plain" if status.tone == "plain" else status.tone, status.sign)
        self._show_computer(state, now)
        self._since.say(
            tr("since %1").replace("%1", tr(moment(state.phase_since, now, clock, local)))
            if state.phase_since and state.phase != "preparing" and (state.round or state.stage)
            else ""
        )
        calm = (state.phase in CALM or self._compact) and not state.waits_for_choice and not self._alone
        if calm != self._calm:
            self._calm = calm
            self._arrange()
        self._place_buttons(below=state.waits_for_choice or self._alone)
        self._chip.setVisible(not calm)
        self._sign.setVisible(calm)
        self._sign.show_icon(status.sign, SIGN_INK.get(status.tone, "text_soft"))
        self._head_line.setVisible(not calm or bool(status.why) or bool(self._host))
        self._since.setVisible(not calm)
        above_steps = self._above_steps and state.preparing is not None and not state.waits_for_choice
        self._says.setText(_start_words(state) if above_steps else tr(status.says).removesuffix("."))
        detail = tr(status.detail)
        if calm and self._since.words() and state.phase in CALM:
            detail = " · ".join(filter(None, (detail.removesuffix("."), self._since.words())))
        self._detail.setText(detail)
        self._why.show_ticks(status.why, no_rule_text(state, status))
        self._show_warning(state, now)
        self._advice.show_diagnosis(diagnosis(state))
        self._suggestion.show_state(state)
        self._show_fact(state)
        words, done, total = progress_words(state)
        self._stage.say(words)
        self._show_profile(state)
        self._cells.show_stage(done, total, paused=state.phase in HALTED_PHASES)
        has_progress = bool(words or total) and not (self._compact and state.phase in HALTED_PHASES)
        self._progress.setVisible(has_progress and not above_steps)
        self._show_action(status)

    def _show_warning(self, state: State, now: float) -> None:
        self._dismissed.intersection_update(state.warnings)
        newest = next((warned for warned in recent_warnings(state, now) if warned not in self._dismissed), None)
        self._newest = newest
        self._warning.setText(tr(newest.title) if newest else "")
        self._warning_advice.setText(tr(newest.advice) if newest else "")
        explains = newest is not None and newest.page == "swarms" and state.undecided is not None  # why it asks: a grey line
        restyle(self._warning, "tone", "soft" if explains else "text")
        self._warning.setFont(self._warning_advice.font() if explains else self._context.theme.font("label"))
        set_tip(self._warning, self._warning_advice.text() if explains else "")
        self._warning_sign.setHidden(explains)
        self._warning_advice.setVisible(newest is not None and bool(newest.advice) and not explains)
        for page, link in self._see.items():
            link.setVisible(newest is not None and newest.page == page and (page != "swarms" or state.undecided is None))
        self._dismiss.setVisible(newest in state.warnings and not explains)  # not what holds something back still
        self._warned.setVisible(newest is not None)

    def _dismiss_warning(self) -> None:
        if self._newest is not None:
            self._dismissed.add(self._newest)
            self._show_warning(self._state, self._context.store.now())

    def _show_fact(self, state: State) -> None:
        offers = state.ready is not None and state.ready.device_reason == cuda_download.OFFERED
        self._fact.setText(self._offer_text() if offers else "")
        self._fact.setVisible(offers)

    def _offer_text(self) -> str:
        """Where an unused graphics card can be put to use."""
        far = self._context.settings.far
        return tr("There, waggle cuda --get uses the NVIDIA card" if far else "Settings offers to use your NVIDIA card")

    def _show_profile(self, state: State) -> None:
        known = state.settings is not None and state.ready is not None and state.phase not in ("problem", "stopped")
        self.profile.setVisible(known)
        self._use.setVisible(known and self.width() >= self._theme.px(ROOM))
        if state.settings is not None and state.ready is not None:
            self.profile.show_settings(state.settings, state.ready.cores)

    def _show_why(self) -> None:
        self._why.open_below(self._why_button)

    def show_over(self) -> None:
        """The recording has ended: it can be played again, and nothing else."""
        self._over = True
        self.show_state(self._state, self._state.at)

    def _show_over(self) -> None:
        for button in (self._more, self._second, self._retry, self._why_button):
            button.hide()
        restyle(self._main, "kind", "primary")
        self._main.join("")
        self._main.change_to("primary", tr("Play again"), "play")
        self._main.show()

    def _show_action(self, status: Sentence) -> None:
        if self._over:
            self._show_over()
            return
        stopped = status.action in ("none", "copy_report") and self._can_start()
        copies = (tr("Copied"), "check") if self._copied.isActive() else (tr("Copy report"), "copy")
        words, icon = {
            "pause": (tr("Pause"), "pause"), "pause_now": (tr("Pause now"), "pause"), "resume": (tr("Resume"), "play"),
            "anyway": (tr("Pause"), "pause"),  # a pause lasts longer than the rule that holds the engine back
            "copy_report": (tr("Try again"), "play") if stopped else copies, "choose_training": self._training_choice()[0],
            "choose_swarm": (tr("Choose a swarm"), "swarms"), "choose_model": (tr("Choose another model"), ""),
            "none": (tr("Start"), "play"),
        }[status.action]  # fmt: skip
        self._offers_aside = status.action == "copy_report" and stopped and self._context.settings.is_unreadable
        if self._offers_aside:
            words, icon = tr("Set it aside and start"), "play"
        offers_starter = self._offers_starter()
        if offers_starter:
            words, icon = tr(TRAIN_STARTER), "play"
        failed, anyway, splits = status.action == "copy_report", status.action == "anyway", status.action in ("pause", "anyway")
        returns = status.action == "choose_model" and bool(self._state.unavailable and self._state.unavailable.folder)
        # What is going well needs nothing to be done; and what brings a folder back, such as connecting its disk, is no button.
        kind = "plain" if splits or returns or (failed and not stopped) else "primary"
        restyle(self._main, "kind", kind)
        self._main.join("left" if splits else "")
        self._main.change_to(kind, words, icon)
        decides = self._state.waits_for_choice
        otherwise = {
            "anyway": (tr("Contribute anyway"), "play"), "choose_training": self._training_choice()[1],
            "choose_swarm": (tr("Train alone for now"), ""), "choose_model": (tr(TRAIN_STARTER), ""),
        }.get(status.action, copies)  # fmt: skip
        self._second.say(*otherwise)
        visibility = {self._main: status.action != "none" or stopped, self._more: splits,
                 self._second: anyway or decides or (failed and stopped), self._retry: offers_starter,
                 self._why_button: bool(status.why)}  # fmt: skip
        for button, is_visible in visibility.items():
            if button.hasFocus() and not is_visible:  # else Qt focuses the next widget, and Space would press it
                (self._main if visibility[self._main] else self).setFocus()
            button.setVisible(is_visible)

    def _offers_starter(self) -> bool:
        return offers_starter(self._state, self._context.settings, can_start=self._can_start())

    def _start_with_starter(self) -> None:
        if choose_starter(self._context.settings):
            self.start_wanted.emit()

    def _training_choice(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The words and icons of both buttons while a person has to decide about a changed model."""
        anew = (tr("Start over"), "")
        if self._may_keep:
            return (tr("Keep my training"), ""), anew
        return anew, (tr("Choose another model"), "")

    @property
    def _may_keep(self) -> bool:
        """Whether the old training can continue with the files of the changed model."""
        return self._state.changed is not None and self._state.changed.fits

    def _decide_otherwise(self) -> None:
        if self._may_keep:
            self._ask(DecideTraining(id=new_id(), choice="anew"))
        else:
            self._context.requests.page.emit("models", "")

    def act(self) -> None:
        """Do what the main button says."""
        if self._over:
            self.start_wanted.emit()
            return
        if self._offers_aside:
            self._copied.stop()
            self.aside_wanted.emit()
            return
        if self._offers_starter():
            self._start_with_starter()
            return
        match sentence(self._state).action:
            case "pause" | "pause_now" | "anyway":
                self._ask(pauses.at_once())
            case "resume":
                self._ask(Resume(id=new_id()))
            case "choose_training":
                self._ask(DecideTraining(id=new_id(), choice="keep" if self._may_keep else "anew"))
            case "choose_swarm":
                self.swarms_wanted.emit()
            case "choose_model":
                self._context.requests.page.emit("models", "")
            case "copy_report" if not self._can_start():
                self._copy_report()
            case "copy_report" | "none":
                if self._can_start():  # the shortcut works while the button is hidden, too
                    self.start_wanted.emit()

    def _copy_report(self) -> None:
        QGuiApplication.clipboard().setText(self._context.report(self._state))
        self._copied.start()
        self._show_action(sentence(self._state))

    def _act_otherwise(self) -> None:
        """Do what the second button says."""
        if self._offers_aside or sentence(self._state).action == "copy_report":
            self._copy_report()
        elif sentence(self._state).action == "anyway":
            self._ask(Resume(id=new_id()))
        elif sentence(self._state).action == "choose_training":
            self._decide_otherwise()
        elif sentence(self._state).action == "choose_swarm":
            self._ask(ChangeSettings(id=new_id(), values={"swarm.solo": True}))
        elif sentence(self._state).action == "choose_model":
            self._ask(ChooseModel(id=new_id()))
        else:
            self.start_wanted.emit()

    def _ask(self, command: Pause | Resume | DecideTraining | ChangeSettings | ChooseModel) -> None:
        """Send one command for each pending action: a second press on the same one does nothing."""
        self.watch(self._state)
        if self._pressed_for is None:
            self._pressed_for = pending_action(self._state)
            start(self, self._press(self._context.client.command(command)))

    async def _press(self, answer: Awaitable[CommandDone]) -> None:
        """Accept the press again if it is refused."""
        try:
            await answer
        except EngineError as error:
            self._pressed_for = None
            self._context.client.report(error)

    def watch(self, state: State) -> None:
        """Accept presses again once the pending action has changed; called while other pages are visible, too."""
        if self._pressed_for != pending_action(state):
            self._pressed_for = None
