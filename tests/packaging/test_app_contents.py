"""The frozen app's modules come from the product's source, and no excluded module is needed."""

import os
import re
import subprocess
import sys
import tomllib

import app_contents
import language_models
import pytest
import version


def test_the_lists_are_read_from_the_product():
    assert "basic_arithmetic" in app_contents.datasets()
    assert {"waggle.gui.application.main_window", "waggle.engine.main", "waggle.network.transport.hivemind.network"} < set(
        app_contents.our_modules()
    )
    assert not [name for name in app_contents.our_modules() if name.startswith("waggle_lab")]


def test_a_race_needs_nothing_of_the_laboratory():
    """The page Swarms starts a race in the installed app."""
    code = (
        "import sys, check_exclusions; check_exclusions.leave_out(); import waggle.practice.race; "
        "print(*(n for n in sys.modules if 'waggle_lab' in n))"
    )
    places = {**os.environ, "PYTHONPATH": os.pathsep.join((str(app_contents.SOURCE), str(app_contents.ROOT / "packaging")))}
    done = subprocess.run([sys.executable, "-c", code], env=places, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_packages_of_the_laboratory_are_no_part_of_the_app():
    project = tomllib.loads((app_contents.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    laboratory = project["optional-dependencies"]["lab"]
    assert set(laboratory) <= set(app_contents.NOWHERE)
    assert not set(laboratory) & set(project["dependencies"])


def test_no_line_of_the_app_imports_what_is_left_out_of_it():
    left_out = [name for name in app_contents.NOWHERE if not name.startswith("waggle")]
    pattern = re.compile(rf"^\s*(?:import|from) ({'|'.join(map(re.escape, left_out))})\b", re.MULTILINE)
    for name in app_contents.our_modules():
        path = app_contents.SOURCE / name.replace(".", "/")
        source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        assert not pattern.search(source.read_text(encoding="utf-8")), source


def test_of_transformers_the_app_has_what_language_models_need():
    from transformers.models.auto.configuration_auto import model_type_to_module_name
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    left_out, computing = set(language_models.left_out()), set(language_models.computing())
    for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        folder = model_type_to_module_name(kind)
        assert not {f"transformers.models.{folder}.{part}_{folder}" for part in ("configuration", "modeling")} & left_out, kind
    assert "transformers.models.siglip.modeling_siglip" in computing, "a part of Gemma 3"
    assert "transformers.models.whisper.feature_extraction_whisper" in left_out
    assert "transformers.models.sam.modeling_sam" in left_out
    assert not left_out & {*computing, *language_models.imported_by_name()}


def test_files_that_the_app_opens_are_kept():
    assert app_contents.dropped("torch/_inductor/lowering.py")
    assert app_contents.dropped("torch/include/ATen.h")
    assert app_contents.dropped(r"PySide6\Qt\qml\QtQuick\qmldir")
    for path in (
        "torch/bin/torch_shm_manager",
        "PySide6/Qt/plugins/platforms/libqxcb.so",
        "PySide6/Qt/plugins/platforms/libqoffscreen.so",
        "PySide6/Qt/translations/qtbase_de.qm",
        "hivemind/hivemind_cli/p2pd",
        "torch/_inductor/config.py",
        "torch/nn/functional.py",
        "waggle/resources/starter/model.safetensors",
    ):
        assert not app_contents.dropped(path), path


def test_a_tag_and_the_source_must_agree():
    assert version.named("1.2.3", ["v1.2.3"], "9") == "1.2.3"
    assert version.named("1.2.3", [], "9") == "1.2.3.dev9"
    assert version.for_debian("1.2.3.dev9") == "1.2.3~dev9"
    with pytest.raises(SystemExit, match=r"v1\.2\.4"):
        version.named("1.2.3", ["v1.2.4"], "9")


def test_only_a_library_that_the_app_takes_along_must_be_on_the_computer_that_builds_it():
    line = "22 WARNING: Library not found: could not resolve '{}', dependency of '/x/site-packages/PySide6/Qt/plugins/{}'.\n"
    theme, platform = (
        line.format("libgtk-3.so.0", "platformthemes/libqgtk3.so"),
        line.format("libEGL.so.1", "platforms/libqxcb.so"),
    )
    assert app_contents.missing(theme) == []
    assert app_contents.missing(theme + 2 * platform) == ["libEGL.so.1, for PySide6/Qt/plugins/platforms/libqxcb.so"]
