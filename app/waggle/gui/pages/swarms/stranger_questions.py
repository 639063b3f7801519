"""What a swarm's creator wrote into it: files of questions, with samples. A stranger's text: plain text only, and cut."""

from PySide6.QtWidgets import QFrame, QWidget

from waggle.gui.i18n.formatting import one_line, plural, size, tr
from waggle.gui.pages.swarms.swarm_facts import sample_label
from waggle.gui.state.inputs.question_paths import MOST_FILES
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import as_widget, column, frame, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.events_swarms import SpecialtyDetails, SwarmDetails

MOST_SAMPLES = 3  # of each file


def stranger_questions(theme: Theme, swarm: SwarmDetails) -> QFrame | None:
    """The files of questions of a swarm, marked as unchecked; None if it has none."""
    files = [specialty for specialty in swarm.specialties if specialty.questions][:MOST_FILES]
    if not files:
        return None
    parts: list[QWidget] = [_mark(theme, created=swarm.created), *(_file(theme, specialty) for specialty in files)]
    return frame("well", column(*parts, gap=8, margins=(12, 9, 12, 10)))


def _mark(theme: Theme, *, created: bool) -> QWidget:
    mine = tr("From your own file. Everybody in the swarm gets it; Waggle did not check its questions and answers.")
    theirs = tr("Written by the creator of this swarm. Waggle did not check these questions and their answers.")
    icon = column(Icon(theme, "warn", "accent_text", 16), None)
    return as_widget(row(icon, (text(theme, mine if created else theirs, "small", "text", wrap=True), 1), gap=8))


def _file(theme: Theme, specialty: SpecialtyDetails) -> QWidget:
    title = ElidedLabel(theme, one_line(specialty.title), "label")
    about = [plural(specialty.questions, "%n question", "%n questions")]
    if specialty.file_bytes:
        about.append(tr("%1 to download").replace("%1", size(specialty.file_bytes)))
    if specialty.grader_title:
        about.append(tr("graded as: %1").replace("%1", tr(one_line(specialty.grader_title))))
    facts = ElidedLabel(theme, "  ·  ".join(about), "small", "text_soft")
    samples = [sample_label(theme, sample) for sample in specialty.samples[:MOST_SAMPLES]]
    return as_widget(column(title, facts, *samples, gap=5))
