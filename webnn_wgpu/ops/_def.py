"""`OpDef`: the single declaration of an operator.

An operator definition names its operands, with the data types and ranks that the specification allows, and its attributes.
`infer` makes the remaining checks and returns the output types. `reference` computes the results in numpy, and `lower` chooses
kernels. Passes, planner and tests read all other facts from its interfaces (`ops.interfaces`). They do not compare its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from ..core.caps import Caps
from ..core.data_types import ANY, MAX_DIMENSION, MAX_RANK
from ..core.errors import MLTypeError
from ..core.names import method_name
from ..costs import Choice, Target
from ..ir.graph import Attrs, Graph, Node
from ..ir.types import TensorType
from ..kernels.expression import Expression
from ..kernels.spec import ForcedVariants, KernelCall, KernelTemplate, UniformType
from ..kernels.tuning import Tuning
from ._attrs import Attr
from .interfaces.bounds import Bounds, Reference
from .interfaces.cost import Cost
from .interfaces.documentation import Documentation
from .interfaces.elementwise import ElementWise
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .interfaces.gradient import GradientRule
from .interfaces.layout import Layout
from .interfaces.movement import Movement, Part
from .interfaces.precision import Precision


@dataclass(frozen=True, kw_only=True)
class Operand:
    """One operand of an operator.

    Attributes:
        name: the specification's name.
        data_types: the allowed data types.
        same_as: the name of an earlier operand whose data type it must have.
        min_rank, max_rank: the allowed ranks.
        required: whether the caller must give it.
        variadic: whether it is a list of operands (only as the sole operand).
    """

    name: str
    data_types: tuple[str, ...] = ANY
    same_as: str = ""
    min_rank: int = 0
    max_rank: int = MAX_RANK
    required: bool = True
    variadic: bool = False


class OpCall:
    """One operator call while it is checked: operand types, attributes (made canonical), and the ways to refuse it."""

    def __init__(self, op: Signature, label: str, inputs: Sequence[TensorType | None], attrs: Mapping[str, Any]) -> None:
        self.op, self.label = op, label
        self.inputs = tuple(inputs)
        unknown = set(attrs) - {a.name for a in op.attrs}
        if unknown:
            raise self.fail(f"unknown option {sorted(unknown)[0]!r}", allowed=", ".join(a.name for a in op.attrs) or "none")
        self.attrs: dict[str, Any] = {a.name: a.convert(attrs.get(a.name), self.fail) for a in op.attrs}

    def fail(self, rule: str, *, got: str = "", allowed: str = "", hint: str = "") -> MLTypeError:
        """Return the error to raise, naming this operator and its label."""
        return MLTypeError(
            rule, operator=self.op.python_name, label=self.label, got=got, allowed=allowed, hint=hint, spec=self.op.spec
        )

    def require(self, condition: bool, rule: str, *, got: str = "", allowed: str = "") -> None:
        """Raise MLTypeError with `rule` unless `condition` holds."""
        if not condition:
            raise self.fail(rule, got=got or self.describe(), allowed=allowed)

    def describe(self) -> str:
        """Return the operands' names, types and shapes for a message."""
        names = self.op.operand_names(len(self.inputs))
        return ", ".join(f"{n} {t}" for n, t in zip(names, self.inputs, strict=True) if t is not None)

    def _made(self, output: TensorType) -> str:
        # Messages show lists as a program writes them, not as the tuples of the canonical form.
        given = {a.name: self.attrs[a.name] for a in self.op.attrs if self.attrs[a.name] != a.default}
        lists = {n: list(cast("tuple[Any, ...]", v)) if isinstance(v, tuple) else v for n, v in given.items()}
        return f"{output} from {self.describe()}{''.join(f', {n}={v!r}' for n, v in lists.items())}"

    def input(self, index: int = 0) -> TensorType:
        """Return the type of a required operand."""
        found = self.inputs[index]
        assert found is not None
        return found

    def check_operands(self) -> None:
        """Check presence, data types and ranks as declared."""
        op = self.op
        declared = [op.operands[0]] * len(self.inputs) if op.variadic else op.operands
        types: dict[str, str] = {}
        for operand, given in zip(declared, self.inputs, strict=True):
            if given is None:
                if operand.required:
                    raise self.fail(f"{operand.name} is required", got="None", allowed="an operand")
                continue
            wanted = (types[operand.same_as],) if operand.same_as else operand.data_types
            self.require(
                given.data_type in wanted,
                f"{operand.name} data type must equal {operand.same_as} data type"
                if operand.same_as
                else f"{operand.name} data type is not allowed",
                got=f"{operand.name} {given}",
                allowed=", ".join(wanted),
            )
            types.setdefault(operand.name, given.data_type)
            if not operand.min_rank <= given.rank <= operand.max_rank:
                low, high = operand.min_rank, operand.max_rank
                exact = f"{low}" if low == high else f"{low}..{high}"
                raise self.fail(
                    op.rank_phrase or f"rank({operand.name}) is not allowed",
                    got=f"{operand.name} {given} of rank {given.rank}",
                    allowed=f"rank {exact}",
                )

    def axis(self, axis: int, rank: int, name: str = "axis") -> int:
        """Return `axis` if it is one of `rank` dimensions."""
        if axis >= rank:
            allowed = f"0..{rank - 1}" if rank else "none"
            raise self.fail(
                f"{name} must be < rank(input): Axis {axis} out of bounds for rank {rank}",
                got=f"{name}={axis}, {self.describe()}",
                allowed=allowed,
            )
        return axis

    def axes(self, axes: Sequence[int], rank: int, name: str = "axes") -> tuple[int, ...]:
        """Return `axes` if each is one of `rank` dimensions and none occurs twice."""
        for i, axis in enumerate(axes):
            self.axis(axis, rank, f"every item of {name}")
            if axis in axes[:i]:
                raise self.fail(f"{name} must be unique: Duplicate axis {axis}", got=f"{name}={list(axes)}")
        return tuple(axes)

    def output(self, data_type: str, shape: Sequence[int]) -> TensorType:
        """Return an output type, its dimensions and size checked."""
        found = TensorType(data_type, tuple(int(d) for d in shape))
        if any(not 0 < d <= MAX_DIMENSION for d in found.shape) or found.num_elements > MAX_DIMENSION:
            raise self.fail(
                "output dimensions and element count must be valid dimensions",
                got=self._made(found),
                allowed=f"1..{MAX_DIMENSION}",
            )
        if found.rank > MAX_RANK:
            raise self.fail("output rank is not supported", got=self._made(found), allowed=f"rank 0..{MAX_RANK}")
        return found


