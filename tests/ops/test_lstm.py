from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import refusal
from tests.ops.recurrent import (
    STATES,
    VARIANTS,
    VECTORS,
    WAYS,
    Sizes,
    attributes,
    check,
    check_activation,
    dispatches,
    limits_of,
    operands,
    possible,
    typed_like,
    variants_of,
)
from tests.rotation import first_of
from tests.support import open_profile
from tests.targets import SOFTWARE
from webnn_wgpu.core.caps import DEFAULT_LIMITS, Caps
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.ops._cells import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.runtime.device import Device

EACH_WAY = pytest.mark.parametrize("way", WAYS, ids="-".join)
OPTIONAL = (*VECTORS["lstm"], *STATES["lstm"])


@EACH_WAY
@pytest.mark.parametrize("data_type", first_of(FLOATS))
def test_directions_and_layouts(device: Device, way: tuple[str, str], data_type: str) -> None:
    for hidden, layout, direction in itertools.product((5, 8), ("iofg", "ifgo"), ("forward", "backward", "both")):
        sizes = Sizes(hidden=hidden, both=direction == "both")
        attrs = attributes("lstm", sizes, layout=layout, direction=direction)
        check(device, "lstm", operands("lstm", sizes, data_type), attrs, way=way)


@EACH_WAY
def test_whole_numbers_are_exact(device: Device, way: tuple[str, str]) -> None:
    for hidden, both in itertools.product((3, 4), (False, True)):
        sizes = Sizes(2, 5, 3, hidden, both)
        attrs = attributes("lstm", sizes, activations=["relu", "relu", "relu"])
        *_, sequence = check(device, "lstm", operands("lstm", sizes, whole=True), attrs, way=way, exact=True)
        assert np.count_nonzero(sequence) > sequence.size // 16


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_may_be_absent(device: Device, variant: str) -> None:
    few = [(), *((name,) for name in OPTIONAL), *(tuple(n for n in OPTIONAL if n != name) for name in OPTIONAL), OPTIONAL]
    for i, absent in enumerate(few):
        sizes = Sizes(hidden=4)
        attrs = attributes("lstm", sizes, return_sequence=i % 2 == 0)
        outputs = check(device, "lstm", operands("lstm", sizes, absent=absent), attrs, way=(variant, "CPU"))
        assert len(outputs) == 2 + (i % 2 == 0)


@EACH_WAY
@pytest.mark.parametrize("data_type", first_of(FLOATS))
def test_cell(device: Device, way: tuple[str, str], data_type: str) -> None:
    for hidden, layout in itertools.product((1, 8, 13), ("iofg", "ifgo")):
        sizes = Sizes(hidden=hidden)
        attrs = attributes("lstmCell", sizes, layout=layout)
        check(device, "lstmCell", operands("lstmCell", sizes, data_type), attrs, way=way)
        bare = operands("lstmCell", sizes, data_type, absent=VECTORS["lstm"])
        check(device, "lstmCell", bare, attrs, way=way, constants=["recurrentWeight"])


