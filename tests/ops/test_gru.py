from __future__ import annotations

import itertools
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
from tests.support import op_graph, open_profile
from tests.targets import SOFTWARE
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.core.errors import MLTypeError, OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.ops._cells import ACTIVATIONS
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.runtime.device import Device

EACH_WAY = pytest.mark.parametrize("way", WAYS, ids="-".join)
RESET_AFTER = pytest.mark.parametrize("reset_after", first_of([True, False]), ids=["reset after", "reset before"])


@EACH_WAY
@RESET_AFTER
@pytest.mark.parametrize("data_type", first_of(FLOATS))
def test_directions_and_layouts(device: Device, way: tuple[str, str], reset_after: bool, data_type: str) -> None:
    for hidden, layout, direction in itertools.product((5, 8), ("zrn", "rzn"), ("forward", "backward", "both")):
        sizes = Sizes(hidden=hidden, both=direction == "both")
        attrs = attributes("gru", sizes, layout=layout, direction=direction, reset_after=reset_after)
        check(device, "gru", operands("gru", sizes, data_type), attrs, way=way)


@EACH_WAY
@RESET_AFTER
def test_whole_numbers_are_exact(device: Device, way: tuple[str, str], reset_after: bool) -> None:
    for hidden, both in itertools.product((3, 4), (False, True)):
        sizes = Sizes(2, 5, 3, hidden, both)
        attrs = attributes("gru", sizes, reset_after=reset_after, activations=["relu", "relu"])
        outputs = check(device, "gru", operands("gru", sizes, whole=True), attrs, way=way, exact=True)
        # `check` has seen that workgroups side by side take no reset before the product.
        assert len(outputs) == (2 if reset_after or way[0] != "cooperative" else 0)
        for sequence in outputs[1:]:
            assert np.count_nonzero(sequence) > sequence.size // 8


@pytest.mark.parametrize("variant", VARIANTS)
@RESET_AFTER
def test_what_may_be_absent(device: Device, variant: str, reset_after: bool) -> None:
    optional = (*VECTORS["gru"], *STATES["gru"])
    for count in range(len(optional) + 1):
        for absent in itertools.combinations(optional, count):
            sizes = Sizes(hidden=4)
            attrs = attributes("gru", sizes, reset_after=reset_after, return_sequence=count % 2 == 0)
            outputs = check(device, "gru", operands("gru", sizes, absent=absent), attrs, way=(variant, "CPU"))
            assert len(outputs) == (1 + (count % 2 == 0) if reset_after or variant != "cooperative" else 0)


@EACH_WAY
@RESET_AFTER
@pytest.mark.parametrize("data_type", first_of(FLOATS))
def test_cell(device: Device, way: tuple[str, str], reset_after: bool, data_type: str) -> None:
    for hidden, layout in itertools.product((1, 8, 13), ("zrn", "rzn")):
        sizes = Sizes(hidden=hidden)
        attrs = attributes("gruCell", sizes, layout=layout, reset_after=reset_after)
        check(device, "gruCell", operands("gruCell", sizes, data_type), attrs, way=way)
        bare = operands("gruCell", sizes, data_type, absent=VECTORS["gru"])
        check(device, "gruCell", bare, attrs, way=way, constants=["recurrentWeight"])


@pytest.mark.parametrize("name", first_of(ACTIVATIONS))
def test_every_activation(device: Device, name: str) -> None:
    check_activation(device, "gru", name, ["sigmoid", "tanh"])


