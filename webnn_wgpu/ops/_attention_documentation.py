"""The documentation of attention."""

from __future__ import annotations

from .interfaces.documentation import ATTENTION_EXTENSIONS, Documentation

_SAME_TYPE = ("key", "value")

ATTENTION = Documentation(
    group=ATTENTION_EXTENSIONS,
    summary="`softmax(scale * query @ key.T + mask) @ value` for every head, without a matrix of scores in memory.",
    details="""
        Each of query, key and value has its heads in a dimension of their own, or side by side in its rows. There are H query
        heads, Hkv key heads, S queries and T keys. Hkv must divide H, and query head h reads key head h // (H // Hkv).

        Query s stands at position `offset + s` among the keys. It sees keys up to `right` positions after its own and `left`
        positions before it, if these are given. It sees only the first `length` keys, and of these only those that `mask`
        admits. A row that sees no key becomes 0.
    """,
    arguments={
        "query": "{types}, with the shape [batch, H, S, size] or [batch, S, H * size].",
        "key": "The data type of `query`, with the shape [batch, Hkv, T, size] or [batch, T, Hkv * size].",
        "value": "The data type of `query`, with the shape [batch, Hkv, T, columns] or [batch, T, Hkv * columns].",
        "mask": (
            "{types}, with a shape that broadcasts to [batch, H, S, T]. Floats are added to the scores, so that -inf "
            "excludes a key. Of uint8, 0 excludes a key."
        ),
        "length": (
            "{types}, with the shape [batch], [1] or []: the number of keys, from 0 to T. The default is T. Keys and "
            "values behind it are not read, so key and value may be caches that are filled little by little."
        ),
        "heads": "H. It is required if `query` has rank 3.",
        "kv_heads": "Hkv. The default is H if neither key nor value has rank 4.",
        "scale": "Factor of the scores. The default is 1 / sqrt(size).",
        "softcap": "Unless 0, scores become `softcap * tanh(score / softcap)` before the mask is added.",
        "causal": "Whether no query sees keys after its own position, as with `right=0`.",
        "left": "Largest number of keys that a query sees before its own position. None sets no bound.",
        "right": "Largest number of keys that a query sees after its own position. None sets no bound.",
        "offset": (
            "Position of the first query. By default the last query stands at the last key: the offset is `T - S`, or "
            "`length - S`."
        ),
    },
    returns=(
        "An operand with the query's data type and the shape [batch, H, S, columns], or [batch, S, H * columns] if `query` "
        "has rank 3."
    ),
    raises="A data type, rank or shape is not allowed, the heads do not divide, the softcap is negative",
    numerics=(
        "Results are computed in float32 and rounded once. A value that is not finite can spoil rows that do not see its "
        "key, unless the key lies behind `length`."
    ),
    example="""
        >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
        >>> b.ext.attention(tokens, tokens, tokens, heads=2, causal=True)
        MLOperand(float32[1, 5, 8])
    """,
)

ATTENTION_GRADIENT = Documentation(
    group=ATTENTION_EXTENSIONS,
    summary="The gradients of `ext.attention` with respect to query, key and value, for `gradients`.",
    details="Operands and options are those of `ext.attention`. The mask is no variable here.",
    arguments={
        "gradient": "{types}, the gradient of the result.",
        "query": "The data type of `gradient`, with the shape [batch, H, S, size] or [batch, S, H * size].",
        **{name: text.replace("`query`", "`gradient`", 1) for name, text in ATTENTION.arguments.items() if name in _SAME_TYPE},
        **{name: text for name, text in ATTENTION.arguments.items() if name not in (*_SAME_TYPE, "query")},
    },
    returns="A list of the gradients of query, key and value, with their data type and shapes.",
    raises="A data type, rank or shape is not allowed, the heads do not divide, the softcap is negative",
    numerics="Results are computed in float32 and rounded once.",
    example="""
        >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
        >>> b.ext.attention_gradient(tokens, tokens, tokens, tokens, heads=2)
        [MLOperand(float32[1, 5, 8]), MLOperand(float32[1, 5, 8]), MLOperand(float32[1, 5, 8])]
    """,
)