@pytest.mark.parametrize("layout", ["iofg", "ifgo"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_peepholes_look_at_the_state_before_in_one_order(device: Device, variant: str, layout: str) -> None:
    # Every sum is 0 but for its peephole, so that the gates are i = 2c, o = 3c, f = 5c and the cell gate is 0.
    given = operands("lstmCell", Sizes(1, 1, 1, 1), absent=("bias", "recurrentBias"))
    given |= {name: np.zeros_like(given[name]) for name in ("input", "weight", "recurrentWeight", "hiddenState")}
    given |= {"cellState": np.float32([[7]]), "peepholeWeight": np.float32([2, 3, 5])}
    for activations, expected in (
        (["relu", "relu", "relu"], (21 * 245, 245)),
        ([("linear", {"beta": 1.0}), "relu", "relu"], (22 * 252, 252)),
    ):
        attrs = attributes("lstmCell", Sizes(hidden=1), layout=layout, activations=activations)
        hidden, cell = check(device, "lstmCell", given, attrs, way=(variant, "CPU"), exact=True)
        assert (hidden.item(), cell.item()) == expected


@EACH_WAY
def test_states_stay_in_float32_between_steps(device: Device, way: tuple[str, str]) -> None:
    # The cell state grows by 2^-12 a step, which float16 cannot add to 1.
    sizes = Sizes(16, 1, 1, 4)
    given = operands("lstm", sizes, "float16", absent=OPTIONAL)
    given |= {name: np.zeros_like(given[name]) for name in ("weight", "recurrentWeight")}
    given["initialCellState"] = np.ones((1, 1, 4), np.float16)
    given["bias"] = np.repeat(np.float16([0, 1, 1, 2**-12]), 4)[None]
    given["bias"][0, :4] = 1
    attrs = attributes("lstm", sizes, activations=["relu", "relu", "relu"])
    hidden, cell, sequence = check(device, "lstm", given, attrs, way=way, exact=True)
    assert np.all(cell == np.float16(1 + 2**-8))
    assert np.all(hidden == cell)
    assert np.all(sequence[7] == np.float16(1 + 2**-9))


@pytest.mark.parametrize("name", first_of(ACTIVATIONS))
def test_every_activation(device: Device, name: str) -> None:
    check_activation(device, "lstm", name, ["sigmoid", "tanh", "tanh"])


@pytest.mark.parametrize("data_type", FLOATS)
def test_entry_t_belongs_to_step_t(device: Device, data_type: str) -> None:
    given = operands("lstm", Sizes(steps=5), data_type)
    turned = given | {"input": given["input"][::-1]}
    *last, sequence = check(device, "lstm", given, attributes("lstm", Sizes(steps=5), direction="backward"))
    *same, reverse = check(device, "lstm", turned, attributes("lstm", Sizes(steps=5)))
    np.testing.assert_array_equal(last, same)
    np.testing.assert_array_equal(sequence, reverse[::-1])
    np.testing.assert_array_equal(sequence[0], last[0])


@pytest.mark.repeats
@EACH_WAY
@pytest.mark.parametrize(
    "sizes", [Sizes(2, 9, 3, 300), Sizes(2, 1, 1, 258), Sizes(3, 70, 4, 1), Sizes(1, 2, 40, 100, True)], ids=str
)
def test_sizes_beyond_one_tile(device: Device, way: tuple[str, str], sizes: Sizes) -> None:
    sizes = possible("lstm", sizes, way, device)
    check(device, "lstm", operands("lstm", sizes), attributes("lstm", sizes), way=way)


@pytest.mark.parametrize(("batch", "invocations"), [(11, 512), (37, 256)])
def test_workgroups_of_several_batch_rows(device: Device, batch: int, invocations: int) -> None:
    sizes = Sizes(2, batch, 3, 150, both=True)
    limits = limits_of(device, invocations)
    given, attrs = operands("lstm", sizes), attributes("lstm", sizes)
    check(device, "lstm", given, attrs, way=("sequence", "DiscreteGPU"), limits=limits)


@EACH_WAY
def test_a_row_with_nan_leaves_the_others(device: Device, way: tuple[str, str]) -> None:
    given = operands("lstm", Sizes())
    x = given["input"]
    assert x is not None
    x[1, 1, 2] = np.nan
    *_, sequence = check(device, "lstm", given, attributes("lstm", Sizes()), way=way)
    assert np.isnan(sequence).any(axis=3)[:, 0].tolist() == [[False] * 3, [False, True, False], [False, True, False]]


@pytest.mark.parametrize(
    "constants", [["weight"], ["recurrentWeight", "bias"], ["weight", "recurrentWeight", "peepholeWeight"]]
)
def test_constants(device: Device, constants: list[str]) -> None:
    for both, name in ((False, "lstm"), (True, "lstm"), (False, "lstmCell")):
        sizes = Sizes(both=both)
        check(device, name, operands(name, sizes), attributes(name, sizes), constants=constants)


@pytest.mark.parametrize("hidden", [3, 40])
@pytest.mark.parametrize("batch", first_of([1, 2]))
def test_more_steps_than_a_dispatch_can_make(device: Device, batch: int, hidden: int) -> None:
    sizes = Sizes(4000, batch, 2, hidden)
    # Peepholes would let the cell state grow with every step, and what is rounded off it.
    given, attrs = operands("lstm", sizes, absent=("peepholeWeight",)), attributes("lstm", sizes)
    check(device, "lstm", given, attrs, way=("subgroup_sequence", "CPU"))
    assert 2 < dispatches("lstm", given, attrs, device.caps, lstm="subgroup_sequence").count("recurrent.subgroup") < 30


@pytest.mark.parametrize("data_type", first_of(FLOATS))
def test_every_profile(profile_device: Device, data_type: str) -> None:
    for variant, both in itertools.product(variants_of(profile_device), (False, True)):
        sizes = Sizes(hidden=6, both=both)
        given = operands("lstm", sizes, data_type, absent=STATES["lstm"] if both else ())
        check(profile_device, "lstm", given, attributes("lstm", sizes), way=(variant, "CPU"))
        check(profile_device, "lstmCell", operands("lstmCell", sizes, data_type), attributes("lstmCell", sizes))


def test_vectors_are_joined_where_a_device_has_too_few_buffers() -> None:
    roomy = Caps(limits=tuple((DEFAULT_LIMITS | {"max-storage-buffers-per-shader-stage": 10}).items()))
    given, attrs = operands("lstm", Sizes()), attributes("lstm", Sizes())
    assert dispatches("lstm", given, attrs, Caps(), lstm="sequence") == ["matmul.tiled", "concat", "recurrent.sequence"]
    assert dispatches("lstm", given, attrs, roomy, lstm="sequence") == ["matmul.tiled", "recurrent.sequence"]
    fewer = operands("lstm", Sizes(), absent=STATES["lstm"])
    assert dispatches("lstm", fewer, attrs, Caps(), lstm="sequence") == ["matmul.tiled", "recurrent.sequence"]
    # From the second step on there are states, given or not.
    assert dispatches("lstm", fewer, attrs, Caps(), lstm="steps") == ["matmul.tiled", "concat", *["recurrent.steps"] * 3]


sizes = st.builds(Sizes, st.integers(1, 4), st.integers(1, 6), st.integers(1, 9), st.integers(1, 24), st.booleans())


@settings(max_examples=25)
@given(
    way=st.sampled_from(WAYS),
    sizes=sizes,
    data_type=st.sampled_from(FLOATS),
    options=st.fixed_dictionaries({"layout": st.sampled_from(("iofg", "ifgo")), "return_sequence": st.booleans()}),
    absent=st.sets(st.sampled_from(OPTIONAL)),
    backward=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_anything(
    way: tuple[str, str],
    sizes: Sizes,
    data_type: str,
    options: Mapping[str, Any],
    absent: set[str],
    backward: bool,
    seed: int,
) -> None:
    attrs = attributes("lstm", sizes, **options)
    if backward and not sizes.both:
        attrs["direction"] = "backward"
    device, given = open_profile("full"), operands("lstm", sizes, data_type, absent=absent, seed=seed)
    if way[0] not in variants_of(device):
        way = ("steps", way[1])
    check(device, "lstm", given, attrs, way=way, constants=["recurrentWeight"] if seed % 2 else [])


SEQUENCE_REFUSALS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"input": (3, 5)}, {}, ["lstm('here')", "rank(input) is not allowed", "got input float32[3, 5]", "allowed: rank 3"]),
    ({"weight": (32, 5)}, {}, ["rank(weight) is not allowed"]),
    ({"recurrentWeight": (32, 8)}, {}, ["rank(recurrentWeight) is not allowed"]),
    ({"bias": (32,)}, {}, ["rank(bias) is not allowed", "allowed: rank 2"]),
    ({"recurrentBias": (32,)}, {}, ["rank(recurrentBias) is not allowed"]),
    ({"peepholeWeight": (24,)}, {}, ["rank(peepholeWeight) is not allowed", "allowed: rank 2"]),
    ({"initialHiddenState": (3, 8)}, {}, ["rank(initialHiddenState) is not allowed", "allowed: rank 3"]),
    ({"initialCellState": (3, 8)}, {}, ["rank(initialCellState) is not allowed", "allowed: rank 3"]),
    ({}, {"steps": 0}, ["steps must not be 0", "got steps=0"]),
    ({}, {"steps": 2}, ["input.shape[0] must equal steps", "got steps=2, input float32[3, 3, 5]", "allowed: 3"]),
    ({}, {"hidden_size": 0}, ["8 * hidden_size must be a valid dimension", "allowed: hidden_size 1..268435455"]),
    ({}, {"hidden_size": 268435456}, ["8 * hidden_size must be a valid dimension", "got hidden_size=268435456"]),
    (
        {"weight": (1, 24, 5)},
        {},
        ["weight must have shape [numDirections, 4 * hidden_size, input_size]", "allowed: [1, 32, 5]"],
    ),
    ({}, {"direction": "both"}, ["weight must have shape", "allowed: [2, 32, 5]"]),
    ({"recurrentWeight": (1, 32, 5)}, {}, ["recurrentWeight must have shape", "allowed: [1, 32, 8]"]),
    ({"bias": (1, 24)}, {}, ["bias must have shape [numDirections, 4 * hidden_size]", "allowed: [1, 32]"]),
    ({"recurrentBias": (2, 32)}, {}, ["recurrentBias must have shape", "allowed: [1, 32]"]),
    ({"peepholeWeight": (1, 32)}, {}, ["peepholeWeight must have shape [numDirections, 3 * hidden_size]", "allowed: [1, 24]"]),
    ({"initialHiddenState": (1, 4, 8)}, {}, ["initialHiddenState must have shape", "allowed: [1, 3, 8]"]),
    ({"initialCellState": (1, 3, 9)}, {}, ["initialCellState must have shape", "allowed: [1, 3, 8]"]),
    ({}, {"activations": ["sigmoid", "tanh"]}, ["activations must have 3 items", "got 2 items"]),
    ({}, {"activations": ["sigmoid", "tanh", "elu"]}, ["Invalid activations", "got 'elu'", "allowed: relu, sigmoid, tanh"]),
    ({}, {"layout": "gifo"}, ["Invalid layout", "got 'gifo'", "allowed: iofg, ifgo"]),
    ({}, {"direction": "bidirectional"}, ["Invalid direction", "allowed: forward, backward, both"]),
    ({}, {"reset_after": True}, ["unknown option 'reset_after'"]),
]