def test_options_of_activations_share_a_kernel_and_are_cast(device: Device) -> None:
    given = operands("gru", Sizes(), "float16")
    results = [
        check(device, "gru", given, attributes("gru", Sizes(), activations=[("elu", {"alpha": alpha}), "tanh"]))[0]
        for alpha in (0.1, 0.0999755859375, 0.7)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    assert np.any(results[0] != results[2])


@pytest.mark.parametrize("data_type", FLOATS)
def test_entry_t_belongs_to_step_t(device: Device, data_type: str) -> None:
    given = operands("gru", Sizes(steps=5), data_type)
    turned = given | {"input": given["input"][::-1]}
    last, sequence = check(device, "gru", given, attributes("gru", Sizes(steps=5), direction="backward"))
    same, reverse = check(device, "gru", turned, attributes("gru", Sizes(steps=5)))
    np.testing.assert_array_equal(last, same)
    np.testing.assert_array_equal(sequence, reverse[::-1])
    np.testing.assert_array_equal(sequence[0], last)


@pytest.mark.repeats
@EACH_WAY
@RESET_AFTER
@pytest.mark.parametrize(
    "sizes", [Sizes(2, 9, 3, 300), Sizes(2, 1, 1, 258), Sizes(3, 70, 4, 1), Sizes(1, 2, 40, 100, True)], ids=str
)
def test_sizes_beyond_one_tile(device: Device, way: tuple[str, str], reset_after: bool, sizes: Sizes) -> None:
    sizes = possible("gru", sizes, way, device)
    check(device, "gru", operands("gru", sizes), attributes("gru", sizes, reset_after=reset_after), way=way)


@RESET_AFTER
@pytest.mark.parametrize(("batch", "invocations"), [(11, 512), (37, 256)])
def test_workgroups_of_several_batch_rows(device: Device, reset_after: bool, batch: int, invocations: int) -> None:
    sizes = Sizes(2, batch, 3, 152, both=True)
    limits = limits_of(device, invocations)
    given, attrs = operands("gru", sizes), attributes("gru", sizes, reset_after=reset_after)
    check(device, "gru", given, attrs, way=("sequence", "DiscreteGPU"), limits=limits)


@EACH_WAY
def test_a_row_with_nan_leaves_the_others(device: Device, way: tuple[str, str]) -> None:
    given = operands("gru", Sizes())
    x = given["input"]
    assert x is not None
    x[1, 1, 2] = np.nan
    _, sequence = check(device, "gru", given, attributes("gru", Sizes()), way=way)
    assert np.isnan(sequence).any(axis=3)[:, 0].tolist() == [[False] * 3, [False, True, False], [False, True, False]]


@pytest.mark.parametrize("constants", [["weight"], ["recurrentWeight", "bias"], ["weight", "recurrentWeight", "recurrentBias"]])
def test_constants(device: Device, constants: list[str]) -> None:
    for both, name in ((False, "gru"), (True, "gru"), (False, "gruCell")):
        sizes = Sizes(both=both)
        check(device, name, operands(name, sizes), attributes(name, sizes), constants=constants)


@pytest.mark.parametrize("data_type", first_of(FLOATS))
def test_every_profile(profile_device: Device, data_type: str) -> None:
    for variant, both in itertools.product(variants_of(profile_device), (False, True)):
        sizes = Sizes(hidden=6, both=both)
        given = operands("gru", sizes, data_type)
        check(profile_device, "gru", given, attributes("gru", sizes, reset_after=both), way=(variant, "CPU"))
        check(profile_device, "gruCell", operands("gruCell", sizes, data_type), attributes("gruCell", sizes))


def test_projection_follows_what_is_forced_for_matmul(device: Device) -> None:
    given, attrs = operands("gru", Sizes()), attributes("gru", Sizes())
    for variant in ("plain", "tiled", "gemv"):
        check(device, "gru", given, attrs, forced={"matmul": variant})
        kernels = dispatches("gru", given, attrs, device.caps, matmul=variant)
        assert kernels[0] == f"matmul.{variant}"
        assert "matmul.plain" in dispatches("gru", given, attrs, device.caps, matmul="plain", gru="steps")


def test_recurrent_weights_that_are_computed_cannot_be_in_a_texture() -> None:
    graph = op_graph("gru", list(operands("gru", Sizes()).values()), attributes("gru", Sizes()))
    for variant in ("persistent", "subgroup_sequence"):
        with pytest.raises(OperationError, match=rf"got {variant}, .*: recurrent weights that are no constant"):
            make_plan(graph, Target.of(SOFTWARE), {"gru": variant})


@RESET_AFTER
@pytest.mark.parametrize("batch", first_of([1, 2]))
def test_more_steps_than_a_dispatch_can_make(device: Device, reset_after: bool, batch: int) -> None:
    sizes = Sizes(3000, batch, 2, 40)
    attrs = attributes("gru", sizes, reset_after=reset_after)
    check(device, "gru", operands("gru", sizes), attrs, way=("subgroup_sequence", "CPU"))


@RESET_AFTER
@pytest.mark.parametrize("batch", [1, 5])
def test_rows_of_a_texture_that_hold_a_part_of_the_weights(device: Device, reset_after: bool, batch: int) -> None:
    lanes = device.caps.subgroup_size
    sizes = Sizes(3, batch, 4, 18 * lanes + 6, True)
    for units in (1, 2):
        narrow = {"max-texture-dimension-2d": units * 3 * lanes * lanes * 4}
        for variant in ("subgroup_sequence", "subgroup_steps"):
            attrs = attributes("gru", sizes, reset_after=reset_after)
            check(device, "gru", operands("gru", sizes), attrs, way=(variant, "CPU"), limits=narrow)


def test_what_cannot_be_forced() -> None:
    sizes = Sizes(2, 1, 1, 2000)
    given, attrs = operands("gru", sizes, absent=("bias", "recurrentBias")), attributes("gru", sizes)
    with pytest.raises(OperationError, match=r"gru\('test'\): .*got sequence, steps=2, hidden_size=2000: .*; allowed: steps"):
        dispatches("gru", given, attrs, Caps(), gru="sequence")
    assert set(dispatches("gru", given, attrs, Caps())) == {"matmul.gemv", "recurrent.steps"}
    with pytest.raises(OperationError, match=r"got subgroup_steps, .*: subgroup size 0; allowed: steps"):
        dispatches("gru", given, attrs, Caps(), gru="subgroup_steps")
    with pytest.raises(MLTypeError, match="gru=sequence, gru=steps"):
        dispatches("gru", given, attrs, Caps(), gru="tiled")


sizes = st.builds(Sizes, st.integers(1, 4), st.integers(1, 6), st.integers(1, 9), st.integers(1, 24), st.booleans())


@settings(max_examples=25)
@given(
    way=st.sampled_from(WAYS),
    sizes=sizes,
    data_type=st.sampled_from(FLOATS),
    options=st.fixed_dictionaries(
        {"layout": st.sampled_from(("zrn", "rzn")), "reset_after": st.booleans(), "return_sequence": st.booleans()}
    ),
    absent=st.sets(st.sampled_from((*VECTORS["gru"], *STATES["gru"]))),
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
    attrs = attributes("gru", sizes, **options)
    if backward and not sizes.both:
        attrs["direction"] = "backward"
    device, given = open_profile("full"), operands("gru", sizes, data_type, absent=absent, seed=seed)
    if way[0] not in variants_of(device):
        way = ("steps", way[1])
    check(device, "gru", given, attrs, way=way, constants=["recurrentWeight"] if seed % 2 else [])


SEQUENCE_REFUSALS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"input": (3, 5)}, {}, ["gru('here')", "rank(input) is not allowed", "got input float32[3, 5]", "allowed: rank 3"]),
    ({"weight": (24, 5)}, {}, ["rank(weight) is not allowed", "allowed: rank 3"]),
    ({"recurrentWeight": (24, 8)}, {}, ["rank(recurrentWeight) is not allowed"]),
    ({"bias": (24,)}, {}, ["rank(bias) is not allowed", "allowed: rank 2"]),
    ({"recurrentBias": (1, 1, 24)}, {}, ["rank(recurrentBias) is not allowed"]),
    ({"initialHiddenState": (3, 8)}, {}, ["rank(initialHiddenState) is not allowed", "allowed: rank 3"]),
    ({}, {"steps": 4}, ["input.shape[0] must equal steps", "got steps=4, input float32[3, 3, 5]", "allowed: 3"]),
    ({}, {"steps": 0}, ["steps must not be 0", "got steps=0"]),
    (
        {},
        {"hidden_size": 0},
        ["6 * hidden_size must be a valid dimension", "got hidden_size=0", "allowed: hidden_size 1..357913941"],
    ),
    ({}, {"hidden_size": 357913942}, ["6 * hidden_size must be a valid dimension", "got hidden_size=357913942"]),
    ({}, {"hidden_size": -1}, ["hidden_size must be an unsigned 32-bit integer", "got -1"]),
    (
        {"weight": (1, 24, 6)},
        {},
        [
            "weight must have shape [numDirections, 3 * hidden_size, input_size]",
            "got weight float32[1, 24, 6]",
            "allowed: [1, 24, 5]",
        ],
    ),
    ({"weight": (1, 32, 5)}, {}, ["weight must have shape", "allowed: [1, 24, 5]"]),
    ({}, {"direction": "both"}, ["weight must have shape", "allowed: [2, 24, 5]"]),
    (
        {"recurrentWeight": (1, 24, 5)},
        {},
        ["recurrentWeight must have shape [numDirections, 3 * hidden_size, hidden_size]", "allowed: [1, 24, 8]"],
    ),
    ({"bias": (1, 8)}, {}, ["bias must have shape [numDirections, 3 * hidden_size]", "allowed: [1, 24]"]),
    ({"recurrentBias": (2, 24)}, {}, ["recurrentBias must have shape", "allowed: [1, 24]"]),
    (
        {"initialHiddenState": (1, 4, 8)},
        {},
        ["initialHiddenState must have shape [numDirections, batch_size, hidden_size]", "allowed: [1, 3, 8]"],
    ),
    ({}, {"activations": ["sigmoid"]}, ["activations must have 2 items", "got 1 items"]),
    ({}, {"activations": ["sigmoid", "tanh", "tanh"]}, ["activations must have 2 items", "got 3 items"]),
    ({}, {"activations": ["sigmoid", "gelu"]}, ["Invalid activations", "got 'gelu'", "allowed: relu, sigmoid, tanh"]),
    ({}, {"activations": ["sigmoid", None]}, ["Invalid activations", "got None"]),
    ({}, {"activations": "relu"}, ["activations must be a list of activations", "got 'relu' (str)"]),
    ({}, {"activations": [("softmax", {}), "tanh"]}, ["Invalid activations", "got 'softmax'"]),
    ({}, {"layout": "nrz"}, ["Invalid layout", "got 'nrz'", "allowed: zrn, rzn"]),
    ({}, {"direction": "up"}, ["Invalid direction", "got 'up'", "allowed: forward, backward, both"]),
]

