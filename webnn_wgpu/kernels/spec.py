"""`KernelTemplate`, `KernelSpec` and `KernelCall`: a kernel as declared, as chosen, and as used.

A template declares the parameters of its text (`params`). A spec gives every parameter a value and is the key of every cache. A
call states the values of the graph that the kernel reads and writes. A value that changes from call to call without a new
shader (sizes, strides, scalar options) is a uniform.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ..core.caps import Caps
from ..costs import ProductSize, Tile
from ..costs.attention import AttentionTile
from ..costs.few_rows import RowTile
from ..costs.tiles import BlockTile, WinogradTile
from .element import ELEMENTS, QUAD, WORD_BYTES

UniformType: TypeAlias = Literal["u32", "i32", "f32"]
Access: TypeAlias = Literal["read", "write", "texture", "sampled"]

_Tile = BlockTile | WinogradTile | RowTile | AttentionTile

TEXTURES = ("texture", "sampled")
"""The accesses of textures. The other accesses are those of buffers."""

TEXEL_FORMATS = MappingProxyType({"float32": "rgba32float", "int8": "rgba8sint"})
"""The formats of textures, by the element kind of the four elements of a texel."""


def texel_element(data_type: str) -> str:
    """Return the element kind of the texels that hold a constant of a data type: bytes stay bytes.

    >>> texel_element("float16"), texel_element("int8")
    ('float32', 'int8')
    """
    return data_type if data_type in TEXEL_FORMATS else "float32"


WIDE_WORDS = ELEMENTS["uint64"].feature
"""The feature of kernels whose loads have words of 64 bits."""

_LONG = 100
"""The number in a kernel's parameters from which on its text is long: most are unrolled 16 times or fewer."""


@dataclass(frozen=True, kw_only=True)
class Binding:
    """One buffer or texture of a kernel.

    Attributes:
        name: the name in the shader, which is the specification's argument name if there is one.
        access: `read`, `write` (read and write), `texture` (a read-only storage texture of packed weights), or
            `sampled` (the same as a sampled texture). llvmpipe turns loads of sampled textures into calls of one function,
            which reduces the code that it compiles to an eighth. Each load takes 14 ns instead of 6 ns.
        element: the name of an `ElementKind`. Textures hold elements of `TEXEL_FORMATS`.
        quad: whether the kernel reads and writes four elements at a time.
        window: "" if the operand is bound whole, `covering` if the bound part has all elements that the call accesses. `masked`
            reads elements outside the bound part as 0, or adds to earlier results. The access functions still count from the
            operand's first element (`kernels/windows.py`).
        exact: whether the operand is bound without the padding behind its last word, so that `arrayLength` counts elements.
        zero_point: whether the kernel subtracts the uniform `NAME_zero` from the elements, which are weights of 8 bits.
        words: the 64-bit words that hold the elements of a load: 2 for a quad of float32, and 4 for two neighboring quads. 0 if
            loads have words of their elements' size. llvmpipe loads word by word, in a loop over the lanes: two quads in words
            of 64 bits take 60 % of the time of two loads of a quad.
    """

    name: str
    access: Access
    element: str = "float32"
    quad: bool = False
    window: Literal["", "covering", "masked"] = ""
    exact: bool = False
    zero_point: bool = False
    words: Literal[0, 2, 4] = 0

    @property
    def is_texture(self) -> bool:
        """Whether it is a texture, and no buffer."""
        return self.access in TEXTURES

    @property
    def texel_format(self) -> str:
        """The format of a texture, or "" for a buffer."""
        return TEXEL_FORMATS[self.element] if self.is_texture else ""

    @property
    def texel(self) -> str:
        """The WGSL type of the components of a texel: a signed byte becomes an i32."""
        return ELEMENTS[self.element].value

    @property
    def unit_bytes(self) -> int:
        """The size of a kernel's reads and writes in bytes. Operands whose size is a multiple of it need no padding.

        >>> for element, quad in (("float32", False), ("float32", True), ("int8", True), ("int64", True)):
        ...     print(Binding(name="x", access="write", element=element, quad=quad).unit_bytes)
        4
        16
        4
        32
        """
        element = ELEMENTS[self.element]
        if self.exact:
            return WORD_BYTES
        if self.quad and (element.quad or self.access == "write"):
            return max(WORD_BYTES, QUAD * element.size_bytes)
        # Single halves are stored by atomic operations, which leave the other half of the word as it is.
        return element.size_bytes if self.element in ("float16", "half") else max(WORD_BYTES, element.size_bytes)


