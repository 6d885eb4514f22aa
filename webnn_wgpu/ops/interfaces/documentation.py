"""The documentation of operators: the text and the signature of the builder's method, which is generated from them.

`python -m tests.generation` writes the modules of `api/operators` from these declarations. Most of a signature follows from an
operator's operands and attributes: required ones are arguments, the others are options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Group:
    """A module of `api/operators` with one class, and thereby the operators whose methods it contains.

    Attributes:
        module: name of the module, below `ext` for extension operators.
        mixin: name of the class.
        summary: first line of the module's docstring.
        remark: sentences that hold for all methods, for the docstring of the class.
    """

    module: str
    mixin: str
    summary: str
    remark: str = ""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method that is no operand and no attribute of the operator, or another form of an attribute.

    Attributes:
        name: its name. It replaces an attribute of the same name.
        annotation: its type, as Python source.
        default: its default, as Python source, or "" for none.
    """

    name: str
    annotation: str
    default: str = ""


@dataclass(frozen=True, kw_only=True)
class Method:
    """The signature of the builder's method, beyond operands and attributes.

    Attributes:
        optional: the specification's arguments that a caller may omit.
        positional: the options that a caller may also pass by position.
        parameters: further parameters, and attributes of another form.
        dictionary: the specification's dictionary of options, if several operators share it.
        aliases: other names of arguments and options, which the method accepts at run time.
        pywebnn: the options that pywebnn takes by position, in its order.
        also: further names of the method.
        activation: whether a call without an operand returns an `MLActivation`.
        through: the method of `OperatorForms` that receives all arguments and adds the operator, or "" for plain operators.
    """

    optional: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    dictionary: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    pywebnn: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    activation: bool = False
    through: str = ""


PLAIN = Method()
"""A method whose signature follows from operands and attributes."""


@dataclass(frozen=True, kw_only=True)
class Documentation:
    """The docstring of the builder's method, in parts.

    Attributes:
        group: the module and class of the method.
        summary: the first line.
        details: the paragraphs behind the summary.
        arguments: a text for each operand, attribute and parameter, by its Python name. "{types}" in an operand's text stands
            for its data types.
        returns: the text about the result of the method.
        raises: the conditions under which the method refuses a call, as clauses with a capital letter at the start and
            without a full stop. Every method also refuses operands of another builder.
        numerics: the rounding, and the results for special values.
        example: a doctest. The names `b`, `x`, `y`, `image`, `context`, `np` and `wn` are given.
        method: the signature of the method, beyond operands and attributes.
    """

    group: Group
    summary: str
    details: str = ""
    arguments: Mapping[str, str]
    returns: str
    raises: str
    numerics: str = ""
    example: str
    method: Method = PLAIN


ACTIVATION = Parameter("activation", "MLActivation | None", "None")
"""The option of the 2024 text that applies an activation to an operator's result."""

ARG_MIN_MAX = Group("argminmax", "ArgMinMaxOperators", "The position of the greatest and of the least element.")
BINARY = Group("binary", "BinaryOperators", "Element-wise arithmetic of two operands.", "Shapes broadcast as in numpy.")
CONVOLUTION = Group(
    "convolution", "ConvolutionOperators", "Convolution and transposed convolution.", "Sums are kept in float32."
)
INDEXING = Group(
    "indexing",
    "IndexingOperators",
    "Operators that move elements to or from places that indices name: gathering and scattering.",
    "Elements keep all their bits.",
)
COMPARISONS = Group(
    "logic", "LogicOperators", "Comparisons and logic, with uint8 results of 0 and 1.", "Shapes broadcast as in numpy."
)
MATRIX = Group("matrix", "MatrixOperators", "Matrix products and softmax.", "Sums are kept in float32.")
MOVEMENT = Group("movement", "MovementOperators", "Operators that move elements.", "Elements keep all their bits.")
NORMALIZATIONS = Group(
    "normalization",
    "NormalizationOperators",
    "Normalization over a batch, an image or a layer.",
    "Variances are population variances.",
)
PIECEWISE = Group(
    "piecewise",
    "PiecewiseActivations",
    "Piecewise linear activations.",
    "Without an operand, each method except prelu returns an `MLActivation`.",
)
POOLING = Group("pooling", "PoolingOperators", "Pooling over windows, and resampling.")
QUANTIZATION = Group(
    "quantization",
    "QuantizationOperators",
    "Operators between floats and quantized integers.",
    "Scales are per tensor, per axis or per block.",
)
RECURRENT = Group(
    "recurrent",
    "RecurrentOperators",
    "Recurrent networks and their cells.",
    "Sums and states are kept in float32 from the first step to the last. Outputs are rounded once, when they are stored.",
)
REDUCTIONS = Group(
    "reductions",
    "ReductionOperators",
    "Reductions over dimensions, and the cumulative sum.",
    "Sums of float16 are kept in float32.",
)
SELECTION = Group(
    "selection", "SelectionOperators", "Changing the data type, and choosing between two operands, element by element."
)
SMOOTH = Group(
    "activations",
    "SmoothActivations",
    "Smooth activations.",
    "Without an operand, each method returns an `MLActivation`.",
)
UNARY = Group("unary", "UnaryOperators", "Element-wise operators of one operand.")
VIEWS = Group("views", "ViewOperators", "Operators that give the same memory another shape.", "They cost nothing at run time.")

ATTENTION_EXTENSIONS = Group(
    "attention",
    "AttentionExtensions",
    "Extension operators of transformers: attention, and the rotation of queries and keys by their positions.",
)
BITWISE_EXTENSIONS = Group("bitwise", "BitwiseExtensions", "Extension operators on bits.")
CACHE_EXTENSIONS = Group("caches", "CacheExtensions", "Extension operators on state that stays on the device from run to run.")
HYPERBOLIC_EXTENSIONS = Group(
    "hyperbolic",
    "HyperbolicExtensions",
    "Extension operators: inverse trigonometric functions, hyperbolic functions and their inverses.",
)
NORMALIZATION_EXTENSIONS = Group("normalization", "NormalizationExtensions", "Extension operators that normalize.")
QUANTIZED_EXTENSIONS = Group(
    "quantized",
    "QuantizedExtensions",
    "Extension operators on weights of a few bits, and for quantizing at run time.",
)
RANDOM_EXTENSIONS = Group("random", "RandomExtensions", "Extension operators: random numbers.")
REMAINDER_EXTENSIONS = Group("remainder", "RemainderExtensions", "Extension operators: the remainders of divisions.")
ROUNDING_EXTENSIONS = Group(
    "rounding", "RoundingExtensions", "Extension operators: rounding to data types that WebNN does not have."
)
SAMPLING_EXTENSIONS = Group("sampling", "SamplingExtensions", "Extension operators that interpolate between elements.")
SCATTER_EXTENSIONS = Group(
    "scatter", "ScatterExtensions", "Extension operators that combine elements with updates at places that indices name."
)
SORTING_EXTENSIONS = Group("sorting", "SortingExtensions", "Extension operators along one dimension.")