CELL_REFUSALS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"input": (1, 3, 5)}, {}, ["lstm_cell('here')", "rank(input) is not allowed", "allowed: rank 2"]),
    ({"cellState": (1, 3, 8)}, {}, ["rank(cellState) is not allowed", "allowed: rank 2"]),
    ({"peepholeWeight": (1, 24)}, {}, ["rank(peepholeWeight) is not allowed", "allowed: rank 1"]),
    ({"weight": (24, 5)}, {}, ["weight must have shape [4 * hidden_size, input_size]", "allowed: [32, 5]"]),
    ({"recurrentWeight": (32, 9)}, {}, ["recurrentWeight must have shape [4 * hidden_size, hidden_size]", "allowed: [32, 8]"]),
    ({"hiddenState": (4, 8)}, {}, ["hiddenState must have shape [batch_size, hidden_size]", "allowed: [3, 8]"]),
    ({"cellState": (3, 7)}, {}, ["cellState must have shape [batch_size, hidden_size]", "allowed: [3, 8]"]),
    ({"bias": (24,)}, {}, ["bias must have shape [4 * hidden_size]", "allowed: [32]"]),
    ({"recurrentBias": (31,)}, {}, ["recurrentBias must have shape"]),
    ({"peepholeWeight": (32,)}, {}, ["peepholeWeight must have shape [3 * hidden_size]", "allowed: [24]"]),
    ({"cellState": None}, {}, ["cellState is required"]),
    ({}, {"hidden_size": 2.5}, ["hidden_size must be an integer", "got 2.5"]),
    ({}, {"return_sequence": True}, ["unknown option 'return_sequence'"]),
    ({}, {"activations": ["tanh"] * 4}, ["activations must have 3 items", "got 4 items"]),
]


