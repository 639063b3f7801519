#!/bin/sh
# Puts Waggle into this person's menu, without root: sh install.sh, and sh install.sh --uninstall to take it out again.
# What Waggle learned lies elsewhere (~/.local/share/waggle) and is never touched.
set -eu
data="${XDG_DATA_HOME:-$HOME/.local/share}"
place="$HOME/.local/opt/waggle"
entry="$data/applications/io.waggle.Waggle.desktop"
icon="$data/icons/hicolor/scalable/apps/io.waggle.Waggle.svg"
link="$HOME/.local/bin/waggle"

rm -rf "$place"
rm -f "$entry" "$icon" "$link"
if [ "${1:-}" = "--uninstall" ]; then
    update-desktop-database "$data/applications" 2>/dev/null || true
    echo "Waggle is removed."
    exit 0
fi
here="$(cd "$(dirname "$0")" && pwd)"
mkdir -p "$(dirname "$place")" "$(dirname "$entry")" "$(dirname "$icon")" "$(dirname "$link")"
cp -R "$here" "$place"
sed "s#^Exec=waggle#Exec=\"$place/waggle\"#" "$here/io.waggle.Waggle.desktop" > "$entry"
cp "$here/waggle.svg" "$icon"
ln -s "$place/waggle" "$link"
update-desktop-database "$data/applications" 2>/dev/null || true
echo "Waggle is in your menu, and in $place."
