"""`check_kernel`: the comparison of a compute shader with a numpy function on every adapter, with checks beyond numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from ..accuracy.distance import absolute_distance, ulp_distance
from ..api.arrays import failing, is_integer
from ..api.backend import ON_A_DEVICE, DeviceBackend
from ..api.context import MLContext
from ..api.internals import internals
from ..core.data_types import DATA_TYPES, Array
from ..core.errors import NotSupportedError, quoted
from ..kernels.own import check_elements, declared_integers
from ..runtime.adapters import INSTALL_HINT, adapters
from ..runtime.device import open_adapter
from .guards import FILL_PATTERN
from .kernel_report import CheckedCase, KernelCase, KernelFault, KernelReport, Number
from .kernel_runs import KernelOnDevice, behind_bytes
from .rewriting import reordered, unfenced

OTHER_PATTERN = 0x5A
"""The byte that fills guard regions or outputs in a second run: large numbers, as float32, float16 and as integers."""

_SEVERAL = "The shapes of several inputs are one case: shapes=[[(2, 3), (3,)]]"

_WIDE = re.compile(r"\b[iu]64\b")
"""The types of 64-bit integers in a source."""

_ORDERS: Mapping[str, dict[str, bool]] = {
    "workgroups run from the last to the first": {"workgroups": True, "invocations": False},
    "the invocations of a workgroup run from the last to the first": {"workgroups": False, "invocations": True},
}


_SHARED = re.compile(r"\bvar\s*<\s*workgroup\s*>")
UNPROVEN = "no order changed a result, which does not exclude races: webnn_wgpu.debug.interpret finds those that change none"
"""The note of kernels with workgroup memory, if no case has a fault."""


@cache
def contexts() -> tuple[MLContext, ...]:
    """Return a context on each adapter that kernels can run on, made once.

    Raises:
        NotSupportedError: there is no adapter.
    """
    found = tuple(MLContext(DeviceBackend(open_adapter(adapter))) for adapter in adapters())
    if not found:
        raise NotSupportedError("no WebGPU adapter was found", operator="check_kernel", hint=INSTALL_HINT)
    return found


def random_inputs(rng: np.random.Generator, case: KernelCase) -> list[Array]:
    """Return default inputs of `check_kernel`: normal floats times 4, integers from -100 or 0 to 100, in random order."""
    arrays: list[Array] = []
    for shape, name in zip(case.shapes, case.dtypes, strict=True):
        dtype = np.dtype(name)
        if dtype.kind == "f":
            arrays.append(np.asarray(rng.standard_normal(shape) * 4, dtype))
        else:
            arrays.append(rng.integers(0 if dtype.kind == "u" else -100, 101, shape).astype(dtype))
    return arrays


def _draws(
    count: int, case: KernelCase, inputs: Callable[[np.random.Generator, KernelCase], Sequence[Any]]
) -> list[list[Array]]:
    """Return sets of inputs for a case, of which no two are equal.

    Of the default inputs, the second set has the largest element of each row at its end, and the third set at its start. A race
    in a maximum is only seen if that element is lost.
    """
    found: list[list[Array]] = []
    for seed in range(count):
        arrays = [np.asarray(a) for a in inputs(np.random.default_rng(seed), case)]
        if inputs is random_inputs and seed in (1, 2):
            arrays = [_ordered(a, descending=seed == 2) for a in arrays]
        if not any(all(map(_equal, arrays, earlier)) for earlier in found):
            found.append(arrays)
    return found


def _equal(one: Array, two: Array) -> bool:
    return one.shape == two.shape and one.tobytes() == two.tobytes()


def _ordered(array: Array, *, descending: bool) -> Array:
    """Return an array with the smallest and the largest element of each row at its ends."""
    if not array.size or not array.ndim:
        return array
    rows = np.partition(array, (0, array.shape[-1] - 1), axis=-1)
    return np.ascontiguousarray(rows[..., ::-1]) if descending else rows


def check_kernel(
    source: str,
    reference: Callable[..., Any],
    *,
    shapes: Sequence[Any],
    workgroups: Any,
    dtypes: Sequence[Any] = ("float32",),
    constants: Mapping[str, Number] | Callable[[KernelCase], Mapping[str, Number]] = MappingProxyType({}),
    variations: Sequence[Mapping[str, Number]] = (),
    updated: Collection[str] = (),
    inputs: Callable[[np.random.Generator, KernelCase], Sequence[Any]] = random_inputs,
    parameters: Mapping[str, Any] | None = None,
    tolerance: float = 0,
    atol: float | None = None,
    permute: bool = True,
    draws: int = 4,
    on: Sequence[MLContext] | None = None,
    label: str = "",
) -> KernelReport:
    """Check a compute shader against a numpy function, for shapes and data types, on every adapter.

    Besides the numbers, it checks for writes outside of buffers, for reads out of bounds and of uninitialized memory, and for
    outputs without a write. It also checks for results that depend on the order of workgroups or of their invocations, which
    shows races and missing barriers. Of accesses behind a buffer, it detects those that are no farther away than the buffer is
    long (1 KiB to 64 KiB): drivers drop the others, as they should.

    A race in a maximum is only seen if the largest element is lost. Each case therefore runs with several sets of elements. Of
    the default inputs, one set has the largest element of each row at its end, and another one at its start.

    Args:
        source: the WGSL with an entry point `main`, as for `run_wgsl`: bindings 0, 1, ... of group 0. Its `read` buffers are
            the inputs, in order, and its `read_write` buffers are the outputs. `T`, unless the source declares it, is the data
            type of the first input, and `T0`, `T1`, ... those of each. Those of 8-bit types are u32: words of four elements.
        reference: returns the output, or a list of outputs, for the inputs. float64 is rounded to the first input's type,
            and int64 becomes the declared `i32` or `u32`. For other declarations, it becomes 32 bits unless the source has
            integers of 64 bits.
        shapes: the shapes of the cases: the shape of a single input, (2, 3) or 6, or a list with one per input: [(2, 3), (3,)].
        workgroups: the number of workgroups: (x, y, z), (x, y) or x, or a function of the `KernelCase`, which has `shapes`,
            `dtypes` and `constants`.
        dtypes: the data types, or lists with one per input. Each one is combined with each of the shapes.
        constants: name -> number of the source's constants and `override`s, or a function of the `KernelCase` that returns
            them.
        variations: other values of constants that must keep results within the tolerance too, such as workgroup sizes.
        updated: the names of outputs with an initial content, which are inputs too.
        inputs: returns the inputs for a random generator and the `KernelCase`. It is called once for each set of elements, with
            `numpy.random.default_rng(0)`, `default_rng(1)`, ...
        parameters: if given, `source` is a template like those of this package, rendered with these, `dtypes`, `shapes`, and
            `lib`: `{{ lib("exp") }}` are functions of `shaders/lib/math`.
        tolerance: the maximum distance of elements from the reference, in ULP.
        atol: the maximum difference, instead of ULP. None is `tolerance`.
        permute: whether another order must give the same bits. It need not if atomic operations assign positions.
        draws: the number of sets of elements of each case. Equal sets run once.
        on: the contexts of the check. None is one context on each adapter.
        label: a name for messages, or "".

    Returns:
        The results, with the distance of each case. Cases of data types that a device lacks are marked as skipped.

    Raises:
        KernelFault: an AssertionError, with the report as message and as `report`: the kernel has faults.
        MLTypeError: an argument is invalid, or the source declares other buffers than there are inputs and outputs.
        OperationError: the shader does not compile.
        NotSupportedError: no adapter exists.

    Example:
        >>> from webnn_wgpu.testing import check_kernel
        >>> source = '''
        ... @group(0) @binding(0) var<storage, read> x: array<T>;
        ... @group(0) @binding(1) var<storage, read_write> y: array<T>;
        ... @compute @workgroup_size(SIZE) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        ...     if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
        ... }'''
        >>> report = check_kernel(
        ...     source,
        ...     np.square,
        ...     shapes=[(1,), (7, 30)],
        ...     dtypes=["float32", "int32"],
        ...     constants={"SIZE": 64},
        ...     variations=[{"SIZE": 8}],
        ...     workgroups=lambda case: -(-np.prod(case.shapes[0]) // case.constants["SIZE"]),
        ... )
        >>> report.distance
        0.0
    """
    __tracebackhide__ = True  # pytest then shows the line of the test, and the report
    fail = failing("check_kernel", label)
    _check_lists(shapes, dtypes, on, fail)
    given = [_case(s, d, fail) for d in dtypes for s in shapes]
    if not given:
        raise fail("there must be at least one shape and one data type", got=f"shapes={shapes!r}, dtypes={dtypes!r}")
    if draws < 1:
        raise fail("draws must be positive", got=str(draws))
    checked: list[CheckedCase] = []
    for context in contexts() if on is None else on:
        if not isinstance(internals(context).backend, DeviceBackend):
            raise NotSupportedError("the context has no WebGPU device", operator="check_kernel", label=label, hint=ON_A_DEVICE)
        internals(context).check_alive("check_kernel", label)
        for bare in given:
            case = replace(bare, constants=dict(constants(bare) if callable(constants) else constants))
            kernel = KernelOnDevice(source, case, workgroups, parameters, context, fail)
            if missing := kernel.missing:
                checked.append(CheckedCase(case=case, adapter=context.description, skipped=f"the device lacks {missing}"))
                continue
            drawn = _draws(draws, case, inputs)
            for arrays in drawn:
                found = replace(case, shapes=tuple(a.shape for a in arrays), dtypes=tuple(a.dtype.name for a in arrays))
                if found != case:
                    raise fail("inputs must be of the case's shapes and types", got=str(found), allowed=str(case))
            with internals(context).guarded("check_kernel", label=label), internals(context).lock:
                checked.append(_checked(kernel, reference, drawn, updated, (tolerance, atol), permute, variations))
    if _SHARED.search(source) and not any(c.faults for c in checked):
        checked = [c if c.skipped else replace(c, notes=(*c.notes, UNPROVEN)) for c in checked]
    report = KernelReport(label, "ULP" if atol is None else "", tuple(checked))
    if report.faults:
        raise KernelFault(report)
    return report


def _check_lists(shapes: Any, dtypes: Any, on: Any, fail: Callable[..., Exception]) -> None:
    """Refuse single values where there must be lists."""
    if not isinstance(shapes, Iterable):
        raise fail("shapes must be a list with a shape for each case", got=repr(shapes), allowed=f"shapes=[{shapes!r}]")
    if isinstance(dtypes, str) or not isinstance(dtypes, Iterable):
        raise fail("dtypes must be a list with a data type for each case", got=repr(dtypes), allowed=f"dtypes=[{dtypes!r}]")
    if isinstance(on, MLContext) or not all(isinstance(context, MLContext) for context in on or ()):
        raise fail("on must be a list of contexts", got=repr(on), allowed="on=[context]")


def _data_type(given: Any, fail: Callable[..., Exception]) -> str:
    try:
        return np.dtype(given).name
    except TypeError:
        raise fail("unknown data type", got=repr(given), allowed=", ".join(DATA_TYPES)) from None


def _case(shapes: Any, dtypes: Any, fail: Callable[..., Exception]) -> KernelCase:
    """Return a case as the caller gives it: one shape or several, one data type or several."""
    listed = list(cast("Sequence[Any]", shapes)) if isinstance(shapes, Sequence) else [shapes]
    given = [list(cast("Sequence[Any]", s)) if isinstance(s, Sequence) else s for s in listed]
    nested = any(isinstance(s, list) for s in given) or (not listed and isinstance(shapes, list))
    sizes: list[list[Any]] = [s if isinstance(s, list) else [s] for s in given] if nested else [given]
    if not all(is_integer(size) for shape in sizes for size in shape):
        raise fail("a case must be the shape of an input, or a list of the inputs' shapes", got=quoted(listed), hint=_SEVERAL)
    all_shapes = [tuple(map(int, shape)) for shape in sizes]
    several = isinstance(dtypes, list | tuple)
    names = [_data_type(d, fail) for d in (cast("Sequence[Any]", dtypes) if several else [dtypes] * len(all_shapes))]
    if len(names) != len(all_shapes):
        raise fail("there must be a data type for each input", got=f"{names!r} for shapes {all_shapes}", hint=_SEVERAL)
    if unknown := [name for name in names if name not in DATA_TYPES]:
        raise fail("unknown data type", got=", ".join(unknown), allowed=", ".join(DATA_TYPES))
    return KernelCase(tuple(all_shapes), tuple(names))


def _checked(
    kernel: KernelOnDevice,
    reference: Callable[..., Any],
    drawn: Sequence[Sequence[Array]],
    updated: Collection[str],
    allowed: tuple[float, float | None],
    permute: bool,
    variations: Sequence[Mapping[str, Number]],
) -> CheckedCase:
    """Check a case with sets of inputs until one of them shows a fault that no tolerance allows for.

    Of faults that are distances alone, those of the set with the largest distance are reported: a tolerance then suits all
    sets. Surroundings are the same for all sets.
    """
    distance, notes, faults, faulty, farthest = 0.0, dict[str, None](), tuple[str, ...](), tuple[Array, ...](), -1.0
    if variations:
        notes[f"each case also ran with {'; with '.join(map(_listed, variations))}"] = None
    for number, arrays in enumerate(drawn, 1):
        check = _Check(kernel, reference, arrays, updated, allowed)
        check.order(permute)
        if number == 1:
            check.surroundings()
        for changes in variations:
            check.variation(changes)
        distance = max(distance, check.distance)
        notes |= check.notes
        others = not all(check.faults.values())
        if check.faults and (others or check.distance > farthest):
            farthest = check.distance
            where = f", with set {number} of {len(drawn)} of elements" if number > 1 else ""
            faults = tuple(f"{fault}{where}" for fault in check.faults)
            faulty = tuple(arrays)
        if others:
            break
    return CheckedCase(
        case=kernel.case,
        adapter=kernel.context.description,
        distance=distance,
        faults=faults,
        inputs=faulty,
        notes=tuple(notes),
    )


class _Check:
    """A case with one set of inputs on a device, run in each of the ways under the device's lock.

    Args:
        kernel: the kernel.
        reference: the reference function.
        arrays: the inputs.
        updated: the outputs among them.
        allowed: the maximum distance of elements from the reference: in ULP, or as a difference if that is not None.

    Attributes:
        faults: the faults, a sentence each, and whether the fault is a distance from the reference.
        notes: the omitted checks with their reasons.
        distance: the largest distance of an element from the reference.
    """

    def __init__(
        self,
        kernel: KernelOnDevice,
        reference: Callable[..., Any],
        arrays: Sequence[Array],
        updated: Collection[str],
        allowed: tuple[float, float | None],
    ) -> None:
        self._kernel, self._updated, self._allowed = kernel, updated, allowed
        self.faults: dict[str, bool] = {}
        self.notes: dict[str, None] = {}
        filled = [b.name for b in kernel.bindings if b.access == "read" or b.name in updated]
        written = [b.name for b in kernel.bindings if b.access != "read"]
        if len(filled) != len(arrays) or set(updated) - set(written):
            raise kernel.fail(
                "the source must declare a buffer for every input",
                got=f"{', '.join(f'{b.access} {b.name}' for b in kernel.bindings)} for {kernel.case}",
                allowed=f"{len(arrays)} in all of read" + f" and updated={list(updated)}" * bool(updated),
                hint=_SEVERAL,
            )
        self._contents = dict(zip(filled, arrays, strict=True))
        for binding in kernel.bindings:
            if binding.name in self._contents:
                dtype, hint = self._contents[binding.name].dtype, "Change `dtypes`, or declare array<T>"
                check_elements(binding.name, binding.type, dtype, kernel.fail, bits=True, hint=hint)
        declared = [b.type for b in kernel.bindings if b.access != "read"]
        outputs = _outputs(reference(*(a.copy() for a in arrays)), kernel, declared)
        self._wanted = dict(zip(written, outputs, strict=True))
        self._sizes = {name: array.nbytes for name, array in (self._contents | self._wanted).items()}
        self._plain, damage = kernel.run(self._contents, self._sizes)
        self._take(damage)
        self.distance = 0.0
        self._compare(self._plain)
        again, _ = kernel.run(self._contents, self._sizes)
        self._by_chance = self._differ(self._plain, again, "chance: a race")
        self._by_order = False

    def _take(self, damage: Sequence[str]) -> None:
        """Record the writes outside of buffers as faults, and the shapes of the outputs as a note."""
        self.faults.update(dict.fromkeys(damage, False))
        if damage:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in self._wanted.items())
            self.notes[f"outputs have the shapes of the reference's results: {shapes}"] = None

    def _compare(self, found: Mapping[str, Array], how: str = "") -> None:
        """Hold outputs against the reference."""
        for name, array in self._wanted.items():
            distance, fault = _distance(found[name].view(array.dtype).reshape(array.shape), array, *self._allowed)
            self.distance = max(self.distance, distance)
            if fault:
                self.faults[f"{name}: {fault}{how}"] = True

    def _differ(self, one: Mapping[str, Array], two: Mapping[str, Array], fault: str) -> bool:
        """Record the differences between outputs as a fault, and return whether there are any."""
        found = False
        for name, array in self._wanted.items():
            differ = (one[name] != two[name]).reshape(-1, array.itemsize).any(axis=1)
            if where := _where(differ, array.shape):
                self.faults[f"{name}: elements depend on {fault}; {where}"] = False
                found = True
        return found

    def surroundings(self) -> None:
        """Check for accesses outside of buffers, and for reads of uninitialized memory."""
        kernel, contents, sizes = self._kernel, self._contents, self._sizes
        tails = {name: behind_bytes(-(-size // 4) * 4) for name, size in sizes.items()}
        source, free = unfenced(kernel.source, tails)
        if fenced := sorted(set(sizes) - free):
            self.notes[f"bound without canaries, because their lengths are taken indirectly: {', '.join(fenced)}"] = None
        ways = [
            {"guard_pattern": FILL_PATTERN, "content_pattern": FILL_PATTERN},
            {"guard_pattern": OTHER_PATTERN, "content_pattern": FILL_PATTERN},
            {"guard_pattern": FILL_PATTERN, "content_pattern": OTHER_PATTERN},
        ]
        (first, damage), (elsewhere, _), (before, _) = (
            kernel.run(contents, sizes, source=source, free=free, **way) for way in ways
        )
        self._take(damage)
        if self._by_chance or self._by_order:
            # Such results may differ from run to run, also where nothing is read from outside.
            on = "chance" if self._by_chance else "the order of invocations"
            reads = "reads out of bounds and of elements before they are written"
            self.notes[f"not looked for: {reads}, because results depend on {on}; repair the race and check again"] = None
            return
        self._differ(first, elsewhere, "what lies outside of a buffer: read out of bounds")
        for name, array in self._wanted.items():
            one, two = (run[name].reshape(-1, array.itemsize) for run in (first, before))
            unwritten = (one == FILL_PATTERN).all(axis=1) & (two == OTHER_PATTERN).all(axis=1)
            if name not in self._updated and (where := _where(unwritten, array.shape)):
                self.faults[f"{name}: elements are never written; {where}"] = False
                first[name] = np.where(unwritten[:, None], two, one).reshape(-1)
        self._differ(first, before, "what was in an output before: read before it was written, and not `updated`")

    def order(self, permute: bool) -> None:
        """Check for results that depend on the order of invocations."""
        kernel = self._kernel
        for what, options in _ORDERS.items() if permute else ():
            changed = reordered(kernel.source, **options)
            if changed is None:
                self.notes[f"not looked for: what happens when {what} (main takes structures, or uses subgroups)"] = None
                continue
            found, _ = kernel.run(self._contents, self._sizes, source=changed)
            self._by_order |= self._differ(self._plain, found, f"the order of invocations: a race, seen when {what}")

    def variation(self, changes: Mapping[str, Number]) -> None:
        """Hold the kernel with other constants against the reference."""
        found, damage = self._kernel.varied(changes).run(self._contents, self._sizes)
        self._take(damage)
        self._compare(found, f", with {_listed(changes)} instead")


def _listed(constants: Mapping[str, Number]) -> str:
    return ", ".join(f"{name}={value}" for name, value in constants.items())


def _outputs(results: Any, kernel: KernelOnDevice, declared: Sequence[str]) -> list[Array]:
    """Return the arrays of the reference, in types that the kernel can write. numpy often computes in 64 bits.

    Args:
        results: the result of the reference.
        kernel: the kernel.
        declared: the types of the outputs in WGSL.
    """
    listed: list[Any] = list(cast("Sequence[Any]", results)) if isinstance(results, list | tuple) else [results]
    if len(listed) != len(declared):
        rule = "the reference must return an array for every output"
        raise kernel.fail(rule, got=str(len(listed)), allowed=str(len(declared)))
    arrays: list[Array] = []
    for result, type_ in zip(listed, declared, strict=True):
        array: Array = np.asarray(result)
        if array.dtype.kind not in "biuf":
            rule = "the reference must return arrays of numbers"
            raise kernel.fail(rule, got=quoted(result), allowed="an array for each output")
        if array.dtype == np.float64:
            floats = [d for d in kernel.case.dtypes[:1] if d.startswith("float")]
            array = array.astype(floats[0] if floats else np.float32)
        elif array.dtype.name in ("int64", "uint64"):
            narrow = declared_integers(type_)
            if narrow is not None:
                array = array.astype(narrow)
            elif not _WIDE.search(kernel.source):
                signed = array.dtype.kind == "i" and not any(d.startswith("uint") for d in kernel.case.dtypes[:1])
                array = array.astype(np.int32 if signed else np.uint32)
        arrays.append(np.ascontiguousarray(array).reshape(array.shape))
    return arrays


def _distance(found: Array, wanted: Array, tolerance: float, atol: float | None) -> tuple[float, str]:
    """Return the largest distance of elements, and the fault of the distance, or ""."""
    measure, allowed, unit = (ulp_distance, tolerance, " ULP") if atol is None else (absolute_distance, atol, "")
    distances = measure(found, wanted)
    if not distances.size:
        return 0.0, ""
    worst = float(distances.max())
    if worst <= allowed:
        return worst, ""
    at = tuple(int(i) for i in np.unravel_index(int(distances.argmax()), wanted.shape))
    unwritten = found[at].tobytes() == bytes([FILL_PATTERN]) * wanted.itemsize
    shown = f"{found[at]!s}{', the fill pattern of elements that are never written,' if unwritten else ''}"
    return worst, (
        f"{np.count_nonzero(distances > allowed)} of {wanted.size} elements are further than {allowed:g}{unit} from the "
        f"reference, the worst at {list(at)}: {shown} instead of {wanted[at]!s}, by {worst:.4g}{unit}"
    ) + ("; `tolerance` or `atol` allows for roundings" if wanted.dtype.kind == "f" else "")


def _where(elements: Array, shape: tuple[int, ...]) -> str:
    """Return the number of selected elements and the first of them, or "" if there are none."""
    meant = np.flatnonzero(elements)
    if not meant.size:
        return ""
    at = [int(i) for i in np.unravel_index(int(meant[0]), shape)]
    return f"{meant.size} of {elements.size}, the first at {at}"
