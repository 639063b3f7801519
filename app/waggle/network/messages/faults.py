"""What can be wrong with a message of a peer, in our words."""

from enum import StrEnum


class Fault(StrEnum):
    """Why a message is refused: for the log, the reputation file and the page Peers.

    The values are stored and translated: change one only together with `resources/language`, and keep its old translation.
    """

    # records
    MALFORMED_COMPRESSION = "malformed compression"
    MALFORMED_RECORD = "malformed"
    TOO_LARGE = "too large"
    TOO_LARGE_UNPACKED = "too large unpacked"
    OTHER_PROTOCOL = "another protocol"
    OTHER_CHARTER = "another charter"
    OTHER_ORIGIN = "another origin"
    INVALID_MODEL_NAME = "invalid model name"
    FROM_THE_FUTURE = "from the future"
    TOO_OLD = "too old"
    QUESTION_TWICE = "a question twice"
    UNKNOWN_SPECIALTY = "unknown specialty"
    UNKNOWN_LEVEL = "a level that the swarm does not have"
    QUESTION_BEYOND_LIMIT = "question beyond the charter's limit"
    RESERVED_QUESTION = "reserved question"
    WRONG_GROUP_SIZE = "too many or too few completions"
    COMPLETION_TOO_LONG = "completion too long"
    BROKEN_TEXT = "broken text"
    OTHER_PAYLOAD = "not the payload that was announced"
    OTHER_ROUND = "not the round that was announced"
    CANNOT_BE_JUDGED = "cannot be judged"
    TOO_SLOW_TO_JUDGE = "takes too long to judge"

    # announcements and handshakes
    WRONG_ANNOUNCEMENT_SIZE = "announcement of the wrong size"
    MALFORMED_ANNOUNCEMENT = "malformed announcement"
    FORGED_ANNOUNCEMENT = "forged announcement"
    OTHER_PLACE_OR_TIME = "for another place or time"
    INVALID_SHEET_HASH = "invalid hash of an answer sheet"
    WRONG_HANDSHAKE_SIZE = "greeting of the wrong size"
    MALFORMED_HANDSHAKE = "malformed greeting"
    FORGED_PRESENCE = "forged statement of presence"

    # answer sheets
    WRONG_SHEET_SIZE = "answer sheet of the wrong size"
    FORGED_SHEET = "forged answer sheet"
    MALFORMED_SHEET = "malformed answer sheet"
    OTHER_SHEET = "not the answer sheet that was named"
    OTHER_QUESTIONS = "answers to other questions"

    # what a gateway's client does
    OTHER_SWARM = "another swarm's announcement"
    NO_MEMBER = "no member of this private swarm"
    WRONG_KEY = "not its key"
    BLOCKED = "blocked"
    RANGE_FULL = "too many clients of one address range"
    GATEWAY_FULL = "the gateway is full"
    CLIENT_GONE = "the client has gone"
