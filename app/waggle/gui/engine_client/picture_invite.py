"""The invite in a picture with a QR code, read by a process of its own that has bounds: pictures come from strangers."""

import asyncio
import tempfile
from pathlib import Path

from PySide6.QtGui import QImage

from waggle.core.errors import SwarmError
from waggle.gui.engine_client.line_process import output_of

SECONDS = 60.0  # the process ends itself sooner, where the system can do that


async def invite_in(picture: Path | QImage) -> str:
    """The link in a file, or in a picture from the clipboard. Raises SwarmError with the reason if there is none."""
    if isinstance(picture, QImage):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clipboard.png"
            picture.save(str(path))
            return await invite_in(path)
    try:
        async with asyncio.timeout(SECONDS):
            output = await output_of("invite", "--bounded", "--in", str(picture))
    except TimeoutError:
        raise SwarmError("Reading the picture takes too long.", "Take a screenshot of the code.") from None
    if output.code == 0 and output.lines:
        return output.lines[0].decode("utf-8", "replace")
    if len(output.complaints) < 2:  # it crashed, or took too much
        raise SwarmError("The picture cannot be read.", "Take a screenshot of the code.")
    raise SwarmError(*output.complaints[-2:])
