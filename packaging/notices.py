"""Writes the third-party notices with all licence texts, and a CycloneDX software bill of materials (SBOM).

`python3 packaging/notices.py FOLDER` writes both for the versions installed in this Python's environment.
"""

import importlib.metadata
import json
import re
import shutil
import sys
import tomllib
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

import app_contents
import locked
import version
from packaging.requirements import Requirement

HERE = Path(__file__).resolve().parent
LICENCE_FILE = re.compile(r"(licen[sc]e|copying|notice|authors)", re.IGNORECASE)
LIBP2P = ("go-libp2p-daemon", "0.5.0.hivemind1", "MIT OR Apache-2.0")  # p2pd, an executable inside hivemind's wheel
QT = """Qt and PySide6 (Qt for Python) are used under the GNU Lesser General Public License 3: LGPL-3.0.txt and GPL-3.0.txt
beside this file. They are unchanged, and separate files in the folder of the app (PySide6, shiboken6): you may replace them by
versions of your own with the same interface, and take the app apart to find faults in that. Their source code is at
https://download.qt.io/official_releases/QtForPython/ under the version number below.
"""


def write(folder: Path) -> None:
    """Write NOTICES.txt, the licence texts that it names, and sbom.cdx.json."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = sorted(shipped(), key=lambda part: part.name.lower())
    for text in (HERE / "licences").iterdir():
        shutil.copyfile(text, folder / text.name)
    shutil.copyfile(HERE.parent / "LICENSE", folder / "Apache-2.0.txt")
    (folder / "NOTICES.txt").write_text("\n".join(notice(parts)), encoding="utf-8")
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom(parts), indent=1) + "\n", encoding="utf-8")


def shipped() -> Iterator[Distribution]:
    """The installed distributions that the product depends on, directly or indirectly, also by an extra of another one."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [(text, {""}) for text in (*project["dependencies"], *locked.BY_ITSELF)]
    extras_by_name = dict[str, set[str]]()
    while waiting:
        text, asked_by = waiting.pop()
        needed = Requirement(text)
        name, extras = locked.normalised(needed.name), {"", *needed.extras}
        if name in app_contents.NOWHERE or extras <= extras_by_name.get(name, set()):
            continue
        if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in asked_by):
            continue
        try:
            part = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # excluded on purpose: pycosat on Windows, torch on a Mac
            continue
        if name not in extras_by_name:
            yield part
        extras_by_name[name] = extras | extras_by_name.get(name, set())
        waiting += [(each, extras) for each in part.requires or []]


def licence(part: Distribution) -> str:
    """The licence in a few words, from the metadata of the distribution."""
    if expression := part.metadata.get("License-Expression"):
        return expression
    classifiers = (
        classifier.rpartition(" :: ")[2]
        for classifier in part.metadata.get_all("Classifier") or []
        if classifier.startswith("License")
    )
    return next(classifiers, "") or (part.metadata.get("License") or "see its text").splitlines()[0]


def notice(parts: list[Distribution]) -> Iterator[str]:
    yield f"Waggle {version.of_this_tree()} is under the Apache License 2.0 (Apache-2.0.txt). What comes along with it:\n"
    yield QT
    yield f"{LIBP2P[0]} {LIBP2P[1]}: {LIBP2P[2]}. Python {sys.version.split()[0]}: PSF-2.0. Inter and JetBrains Mono: OFL-1.1.\n"
    for part in parts:
        yield f"{'=' * 100}\n{part.name} {part.version}: {licence(part)}\n{part.metadata.get('Home-page') or ''}"
        for file in part.files or ():
            if ".dist-info" in str(file) and LICENCE_FILE.search(file.name):
                yield f"\n--- {file.name}\n{Path(str(file.locate())).read_text(encoding='utf-8', errors='replace')}"


def sbom(parts: list[Distribution]) -> dict[str, object]:
    """The SBOM (CycloneDX 1.6); equal parts give an equal document."""
    components = [component(part.name, part.version, licence(part), "pypi") for part in parts]
    components += [component(*LIBP2P, "generic"), component("python", sys.version.split()[0], "PSF-2.0", "generic")]
    ours = {"type": "application", "bom-ref": "waggle", "name": "waggle", "version": version.of_this_tree()}
    content = json.dumps(components)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "version": 1,
        "metadata": {"component": {**ours, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
    }


def component(name: str, number: str, terms: str, kind: str) -> dict[str, object]:
    package = f"pkg:{kind}/{name.lower() if kind == 'pypi' else name}@{number}"
    return {
        "type": "library",
        "bom-ref": package,
        "name": name,
        "version": number,
        "purl": package,
        "licenses": [{"license": {"name": terms}}],
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]))