@dataclass(frozen=True)
class KernelTemplate:
    """A template file and the parameters that its text depends on.

    `name` is the file `shaders/ops/<name>.wgsl.j2`. `params` are exactly the free variables of the template, besides those that
    every template gets (`bindings`, `uniforms`, `features`).

    `variants` are the values of its parameter `variant`, if it has one. Templates whose names differ behind a dot
    (`matmul.tiled`, `matmul.plain`) are variants of one family.

    `optional` are the parameters that kernels may leave out. The template gives them their defaults.
    """

    name: str
    params: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The name without the variant."""
        return self.name.partition(".")[0]

    def spec(
        self,
        bindings: Iterable[Binding],
        uniforms: Iterable[tuple[str, UniformType]] = (),
        *,
        features: Iterable[str] = (),
        **params: Hashable,
    ) -> KernelSpec:
        """Return the kernel with every parameter given a value, except for optional ones.

        Raises:
            TypeError: a declared parameter is missing, or one is given that the template does not declare.
        """
        if not set(self.params) - set(self.optional) <= set(params) <= set(self.params):
            raise TypeError(f"template {self.name} declares {sorted(self.params)}; got {sorted(params)}")
        bindings = tuple(bindings)
        needed = {ELEMENTS[b.element].feature for b in bindings if not b.is_texture} | set(features)
        needed |= {WIDE_WORDS for b in bindings if b.words}
        return KernelSpec(
            template=self.name,
            params=tuple((name, params[name]) for name in self.params if name in params),
            bindings=bindings,
            uniforms=tuple(uniforms),
            features=tuple(sorted(needed - {""})),
        )


@dataclass(frozen=True, kw_only=True)
class KernelSpec:
    """One shader: a template with all its parameters. A spec is hashable, and equal specs share one pipeline.

    Attributes:
        template: the name of the template.
        params: the template parameters by name.
        bindings: the buffers and textures in binding order. The uniform buffer, if any, follows them.
        uniforms: the fields of the uniform buffer, in order.
        features: the WebGPU features that the shader needs.
        hides_uniforms: whether the text keeps the driver from seeing that branches and loops depend on uniforms alone.
        source: the source of an application's own kernel, which has no template.
        given: the declarations of the constants and data types that the application passed with the source.
    """

    template: str
    params: tuple[tuple[str, Hashable], ...]
    bindings: tuple[Binding, ...]
    uniforms: tuple[tuple[str, UniformType], ...] = ()
    features: tuple[str, ...] = ()
    hides_uniforms: bool = False
    source: str = ""
    given: tuple[str, ...] = ()

    def param(self, name: str) -> Any:
        """Return the value of a template parameter."""
        return dict(self.params)[name]

    @property
    def uniform_bytes(self) -> int:
        """Bytes of its uniform fields, as `packed` returns them."""
        return -(-struct.calcsize(self._uniform_layout) // 16) * 16

    def packed(self, uniforms: Sequence[int | float]) -> bytes:
        """Return values of its uniform fields as the shader reads them."""
        return struct.pack(self._uniform_layout, *uniforms).ljust(self.uniform_bytes, b"\0")

    def unpacked(self, block: bytes) -> tuple[int | float, ...]:
        """Return the values of its uniform fields from the bytes of `packed`."""
        return struct.unpack_from(self._uniform_layout, block)

    @property
    def _uniform_layout(self) -> str:
        codes = {"u32": "I", "i32": "i", "f32": "f"}
        return "<" + "".join(codes[type_] for _, type_ in self.uniforms)

    @property
    def variant(self) -> str:
        """The variant of its template, or of its template's family. "" if there is only one."""
        return str(dict(self.params).get("variant", self.template.partition(".")[2]))

    @property
    def is_long(self) -> bool:
        """Whether its text is unrolled so often that it takes a driver long to compile."""
        return max((value for _, value in self.params if isinstance(value, int)), default=0) >= _LONG

    def __str__(self) -> str:
        if self.source:
            return self.template
        simple = [f"{k}={v}" for k, v in self.params if isinstance(v, bool | int | float | str | _Tile)]
        return f"{self.template}[{', '.join(simple)}]"


@dataclass(frozen=True)
class Temp:
    """Scratch memory between the calls of one node. `key` identifies it among several."""

    key: str
    size_bytes: int


@dataclass(frozen=True)
class Packed:
    """A constant in another form than row-major bytes: `packing` makes it from the array (`kernels/packing.py`)."""

    value: int
    packing: Packing


