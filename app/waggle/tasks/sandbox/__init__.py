"""Where strangers' text is read: processes that gave up their rights first, and the messages to and from them."""
