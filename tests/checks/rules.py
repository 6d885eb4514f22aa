"""Calls that break one rule each: from the words of a rule where they say it all, else from the tables of the other modules."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from webnn_wgpu.core.data_types import ANY, MAX_RANK

from .calls import ABSENT, ARITHMETIC, BASES, COMPARISONS, LOGICAL, Activation, Operand, X, t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Changes = dict[str, Any]
"""What to change in an operator's valid call."""

STATE = re.compile(r"builder (can still build|has not been built)")
"""Rules on the builder's state."""

OWNERSHIP = re.compile(r"belongs to this builder")
"""Rules on whose operands and activations are given."""

WRITTEN: dict[tuple[str, str], list[Changes]] = {}
"""Operator and rule -> changes that break the rule."""


def breaks(rule: str, ops: str | Sequence[str], *changes: Changes) -> None:
    """Enter changes that break a rule of some operators, given as a sequence or as names between spaces."""
    for op in ops.split() if isinstance(ops, str) else ops:
        WRITTEN.setdefault((op, rule), []).extend(changes)


# rules in regular words -------------------------------------------------------------------------------------------------


def python_names(entry: Mapping[str, Any]) -> dict[str, str]:
    return {o["name"]: o["python"] for o in entry["operands"]}


def _others(allowed: Sequence[str]) -> list[str]:
    return [d for d in ANY if d not in allowed]


def _followers(entry: Mapping[str, Any], name: str) -> list[str]:
    """Operands whose data type is that of `name`, `name` included."""
    types = {o["name"]: (o.get("limits_2026") or {}).get("allowed_dtypes", {}).get("same_as") for o in entry["operands"]}
    return [name, *(n for n, same in types.items() if same == name)]


def _data_type(entry: Mapping[str, Any], name: str, allowed: str) -> list[Changes]:
    base, names = BASES[entry["name"]], python_names(entry)
    moved = [names[n] for n in _followers(entry, name)]
    types = ast.literal_eval(allowed) if allowed.startswith("[") else allowed.split(" or ")
    return [{n: base[n].of(d) for n in moved if n in base} for d in _others(types)]


def _same_data_type(entry: Mapping[str, Any], name: str, other: str) -> list[Changes]:
    base, names = BASES[entry["name"]], python_names(entry)
    return [{names[name]: base[names[name]].of(d)} for d in _others((base[names[other]].type.data_type,))]


def _all_data_types(entry: Mapping[str, Any], *names: str) -> list[Changes]:
    return [c for name in names[1:] for c in _same_data_type(entry, name, names[0])]


def _rank(entry: Mapping[str, Any], name: str, low: str, high: str) -> list[Changes]:
    python = python_names(entry)[name]
    allowed = range(int(low), int(high) + 1)
    return [{python: BASES[entry["name"]][python].ranked(r)} for r in range(MAX_RANK + 1) if r not in allowed]


def _same_rank(entry: Mapping[str, Any], *names: str) -> list[Changes]:
    """The first name's rank changes, or, of three, each but the last name's."""
    base, python = BASES[entry["name"]], python_names(entry)
    given = [(python[n], base[python[n]]) for n in names[:-1]]
    return [{n: o.ranked(r)} for n, o in given for r in range(MAX_RANK + 1) if r != o.type.rank]


def _axis(entry: Mapping[str, Any], name: str) -> list[Changes]:
    given = BASES[entry["name"]][python_names(entry)[name]]
    rank = (given[0] if isinstance(given, list) else given).type.rank
    return [{"axis": axis} for axis in (rank, rank + 1, 2**32 - 1)]


def _axes_range(entry: Mapping[str, Any]) -> list[Changes]:
    rank = BASES[entry["name"]]["input"].type.rank
    return [{"axis": ABSENT, "axes": axes} for axes in ([rank], [0, rank], [2**32 - 1])]


def _axes_unique(_entry: Mapping[str, Any]) -> list[Changes]:
    return [{"axis": ABSENT, "axes": axes} for axes in ([0, 0], [1, 0, 1])]


