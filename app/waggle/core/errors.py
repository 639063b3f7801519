"""The errors about which a person can do something, in one tree.

    WaggleError                 a sentence for a person, and advice
    |- SettingsError            settings.toml or an option on the command line
    |- ExtensionError           a file of a strategy, an update rule or a specialty that cannot be used
    |- CharterError             a charter that cannot be used here
    |- QuestionFileError        a file with people's own questions that cannot be used
    |- ModelError               a model folder that is missing, broken or of an unknown kind
    |                           (ModelMissing: it cannot be obtained; HubUnavailable: not now)
    |- TokenError               the token of the model hub, or the keychain that stores it
    |- ExportError              a trained model that cannot be written or pushed there
    |- QuestionsTooLong         a swarm's questions are longer than the model can read
    |- CheckpointError          a saved state that cannot be read or written
    |- HistoryError             the history cannot be written (HistoryDamaged: nor read)
    |- UpdateError              the list of newer versions
    |- CudaError                the CUDA pack cannot be downloaded, stored or removed
    |- MemoryShort              not enough memory for this model and batch
    |- VerifierError            the verifier cannot do its work (VerifierGone, VerifierKilled: it ended, and no text is to blame)
    |- IdentityError            the key file of this node
    |- SwarmError               the network cannot start (a peer that does not answer is no error)
    |                           (SwarmListDamaged: the list of joined swarms cannot be read)
    |- BadRecord                something wrong from a stranger; counted and dropped, never shown as our failure
    |- LabError                 an experiment that cannot run, or results that cannot be read
    |- EngineError              another engine is running, no engine is running, the control socket
    |                           (NoEngine: none takes a command; EngineEnded: it ended before it answered)
    `- Stopped                  not a failure: the person stopped the round

They are raised low and caught in two places: the engine's main (one `EngineFailed` event) and the window's exception hook.
"""

import msgspec

from waggle.core.message import as_message, in_turn

# What msgspec raises for malformed bytes: another structure, text that is not UTF-8, nesting without end.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class WaggleError(Exception):
    """`title` says what happened and `advice` what a person can do, each in plain words on one line."""

    def __init__(self, title: str, advice: str = "") -> None:
        self.title = as_message(title)
        self.advice = as_message(advice)
        super().__init__(in_turn(self.title, self.advice))


class SettingsError(WaggleError):
    """A setting, an option or the settings file itself."""


class ExtensionError(WaggleError):
    """A file that somebody added, such as a sharing strategy, cannot be loaded or returns what cannot be used."""


class CharterError(WaggleError):
    """A charter that is malformed, changed, or names what this version does not offer."""


class QuestionFileError(WaggleError):
    """A file with people's own questions that cannot be read or breaks a rule."""


class ModelError(WaggleError):
    """A model folder that is missing, incomplete or of an architecture that is not supported."""


class ModelMissing(ModelError):
    """The chosen model cannot be obtained, whichever swarm it is for."""


class HubUnavailable(ModelError):
    """The hub cannot be reached, or has trouble of its own. Trying later may help."""


class TokenError(WaggleError):
    """The token of the model hub is missing, or this computer's keychain cannot be used."""


class ExportError(WaggleError):
    """A trained model that cannot be written or pushed to the chosen place."""


class QuestionsTooLong(WaggleError):
    """The swarm's questions are longer than the model can read. Another model or another swarm helps."""


class CheckpointError(WaggleError):
    """A saved state that does not match its checksums or charter, or that cannot be written."""


class HistoryError(WaggleError):
    """The history that charts are drawn from cannot be written."""


class HistoryDamaged(HistoryError):
    """The history cannot be read either. It is set aside and rebuilt from the record of events."""


class UpdateError(WaggleError):
    """The list of newer versions: its key is missing, it cannot be reached, or its signature is wrong."""


class CudaError(WaggleError):
    """The CUDA pack cannot be downloaded, is damaged, or cannot be written."""


class MemoryShort(WaggleError):
    """The device ran out of memory."""


class VerifierError(WaggleError):
    """The process that judges answers cannot be started, or keeps ending."""


class VerifierGone(VerifierError):
    """The verifier has ended and cannot be started again. No text is to blame."""


class VerifierKilled(VerifierGone):
    """Something outside killed the verifier during a request, or the computer was too busy. Another one runs already."""


class IdentityError(WaggleError):
    """The key file of this node: it is damaged or cannot be used."""


class SwarmError(WaggleError):
    """The network cannot start."""


class BadRecord(WaggleError):
    """Something from a stranger that breaks the rules. `title` is the reason, which is counted and shown."""


class EngineError(WaggleError):
    """About the engine process: already running, not running, wrong version."""


class NoEngine(EngineError):
    """No engine takes a command now."""


class EngineEnded(EngineError):
    """The engine ended, or began anew, before it answered."""


class LabError(WaggleError):
    """An experiment that cannot run with these options, or results that cannot be read."""


class Stopped(Exception):
    """The round stops between two steps. Only the round in progress is lost."""
