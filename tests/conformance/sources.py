"""Where the conformance cases come from.

Most are made here: the files of `tests/data/conformance`, and what `oracle` draws. Cases of the web-platform-tests, of
webnn-baseline and of webnn-polyfill are used where there is a folder of them, in the same format.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.oracle import elementwise, movement, products, rows, windows
from tests.optional import CONFORMANCE
from webnn_wgpu.testing import load_cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.testing import Case

FOLDER = Path(__file__).resolve().parents[1] / "data" / "conformance"

OWN = "generated-oracle"
"""The source of cases that the files of the repository have; a folder of others may repeat them."""


@cache
def file_cases() -> Sequence[Case]:
    """Return the cases of the repository's files."""
    return [case for path in sorted(FOLDER.glob("*.json")) for case in load_cases(path)]


@cache
def oracle_cases() -> Sequence[Case]:
    """Return the cases that are drawn anew in every run, always the same ones."""
    return [case for module in (elementwise, rows, movement, products, windows) for case in module.cases()]


@cache
def others_cases() -> Sequence[Case]:
    """Return the cases of others; none where they are not there."""
    folder = CONFORMANCE.folder()
    paths = sorted(folder.glob("*.json")) if folder else []
    return [case for path in paths for case in load_cases(path) if case.source != OWN]


def all_cases() -> Sequence[Case]:
    """Return all cases that are there."""
    return [*file_cases(), *oracle_cases(), *others_cases()]
