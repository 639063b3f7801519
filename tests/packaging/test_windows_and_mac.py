"""What Linux can check of the installers for Windows and Macs; the release workflow tries them."""

import plistlib
import shutil
import sys
from pathlib import Path

import build
import make_mac
import make_windows
import pytest
from PIL import Image

HERE = Path(make_mac.HERE)


@pytest.fixture(scope="module")
def icon(tmp_path_factory):
    drawn = tmp_path_factory.mktemp("icon") / "waggle.ico"
    Image.new("RGBA", (64, 64)).save(drawn)
    return drawn


def test_the_windows_installer_compiles_without_a_warning(tmp_path, icon):
    if not shutil.which("makensis"):
        pytest.skip("nsis is not installed")
    payload = tmp_path / "Waggle"
    (payload / "_internal").mkdir(parents=True)
    (payload / "Waggle.exe").write_bytes(b"MZ")
    (payload / "_internal/library").write_bytes(b"library")
    installer = make_windows.installer(payload, icon, "1.2.3.dev70000", tmp_path)
    assert installer.read_bytes()[:2] == b"MZ"


def test_the_programs_the_uninstaller_and_the_installer_are_signed_where_there_is_a_certificate(tmp_path, icon, monkeypatch):
    if not shutil.which("makensis"):
        pytest.skip("nsis is not installed")
    payload, signing_log = tmp_path / "Waggle", tmp_path / "said"
    payload.mkdir()
    for name in ("Waggle.exe", "waggle-console.exe"):
        (payload / name).write_bytes(b"MZ")
    (tmp_path / "signtool").write_text(f'#!/bin/sh\necho "$@" >> {signing_log}\n', encoding="utf-8")
    (tmp_path / "signtool").chmod(0o755)
    for name, value in (("SIGNTOOL", tmp_path / "signtool"), ("SIGN_CERTIFICATE", "a.pfx"), ("SIGN_PASSWORD", "secret")):
        monkeypatch.setenv(name, str(value))
    shutil.copy(icon, tmp_path / "waggle.ico")
    (installer,) = make_windows.wrap(payload, "1.2.3", tmp_path)
    signed = [line.split("/td sha256 ")[1] for line in signing_log.read_text(encoding="utf-8").splitlines()]
    assert signed[0] == f"{payload / 'Waggle.exe'} {payload / 'waggle-console.exe'}"
    assert len(signed) == 3, "including the uninstaller"
    assert signed[2] == str(installer)


def test_without_the_maker_of_installers_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build, "freeze", pytest.fail)
    with pytest.raises(SystemExit, match="NSIS"):
        build.main()


def test_windows_programs_say_which_version_they_are():
    def struct(*args, **named):
        return (*args, named) if named else args

    names = ("VSVersionInfo", "FixedFileInfo", "StringFileInfo", "StringTable", "StringStruct", "VarFileInfo", "VarStruct")
    resource = eval(make_windows.resource("1.2.3.dev45"), dict.fromkeys(names, struct))[0]  # noqa: S307 - our own text
    assert resource["ffi"][0]["filevers"] == (1, 2, 3, 45)
    strings = dict(resource["kids"][0][0][0][1])
    assert (strings["ProductName"], strings["ProductVersion"]) == ("Waggle", "1.2.3.dev45")


def test_the_windows_installer_is_never_blocked_by_what_is_in_the_folder_and_offers_to_start_waggle():
    script = (HERE / "windows/waggle.nsi").read_text(encoding="utf-8")
    assert ".onVerifyInstDir" not in script, "it disables a button without a word"
    assert '!define MUI_FINISHPAGE_RUN "${WAGGLE}"' in script
    assert script.index("!define MUI_PAGE_CUSTOMFUNCTION_LEAVE ChooseFolder") < script.index("!insertmacro MUI_PAGE_DIRECTORY")
    section = script.partition('Section "Waggle"')[2].partition("SectionEnd")[0]
    assert "Call ChooseFolder" in section, "a silent start shows no page"


