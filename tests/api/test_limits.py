from __future__ import annotations

import json
from typing import Any

import pytest

import webnn_wgpu as wn
from tests.specification import operators
from tests.support import open_profile
from webnn_wgpu.core.data_types import ANY, CONSTANT_TYPES, PACKED_TYPES
from webnn_wgpu.ops import OPS


def test_keys_and_members_are_those_of_the_specification(context: wn.MLContext) -> None:
    table = operators().values()
    specified = {o["support_limits"]["key"]: list(o["support_limits"]["members"]) for o in table if o.get("support_limits")}
    limits = context.op_support_limits()
    fixed = ["preferredInputLayout", "maxTensorByteLength", "input", "constant", "output"]
    assert list(limits)[:5] == fixed
    reported = {key: list(limits[key]) for key in limits if key not in (*fixed, "extensions", "differentiable")}
    assert set(reported) == {op.name for op in OPS.values() if not op.internal and not op.extension}
    assert {f"x.{name}" for name in limits["extensions"]} == {op.name for op in OPS.values() if op.extension}
    known = {key: members for key, members in reported.items() if key in specified}
    assert {key: sorted(members) for key, members in known.items()} == {key: sorted(specified[key]) for key in known}


def test_operands_lie_between_required_and_allowed(context: wn.MLContext) -> None:
    limits = context.op_support_limits()
    checked = 0
    for operator in operators().values():
        key = (operator.get("support_limits") or {}).get("key")
        if key not in limits:
            continue
        for operand in operator["operands"]:
            specified: Any = operand.get("limits_2026") or {}
            allowed = (specified.get("allowed_dtypes") or {}).get("list")
            required = specified.get("required_dtypes")
            if not allowed or not required or operand["name"] not in limits[key]:
                continue
            reported = limits[key][operand["name"]]
            # The extension types are held to their own places in test_packed_types.py.
            types = set(reported["dataTypes"]) - set(PACKED_TYPES)
            assert set(required) <= types <= set(allowed), key
            ranks = specified.get("required_rank") or {}
            if isinstance(ranks.get("min"), int):
                assert reported["rankRange"]["min"] <= ranks["min"], key
                assert ranks["max"] is None or ranks["max"] <= reported["rankRange"]["max"], key
            checked += 1
    assert checked > 50


def test_every_record_is_well_formed(context: wn.MLContext) -> None:
    limits = context.op_support_limits()
    for key, members in (*limits.items(), *limits["extensions"].items()):
        if key in ("preferredInputLayout", "maxTensorByteLength", "extensions", "differentiable"):
            continue
        records = [members] if "dataTypes" in members else list(members.values())
        for record in records:
            assert record["dataTypes"], key
            assert set(record["dataTypes"]) <= set(CONSTANT_TYPES)
            assert 0 <= record["rankRange"]["min"] <= record["rankRange"]["max"] <= 8
    assert limits["preferredInputLayout"] == "nchw"
    assert limits["maxTensorByteLength"] == context.caps.limit("max-buffer-size")
    assert limits["matmul"]["a"]["rankRange"]["min"] == 2


def test_both_spellings(context: wn.MLContext) -> None:
    limits = context.op_support_limits()
    assert limits["preferred_input_layout"] == "nchw"
    assert limits["reduce_mean"]["input"]["data_types"] == limits["reduceMean"]["input"]["dataTypes"]
    assert "reduce_mean" in limits
    assert limits.get("max_tensor_byte_length") == limits["maxTensorByteLength"]
    assert limits.get("nonsense", 7) == 7
    with pytest.raises(KeyError):
        limits["nonsense"]
    assert json.loads(json.dumps(limits))["relu"]["input"]["rankRange"]["min"] == 0


def test_a_caller_may_change_what_was_returned(context: wn.MLContext) -> None:
    context.op_support_limits()["relu"]["input"]["dataTypes"].clear()
    assert context.op_support_limits()["relu"]["input"]["dataTypes"]


def build_one(context: wn.MLContext, key: str, data_type: str) -> None:
    """Build one operator over operands of a data type."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": data_type, "shape": [2, 2]})
    call: Any = getattr(builder, key)
    arguments: dict[str, tuple[Any, ...]] = {
        "add": (x, x),
        "matmul": (x, x),
        "equal": (x, x),
        "reduceSum": (x,),
        "reduceMean": (x,),
        "softmax": (x, 1),
        "transpose": (x,),
        "relu": (x,),
        "abs": (x,),
        "sqrt": (x,),
        "argMax": (x, 0),
        "concat": ([x, x], 0),
        "reverse": (x,),
        "clamp": (x,),
    }
    builder.build({"y": call(*arguments[key])}).destroy()


@pytest.mark.parametrize(
    "key",
    [
        "add",
        "matmul",
        "equal",
        "reduceSum",
        "reduceMean",
        "softmax",
        "transpose",
        "relu",
        "abs",
        "sqrt",
        "argMax",
        "concat",
        "reverse",
        "clamp",
    ],
)
@pytest.mark.parametrize("profile", ["full", "default-limits"])
def test_what_is_reported_builds_and_nothing_else_does(profile: str, key: str) -> None:
    with wn.ml.create_context(open_profile(profile).gpu) as context:
        reported: list[str] = next(iter(context.op_support_limits()[key].values()))["dataTypes"]
        built: list[str] = []
        for data_type in ANY:
            try:
                build_one(context, key, data_type)
            except (TypeError, wn.OperationError):
                continue
            built.append(data_type)
    assert built == reported
