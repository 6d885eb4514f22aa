"""Extension operators of transformers: attention, and the rotation of queries and keys by their positions.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class AttentionExtensions(OperatorMethods):
    """attention, attention_gradient, rotary_embedding."""

    @with_options()
    def attention(
        self,
        query: MLOperand,
        key: MLOperand,
        value: MLOperand,
        *,
        mask: MLOperand | None = None,
        length: MLOperand | None = None,
        heads: int | None = None,
        kv_heads: int | None = None,
        scale: float | None = None,
        softcap: float = 0.0,
        causal: bool = False,
        left: int | None = None,
        right: int | None = None,
        offset: int | None = None,
        label: str = "",
    ) -> MLOperand:
        """`softmax(scale * query @ key.T + mask) @ value` for every head, without a matrix of scores in memory.

        Each of query, key and value has its heads in a dimension of their own, or side by side in its rows. There are H query
        heads, Hkv key heads, S queries and T keys. Hkv must divide H, and query head h reads key head h // (H // Hkv).

        Query s stands at position `offset + s` among the keys. It sees keys up to `right` positions after its own and `left`
        positions before it, if these are given. It sees only the first `length` keys, and of these only those that `mask`
        admits. A row that sees no key becomes 0.

        Args:
            query: float32 or float16, with the shape [batch, H, S, size] or [batch, S, H * size].
            key: The data type of `query`, with the shape [batch, Hkv, T, size] or [batch, T, Hkv * size].
            value: The data type of `query`, with the shape [batch, Hkv, T, columns] or [batch, T, Hkv * columns].
            mask: float32, float16 or uint8, with a shape that broadcasts to [batch, H, S, T]. Floats are added to the scores,
                so that -inf excludes a key. Of uint8, 0 excludes a key.
            length: uint32 or int32, with the shape [batch], [1] or []: the number of keys, from 0 to T. The default is T. Keys
                and values behind it are not read, so key and value may be caches that are filled little by little.
            heads: H. It is required if `query` has rank 3.
            kv_heads: Hkv. The default is H if neither key nor value has rank 4.
            scale: Factor of the scores. The default is 1 / sqrt(size).
            softcap: Unless 0, scores become `softcap * tanh(score / softcap)` before the mask is added.
            causal: Whether no query sees keys after its own position, as with `right=0`.
            left: Largest number of keys that a query sees before its own position. None sets no bound.
            right: Largest number of keys that a query sees after its own position. None sets no bound.
            offset: Position of the first query. By default the last query stands at the last key: the offset is `T - S`, or
                `length - S`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the query's data type and the shape [batch, H, S, columns], or [batch, S, H * columns] if `query`
            has rank 3.

        Raises:
            MLTypeError: A data type, rank or shape is not allowed, the heads do not divide, the softcap is negative, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Results are computed in float32 and rounded once. A value that is not finite can spoil rows that do not see its key,
            unless the key lies behind `length`.

        Example:
            >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
            >>> b.ext.attention(tokens, tokens, tokens, heads=2, causal=True)
            MLOperand(float32[1, 5, 8])
        """
        return self._output(
            "x.attention",
            [query, key, value, mask, length],
            {
                "heads": heads,
                "kv_heads": kv_heads,
                "scale": scale,
                "softcap": softcap,
                "causal": causal,
                "left": left,
                "right": right,
                "offset": offset,
            },
            label,
        )

    @with_options()
    def attention_gradient(
        self,
        gradient: MLOperand,
        query: MLOperand,
        key: MLOperand,
        value: MLOperand,
        *,
        mask: MLOperand | None = None,
        length: MLOperand | None = None,
        heads: int | None = None,
        kv_heads: int | None = None,
        scale: float | None = None,
        softcap: float = 0.0,
        causal: bool = False,
        left: int | None = None,
        right: int | None = None,
        offset: int | None = None,
        label: str = "",
    ) -> list[MLOperand]:
        """The gradients of `ext.attention` with respect to query, key and value, for `gradients`.

        Operands and options are those of `ext.attention`. The mask is no variable here.

        Args:
            gradient: float32 or float16, the gradient of the result.
            query: The data type of `gradient`, with the shape [batch, H, S, size] or [batch, S, H * size].
            key: The data type of `gradient`, with the shape [batch, Hkv, T, size] or [batch, T, Hkv * size].
            value: The data type of `gradient`, with the shape [batch, Hkv, T, columns] or [batch, T, Hkv * columns].
            mask: float32, float16 or uint8, with a shape that broadcasts to [batch, H, S, T]. Floats are added to the scores,
                so that -inf excludes a key. Of uint8, 0 excludes a key.
            length: uint32 or int32, with the shape [batch], [1] or []: the number of keys, from 0 to T. The default is T. Keys
                and values behind it are not read, so key and value may be caches that are filled little by little.
            heads: H. It is required if `query` has rank 3.
            kv_heads: Hkv. The default is H if neither key nor value has rank 4.
            scale: Factor of the scores. The default is 1 / sqrt(size).
            softcap: Unless 0, scores become `softcap * tanh(score / softcap)` before the mask is added.
            causal: Whether no query sees keys after its own position, as with `right=0`.
            left: Largest number of keys that a query sees before its own position. None sets no bound.
            right: Largest number of keys that a query sees after its own position. None sets no bound.
            offset: Position of the first query. By default the last query stands at the last key: the offset is `T - S`, or
                `length - S`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A list of the gradients of query, key and value, with their data type and shapes.

        Raises:
            MLTypeError: A data type, rank or shape is not allowed, the heads do not divide, the softcap is negative, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Results are computed in float32 and rounded once.

        Example:
            >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
            >>> b.ext.attention_gradient(tokens, tokens, tokens, tokens, heads=2)
            [MLOperand(float32[1, 5, 8]), MLOperand(float32[1, 5, 8]), MLOperand(float32[1, 5, 8])]
        """
        return self._outputs(
            "x.attention_gradient",
            [gradient, query, key, value, mask, length],
            {
                "heads": heads,
                "kv_heads": kv_heads,
                "scale": scale,
                "softcap": softcap,
                "causal": causal,
                "left": left,
                "right": right,
                "offset": offset,
            },
            label,
        )

    @with_options()
    def rotary_embedding(
        self,
        input: MLOperand,
        cos: MLOperand,
        sin: MLOperand,
        *,
        positions: MLOperand | None = None,
        heads: int | None = None,
        interleaved: bool = False,
        rotary_dim: int = 0,
        label: str = "",
    ) -> MLOperand:
        """Rotate pairs (x, y) of elements of every head to `(x cos - y sin, x sin + y cos)`, as ONNX's RotaryEmbedding does.

        Args:
            input: float32 or float16, with the shape [batch, heads, length, size] or [batch, length, heads * size].
            cos: The input's data type, with the shape [rows, rotary_dim / 2]. `positions` names the row of each position.
                Without `positions`, a shape that broadcasts to [batch, length, rotary_dim / 2].
            sin: The data type and shape of `cos`.
            positions: int32, uint32 or int64, with a shape that broadcasts to [batch, length]. Negative positions count from
                the end of the rows, and positions out of range are clamped.
            heads: Number of heads. It is required if `input` has rank 3.
            interleaved: Whether a pair is two neighbors, instead of one element of each half of the rotated part.
            rotary_dim: Number of elements of a head that are rotated, the first ones. 0 stands for all.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: A data type, rank or shape is not allowed, `rotary_dim` is odd or too large, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
            >>> table = b.constant(np.ones([16, 2], np.float32))
            >>> positions = b.constant(np.arange(5, dtype=np.int32))
            >>> b.ext.rotary_embedding(tokens, table, table, positions=positions, heads=2)
            MLOperand(float32[1, 5, 8])
        """
        return self._output(
            "x.rotary_embedding",
            [input, cos, sin, positions],
            {"heads": heads, "interleaved": interleaved, "rotary_dim": rotary_dim},
            label,
        )

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        attentionGradient = attention_gradient
        rotaryEmbedding = rotary_embedding