WORDS: tuple[tuple[str, Callable[..., list[Changes]]], ...] = (
    (r"(\w+) data type in (\[.*\])", _data_type),
    (r"(\w+) data type is (\w+(?: or \w+)?)", _data_type),
    (r"(\w+) data type (?:equals|==) (\w+) data type", _same_data_type),
    (r"(a) and (b) data types equal", _all_data_types),
    (r"(input) and (filter) data types equal", _all_data_types),
    (r"(trueValue) and (falseValue) data types equal", _all_data_types),
    (r"rank\((\w+)\) ?== ?(\d)", lambda entry, name, n: _rank(entry, name, n, n)),
    (r"(\d) <= rank\((\w+)\)", lambda entry, n, name: _rank(entry, name, n, str(MAX_RANK))),
    (r"rank\((\w+)\) ?>= ?(\d)", lambda entry, name, n: _rank(entry, name, n, str(MAX_RANK))),
    (r"(\d) <= rank\((\w+)\) <= (\d)", lambda entry, n, name, m: _rank(entry, name, n, m)),
    (r"rank\((\w+)\) ?== ?rank\((\w+)\)", _same_rank),
    (r"rank\((scale)\)==rank\((zeroPoint)\)==rank\((input)\)", _same_rank),
    (r"(?:0 <= )?axis < rank\((\w+)(?:\[0\])?\)", _axis),
    (r"(?:every )?axes items? in \[0, rank\)", _axes_range),
    (r"axes has no duplicates", _axes_unique),
    (r"axes unique and in \[0, rank\)", lambda entry: _axes_unique(entry) + _axes_range(entry)),
)


def broken(entry: Mapping[str, Any], rule: str) -> list[Changes]:
    """Changes to an operator's valid call that break `rule`; none where nobody has written down how to."""
    if found := WRITTEN.get((entry["name"], rule)):
        return found
    for words, make in WORDS:
        if match := re.fullmatch(words, rule):
            return make(entry, *match.groups())
    # "rank(a)==2 and rank(b)==2": any of them.
    parts = rule.split(" and ")
    return [c for part in parts for c in broken(entry, part)] if len(parts) > 1 else []


# element by element, reductions, matrices, normalization ----------------------------------------------------------------

STRANGERS = [{"b": t("float32[2]")}, {"b": t("float32[3, 3]")}, {"b": t("float32[4, 2, 2]")}]
breaks("a.shape and b.shape are bidirectionally broadcastable", ARITHMETIC, *STRANGERS)
breaks("shapes bidirectionally broadcastable", COMPARISONS, *STRANGERS)
breaks("shapes bidirectionally broadcastable", LOGICAL, *[{"b": c["b"].of("uint8")} for c in STRANGERS])
breaks("shapes bidirectionally broadcastable", "prelu", {"slope": t("float32[2]")}, {"slope": t("float32[4, 2, 2]")})
# Superseded by the draft, which lets the slope be the greater one: what neither allows.
breaks("slope.shape unidirectionally broadcastable to input.shape", "prelu", {"slope": t("float32[2]")})
breaks("a and b data types equal (uint8)", LOGICAL, *[{"b": t(f"{d}[3]")} for d in ANY if d != "uint8"])
breaks(
    "all three shapes broadcast together",
    "where",
    {"condition": t("uint8[4, 3]")},
    {"true_value": t("float32[4, 3]")},
    {"false_value": t("float32[2]")},
)
breaks(
    "not (minValue > maxValue), compared after casting to the input data type",
    "clamp",
    {"min_value": 2, "max_value": 1},
    {"min_value": float("inf"), "max_value": 0},
    {"min_value": 0, "max_value": float("-inf")},
    {"input": t("int8[2]"), "min_value": 2, "max_value": 1},
    {"input": t("uint64[2]"), "min_value": 2**64 - 1, "max_value": 2**64 - 2},
)
breaks(
    "dataType is a valid data type name",
    "cast",
    *[{"data_type": d} for d in ("float64", "FLOAT32", "", "int16", "uint2", "bool", "string")],
)
breaks("outputDataType is int32 or int64", "argMax argMin", *[{"output_data_type": d} for d in _others(("int32", "int64"))])
# The 2024 form has no axis and takes matrices alone.
breaks("rank(input)==2", "softmax", *[{"input": t(s), "axis": ABSENT} for s in ("float32[3]", "float32[1, 2, 3]")])
breaks(
    "inner dims equal after transposition",
    "gemm",
    {"b": t("float32[3, 4]"), "c": ABSENT},
    {"a": t("float32[2, 4]")},
    {"a_transpose": True, "c": ABSENT},
    {"b_transpose": False, "c": ABSENT},
)
breaks(
    "c, if given, unidirectionally broadcastable to [M,N]",
    "gemm",
    *[{"c": t(s)} for s in ("float32[2]", "float32[3, 4]", "float32[4, 1]", "float32[2, 3]")],
)
breaks("b and c data types equal a", "gemm", *[{n: BASES["gemm"][n].of("float16")} for n in "bc"])
breaks("a.shape[-1]==b.shape[-2]", "matmul", {"b": t("float32[4, 3]")}, {"a": t("float32[5, 3, 2]")})
breaks(
    "leading dims bidirectionally broadcastable",
    "matmul",
    {"b": t("float32[4, 3, 4]")},
    {"a": t("float32[2, 5, 2, 3]"), "b": t("float32[3, 1, 3, 4]")},
)
for _name in ("mean", "variance", "scale", "bias"):
    _given = ", if given, has shape " if _name in ("scale", "bias") else ".shape == "
    breaks(
        f"{_name}{_given}[input.shape[axis]]",
        "batchNormalization",
        {_name: t("float32[2]")},
        {_name: t("float32[1]")},
        {"axis": 0, **{n: t("float32[2]") for n in ("mean", "variance", "scale", "bias")}, _name: t("float32[3]")},
    )