class Packing:
    """Base of the frozen dataclasses that turn a constant into the buffer or texture a kernel wants.

    A packing is hashable: with the constant's content hash it is the key of the weight store.
    """

    def pack(self, array: Any) -> Any:
        """Return the packed array: 1-D for a buffer, `[height, width, 4]` float32 or int8 for a texture."""
        raise NotImplementedError

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the packed form of an array of some shape."""
        raise NotImplementedError

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the size of the packed form of an array in bytes, without the padding of a texture."""
        return math.prod(shape) * element_bytes

    @property
    def texture(self) -> bool:
        """Whether the packed form is a texture."""
        return False


@dataclass(frozen=True)
class Window:
    """A part of a value, or of a packed constant, larger than one binding may be. The offset keeps the device's alignment."""

    value: int
    offset_bytes: int
    size_bytes: int
    packing: Packing | None = None


Operand: TypeAlias = int | Temp | Packed | Window
"""The reference of a binding: a value of the graph, scratch memory, a packed constant, or a part of a value."""


def value_of(operand: Operand) -> int:
    """Return the value of an operand. Scratch memory is a value after the planner has numbered it."""
    assert not isinstance(operand, Temp)
    return operand if isinstance(operand, int) else operand.value


Interval: TypeAlias = tuple[int, int]
"""A range of elements: the first, and the one past the last."""

Reach: TypeAlias = Callable[[int, int], Sequence[Interval | None]]
"""A function from a range of a call's work to the accessed elements of each operand, in the order of its bindings.

None stands for any elements.
"""

Grid: TypeAlias = tuple[int, int, int]
"""Workgroups in x, y, z."""


@dataclass(frozen=True)
class Work:
    """The division of a call into several, each of which does some of its work and accesses parts of its operands.

    The work is numbered in units: the quads, rows or tiles that the kernel numbers its invocations by.

    Attributes:
        units: the number of units.
        launch: returns the changed uniforms and the grid for a number of units.
        reach: returns the elements that units first..end-1 access.
        moved: the positions of the operands whose elements reach the output unchanged and independently of each other. Several
            runs, each with a part of such an operand, can then combine into the output.
    """

    units: int
    launch: Callable[[int], tuple[Mapping[str, int], Grid]]
    reach: Reach
    moved: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """The tile of a call's kernel, and the facts from which `kernels/tiles.py` derives the same call in other tiles.

    The kernel computes a product in the registers of a subgroup. Its right factor is in a texture.

    Attributes:
        tile: the rows, and the quads of columns for each lane.
        size: the sizes of the product.
        depth: the rows of each matrix in the texture.
        held: the number of matrices in the texture.
        convolution: whether the product multiplies a convolution's patches with its filter.
    """

    tile: Tile
    size: ProductSize
    depth: int
    held: int
    convolution: bool = False


@dataclass(frozen=True, kw_only=True)
class KernelCall:
    """One dispatch before memory is planned.

    Attributes:
        spec: the kernel.
        operands: the reference of each of its bindings, in the same order.
        uniforms: the values of its uniform fields, in the same order.
        grid: the number of workgroups in x, y, z.
        reason: the reason for the choice of this kernel, for people.
        work: its possible divisions. None if it cannot be divided, or has been divided already.
        replaces: whether its result replaces an operand, which it reads at the position of each store.
        tiling: its tile, if the kernel exists in other tiles and no tile was requested.
        share: its share of its node's operands and result, if other calls access the rest.
    """

    spec: KernelSpec
    operands: tuple[Operand, ...]
    uniforms: tuple[int | float, ...]
    grid: Grid
    reason: str = ""
    work: Work | None = None
    replaces: bool = False
    tiling: Tiling | None = None
    share: float = 1

    def __post_init__(self) -> None:
        if len(self.operands) != len(self.spec.bindings):
            raise TypeError(f"{self.spec} has {len(self.spec.bindings)} bindings; got {len(self.operands)} operands")
        if len(self.uniforms) != len(self.spec.uniforms):
            raise TypeError(f"{self.spec} has uniforms {self.spec.uniforms}; got {self.uniforms}")
        if self.spec.hides_uniforms and self.grid[2] != 1:
            raise TypeError(f"{self.spec} hides uniforms by the number of workgroups in z, which must be 1; got {self.grid}")


def grid_1d(workgroups: int, caps: Caps) -> Grid:
    """Return a grid of at least `workgroups` workgroups, folded into two dimensions past the device's limit.

    Kernels number their workgroups `wg.x + wg.y * num_workgroups.x`, and return early if the number is too high.
    """
    limit = caps.limit("max-compute-workgroups-per-dimension")
    if workgroups <= limit:
        return (max(1, workgroups), 1, 1)
    rows = -(-workgroups // limit)
    return (-(-workgroups // rows), rows, 1)


ForcedVariants: TypeAlias = Mapping[str, str]
"""Operator name -> variant name: `WEBNN_WGPU_FORCE="matmul=tiled"`."""