CELL_REFUSALS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"input": (1, 3, 5)}, {}, ["gru_cell('here')", "rank(input) is not allowed", "allowed: rank 2"]),
    ({"hiddenState": (1, 3, 8)}, {}, ["rank(hiddenState) is not allowed", "allowed: rank 2"]),
    ({"bias": (1, 24)}, {}, ["rank(bias) is not allowed", "allowed: rank 1"]),
    ({"weight": (32, 5)}, {}, ["weight must have shape [3 * hidden_size, input_size]", "allowed: [24, 5]"]),
    ({"recurrentWeight": (24, 9)}, {}, ["recurrentWeight must have shape [3 * hidden_size, hidden_size]", "allowed: [24, 8]"]),
    ({"hiddenState": (4, 8)}, {}, ["hiddenState must have shape [batch_size, hidden_size]", "allowed: [3, 8]"]),
    ({"bias": (32,)}, {}, ["bias must have shape [3 * hidden_size]", "allowed: [24]"]),
    ({"recurrentBias": (23,)}, {}, ["recurrentBias must have shape"]),
    ({"hiddenState": None}, {}, ["hiddenState is required"]),
    ({}, {"hidden_size": 7}, ["weight must have shape", "hidden_size=7", "allowed: [21, 5]"]),
    ({}, {"hidden_size": None}, ["hidden_size is required"]),
    ({}, {"steps": 1}, ["unknown option 'steps'"]),
    ({}, {"activations": []}, ["activations must have 2 items", "got 0 items"]),
    ({}, {"layout": "iofg"}, ["Invalid layout", "allowed: zrn, rzn"]),
]


