"""A process that converts one tokenizer to `tokenizer.json` through transformers. The files come with models, from strangers.

They are parsed, not run: no code of the model's, no pickles. transformers imports lazily, so this process cannot give up opening
files; it cannot write any, has no network by transformers' own offline switch, and its memory and time are bounded. It serves one
request.
"""

import os
import signal
import sys

import msgspec

from waggle.core.message import as_message
from waggle.tasks.sandbox import hardening, messages

SECONDS = 300.0  # wall-clock limit in case the parent is gone


def convert(request: messages.ConvertTokenizer) -> bytes:
    """The content of tokenizer.json. Raises what transformers raises."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(request.folder, local_files_only=True, trust_remote_code=False)
    return str(tokenizer.backend_tokenizer.to_str()).encode()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches every process of a terminal: the engine ends this one
    frame = messages.receive(sys.stdin.buffer)
    if frame is None:
        return
    replies = messages.open_replies()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    sys.modules["torch"] = None  # type: ignore[assignment]  # not needed, slow, and with CUDA beyond the memory limit
    sys.dont_write_bytecode = True
    hardening.limit_memory()
    hardening.set_deadline(SECONDS)
    hardening.write_no_files()
    reply: messages.TokenizerReply
    try:
        reply = messages.ConvertedTokenizer(convert(msgspec.msgpack.decode(frame, type=messages.ConvertTokenizer)))
    except Exception as error:  # noqa: BLE001 - files of strangers may raise anything
        reason = str(error) or type(error).__name__
        reply = messages.Failed(as_message(" ".join(reason.encode(errors="replace").decode().split())[: messages.REASON]))
    messages.send(replies, reply)


if __name__ == "__main__":
    main()
