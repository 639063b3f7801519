#!/bin/sh
# Installs Waggle for this user, without root: sh install.sh; to remove it: sh install.sh --uninstall.
# The training in ~/.local/share/waggle is never touched.
set -eu
data="${XDG_DATA_HOME:-$HOME/.local/share}"
place="$HOME/.local/opt/waggle"
entry="$data/applications/io.waggle.Waggle.desktop"
icon="$data/icons/hicolor/scalable/apps/io.waggle.Waggle.svg"
kind="$data/mime/packages/io.waggle.Waggle.xml"
link="$HOME/.local/bin/waggle"
tell_desktop() {
    update-mime-database "$data/mime" 2>/dev/null || true
    update-desktop-database "$data/applications" 2>/dev/null || true
}
here="$(cd "$(dirname "$0")" && pwd -P)"

if [ -d "$place" ]; then
    there="$(cd "$place" && pwd -P)"
    if [ "${1:-}" != "--uninstall" ] && [ "$here" = "$there" ]; then
        echo "This Waggle is installed already. Run the install.sh of the archive that you unpacked; --uninstall removes this one." >&2
        exit 1
    fi
    for exe in /proc/[0-9]*/exe; do # a running Waggle loads parts of these files later
        case "$(readlink "$exe" 2>/dev/null)" in "$there"/*)
            echo "Waggle is running. Quit it first, in its window or with: waggle ctl stop" >&2
            exit 1 ;;
        esac
    done
fi
if [ "${1:-}" = "--uninstall" ]; then
    "$place/waggle" install-service --remove >/dev/null 2>&1 || true # else a login would start what is gone
    rm -rf "$place" "$place.new" "$place.old"
    rm -f "$entry" "$icon" "$kind"
    if [ "$(readlink "$link")" = "$place/waggle" ]; then rm -f "$link"; fi # pipx may have put its own there
    tell_desktop
    echo "Waggle is removed."
    exit 0
fi
mkdir -p "$(dirname "$place")" "$(dirname "$entry")" "$(dirname "$icon")" "$(dirname "$kind")" "$(dirname "$link")"
rm -rf "$place.new" "$place.old"
cp -R "$here" "$place.new" # copy everything first: if the disk is full, the old Waggle stays
if [ -e "$place" ]; then mv "$place" "$place.old"; fi
mv "$place.new" "$place"
rm -rf "$place.old"
while IFS= read -r line; do
    case "$line" in
        Exec=waggle*) printf 'Exec="%s/waggle"%s\n' "$place" "${line#Exec=waggle}" ;;
        *) printf '%s\n' "$line" ;;
    esac
done < "$here/io.waggle.Waggle.desktop" > "$entry"
cp "$here/waggle.svg" "$icon"
cp "$here/io.waggle.Waggle.mime.xml" "$kind"
if { [ -e "$link" ] || [ -L "$link" ]; } && [ "$(readlink "$link")" != "$place/waggle" ]; then
    echo "$link is of another installation and was not changed: the command waggle starts that one." >&2
else
    ln -sf "$place/waggle" "$link"
fi
tell_desktop
echo "Waggle is in your menu, and in $place."
