"""All golden models by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.golden import bench, operators, patterns
from tests.golden.models import SIZES

if TYPE_CHECKING:
    from tests.golden.models import Graphs


@cache
def graphs() -> Graphs:
    """Return the models that are graphs, as data: those of operators and of patterns."""
    return {f"operator/{name}": found for name, found in operators.graphs().items()} | {
        f"pattern/{name}": found for name, found in patterns.graphs().items()
    }


def names() -> list[str]:
    """Return the names of the models that the repository has."""
    return [f"example/{name}" for name in SIZES] + list(graphs())


def all_names() -> list[str]:
    """Return the names of all models that are there, those of the benchmark among them."""
    return names() + [f"bench/{name}" for name in bench.names()]