@dataclass(frozen=True, kw_only=True)
class Lowering:
    """The information that `lower` reads to choose kernels for a node.

    Attributes:
        node: the node to lower.
        graph: the graph of the node: the types of its values, and its constants.
        target: the device, with the costs of work on it.
        ops: all operators, for nodes that contain other operators.
        forced: the kernel variant that `lower` must take, by operator name.
        epilogue: the expression that the kernel applies to each element of the result before it stores the element. Only
            operators that declare `epilogue` receive one.
        in_place: whether the first output has the memory of the first operand, which holds that operand already.
        part: the part of another value in which the kernel stores the result. Only operators whose `epilogue` has `parts`
            receive one.
        placed: positions of the operands that are parts of the first output, so that it holds them already.
        tuning: the measurements on the device.
        parts: the part of another value that holds a value, for each such value. Consumers read the value there.
        channels_first: the value whose transpose is the first operand. Its dimension 1 holds the channels, which come last
            in the operand. `lower` may read this value instead. Only convolutions receive one.
        normalization: the normalization of the result's rows. A kernel may compute it besides, and then binds its output.
            Only operators that declare `epilogue` receive one.
        pool: the mean of the result over the pixels of each image. A kernel may store it instead of the result. Only
            convolutions receive one.
    """

    node: Node
    graph: Graph
    target: Target
    ops: Mapping[str, OpDef]
    forced: ForcedVariants = field(default_factory=dict[str, str])
    epilogue: Epilogue | None = None
    in_place: bool = False
    part: Part | None = None
    placed: frozenset[int] = frozenset()
    tuning: Tuning | None = None
    parts: Mapping[int, Part] = field(default_factory=dict[int, "Part"])
    channels_first: int | None = None
    normalization: RowNormalization | None = None
    pool: PixelMean | None = None

    @property
    def caps(self) -> Caps:
        """The features and limits of the device."""
        return self.target.caps

    @property
    def attrs(self) -> Attrs:
        """The node's canonical attributes."""
        return self.node.attrs

    def input(self, index: int = 0) -> TensorType:
        """Return the type of a given operand."""
        value = self.node.inputs[index]
        assert value is not None
        return self.graph.type(value)

    def output(self, index: int = 0) -> TensorType:
        """Return the type of an output."""
        return self.graph.type(self.node.outputs[index])

    def value(self, index: int) -> int:
        """Return the value id of a given operand."""
        value = self.node.inputs[index]
        assert value is not None
        return value

    def zero_point(self, index: int) -> int:
        """Return the number that the kernel subtracts from the elements of an operand."""
        return self.graph.values[self.value(index)].zero_point

    def has(self, index: int) -> bool:
        """Return whether an optional operand is given."""
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    @property
    def forced_variant(self) -> str | None:
        """The forced kernel variant, by the name of the operator or its template. None means a free choice."""
        op = self.ops[self.node.op]
        names = (op.name, *(template.family for template in op.templates if not op.variants))
        return next((self.forced[name] for name in names if name in self.forced), None)

    def measured(self, candidates: Collection[str], family: str = "") -> Choice | None:
        """Return the kernel variant that measured fastest for this node on this device, or None without a measurement.

        Args:
            candidates: the available variants. The name of a variant with several tiles includes the tile.
            family: the family of templates, or "" for those of the node's operator.
        """
        return self.tuning.choice(self._signature(family), candidates) if self.tuning else None

    def _signature(self, family: str) -> str:
        """Return the facts that decide the choice of a variant: operator, data types and shapes, constants, options."""

        def operand(value: int | None) -> str:
            if value is None:
                return "none"
            return f"{self.graph.type(value)}{' constant' if self.is_constant(value) else ''}"

        operands = ", ".join(map(operand, self.node.inputs))
        options = ", ".join(f"{name}={value}" for name, value in sorted(self.attrs.items()))
        return f"{family}{' in ' * bool(family)}{self.node.op}: {operands}{'; ' * bool(options)}{options}"

    def is_constant(self, value: int) -> bool:
        """Return whether a value is a constant, so that it may be packed at build time."""
        return value in self.graph.constants


