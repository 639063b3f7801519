"""What leaves this computer, and what never does: the same sentences wherever it is said, in the window and in a terminal."""

from waggle.core.message import Message

SHARED = Message(
    "Your model's answers as plain text, a made-up name and a public key, your network address (visible to peers), and answers "
    "of your own where you choose to share them."
)
STAYS = Message("Your files, your real name, the model itself, and what you write to it in a chat.")
