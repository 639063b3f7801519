"""Every setting that the page Settings shows: its words, its control, and where it stands.

Not here: which model and which swarm are trained, which the pages Models and Swarms choose.
"""

import sys

import msgspec

from waggle.core.settings import LIVE_SHARING_STRATEGIES, UPDATE_RULES, Value
from waggle.gui.i18n.formatting import later, tr
from waggle.gui.i18n.translator import NAMES, number_format
from waggle.gui.theme import reduced_motion
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.inputs import ComboBox, NumberField, Range, Switch, TextField
from waggle.gui.widgets.controls.week_schedule import WeekSchedule


class Toggle(msgspec.Struct, frozen=True):
    """On or off."""


class Options(msgspec.Struct, frozen=True):
    """One of a few values, each with its words (English; they are translated where they are shown)."""

    options: tuple[tuple[Value, str], ...]


class TextLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of text; `several`: a list of items with commas between them."""

    hint: str = ""
    several: bool = False


class WeekHours(msgspec.Struct, frozen=True):
    """The hours of a week."""


Kind = Toggle | Options | Range | TextLine | WeekHours


class Setting(msgspec.Struct, frozen=True):
    """One setting: its key `section.name`, title, note and kind of control.

    `at_zero`: the note while the value is 0 or nothing, if it is another one; None: the value says it all.

    `far`: an addition to the note for an engine on another computer.
    """

    key: str
    title: str
    note: str
    kind: Kind
    at_zero: str | None = ""
    far: str = ""


class Group(msgspec.Struct, frozen=True):
    """Settings that belong together: one card of a section."""

    title: str
    rows: tuple[Setting, ...]


class Section(msgspec.Struct, frozen=True):
    """One entry of the list of sections, and the cards that it shows."""

    name: str
    title: str
    groups: tuple[Group, ...]

    @property
    def rows(self) -> tuple[Setting, ...]:
        return tuple(row for group in self.groups for row in group.rows)


# Words for the files of rl/update_rules and sapo/sharing; a file without an entry is shown by its name.
RULE_NAMES = {"grpo": "GRPO", "dr_grpo": "Dr. GRPO", "dapo": "DAPO", "gspo": "GSPO", "ppo": "PPO"}
STRATEGY_NAMES = {
    "adaptive": later("Adaptive"),
    "plain": later("As published"),
    "gated": later("Successes only"),
    "balanced": later("Weakest first"),
    "informative": later("Half right first"),
    "replay": later("Replay successes"),
    "guard": later("Collapse guard"),
    "own_probability": later("By own probability"),
    "filtered": later("Useful examples"),
    "luffy": later("Unlikely words count more"),
    "success_gated": later("Where own answers fail"),
}


def _choices(names: tuple[str, ...], words: dict[str, str]) -> tuple[tuple[Value, str], ...]:
    """Names with their words; names with an entry in `words` come first, in its order."""
    ordered = sorted(names, key=lambda name: (list(words).index(name) if name in words else len(words), name))
    return tuple((name, words.get(name, name.replace("_", " ").capitalize())) for name in ordered)


LEARNING_RATES = (1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 5e-4)
MAC = sys.platform == "darwin"  # it has a menu bar in place of a tray, and always has it
MOTION, UNSAID = "window.less_motion", later("System default (off)")

WHEN = Section("when", later("When to train"), (
    Group(later("Power and heat"), (
        Setting("when.only_on_power", later("Pause on battery"), later("Until it is plugged in."), Toggle()),
        Setting("when.below_celsius", later("Pause when the processor is hot"),
            later("Pauses above this temperature."),
            Range(minimum=0, maximum=110, unit="°C", zero=later("Never")),
            at_zero=None),
        Setting("when.kwh_a_day", later("Energy per day"), later("Pauses until midnight once it has used this much (estimated)."),
            Range(minimum=0, maximum=100, step=0.05, unit="kWh", zero=later("No limit"), whole=False)),
    )),
    Group(later("Other programs and networks"), (
        Setting("when.idle_minutes", later("While you use the computer"),
            later("Pauses until nobody has touched it for this long."),
            Options(((0, later("Keep training")), (3, later("Wait 3 minutes")), (10, later("Wait 10 minutes")),
                     (30, later("Wait 30 minutes")))), at_zero=None),
        Setting("when.not_full_screen", later("Pause during full-screen apps"),
            later("Such as games, films or presentations."), Toggle()),
        Setting("when.not_while", later("Pause while these programs run"), later("Names of programs, separated by commas."),
            TextLine(hint=later("for example blender, steam"), several=True)),
        Setting("when.not_metered", later("Pause on metered networks"),
            later("Where data costs money, if the system reports it."),
            Toggle()),
    )),
    Group(later("Hours"), (
        Setting("when.week", later("Training hours"),
            later("Filled hours may be used. Drag, or use the arrow keys and space."), WeekHours(),
            at_zero=later("Any time."),
            far=later("The hours are those of the other computer.")),
    )),
))  # fmt: skip
HOW_MUCH = Section("how_much", later("Use of this computer"), (
    Group(later("Processors"), (
        Setting("computer.threads", later("Processor cores"), later("How many it may keep busy."),
            Range(minimum=0, maximum=1024, zero=later("A quarter of them, at least 1"))),
        Setting("computer.cpu_percent", later("Share of the processor's time"), later("Below 100% it rests between steps."),
            Range(minimum=5, maximum=100, step=5, unit="%")),
        Setting("computer.priority", later("Priority"), later("When other programs want the processor too."),
            Options((("lowest", later("Lowest")), ("low", later("Low")), ("normal", later("Normal"))))),
        Setting("computer.gpu_percent", later("Share of the graphics processor"),
            later("Above 50%, the screen may stutter."), Range(minimum=5, maximum=100, step=5, unit="%")),
    )),
    Group(later("Memory, disk and network"), (
        Setting("computer.memory_gb", later("Memory"), later("The most it may take."),
            Range(minimum=0, maximum=4096, step=0.5, unit="GB", zero=later("As needed"), whole=False)),
        Setting("computer.disk_gb", later("Disk"),
            later("For saved states and models. At the limit, the oldest are deleted, but never the newest good state."),
            Range(minimum=0, maximum=10_000, unit="GB", zero=later("No limit"), whole=False),
            at_zero=None),
        Setting("computer.traffic_kb", later("Network"), later("Limit for sending, and for receiving."),
            Range(minimum=0, maximum=1_000_000, step=100, unit="kB/s", zero=later("Unlimited"))),
    )),
    Group(later("Energy"), (
        Setting("computer.keep_awake", later("Keep this computer awake"),
            later("While it trains. The screen may go dark, and a closed lid still sleeps."),
            Options((("no", later("No")), ("on_power", later("While plugged in")), ("always", later("Always"))))),
        Setting("computer.watts", later("Watts while training"),
            later("If you measured them. Otherwise Waggle estimates them, as shown under You."),
            Range(minimum=0, maximum=5000, unit="W", zero=later("Estimated"), whole=False)),
        Setting("computer.price_kwh", later("Price of a kWh"),
            later("In your currency. The page You then shows the cost."),
            Range(minimum=0, maximum=1000, step=0.01, zero=later("Not set"), whole=False)),
    )),
))  # fmt: skip
APPEARANCE = Section("appearance", later("Appearance and startup"), (
    Group(later("Look"), (
        Setting("window.theme", later("Theme"), later("Light and dark follow your system unless you choose."),
            Options((("system", later("System default")), ("light", later("Light")), ("dark", later("Dark")),
                     ("high_contrast", later("High contrast"))))),
        Setting("window.language", later("Language"), later("Names and what models write stay as they are."),
            Options((("system", later("System default")), *NAMES.items()))),
        Setting("window.text_percent", later("Text size"), later("Scales text and controls."),
            Options(tuple((percent, f"{percent}%") for percent in (90, 100, 115, 130, 150, 200)))),
        Setting(MOTION, later("Reduce motion"), later("Turns off animations."),
            Options((("system", later("System default")), ("on", later("Reduced")), ("off", later("Not reduced"))))),
    )),
    Group(later("Starting and closing"), (
        Setting("window.at_login", later("When you log in"), later("For your account on this computer."),
            Options((("nothing", later("Do not start Waggle")), ("window", later("Waggle opens minimized")),
                     ("engine", later("Training starts without a window"))))),
        Setting("window.close_to_tray",
            later("Keep running in the menu bar when closed" if MAC else "Keep running in the tray when closed"),
            later("Otherwise closing ends Waggle." if MAC else "Without a tray, closing ends Waggle."),
            Toggle()),
    )),
))  # fmt: skip
NOTIFICATIONS = Section("notifications", later("Notifications"), (
    Group(later("While this window is not in front"), (
        Setting("window.notify_problems", later("When something goes wrong"),
            later("For example when training stops, or waits for you."), Toggle()),
        Setting("window.notify_discoveries", later("When your model solves something for the first time"),
            later("Once for each specialty."), Toggle()),
    )),
    Group(later("In this window"), (
        Setting("window.suggest_swarm", later("When another swarm suits your model better"),
            later("A line on Home and on Models that you can dismiss."), Toggle()),
        Setting("window.read_out", later("Read out what happened"),
            later("If a screen reader is running, once a minute."), Toggle()),
    )),
))  # fmt: skip
NETWORK = Section("network", later("Network and privacy"), (
    Group(later("What you share"), (
        Setting("swarm.solo", later("Train alone"), later("Nothing is sent and nothing received."), Toggle()),
        Setting("swarm.my_answers", later("Your own answers"),
            later("Your answers on Try it may teach other models. Everybody in the swarm can read them, labelled as human."),
            Options((("ask", later("Ask me the first time")), ("no", later("Stay here")), ("yes", later("Are shared"))))),
        Setting("swarm.leaderboard", later("Compare models"),
            later("Your model answers a short exam every ten minutes at most, and others see and grade its answers."), Toggle()),
    )),
    Group(later("How computers find each other"), (
        Setting("swarm.lan", later("Find computers nearby"),
            later("Others on your local network can then see that Waggle runs here, and in which swarm."), Toggle()),
        Setting("swarm.upnp", later("Ask the router to let others in"), later("Works with routers that allow UPnP."),
            Toggle()),
        Setting("swarm.through", later("How others reach this computer"),
            later("If a router blocks this computer, others relay for it."),
            Options((("auto", later("Automatic")), ("relay", later("Through other computers")), ("direct", later("Directly"))))),
        Setting("swarm.light", later("Always through gateways"),
            later("Never connects directly; uses the gateways under Connection details."), Toggle()),
    )),
    Group(later("Status page and gateway"), (
        Setting("web.port", later("Port of the status page"), later("A page for browsers that shows how the swarm is doing."),
            Range(minimum=0, maximum=65535, zero=later("Off"))),
        Setting("web.gateway", later("Gateway for others"),
            later("Computers whose network lets only the web through can take part through this one, at the same port."),
            Toggle()),
        Setting("web.class_page", later("Pages of a class"), later("Whoever opens them sees chosen names, and can join."),
            Toggle()),
    )),
    Group(later("Connection details"), (
        Setting("swarm.port", later("Port"), later("Where others reach this computer. A fixed one can be opened in a router."),
            Range(minimum=0, maximum=65535, zero=later("Automatic"))),
        Setting("swarm.seeds", later("Starting points"), later("Computers to ask first for others. Separated by commas."),
            TextLine(hint="/ip4/192.0.2.1/tcp/4001/p2p/12D3…", several=True)),
        Setting("swarm.gateways", later("Gateways"),
            later("For networks that only let the web through. Separated by commas."),
            TextLine(hint="wss://example.org/gateway", several=True)),
        Setting("swarm.host", later("Listen on"),
            later("The network address that Waggle listens on. 0.0.0.0 means every network of this computer."),
            TextLine(hint="0.0.0.0")),
        Setting("web.host", later("Address of the status page"),
            later("127.0.0.1: for this computer only. 0.0.0.0: for everybody who can reach it."), TextLine(hint="127.0.0.1")),
    )),
))  # fmt: skip
LEARNING = Section("learning", later("Learning and tests"), (
    Group(later("Each round"), (
        Setting("learning.questions", later("Questions per round"),
            later("8, or fewer if a round would take over two minutes."),
            Range(minimum=1, maximum=64)),
        Setting("learning.group_size", later("Answers to each question"),
            later("Your model learns from how they differ. More of them take longer."), Range(minimum=2, maximum=16)),
        Setting("learning.local", later("Own examples to learn from"), later("Per round."),
            Range(minimum=0, maximum=64)),
        Setting("learning.external", later("Peers' examples to learn from"), later("Per round, if available."),
            Range(minimum=0, maximum=64)),
        Setting("learning.specialties", later("Only these specialties"),
            later("Names of specialties of the swarm, separated by commas. Empty: all of them."),
            TextLine(hint=later("for example Fractions, Logic"), several=True)),
    )),
    Group(later("How it answers"), (
        Setting("model.prompt_form", later("Form of the question"),
            later("Automatic tries each form once and keeps the one with the most readable answers."),
            Options((("auto", later("Automatic")), ("plain", later("The question alone")),
                     ("example", later("After an example")), ("example_opened", later("After an example, answer begun")),
                     ("chat", later("In a chat")), ("chat_example", later("In a chat, after an example")),
                     ("chat_example_opened", later("In a chat, answer begun"))))),
        Setting("learning.max_new_tokens", later("Longest answer"), later("Longer ones are cut off and cannot be read."),
            Range(minimum=0, maximum=2048, step=16, zero=later("As usual for the model")),
            at_zero=later("24 tokens for the starter. For other models, Waggle measures what their answers need.")),
        Setting("learning.temperature", later("Temperature"),
            later("How freely answers are tried: higher is more varied, lower more alike."),
            Range(minimum=0.05, maximum=4, step=0.05, whole=False)),
        Setting("learning.top_p", later("Top p"),
            later("Leaves out unlikely words. With 1, it leaves out none."),
            Range(minimum=0.05, maximum=1, step=0.05, whole=False)),
    )),
    Group(later("How it learns"), (
        Setting("learning.rule", later("Update rule"), later("How right and wrong answers change the model."),
            Options(_choices(UPDATE_RULES, RULE_NAMES))),
        Setting("learning.sharing", later("Sharing strategy"),
            later("Which examples of peers your model learns from, and how strongly."),
            Options(_choices(LIVE_SHARING_STRATEGIES, STRATEGY_NAMES))),
        Setting("learning.form_pay", later("Credit for the answer tags"),
            later("A little reward for a wrong answer in its tags, so that a model learns to use them."),
            Options((("auto", later("Except for the starter")), ("on", later("Always")), ("off", later("Never"))))),
        Setting("learning.learning_rate", later("Learning rate"), later("Of one step. Too high a rate ruins a model."),
            Options(((0.0, later("As usual for the model")), *((rate, f"{rate:g}") for rate in LEARNING_RATES))),
            at_zero=later("Lower for larger models.")),
        Setting("learning.warmup_steps", later("Gentle first steps"),
            later("How many steps the learning rate takes to rise to its full value."), Range(minimum=0, maximum=10_000)),
        Setting("learning.updates", later("Steps per round"),
            later("With more than one, each step learns from a part of the examples."),
            Range(minimum=1, maximum=4)),
        Setting("learning.seed", later("Seed"), later("Makes the run of a computer that trains alone repeatable."),
            Range(minimum=0, maximum=2_147_483_647, zero=later("New each time"))),
    )),
    Group(later("Tests"), (
        Setting("learning.held_out_every", later("Rounds between two tests"),
            later("For the starter. Other models are tested by time, unless you change this."),
            Range(minimum=1, maximum=10_000)),
        Setting("learning.held_out_questions", later("Questions of a test"),
            later("For each specialty. More make the score more certain, and the test longer."), Range(minimum=1, maximum=200)),
    )),
))  # fmt: skip
ADVANCED = Section("advanced", later("Advanced"), (
    Group(later("Device and memory"), (
        Setting("computer.device", later("Device"), later("What the model runs on."),
            Options((("auto", later("Automatic")), ("cpu", later("Processor")), ("cuda", "CUDA"), ("xpu", "XPU")))),
        Setting("model.training", later("What is trained"),
            later("An adapter needs much less memory than all weights, and learns a little less."),
            Options((("auto", later("All weights, if memory allows")), ("full", later("All weights")),
                     ("lean", later("All weights, saving memory")), ("lora", later("An adapter (LoRA)")),
                     ("qlora", later("An adapter, 4-bit model (QLoRA)"))))),
        Setting("model.precision", later("Precision"), later("How exactly it calculates. A lower one may be faster."),
            Options((("auto", later("Automatic")), ("float32", "float32"), ("bfloat16", "bfloat16")))),
    )),
    Group(later("Figures for research tools"), (
        Setting("tracking.tensorboard", "TensorBoard",
            later("A folder to which the figures of rounds are written. Needs the Python package tensorboard."),
            TextLine(hint=later("for example /home/anna/runs"))),
        Setting("tracking.wandb", "Weights & Biases",
            later("A folder for offline runs. Nothing is sent. Needs the Python package wandb."),
            TextLine(hint=later("for example /home/anna/runs"))),
        Setting("tracking.trackio", "Trackio",
            later("A folder for offline runs. Nothing is sent. Needs the Python package trackio."),
            TextLine(hint=later("for example /home/anna/runs"))),
        Setting("tracking.run", later("Name of the run"), later("For the rounds from now on."),
            TextLine(hint=later("automatic: model, swarm, settings"))),
    )),
))  # fmt: skip
SECTIONS = (WHEN, HOW_MUCH, APPEARANCE, NOTIFICATIONS, NETWORK, LEARNING, ADVANCED)

Control = Switch | ComboBox | NumberField | TextField | WeekSchedule


def make_control(theme: Theme, row: Setting) -> Control:
    """Create the control of a setting."""
    name = tr(row.title)
    match row.kind:
        case Toggle():
            return Switch(theme, name)
        case Options(options) if row.key == MOTION and reduced_motion.is_reduced() is None:
            return ComboBox(theme, name, [(value, tr(UNSAID if value == "system" else words)) for value, words in options])
        case Options(options):
            sign = number_format().percent
            return ComboBox(theme, name, [(value, tr(words).replace("%", sign)) for value, words in options])
        case Range() as kind:
            return NumberField(theme, name, kind)
        case TextLine() as kind:
            return TextField(theme, name, tr(kind.hint), several=kind.several)
        case WeekHours():
            return WeekSchedule(theme, name)


def is_wide(row: Setting) -> bool:
    """Whether the control stands below the words, not beside them: it needs the whole width."""
    return isinstance(row.kind, WeekHours | TextLine)