@dataclass(frozen=True)
class Epilogue:
    """An expression that a kernel applies to each element of a result before it stores the element.

    Attributes:
        expression: the expression. Its first argument is the element, the other arguments are elements of `operands`.
        uniforms: the uniforms of the expression as (name, type, value).
        operands: the values of the other arguments. An operand has the output's shape or one element, or it is a vector along
            the dimension `epilogue.axis` of the output. All other dimensions of a vector are absent or 1. If the operator
            sets `epilogue.vectors`, an operand may also hold such a vector for each matrix of the output.
        output: the value that the kernel stores instead of the node's own output.
        others: the further values that the kernel stores, one for each of the expression's `others`.
    """

    expression: Expression
    uniforms: tuple[tuple[str, UniformType, int | float], ...]
    operands: tuple[int, ...]
    output: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowNormalization:
    """A normalization of the rows of a node's result, which are those along its last dimension.

    Attributes:
        node: the normalization, with operands input, scale and bias.
        centered: whether it subtracts the mean of a row.
        stored: whether the result has other consumers, so that the kernel stores it as well.
    """

    node: Node
    centered: bool
    stored: bool


@dataclass(frozen=True)
class PixelMean:
    """The mean of a node's result, [images, height, width, channels], over the pixels of each image.

    Attributes:
        output: the value that holds it.
        epilogue: the expression of a mean that is stored instead, without operands, or None.
    """

    output: int
    epilogue: Epilogue | None


Infer = Callable[[OpCall], tuple[TensorType, ...]]
Lower = Callable[[Lowering], list[KernelCall]]

