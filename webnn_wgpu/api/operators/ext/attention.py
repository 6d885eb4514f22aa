"""Extension operators of transformers: attention, and the rotation of queries and keys by their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class AttentionExtensions(OperatorMethods):
    """attention, rotary_embedding."""

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

        Each of query, key and value has its heads beside each other in a dimension of their own, or side by side in its rows;
        with H query heads, a divisor Hkv of H key heads, S queries, T keys. Query head h reads key head h // (H // Hkv).

        Query s stands at position `offset + s` among the keys. It sees keys up to `right` positions after its own and `left`
        positions before, where these are given, of the first `length` keys that `mask` lets it see. A row that sees no key
        becomes 0.

        Args:
            query: float32 or float16 [batch, H, S, size], or [batch, S, H * size].
            key: The same data type [batch, Hkv, T, size], or [batch, T, Hkv * size].
            value: The same data type [batch, Hkv, T, columns], or [batch, T, Hkv * columns].
            mask: float32 or float16: what is added to the scores, -inf for keys that do not count; or uint8: 0 for such keys.
                A shape that broadcasts to [batch, H, S, T].
            length: uint32 or int32 [batch], [1] or []: how many keys there are, from 0 to T; T where absent. What lies behind
                is not looked at, so key and value may be caches that are filled little by little.
            heads: H; required where `query` has rank 3.
            kv_heads: Hkv; H where absent and neither key nor value has rank 4.
            scale: Factor of the scores; 1 / sqrt(size) where absent.
            softcap: Unless 0, scores become `softcap * tanh(score / softcap)` before the mask is added.
            causal: Whether no query sees keys after its own position: `right=0`.
            left: Most keys that a query sees before its own position; None for no bound.
            right: Most keys that it sees after its own position; None for no bound.
            offset: Position of the first query; where absent, the last query stands at the last key: `T - S`, or
                `length - S`.
            label: The operator's name in messages.

        Returns:
            An operand of the query's data type, [batch, H, S, columns], or [batch, S, H * columns] where `query` has rank 3.

        Raises:
            MLTypeError: A data type, rank or shape that is not allowed, heads that do not divide, a negative softcap, or an
                operand of another builder.

        Numerics:
            Computed in float32 and rounded once. A value that is not finite may spoil rows that do not see its key, unless that
            lies behind `length`.

        Example:
            >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
            >>> b.ext.attention(tokens, tokens, tokens, heads=2, causal=True)
            MLOperand(float32[1, 5, 8])
        """
        attrs = {
            "heads": heads,
            "kv_heads": kv_heads,
            "scale": scale,
            "softcap": softcap,
            "causal": causal,
            "left": left,
            "right": right,
            "offset": offset,
        }
        return self._output("x.attention", [query, key, value, mask, length], attrs, label=label)

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
        """Pairs (x, y) of elements of every head become `(x cos - y sin, x sin + y cos)`, as ONNX RotaryEmbedding has it.

        Args:
            input: float32 or float16 [batch, heads, length, size], or [batch, length, heads * size].
            cos: The same data type [rows, rotary_dim / 2]: the row to take for each position is named by `positions`. Without
                them a shape that broadcasts to [batch, length, rotary_dim / 2].
            sin: The same data type and shape.
            positions: int32, uint32 or int64; a shape that broadcasts to [batch, length]. Negative ones count from the end of
                the rows, and what is out of range is clamped.
            heads: Required where `input` has rank 3.
            interleaved: Whether a pair is two neighbours, rather than one element of each half of the rotated part.
            rotary_dim: How many elements of a head are rotated, the first ones; 0 for all.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type, rank or shape that is not allowed, an odd or too large `rotary_dim`, or an operand of
                another builder.

        Example:
            >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
            >>> table = b.constant(np.ones([16, 2], np.float32))
            >>> positions = b.constant(np.arange(5, dtype=np.int32))
            >>> b.ext.rotary_embedding(tokens, table, table, positions=positions, heads=2)
            MLOperand(float32[1, 5, 8])
        """
        attrs = {"heads": heads, "interleaved": interleaved, "rotary_dim": rotary_dim}
        return self._output("x.rotary_embedding", [input, cos, sin, positions], attrs, label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        rotaryEmbedding = rotary_embedding
