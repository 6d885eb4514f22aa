"""Gradients of every operator with random options, and of tensors of every rank, agree with central differences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.gradients.drawn import OPERATORS, differentiable_graph, rebuilt
from webnn_wgpu.ops import OPS
from webnn_wgpu.testing import check_gradients

if TYPE_CHECKING:
    import webnn_wgpu as wn
    from webnn_wgpu.ir.graph import Graph

CASES = 6
MOST_SEEDS = 200

ANY_RANK = [name for name in OPERATORS if OPS[name].elementwise or name.startswith("reduce")]
DIMENSIONS = (2, 1, 3, 1, 2, 2)


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_with_random_options_agree_with_central_differences(name: str) -> None:
    check_cases(name, "float32", 1e-4)


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_of_float16_have_no_rounded_constants(name: str) -> None:
    """The roundings of results are left out, so that only constants of a rule can differ: float16 rounds by up to 5e-4."""
    check_cases(name, "float16", 1e-5)


def check_cases(name: str, data_type: str, tolerance: float) -> None:
    """Compare gradients of an operator with central differences, for random options."""
    found = 0
    for seed in range(MOST_SEEDS):
        with np.errstate(all="ignore"):
            drawn = differentiable_graph(f"case:{name}:{seed}", [name], (1, 2), data_type)
        if drawn is None or not any(node.op == name for node in drawn[0].nodes):
            continue
        graph, feeds = drawn
        found += 1
        # Zeros and equal numbers, of which some are drawn, are corners.
        rng = np.random.default_rng(seed)
        moved = [
            array + 1e-3 * rng.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array
            for array in (feeds[each] for each in graph.inputs)
        ]
        try:
            with np.errstate(all="ignore"):
                check_gradients(
                    lambda builder, *given, graph=graph: rebuilt(
                        graph, builder, dict(zip(graph.inputs.values(), given, strict=True))
                    ),
                    moved,
                    together=True,
                    step=1e-6,
                    tolerance=tolerance,
                )
        except AssertionError as error:
            raise AssertionError(f"{error}; the drawn calls are {calls_of(graph)}") from error
        if found == CASES:
            return
    raise AssertionError(
        f"{found} cases of {name} in {MOST_SEEDS} graphs of {data_type}; an operator that takes a limited range belongs to "
        "LEFT_OUT in tests/gradients/drawn.py"
    )


def calls_of(graph: Graph) -> str:
    """Return the operators of a graph with their options."""
    return ", ".join(
        f"{node.op}({', '.join(f'{name}={value!r}' for name, value in node.attrs.items())})" for node in graph.nodes
    )


def test_a_failure_names_the_drawn_options() -> None:
    drawn = next(filter(None, (differentiable_graph(f"case:elu:{seed}", ["elu"], (1, 1)) for seed in range(MOST_SEEDS))))
    assert re.fullmatch(r"elu\(alpha=-?[\d.]+\)", calls_of(drawn[0]))


@pytest.mark.parametrize("rank", range(len(DIMENSIONS) + 1))
def test_gradients_of_every_rank_agree_with_central_differences(rank: int) -> None:
    rng = np.random.default_rng(rank)
    checked = 0
    for name in ANY_RANK:
        operands = OPS[name].operands
        if len(operands) > 2 or OPS[name].variadic:
            continue
        # Between 0.2 and 0.9 every operator has a slope.
        arrays = [rng.uniform(0.2, 0.9, DIMENSIONS[:rank]).astype(np.float32) for _ in operands]

        def build(builder: wn.MLGraphBuilder, *given: wn.MLOperand, name: str = name) -> list[wn.MLOperand]:
            return builder._operator(name, list(given), {}, "")

        check_gradients(build, arrays, step=1e-6, tolerance=1e-4)
        checked += 1
    assert checked >= 30
