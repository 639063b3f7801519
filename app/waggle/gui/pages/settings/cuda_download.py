"""An NVIDIA graphics card that could be used: CUDA offered with its size, downloaded when asked to, and removed again."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QFrame, QProgressBar

from waggle.core import cuda_download, paths
from waggle.core.cuda_download import CudaPack
from waggle.core.errors import UNREADABLE
from waggle.gui.engine_client.line_process import LineProcess
from waggle.gui.i18n.formatting import size, tr, tr_sentence, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import say_in, text


class CudaView(QFrame):
    """Hidden where there is nothing to offer. A download is a process of its own, and ends with the window: what came is kept."""

    def __init__(self, theme: Theme, pack: CudaPack, root: Path, command: Sequence[str] = ()) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._pack, self._root = pack, root
        self._command = command or (*paths.module_command("waggle"), "cuda")
        self._says = text(theme, "", "body", wrap=True)
        self._more = text(theme, "", "small", "soft", wrap=True)
        self._problem = text(theme, "", "small", "bad", wrap=True)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(8)
        self._bar.setRange(0, 100)
        self._bar.setAccessibleName(tr("Download of CUDA"))
        self.act, self.remove = Button(theme, ""), Button(theme, tr("Remove"))
        self.act.clicked.connect(self._act)
        self.remove.clicked.connect(lambda: self._start("--remove"))
        title = text(theme, tr("Your NVIDIA graphics card"), "heading")
        self.setLayout(column(
            title, self._says, self._more, self._bar, self._problem, as_widget(row(self.act, self.remove, None)),
            gap=8, margins=(20, 16, 20, 18),
        ))  # fmt: skip
        self.words = f"{title.text()} CUDA GPU".lower()
        self._hear(LineProcess(self))
        self.show_standing()

    def _hear(self, program: LineProcess) -> None:
        self.program = program
        program.line.connect(self._read)
        program.ended.connect(self._ended)

    def go_on(self, before: "CudaView") -> None:
        """A download that was begun there goes on here."""
        if before.program.running:
            before.program.live_with(self)
            self._hear(before.program)
            self._bar.setValue(before._bar.value())
            self.show_standing()

    @property
    def offered(self) -> bool:
        """Whether there is anything to show."""
        return bool(cuda_download.state_of(self._pack, self._root))

    def stop(self) -> None:
        """End a download; what has come is kept."""
        self.program.stop()
        self.show_standing()

    def show_standing(self, problem: str = "") -> None:
        """Redraw, with what went wrong, if anything."""
        down, disk = size(self._pack.size), size(self._pack.unpacked)
        standing = cuda_download.state_of(self._pack, self._root)
        come = tr("Download %1").replace("%1", down)
        says, act = {
            "": ("", come),
            "offered": (tr("Waggle computes on the processor. With CUDA it computes on this card."), come),
            "begun": (tr("Waggle computes on the processor until all of CUDA is here."), tr("Go on")),
            "here": (tr("CUDA is here. The engine uses it from its next start."), ""),
        }[standing]
        more = tr("%1 on the disk. It comes from the Python package index, is checked against sums that came with Waggle, and is "
                  "under the licences of PyTorch and NVIDIA.")  # fmt: skip
        self._says.setText(says)
        self._more.setText((tr("It takes %1.") if standing == "here" else more).replace("%1", disk))
        self.act.say(tr("Stop") if self.program.running else act)
        self.act.setVisible(self.program.running or bool(act))
        self.remove.setVisible(self._root.is_dir() and not self.program.running)  # also one of an earlier version
        self._bar.setVisible(self.program.running)
        say_in(self._problem, problem, "bad")

    def _act(self) -> None:
        if self.program.running:
            self.stop()
        else:
            self._start("--get", "--stdio")

    def _start(self, *options: str) -> None:
        self._bar.setValue(0)
        self.program.start([*self._command, *options])
        self.show_standing()

    def _read(self, line: bytes) -> None:
        try:
            here, total = msgspec.json.decode(line, type=tuple[int, int])
        except UNREADABLE:  # words for a person, of a removal
            return
        self._bar.setValue(here * 100 // max(1, total))
        words = tr("%1 of %2 have come; it goes on where it was if interrupted.").replace("%1", size(here))
        self._says.setText(words.replace("%2", size(total)))

    def _ended(self, code: int, complaints: list[str]) -> None:
        """The last two sentences: what went wrong, and what to do."""
        self.show_standing(visible(" ".join(map(tr_sentence, complaints[-2:]))) if code else "")
