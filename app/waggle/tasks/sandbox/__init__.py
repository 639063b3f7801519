"""Child processes that drop their privileges before they read strangers' text, and the messages to and from them."""