for _name in ("scale", "bias"):
    breaks(
        f"{_name}, if given, is 1-D",
        "instanceNormalization",
        {_name: t("float32[]")},
        {_name: t("float32[3, 1]")},
        {_name: t("float32[1, 3, 1, 1]")},
    )
breaks(
    "scale.shape == bias.shape == [input.shape[1 if nchw else 3]]",
    "instanceNormalization",
    {"scale": t("float32[2]")},
    {"bias": t("float32[4]")},
    {"layout": "nhwc", "bias": t("float32[2]")},
    {"layout": "nhwc", "scale": t("float32[2]")},
)
for _rule in ("rank(input) == 4", "rank(input)==4"):
    # Without the vectors: their shapes would not go with other ranks.
    breaks(
        _rule,
        "instanceNormalization",
        *[{"input": X.ranked(r), "scale": ABSENT, "bias": ABSENT} for r in range(MAX_RANK + 1) if r != 4],
    )
breaks(
    "rank(scale)==rank(bias)==len(axes) when given",
    "layerNormalization",
    {"scale": t("float32[3]")},
    {"bias": t("float32[1, 4, 3]")},
    {"axes": [2], "bias": ABSENT},
)
breaks(
    "scale.shape[k]==bias.shape[k]==input.shape[axes[k]]",
    "layerNormalization",
    {"scale": t("float32[3, 4]")},
    {"bias": t("float32[4, 1]")},
    {"axes": [1, 2], "bias": ABSENT},
)

# movers -----------------------------------------------------------------------------------------------------------------

LARGEST = 2**31 - 1
"""The largest dimension and number of elements."""

breaks("1 <= rank(inputs)", "concat", {"inputs": [t("float32[]")] * 2, "axis": 0})
breaks("inputs is not empty", "concat", {"inputs": []})
breaks("1 <= len(inputs) <= 8192", "concat", {"inputs": []}, {"inputs": [t("float32[1, 1]")] * 8193})
breaks(
    "all data types equal",
    "concat",
    *[{"inputs": [t("float32[2, 3]"), t(f"{d}[2, 4]")]} for d in ANY if d != "float32"],
)
breaks(
    "all ranks equal",
    "concat",
    *[{"inputs": [t("float32[2, 3]"), t(s)]} for s in ("float32[]", "float32[2]", "float32[3]", "float32[2, 3, 1]")],
)
breaks(
    "all dims except axis equal",
    "concat",
    {"axis": 0},
    {"inputs": [t("float32[2, 3]"), t("float32[3, 3]")]},
    {"inputs": [t("float32[2, 3]"), t("float32[1, 3]")]},
)
breaks(
    "summed axis size is a valid dimension (<= 2**31-1)",
    "concat",
    {"inputs": [t(f"uint8[{LARGEST}]"), t("uint8[1]")], "axis": 0},
)
breaks(
    "unidirectional_broadcast(input.shape, newShape) succeeds",
    "expand",
    {"new_shape": [3]},
    {"new_shape": []},
    {"new_shape": [2, 4]},
    {"new_shape": [2, 3, 1]},
    {"new_shape": [2, 1]},
)
for _op, _rule in (
    ("expand", "every newShape item is a valid dimension (> 0)"),
    ("reshape", "every item is a valid dimension"),
):
    breaks(_rule, _op, {"new_shape": [0, 2, 3]}, {"new_shape": [2**31, 2, 3]}, {"new_shape": [2**32 - 1]})
