"""Everything that can go wrong and that a person can do something about.

    WaggleError                 a sentence for a person, and what to do about it
    |- SettingsError            settings.toml or an option on the command line
    |- CharterError             a charter that cannot be used here
    |- ModelError               a model folder that is missing, broken or of an unknown kind
    |                           (ModelMissing: it cannot be had; HubUnavailable: not at the moment)
    |- TokenError               the token of the model hub, or the keychain that keeps it
    |- ExportError              a trained model that cannot be written or pushed where it was asked to be
    |- QuestionsTooLong         of a swarm, for what a model reads at a time: either of them may be changed
    |- CheckpointError          a saved state that cannot be read or written
    |- HistoryError             the history cannot be written (HistoryDamaged: nor read)
    |- UpdateError              the list of newer versions
    |- CudaError                the CUDA pack cannot be downloaded, kept or removed
    |- MemoryShort              not enough memory for this model and batch
    |- VerifierError            the judging process cannot do what it was asked (VerifierGone: and that is not to blame)
    |- IdentityError            the key file of this node
    |- SwarmError               the network part cannot start (a peer that is away is no error)
    |- BadRecord                something a stranger sent; counted and dropped, never shown as our failure
    |- LabError                 an experiment that cannot be run, or results that cannot be read
    |- EngineError              another engine is running, no engine is running, the control socket
    `- Stopped                  not a failure: the person asked the round to stop

Raised low, caught in two places: the engine's main (one `EngineFailed` event) and the window's exception hook.
"""

import msgspec

LONGEST = 2000  # characters of a sentence
# What msgspec raises for bytes that are not of the form agreed on: a wrong form, text that is no UTF-8, endless nesting.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def plain(words: str) -> str:
    """On one line and of bounded length; control, bidirectional and invisible characters become a sign each.

    What a stranger wrote may be quoted in it, and is read in a terminal, in a log and in the window.
    """
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    line = cut if cut.isprintable() else " ".join(cut.splitlines())
    return line if line.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in line)


class WaggleError(Exception):
    """Says what happened in `title` and what a person can do in `advice`, each in plain words on one line."""

    def __init__(self, title: str, advice: str = "") -> None:
        self.title = plain(title)
        self.advice = plain(advice)
        super().__init__(f"{self.title} {self.advice}".strip())


class SettingsError(WaggleError):
    """A setting, an option or the settings file itself."""


class CharterError(WaggleError):
    """A charter that is malformed, changed, or names what this version does not offer."""


class ModelError(WaggleError):
    """A model folder that is missing, incomplete or of an architecture that is not supported."""


class ModelMissing(ModelError):
    """The model that was chosen cannot be had, whatever swarm it is for."""


class HubUnavailable(ModelError):
    """The hub cannot be reached, or has trouble of its own: later it may be there."""


class TokenError(WaggleError):
    """The token of the model hub: there is none, or the keychain of this computer cannot be used."""


class ExportError(WaggleError):
    """A trained model that cannot be written, or pushed, where it was asked to be."""


class QuestionsTooLong(WaggleError):
    """The model reads less at a time than this swarm asks: another of either would do."""


class CheckpointError(WaggleError):
    """A saved state that does not match its checksums or its charter, or that the disk does not take."""


class HistoryError(WaggleError):
    """The history that charts are drawn from cannot be written."""


class HistoryDamaged(HistoryError):
    """Nor can it be read: it is kept aside, and what is on record stands in its place."""


class UpdateError(WaggleError):
    """The list of newer versions: there is no key for it, it cannot be reached, or it is not what was signed."""


class CudaError(WaggleError):
    """The CUDA pack: it cannot be reached, it is not what the list says, or the disk does not take it."""


class MemoryShort(WaggleError):
    """The device ran out of memory."""


class VerifierError(WaggleError):
    """The process that judges answers cannot be started or keeps dying."""


class VerifierGone(VerifierError):
    """The process is gone and cannot be started again. The author of the text is not to blame."""


class VerifierKilled(VerifierGone):
    """Something outside killed it in the middle of a request, or left it no time; there is another one by now."""


class IdentityError(WaggleError):
    """The key file that makes this node itself."""


class SwarmError(WaggleError):
    """The network part cannot start at all."""


class BadRecord(WaggleError):
    """Something a stranger sent that breaks the rules; `title` is the reason that is counted and shown."""


class EngineError(WaggleError):
    """About the engine process: already running, not running, wrong version."""


class LabError(WaggleError):
    """An experiment that cannot be run as asked, or results that cannot be read."""


class Stopped(Exception):
    """The round was asked to stop between two steps; nothing is lost but the round in progress."""
