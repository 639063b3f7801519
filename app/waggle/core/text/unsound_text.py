"""Characters that no text from outside may contain: lost bytes, lone surrogates, and what hides or reorders text."""

import re

BROKEN = "\N{REPLACEMENT CHARACTER}"  # what decoding makes of bytes that are not UTF-8
CONTROL = "\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb"  # with bidirectional controls
UNSEEN = "\xad\u180e\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # not zero-width joiners, which some scripts need
HIDDEN = CONTROL + UNSEEN
UNSOUND = re.compile(f"[{BROKEN}\ud800-\udfff{HIDDEN}]")  # and lone surrogates, which no tokenizer can encode
