"""Words of messages and reports."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Args:
        count: the number.
        noun: the noun of one.
        plural: the noun of several. The default adds an s.

    >>> counted(1, "row"), counted(0, "row"), counted(2, "harmless read"), counted(3, "row of integers", "rows of integers")
    ('1 row', '0 rows', '2 harmless reads', '3 rows of integers')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
