"""What operators declare of themselves holds for their references."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

from tests.random_graphs.graphs import seeded_graph
from tests.support import random_array, type_of
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS, OpDef
from webnn_wgpu.ops._def import Interface
from webnn_wgpu.ops.elementwise import ADD
from webnn_wgpu.ops.interfaces.family import Family
from webnn_wgpu.ops.interfaces.layout import Layout, to_last
from webnn_wgpu.ops.interfaces.movement import Move, Movement, Stepped, divided
from webnn_wgpu.ops.pad import PAD
from webnn_wgpu.ops.strided import EXPAND, SLICE, SPLIT, TILE
from webnn_wgpu.ops.views import RESHAPE
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array, Graph, Node

GRAPHS = 300
RNG = np.random.default_rng(0)


def nodes() -> Iterator[tuple[Graph, Node, list[Array | None], list[Array]]]:
    """Yield the nodes of random graphs with their operands and results."""
    for i in range(GRAPHS):
        graph, feeds = seeded_graph(f"interfaces:{i}")
        found = interpret(replace(graph, outputs={str(v): v for v in graph.values}), feeds)
        for node in graph.nodes:
            operands = [None if v is None else found[str(v)] for v in node.inputs]
            yield graph, node, operands, [found[str(v)] for v in node.outputs]


def computed(op: OpDef, operands: Sequence[Array | None], attrs: dict[str, object], types: Sequence[TensorType]) -> list[Array]:
    assert op.reference is not None
    with np.errstate(all="ignore"):
        return [np.asarray(a) for a in op.reference(operands, attrs, tuple(types))]


# Every interface is given or denied -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", get_args(Interface))
def test_an_operator_that_does_not_say_whether_it_has_an_interface_is_refused(name: str) -> None:
    given = getattr(ADD, name)
    unstated = {name: None, "without": tuple(n for n in ADD.without if n != name)}
    with pytest.raises(TypeError, match=f"^add: give {name}, or name it in `without`"):
        replace(ADD, **unstated)
    if given is not None:
        with pytest.raises(TypeError, match=f"^add: give {name}, or name it in `without`, but not both"):
            replace(ADD, without=(*ADD.without, name))


def test_an_operator_without_a_family_is_refused() -> None:
    with pytest.raises(TypeError, match="family"):
        OpDef(name="x.new", operands=ADD.operands, infer=ADD.infer, reference=ADD.reference, lower=ADD.lower)  # type: ignore[call-arg]


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_interfaces_fit_together(op: OpDef) -> None:
    assert isinstance(op.family, Family)
    # An operator computes elements one by one, or computes more and applies an epilogue, or moves elements.
    assert sum(given is not None for given in (op.elementwise, op.epilogue, op.movement)) <= 1
    assert (op.family is Family.MOVEMENT) == op.moves
    assert op.elementwise is None or op.layout is not None
    assert op.view <= op.moves
    if op.movement:
        assert op.tolerance == 0
        assert not (op.movement.parts and op.movement.runs)
    if op.precision:
        assert all(i < len(op.operands) for i in op.precision.weights)


# What is declared is so -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [op for op in OPS.values() if len(op.operands) == 2 and op.elementwise], ids=lambda op: op.name)
def test_operands_of_commutative_operators_may_be_swapped(op: OpDef) -> None:
    data_type = op.operands[0].data_types[0]
    a, b = (random_array(RNG, data_type, (40,)) for _ in range(2))
    if a.dtype.kind != "f":
        a, b = np.abs(a) % 3, np.abs(b) % 3
    types, attrs = op.check([type_of(a), type_of(b)], {})
    (there,), (back,) = (computed(op, pair, attrs, types) for pair in ((a, b), (b, a)))
    assert np.array_equal(there, back, equal_nan=True) == op.commutative


SAME_TYPE = {
    RESHAPE.name: {"new_shape": (2, 3)},
    "identity": {},
    "cast": {"data_type": "float32"},
    EXPAND.name: {"new_shape": (2, 3)},
    TILE.name: {"repetitions": (1, 1)},
    SLICE.name: {"starts": (0, 0), "sizes": (2, 3)},
    SPLIT.name: {"splits": 1},
    "concat": {"axis": 0},
    PAD.name: {"beginning_padding": (0, 0), "ending_padding": (0, 0)},
}


def test_operators_that_copy_return_their_operand() -> None:
    assert {op.name for op in OPS.values() if op.copies} == set(SAME_TYPE)
    x = RNG.random((2, 3), np.float32)
    for name, options in SAME_TYPE.items():
        types, attrs = OPS[name].check([type_of(x)], options)
        assert types == (type_of(x),)
        assert np.array_equal(computed(OPS[name], [x], attrs, types)[0], x), name


def places(found: Stepped) -> Array:
    """Return where each element lies."""

    def along(steps: Sequence[tuple[int, int]]) -> Array:
        return np.asarray(reduce(np.add.outer, (np.arange(size) * step for size, step in steps), np.zeros(1, int))).reshape(-1)

    return reduce(np.add.outer, map(along, found.dims), np.array(found.offset))


def test_movements_are_followed_to_where_elements_are() -> None:
    followed: set[str] = set()
    permuted: set[str] = set()
    for graph, node, operands, results in nodes():
        op, x = OPS[node.op], operands[0]
        if op.movement is None or op.movement.follow is None or x is None:
            continue
        numbers = np.arange(x.size).reshape(x.shape)
        types = [TensorType("int64", r.shape) for r in results]
        expected = computed(op, [numbers, *operands[1:]], dict(node.attrs), types)
        dims = divided(((x.size, 1),), x.shape) if x.size > 1 else ((),) * x.ndim
        assert dims is not None
        constants = [graph.constants.get(v) if v is not None else None for v in node.inputs]
        for i, wanted in enumerate(expected):
            found = op.movement.follow(
                Stepped(0, dims), Move(attrs=node.attrs, before=x.shape, after=wanted.shape, output=i, constants=constants)
            )
            if found is not None:
                followed.add(op.name)
                assert np.array_equal(places(found), wanted), (op.name, node.attrs)
        if op.movement.permutes:
            permuted.add(op.name)
            assert np.array_equal(np.sort(expected[0].reshape(-1)), numbers.reshape(-1))
    assert followed == {op.name for op in OPS.values() if op.movement and op.movement.follow}
    assert permuted == {op.name for op in OPS.values() if op.movement and op.movement.permutes}


def turned(array: Array | None, layout: Layout, rank: int, *, first: bool) -> Array | None:
    """Return an operand with its channels last, if it is to be so."""
    if array is None or (layout.others == "kept" and not first) or (layout.others == "broadcast" and array.size == 1):
        return array
    full = array.reshape((1,) * (rank - array.ndim) + array.shape) if layout.others == "broadcast" else array
    return np.transpose(full, to_last(full.ndim))


def test_operators_compute_the_same_with_their_channels_last() -> None:
    compared: set[str] = set()
    for _, node, operands, results in nodes():
        op, x = OPS[node.op], operands[0]
        if op.layout is None or x is None or results[0].ndim < 3 or x.ndim < 3:
            continue
        last = op.layout.options(node.attrs, x.shape)
        if last is None:
            continue
        given = [turned(a, op.layout, results[0].ndim, first=i == 0) for i, a in enumerate(operands)]
        try:
            types, attrs = op.check([None if a is None else type_of(a) for a in given], {**node.attrs, **last.changed})
        except MLTypeError:
            continue
        compared.add(op.name)
        for found, plain in zip(computed(op, given, attrs, types), results, strict=True):
            wanted = np.transpose(plain, to_last(plain.ndim)) if last.result else plain
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3, err_msg=op.name)
    drawn = {op.name for op in OPS.values() if op.layout and not op.internal and not op.extension}
    assert drawn <= compared


def test_a_movement_that_permutes_states_its_steps() -> None:
    with pytest.raises(TypeError, match="`follow` must not be None"):
        Movement(permutes=True)