@pytest.mark.parametrize(
    ("name", "changed", "attrs", "texts"),
    [("lstm", *case) for case in SEQUENCE_REFUSALS] + [("lstmCell", *case) for case in CELL_REFUSALS],
)
def test_refusals(name: str, changed: Mapping[str, Any], attrs: Mapping[str, Any], texts: list[str]) -> None:
    arrays = {key: None if shape is None else np.zeros(shape, np.float32) for key, shape in changed.items()}
    message = refusal(name, typed_like(operands(name, Sizes()) | arrays), attributes(name, Sizes()) | attrs)
    assert [text for text in texts if text not in message] == []


@pytest.mark.parametrize("name", ["lstm", "lstmCell"])
def test_data_types_that_are_refused(name: str) -> None:
    given, attrs = operands(name, Sizes()), attributes(name, Sizes())
    assert "input data type is not allowed" in refusal(name, typed_like(operands(name, Sizes(), "int32")), attrs)
    for key in list(given)[1:]:
        other = given | {key: given[key].astype(np.float16)}
        assert f"{key} data type must equal input data type" in refusal(name, typed_like(other), attrs)


def test_an_invocation_keeps_the_weights_of_one_unit_only_where_they_are_few() -> None:
    most = Target.of(SOFTWARE).costs.recurrent.most_kept_weights
    for hidden, steps, obstacle in (
        (most // 4 + 1, 2, f"{most + 4} recurrent weights of a unit, of {most}"),
        (8, 2**16, "65536 steps of"),
    ):
        sizes = Sizes(steps, 1, 1, hidden)
        with pytest.raises(OperationError, match=rf"lstm\('test'\): .*got persistent, .*: {obstacle}.*; allowed: steps"):
            dispatches("lstm", operands("lstm", sizes), attributes("lstm", sizes), SOFTWARE, lstm="persistent")
    caps = replace(SOFTWARE, limits=DEFAULT_LIMITS)
    sizes = Sizes(2, 1, 1, 256)
    found = dispatches("lstm", operands("lstm", sizes), attributes("lstm", sizes), caps, lstm="persistent")
    assert found[-1] == "recurrent.persistent"


@pytest.mark.parametrize(("hidden", "batch", "data_type"), [(5, 3, "float32"), (8, 1, "float16"), (70, 2, "float32")])
def test_an_invocation_keeps_weights_without_subgroups_too(device: Device, hidden: int, batch: int, data_type: str) -> None:
    sizes = Sizes(17, batch, 3, hidden, both=True)
    given, attrs = operands("lstm", sizes, data_type), attributes("lstm", sizes)
    check(device, "lstm", given, attrs, way=("persistent", "CPU"), without=["subgroup"])