Interface = Literal["elementwise", "epilogue", "movement", "layout", "precision", "cost", "bounds", "gradient"]
"""The interface fields of `OpDef`. An operator either sets such a field or names it in `without`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Signature:
    """The checks of one method: an operator, or a helper that adds other operators under its own name.

    Attributes:
        name: the specification's name, or `x.name` for an extension operator.
        operands: the operands in order, optional operands included.
        infer: makes the checks beyond those of `operands` and `attrs`, and returns the output types. It may replace defaults
            in `call.attrs` by their values, which makes the attributes canonical.
        attrs: all other arguments and options.
        spec: the anchor of the specification's section, or "" for extension operators.
        rank_phrase: the text of the rule for a wrong rank, where programs search for particular words.
    """

    name: str
    operands: tuple[Operand, ...]
    infer: Infer
    attrs: tuple[Attr, ...] = ()
    spec: str = ""
    rank_phrase: str = ""

    @property
    def extension(self) -> bool:
        """Whether it is an extension operator: not of the specification, a method of `MLGraphBuilder.ext`."""
        return self.name.startswith("x.")

    @property
    def python_name(self) -> str:
        """Name of the builder method, `ext.top_k` for one of the extensions."""
        return method_name(self.name)

    @property
    def variadic(self) -> bool:
        """Whether the operator takes a list of operands."""
        return bool(self.operands) and self.operands[0].variadic

    def operand_names(self, count: int) -> list[str]:
        """Return the operands' names for a call with `count` of them."""
        if self.variadic:
            return [f"{self.operands[0].name}[{i}]" for i in range(count)]
        return [o.name for o in self.operands]

    def check(
        self, inputs: Sequence[TensorType | None], attrs: Mapping[str, Any], label: str = ""
    ) -> tuple[tuple[TensorType, ...], dict[str, Any]]:
        """Check a call and return its output types and canonical attributes.

        Raises:
            MLTypeError: the call breaks a rule of the specification. The message names the rule.
        """
        call = OpCall(self, label, inputs, attrs)
        call.check_operands()
        return self.infer(call), call.attrs


@dataclass(frozen=True, eq=False, kw_only=True)
class OpDef(Signature):
    """One operator.

    Attributes:
        reference: the numpy implementation, with float64 inside. It receives arrays of the operands' types and must return
            arrays of the outputs' types. None for nodes whose attribute `body` is a graph, which is interpreted instead.
        lower: chooses the kernels. None for views, which need no kernel.
        family: the family of the operator.
        templates: the templates that `lower` may use.
        without: the interfaces among the following eight that the operator does not have.
        elementwise: the formula of an element-wise operator, which passes can fuse.
        epilogue: the fusion of element-wise operators as an epilogue, for operators that apply `Lowering.epilogue`.
        movement: the movement of elements, for operators whose kernels compute nothing.
        layout: the form of the operator for operands with channels last. Without it, such operands are transposed back first.
        precision: the treatment of float16 operands among float32 operands. Without it, all of them become float32.
        cost: the arithmetic operations and the memory traffic. Without it, no operations are counted.
        bounds: the maximum permitted error of the results. Without it, the bounds of the operators in `body` apply.
        gradient: the rule of the gradient, in operators. Without it, no gradient may be asked through the operator.
        outputs: the names of the outputs, for support limits.
        output_types: the data types that the outputs may have, if these are not the first operand's.
        internal: whether only passes create such nodes.
        variants: the kernel variants, if these are not the variants of its templates.
        opaque: whether the package knows nothing about its kernel. Constant folding skips such nodes.
        commutative: whether the two operands may be swapped.
        copies: whether it returns its operand wherever the output has the operand's type.
        documentation: the documentation of the builder's method. Internal operators have no method, and the method of an
            opaque operator is not generated.
    """

    reference: Reference | None
    lower: Lower | None
    family: Family
    templates: tuple[KernelTemplate, ...] = ()
    without: tuple[Interface, ...] = ()
    elementwise: ElementWise | None = None
    epilogue: TakesEpilogue | None = None
    movement: Movement | None = None
    layout: Layout | None = None
    precision: Precision | None = None
    cost: Cost | None = None
    bounds: Bounds | None = None
    gradient: GradientRule | None = None
    outputs: tuple[str, ...] = ("output",)
    output_types: tuple[str, ...] = ()
    internal: bool = False
    variants: tuple[str, ...] = ()
    opaque: bool = False
    commutative: bool = False
    copies: bool = False
    documentation: Documentation | None = None

    def __post_init__(self) -> None:
        """Refuse an operator that neither sets an interface nor names it in `without`."""
        if (self.documentation is None) != (self.internal or self.opaque):
            raise TypeError(f"{self.name}: operators are documented, except internal and opaque ones")
        for name in get_args(Interface):
            if (getattr(self, name) is None) != (name in self.without):
                raise TypeError(f"{self.name}: give {name}, or name it in `without`, but not both")

    @property
    def moves(self) -> bool:
        """Whether its kernels only copy bits."""
        return self.movement is not None

    @property
    def tolerance(self) -> float | None:
        """The permitted error of a float32 result in ULP, for operands of ordinary size. None means that the error varies."""
        return self.bounds.tolerance if self.bounds else None

    @property
    def view(self) -> bool:
        """Whether the output is the input's memory under another shape or data type."""
        return self.lower is None
