"""Results that replace an operand: the kernel reads and writes both through one binding.

Element-wise kernels, and the epilogues of matrix products and convolutions, read some operands only at the position of the
elements that they store next. If no later dispatch reads such an operand, the result can take over its memory. The sum that a
residual network passes from layer to layer therefore stays in one slot. It needs no second slot next to the slot of the
operand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..kernels.spec import KernelCall, KernelSpec, value_of
from .sharing import ADDS
from .slots import Lifetime

_OF_PRODUCTS = "extra_reads"
_READS = {_OF_PRODUCTS: "extra", "reads": "input"}
"""Template parameters that say how operands are read, and the names of their bindings but for the number."""
_OWN = {"full": "own", "same": "own", "switched": "switched own"}
"""The ways to read an element at the index of the result, and their names if the result replaces the operand."""


def replace_operands(
    calls: Sequence[KernelCall],
    lifetimes: Mapping[int, Lifetime],
    root: Callable[[int], int],
    is_piece: Callable[[int], bool] = lambda value: False,
    *,
    products: bool = True,
) -> tuple[list[KernelCall], dict[int, int]]:
    """Return the calls, some of which compute in place, and the replaced value of each such result.

    The planner changes a kernel only if all its calls allow the change. Otherwise the device would compile a second kernel.

    Args:
        calls: the calls in order.
        lifetimes: the lifetimes of the values that are neither graph inputs or outputs nor constants.
        root: returns the value whose memory a value shares.
        is_piece: returns whether a value is a piece of that value, so that its elements have other offsets there.
        products: whether matrix products and convolutions may replace operands, besides element-wise kernels.
    """
    kinds = [param for param in _READS if products or param != _OF_PRODUCTS]
    users: defaultdict[KernelSpec, list[int]] = defaultdict(list)
    for i, call in enumerate(calls):
        users[call.spec].append(i)
    changed, replaced = list(calls), dict[int, int]()
    for spec, positions in users.items():
        params = dict[str, Any](spec.params)
        reads = [(param, number, read) for param in kinds for number, read in enumerate(params.get(param, ()))]
        for param, number, read in reads:
            if read not in _OWN:
                continue
            reading = [i for i in positions if read != "switched" or _adds(calls[i])]
            pairs = {i: _pair(calls[i], f"{_READS[param]}{number}", lifetimes, root, is_piece) for i in reading}
            if pairs and all(pair and _replaceable(calls, pair, pairs, lifetimes, root) for pair in pairs.values()):
                replaced.update(pair for pair in pairs.values() if pair)
                for i in positions:
                    changed[i] = _in_place(calls[i], param, number, i in reading)
                break
    return changed, replaced


_RESULT = "output"
"""The name of the binding of a kernel's result. Further results have numbers behind it."""


def operand_that_result_replaces(call: KernelCall, result: int, operand: int) -> tuple[str, int, str] | None:
    """Return how a call reads an operand where it stores a result, or None: template parameter, number, the result's binding.

    Args:
        call: the call.
        result: the result.
        operand: the operand, which has memory of the same size.
    """
    params = dict[str, Any](call.spec.params)
    bound = {b.name: (b, o) for b, o in zip(call.spec.bindings, call.operands, strict=True)}
    own = next((name for name, (b, o) in bound.items() if o == result and b.access == "write"), "")
    if not own.startswith(_RESULT) or list(call.operands).count(operand) != 1:
        return None
    for param, name in _READS.items():
        for number, read in enumerate(params.get(param, ())):
            binding, given = bound.get(f"{name}{number}", (None, None))
            same = binding is not None and replace(binding, name=own, access="write") == bound[own][0]
            if given == operand and same and read in (("full", "same") if own == _RESULT else ("same",)):
                return param, number, own
    return None


def written_over(call: KernelCall, param: str, number: int, result: str) -> KernelCall:
    """Return a call that reads one operand from the memory of a result, as `operand_that_result_replaces` names it."""
    return _in_place(call, param, number, True, result)


def _adds(call: KernelCall) -> bool:
    """Return whether a call adds the optional operand of its kernel."""
    return bool(dict(zip(call.spec.uniforms, call.uniforms, strict=True))[ADDS])


def _pair(
    call: KernelCall,
    name: str,
    lifetimes: Mapping[int, Lifetime],
    root: Callable[[int], int],
    is_piece: Callable[[int], bool],
) -> tuple[int, int] | None:
    """Return the result of a call and the operand bound by a name, if the one could be stored as the other is."""
    bound = {b.name: (b, o) for b, o in zip(call.spec.bindings, call.operands, strict=True)}
    (binding, operand), (output, result) = bound[name], bound[_RESULT]
    if not isinstance(operand, int) or not isinstance(result, int) or replace(binding, name=_RESULT, access="write") != output:
        return None
    if is_piece(operand):
        # Parts of a concatenation are as large as pieces of a value, but may have another order.
        return None
    old, new = root(operand), root(result)
    if old not in lifetimes or new not in lifetimes or lifetimes[old].size_bytes != lifetimes[new].size_bytes:
        return None
    return (new, old) if _times_bound(call, old, root) == 1 else None


def _replaceable(
    calls: Sequence[KernelCall],
    pair: tuple[int, int],
    pairs: Mapping[int, tuple[int, int] | None],
    lifetimes: Mapping[int, Lifetime],
    root: Callable[[int], int],
) -> bool:
    """Return whether a result may replace an operand.

    From the result's first call to the operand's last, only calls that read the operand at the position of the result may bind
    either of them. In most cases that is one call. Several calls may compute a part of the result each.
    """
    new, old = pair
    first, last = lifetimes[new].first, lifetimes[old].last
    if pairs.get(first) != pair or pairs.get(last) != pair:
        return False
    others = (calls[i] for i in range(first, last) if pairs.get(i) != pair)
    return not any(_times_bound(call, value, root) for call in others for value in pair)


def _times_bound(call: KernelCall, value: int, root: Callable[[int], int]) -> int:
    """Return the number of a call's operands in the memory of a value."""
    return sum(root(value_of(operand)) == value for operand in call.operands)


def _in_place(call: KernelCall, param: str, number: int, replaces: bool, result: str = _RESULT) -> KernelCall:
    """Return a call without a binding for one operand, which the kernel reads from the memory of a result."""
    spec, params = call.spec, dict[str, Any](call.spec.params)
    reads: list[str] = list(params[param])
    reads[number] = _OWN[reads[number]] + result.removeprefix(_RESULT)
    params[param] = tuple(reads)
    name = f"{_READS[param]}{number}"
    kept = [(b, o) for b, o in zip(spec.bindings, call.operands, strict=True) if b.name != name]
    return replace(
        call,
        spec=replace(spec, params=tuple(params.items()), bindings=tuple(b for b, _ in kept)),
        operands=tuple(o for _, o in kept),
        reason="; ".join(dict.fromkeys(filter(None, (*call.reason.split("; "), "replaces an operand" if replaces else "")))),
        replaces=replaces,
    )
