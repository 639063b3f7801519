"""The card on an NVIDIA graphics processor: offers CUDA with its size, downloads and removes it."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QFrame

from waggle.core import cuda_download, paths
from waggle.core.cuda_download import CudaPack
from waggle.core.errors import UNREADABLE
from waggle.gui.engine_client.line_process import LineProcess
from waggle.gui.i18n.formatting import size, tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.part_bar import PartBar
from waggle.gui.widgets.text import say_in, text


class CudaCard(QFrame):
    """Downloads in a process of its own. Closing the window ends the download; the next one continues from there."""

    def __init__(self, theme: Theme, pack: CudaPack, root: Path, command: Sequence[str] = ()) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._pack, self._root = pack, root
        self._command = command or (*paths.module_command("waggle"), "cuda")
        self._says = text(theme, "", "body", wrap=True)
        self._more = text(theme, "", "small", "soft", wrap=True)
        self._problem = text(theme, "", "small", "bad", wrap=True)
        self._bar = PartBar(tr("Download of CUDA"))
        self.act, self.remove = Button(theme, ""), Button(theme, tr("Remove"))
        self.act.clicked.connect(self._act)
        self.remove.clicked.connect(lambda: self._start("--remove"))
        title = text(theme, tr("Your NVIDIA graphics card"), "heading")
        self.setLayout(column(
            title, self._says, self._more, self._bar, self._problem, as_widget(row(self.act, self.remove, None)),
            gap=8, margins=(20, 16, 20, 18),
        ))  # fmt: skip
        self.words = f"{title.text()} CUDA GPU".lower()
        self._follow_program(LineProcess(self))
        self.show_download_state()

    def _follow_program(self, program: LineProcess) -> None:
        self.program = program
        program.line.connect(self._read)
        program.ended.connect(self._show_end)

    def take_over(self, before: "CudaCard") -> None:
        """Take over a running download."""
        if before.program.is_running:
            before.program.live_with(self)
            self._follow_program(before.program)
            self._bar.setValue(before._bar.value())
            self.show_download_state()

    @property
    def is_offered(self) -> bool:
        """Whether there is something to offer or to remove."""
        return bool(cuda_download.state_of(self._pack, self._root))

    def stop(self) -> None:
        """End a download; the next one continues from there."""
        self.program.stop()
        self.show_download_state()

    def show_download_state(self, problem: str = "") -> None:
        """Redraw; `problem` says what went wrong."""
        down, disk = size(self._pack.size), size(self._pack.unpacked)
        standing = cuda_download.state_of(self._pack, self._root)
        come = tr("Download %1").replace("%1", down)
        says, act = {
            "": ("", come),
            "offered": (tr("Waggle computes on the processor. With CUDA it computes on this card."), come),
            "begun": (tr("Waggle computes on the processor until all of CUDA is here."), tr("Go on")),
            "here": (tr("CUDA is installed. Waggle uses it from its next start."), ""),
        }[standing]
        more = tr("%1 on the disk. It comes from the Python package index, is checked against sums that came with Waggle, and is "
                  "under the licences of PyTorch and NVIDIA.")  # fmt: skip
        self._says.setText(says)
        self._more.setText((tr("It takes %1.") if standing == "here" else more).replace("%1", disk))
        self.act.say(tr("Stop") if self.program.is_running else act)
        self.act.setVisible(self.program.is_running or bool(act))
        self.remove.setVisible(self._root.is_dir() and not self.program.is_running)  # including CUDA of an earlier version
        self._bar.setVisible(self.program.is_running)
        say_in(self._problem, problem, "bad")

    def _act(self) -> None:
        if self.program.is_running:
            self.stop()
        else:
            self._start("--get", "--stdio")

    def _start(self, *options: str) -> None:
        self._bar.setValue(0)
        self.program.start([*self._command, *options])
        self.show_download_state()

    def _read(self, line: bytes) -> None:
        try:
            here, total = msgspec.json.decode(line, type=tuple[int, int])
        except UNREADABLE:  # text for a person, printed by a removal
            return
        self._bar.show_part(here, total)
        words = tr("%1 of %2 are here; after an interruption it continues there.").replace("%1", size(here))
        self._says.setText(words.replace("%2", size(total)))

    def _show_end(self, code: int, complaints: list[str]) -> None:
        """If it failed, show the last two lines on stderr: what went wrong, and what to do."""
        self.show_download_state(visible(" ".join(map(tr, complaints[-2:]))) if code else "")
