"""Runs the app with all excluded modules blocked, to find a wrong exclusion in seconds.

`dev.py package` runs it before the build, which takes minutes.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from itertools import accumulate
from pathlib import Path
from types import ModuleType

import app_contents
import language_models


class LeftOut(importlib.abc.MetaPathFinder):
    """Finds every module except the excluded ones."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        is_left_out = not self._names.isdisjoint(accumulate(name.split("."), "{}.{}".format))
        return None if is_left_out else PathFinder.find_spec(name, path, target)

    find_distributions = staticmethod(importlib.metadata.MetadataPathFinder.find_distributions)


def leave_out(*names: str) -> None:
    """Block the import of these modules in this process."""
    finder = LeftOut((*app_contents.NOWHERE, *names))
    sys.meta_path[:] = [finder if original is PathFinder else original for original in sys.meta_path]


def app() -> None:
    """Import the network part, every page of the window, the view of `waggle top` and the race, and open the starter model."""
    import qasync  # noqa: F401

    import waggle.cli.watch.view.app
    import waggle.gui
    import waggle.practice.race
    from waggle.core import paths
    from waggle.models import backend
    from waggle.network.transport.hivemind.patches import load_hivemind

    load_hivemind()
    for module in pkgutil.walk_packages(waggle.gui.__path__, "waggle.gui."):
        importlib.import_module(module.name)
    backend.open_policy(paths.starter(), device="auto", threads=1)


def models() -> None:
    """Import what computes each language model, and every configuration of transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    CONFIG_MAPPING.values()
    for module in language_models.computing():
        importlib.import_module(module)


def verifier() -> None:
    """Generate and judge a question of every dataset that a charter may name, and render a chat template."""
    from waggle.tasks.sandbox import messages, template_process, verifier_process

    template_process.render(messages.RenderTemplate("{{ messages[0].content }}", {}, ("words",)))

    verifier_process.ready(tuple(messages.DatasetLevels(name, ({},)) for name in app_contents.datasets()))


def works(part: str, *command: str) -> bool:
    """Whether a command of Python succeeds with the excluded modules of a part (APP, VERIFIER) blocked."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(
            "import app_contents, check_exclusions, language_models\n"
            f"check_exclusions.leave_out(*app_contents.NOT_IN_THE_{part}, *language_models.left_out())\n"
        )
        places = (folder, str(app_contents.SOURCE), str(app_contents.ROOT / "packaging"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONHASHSEED": "0"}
        return not subprocess.call([sys.executable, *command], env=environment)


def main() -> int:
    tried = (
        works("APP", "-m", "waggle", "selftest")
        and works("APP", "-c", "import check_exclusions; check_exclusions.app()")
        and (sys.platform == "darwin" or works("APP", "-c", "import check_exclusions; check_exclusions.models()"))
        and works("VERIFIER", "-c", "import check_exclusions; check_exclusions.verifier()")
    )
    print("The app works without the excluded modules." if tried else "An excluded module is needed: see app_contents.py.")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
