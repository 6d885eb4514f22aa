"""Names of operands as identifiers of the `.webnn` text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

IDENTIFIER = re.compile(r"[A-Za-z_/$][A-Za-z0-9_./]*")
REMARK = re.compile(r'^#@name (\S+) (".*")$', re.MULTILINE)
"""A remark before the header: an identifier, and the name of the input or output that it stands for, as JSON."""


def identifier(name: str) -> str:
    """Return an identifier for a name. Other characters become underscores.

    >>> [identifier(n) for n in ("x:0", "1st", "a.b/c", "")]
    ['x_0', '_1st', 'a.b/c', '_']
    """
    plain = re.sub(r"[^A-Za-z0-9_./$]", "_", name) or "_"
    plain = plain[0] + plain[1:].replace("$", "_")
    return plain if IDENTIFIER.fullmatch(plain) else f"_{plain}"


class UniqueNames:
    """Makes names unique: a name that is taken gets a number.

    Args:
        taken: names that are taken from the beginning.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._numbers: dict[str, int] = {}

    def of(self, name: str) -> str:
        """Return `name`, or a name like it that is not taken yet.

        >>> names = UniqueNames(["x"])
        >>> [names.of(n) for n in ("x", "x", "y", "x_3")]
        ['x_2', 'x_3', 'y', 'x_3_2']
        """
        # Many operators may have one name: its search goes on behind the last number.
        found, number = name, self._numbers.get(name, 1)
        while found in self.taken:
            number += 1
            found = f"{name}_{number}"
        self._numbers[name] = number
        self.taken.add(found)
        return found


def remarks(renamed: dict[str, str]) -> str:
    """Return the remarks for identifiers that are not the names themselves: identifier -> name."""
    return "".join(f"#@name {i} {json.dumps(n)}\n" for i, n in renamed.items() if i != n)


def own_names(text: str) -> dict[str, str]:
    """Return the names that remarks before the header give to identifiers."""
    header = text.split("webnn_graph", 1)[0]
    found: dict[str, str] = {}
    for match in REMARK.finditer(header):
        try:
            found[match[1]] = json.loads(match[2])
        except ValueError:
            continue  # somebody's comment
    return found