breaks("no zero in newShape", "reshape", {"new_shape": [0]}, {"new_shape": [6, 0]})
breaks(
    "prod(newShape)==element count (empty product 1)",
    "reshape",
    {"new_shape": [2, 4]},
    {"new_shape": [5]},
    {"new_shape": []},
    {"new_shape": [2, 3, 2]},
)
breaks(
    "indices data type is uint32 or int64",
    "gather",
    # The draft allows int32 too.
    *[{"indices": t(f"{d}[4]")} for d in ANY if d not in ("int32", "uint32", "int64")],
)
breaks(
    "indices.shape == input.shape with [axis] replaced by indices.shape[axis]",
    "gatherElements",
    {"indices": t("int32[2, 2]")},
    {"indices": t("int32[4, 4]")},
    {"axis": 1},
)
breaks(
    "indices.shape[-1] <= rank(input)",
    "gatherND scatterND",
    {"indices": t("int32[5, 4]")},
    {"indices": t("int32[9]")},
)
breaks(
    "ranks equal",
    "scatterElements",
    {"indices": t("int32[6]")},
    {"updates": t("float32[6]")},
    {"updates": t("float32[1, 2, 3]")},
    {"input": t("float32[4, 3, 1]")},
)
breaks(
    "indices.shape == input.shape with [axis] replaced",
    "scatterElements",
    {"indices": t("int32[2, 2]"), "updates": t("float32[2, 2]")},
    {"indices": t("int32[4, 4]"), "updates": t("float32[4, 4]")},
    {"axis": 1},
)
breaks("updates.shape == indices.shape", "scatterElements", {"updates": t("float32[4, 3]")}, {"updates": t("float32[2, 1]")})
breaks(
    "updates.shape == indices.shape[:-1] + input.shape[indices.shape[-1]:]",
    "scatterND",
    *[{"updates": t(s)} for s in ("float32[5, 3]", "float32[5]", "float32[4, 2]", "float32[5, 2, 1]")],
    {"indices": t("int32[5, 1]")},
)
breaks(
    "len(beginningPadding)==len(endingPadding)==rank(input)",
    "pad",
    {"beginning_padding": [1]},
    {"ending_padding": [1, 1, 1]},
    {"beginning_padding": []},
)
breaks(
    "reflection: each begin/end pad < that dim",
    "pad",
    {"beginning_padding": [2, 0]},
    {"ending_padding": [0, 3]},
    {"ending_padding": [5, 5]},
)
breaks("every output dim is a valid dimension", "pad", {"mode": "constant", "ending_padding": [0, LARGEST]})
breaks("no zero in sizes", "slice", {"sizes": [0, 2]}, {"sizes": [2, 0]})
breaks(
    "len(starts)==len(sizes)==rank(input)",
    "slice",
    {"starts": [0]},
    {"sizes": [1, 1, 1]},
    {"starts": []},
    {"input": t("float32[2, 3, 4]"), "strides": ABSENT},
)
breaks(
    "len(strides)==rank(input) and all >= 1",
    "slice",
    *[{"strides": s} for s in ([1], [1, 1, 1], [], [0, 1], [1, 0])],
)
breaks(
    "starts[i] + sizes[i] <= input.shape[i]",
    "slice",
    {"starts": [1, 0]},
    {"sizes": [2, 3]},
    {"starts": [2**32 - 1, 0]},
    {"sizes": [2**32 - 1, 1]},
)
breaks("int: 1 <= splits <= 8192", "split", {"splits": 0}, {"input": t("float32[8193]"), "axis": 0, "splits": 8193})
breaks("int: input.shape[axis] % splits == 0", "split", {"splits": 2}, {"splits": 4}, {"splits": 3, "axis": 0})
breaks(
    "list: 1 <= len <= 8192 and no zero",
    "split",
    {"splits": []},
    {"splits": [0, 3]},
    {"input": t("float32[8193]"), "axis": 0, "splits": [1] * 8193},
)
breaks("list: sum(splits)==input.shape[axis]", "split", {"splits": [1, 1]}, {"splits": [4]}, {"splits": [2**32 - 1, 1]})
breaks("len(repetitions)==rank(input)", "tile", {"repetitions": [2]}, {"repetitions": []}, {"repetitions": [1, 1, 1]})
breaks("no zero in repetitions", "tile", {"repetitions": [0, 1]}, {"repetitions": [2, 0]})
breaks("output dims are valid dimensions", "tile", {"repetitions": [2**30, 1]}, {"repetitions": [65536, 65536]})
breaks(
    "len(permutation)==rank(input)",
    "transpose",
    {"permutation": [0]},
    {"permutation": []},
    {"permutation": [0, 1, 2]},
)
breaks("items in [0, rank)", "transpose", {"permutation": [0, 2]}, {"permutation": [2**32 - 1, 0]})
breaks("no duplicates", "transpose", {"permutation": [0, 0]}, {"permutation": [1, 1]})


def foreign_activations(op: str) -> list[Changes]:
    """Each of the activations in the operator's valid call, made by another builder."""
    base = BASES[op]
    if "activation" in base:
        return [{"activation": Activation("relu", foreign=True)}]
    names = base.get("activations", [])
    return [{"activations": [*names[:i], Activation("tanh", foreign=True), *names[i + 1 :]]} for i in range(len(names))]


def foreign_operands(op: str) -> list[Changes]:
    """Each of the operands in the operator's valid call, made by another builder."""
    changes: list[Changes] = []
    for name, given in BASES[op].items():
        if isinstance(given, Operand):
            changes.append({name: Operand(given.text, foreign=True)})
        elif isinstance(given, list) and given and isinstance(given[0], Operand):
            strangers = [Operand(o.text, foreign=True) for o in given]
            changes += [{name: [*given[:i], s, *given[i + 1 :]]} for i, s in enumerate(strangers)]
    return changes