@pytest.mark.parametrize(
    ("name", "changed", "attrs", "texts"),
    [("gru", *case) for case in SEQUENCE_REFUSALS] + [("gruCell", *case) for case in CELL_REFUSALS],
)
def test_refusals(name: str, changed: Mapping[str, Any], attrs: Mapping[str, Any], texts: list[str]) -> None:
    arrays = {key: None if shape is None else np.zeros(shape, np.float32) for key, shape in changed.items()}
    message = refusal(name, typed_like(operands(name, Sizes()) | arrays), attributes(name, Sizes()) | attrs)
    assert [text for text in texts if text not in message] == []


@pytest.mark.parametrize("name", ["gru", "gruCell"])
def test_data_types_that_are_refused(name: str) -> None:
    given, attrs = operands(name, Sizes()), attributes(name, Sizes())
    assert "input data type is not allowed" in refusal(name, typed_like(operands(name, Sizes(), "int32")), attrs)
    for key in list(given)[1:]:
        other = given | {key: given[key].astype(np.float16)}
        assert f"{key} data type must equal input data type" in refusal(name, typed_like(other), attrs)


@RESET_AFTER
@pytest.mark.parametrize(("hidden", "batch", "data_type"), [(5, 3, "float32"), (8, 1, "float16"), (70, 2, "float32")])
def test_an_invocation_keeps_weights_without_subgroups_too(
    device: Device, hidden: int, batch: int, data_type: str, reset_after: bool
) -> None:
    sizes = Sizes(17, batch, 3, hidden, both=True)
    given, attrs = operands("gru", sizes, data_type), attributes("gru", sizes, reset_after=reset_after)
    check(device, "gru", given, attrs, way=("persistent", "CPU"), without=["subgroup"])
