"""People count rounds from 1."""

from waggle.core.text.round_number import round_number


def test_the_first_round_is_round_1() -> None:
    assert [round_number(index) for index in range(3)] == [1, 2, 3]