def test_the_pictures_of_the_installer_show_the_icon(icon):
    drawn = icon.with_name("hexagon.ico")
    Image.new("RGBA", (64, 64), (200, 100, 0, 255)).save(drawn)
    for size in make_windows.PICTURES.values():
        picture = make_windows.picture(drawn, size)
        assert picture.size == size
        assert picture.getpixel((size[0] // 2, size[1] // 2)) == (200, 100, 0)
        assert picture.getpixel((0, 0)) == make_windows.GROUND


def test_the_windows_uninstaller_removes_what_was_installed_by_name_and_never_a_whole_folder_it_did_not_make():
    script = (HERE / "windows/waggle.nsi").read_text(encoding="utf-8")
    assert "RequestExecutionLevel user" in script
    assert 'RMDir /r "$INSTDIR"' not in script
    assert "$LOCALAPPDATA" not in "".join(line for line in script.splitlines() if "RMDir" in line or "Delete " in line)
    assert 'waggle-console.exe" goodbye --remove all' in script
    for name in ("waggle-console.exe", "waggle-verifier.exe", "_internal", "notices"):
        assert rf'"$INSTDIR\{name}"' in script
    assert r'WriteRegStr HKCU "Software\Classes\waggle\shell\open\command"' in script
    assert "HKLM" not in script
    for kind in (r"Classes\waggle", r"Classes\.waggle", r"Classes\Waggle.Invite"):
        assert rf'WriteRegStr HKCU "Software\{kind}"' in script
        assert rf'DeleteRegKey HKCU "Software\{kind}"' in script


def test_waggle_is_a_command_on_windows_until_it_is_uninstalled():
    script = (HERE / "windows/waggle.nsi").read_text(encoding="utf-8")
    assert r'!define COMMAND "$LOCALAPPDATA\Microsoft\WindowsApps\waggle.cmd"' in script
    assert r"""FileWrite $0 '@"$2\waggle-console.exe" %*$\r$\n'""" in script.partition('FileOpen $0 "${COMMAND}" w')[2]
    assert 'Delete "${COMMAND}"' in script.partition('Section "Uninstall"')[2]


def test_an_uninstalled_waggle_no_longer_starts_at_a_login_on_windows():
    steps = (HERE / "windows/waggle.nsi").read_text(encoding="utf-8").partition('Section "Uninstall"')[2]
    assert steps.index("install-service --remove") < steps.index("Call un.RemoveProgram")


def test_windows_programs_are_ended_before_any_of_them_is_touched():
    script = (HERE / "windows/waggle.nsi").read_text(encoding="utf-8")
    for section, un in (("Waggle", ""), ("Uninstall", "un.")):
        steps = script.partition(f'Section "{section}"')[2].partition("SectionEnd")[0]
        assert steps.index(f"Call {un}EndProgram") < steps.index(f"Call {un}RemoveProgram")
    ending = script.partition("Function ${UN}EndProgram")[2].partition("FunctionEnd")[0]
    asking, _, waiting = ending.partition('waggle-console.exe" ctl stop')
    assert 'Held "$INSTDIR" "Waggle.exe"' in asking
    assert r'Held "$LOCALAPPDATA\waggle" "window.lock"' in asking, "an engine without a window is stopped without asking the user"
    for name in ("Waggle.exe", "waggle-console.exe", "waggle-verifier.exe"):
        assert f'!insertmacro Held "$INSTDIR" "{name}"' in waiting


@pytest.mark.parametrize(("named", "numbers"), [("1.2.3", "1.2.3.0"), ("1.2.3.dev45", "1.2.3.45"), ("1.2.3.dev70000", "1.2.3.0")])
def test_windows_gets_four_numbers(named, numbers):
    assert make_windows.numbers(named) == numbers


def test_the_mac_opens_links_and_says_why_it_wants_the_local_network():
    properties = plistlib.loads((HERE / "mac/Info.plist").read_bytes())
    assert properties["CFBundleURLTypes"][0]["CFBundleURLSchemes"] == ["waggle"]
    (document,), (kind,) = properties["CFBundleDocumentTypes"], properties["UTExportedTypeDeclarations"]
    assert document["LSItemContentTypes"] == [kind["UTTypeIdentifier"]]
    assert kind["UTTypeTagSpecification"] == {"public.filename-extension": ["waggle"]}
    assert properties["NSLocalNetworkUsageDescription"].endswith(".")
    assert properties["LSMinimumSystemVersion"] == "15.0"
    assert properties["NSAppSleepDisabled"], "App Nap would slow the engine of a hidden window down"
    assert properties["CFBundleIdentifier"] == "io.waggle.Waggle"


def test_the_mac_programs_are_given_no_more_than_they_need():
    entitlements = plistlib.loads((HERE / "mac/entitlements.plist").read_bytes())
    assert entitlements == {"com.apple.security.cs.allow-jit": True, "com.apple.security.cs.disable-library-validation": True}


@pytest.mark.skipif(sys.platform == "win32", reason="the codesign of this test is a script of sh")
@pytest.mark.parametrize("identity", ["", "Developer ID Application: Waggle"])
def test_the_hardened_runtime_needs_an_identity(tmp_path, monkeypatch, identity):
    record = tmp_path / "record"
    (tmp_path / "codesign").write_text(f'#!/bin/sh\necho "$@" > {record}\n', encoding="utf-8")
    (tmp_path / "codesign").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CODESIGN_IDENTITY", identity)
    make_mac.sign(tmp_path / "program")
    words = record.read_text(encoding="utf-8")
    assert ("--options runtime" in words) == ("--timestamp" in words) == ("entitlements.plist" in words) == bool(identity)
    assert f"--sign {identity or '-'} " in words


def test_a_bundle_is_signed_from_the_inside_out_and_p2pd_is_not_forgotten(tmp_path):
    bundle = tmp_path / "Waggle.app"
    programs = (
        "Contents/MacOS/Waggle",
        "Contents/MacOS/waggle-verifier",
        "Contents/Frameworks/hivemind/hivemind_cli/p2pd",
        "Contents/Frameworks/mlx/lib/libmlx.dylib",
    )
    for name in programs:
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_bytes(make_mac.MAGIC[0] + b"rest")
    (bundle / "Contents/Info.plist").write_bytes(b"<plist/>")
    (bundle / "Contents/Frameworks/p2pd").symlink_to("hivemind/hivemind_cli/p2pd")
    order = make_mac.inside_out(bundle)
    assert order[-1] == bundle
    assert [path.relative_to(bundle).as_posix() for path in order[:-1]] == [programs[2], programs[3], programs[0], programs[1]]
