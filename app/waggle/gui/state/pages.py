"""The pages of the window, in order."""

from waggle.gui.i18n.formatting import later

PAGES = {
    "home": later("Home"), "live": later("Live"), "progress": later("Progress"), "peers": later("Peers"),
    "swarms": later("Swarms"), "you": later("You"), "settings": later("Settings"), "help": later("Help"),
}  # fmt: skip
AT_THE_FOOT = ("settings", "help")
