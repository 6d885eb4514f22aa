"""Families of operators, which pictures of graphs give a colour each."""

from __future__ import annotations

from . import OPS

_BY_WORD = (
    ("conv", "convolution"),
    ("attention", "attention"),
    ("matmul", "product"),
    ("gemm", "product"),
    ("pool", "pooling"),
    ("lstm", "recurrent"),
    ("gru", "recurrent"),
    ("normalization", "normalization"),
    ("softmax", "normalization"),
    ("reduce", "reduction"),
    ("arg", "reduction"),
    ("cumulative", "reduction"),
    ("top_k", "reduction"),
    ("quantize", "quantization"),
)


def family(op: str) -> str:
    """Return the family of an operator.

    >>> family("conv2d"), family("relu"), family("transpose"), family("x.top_k"), family("gridSample")
    ('convolution', 'element-wise', 'movement', 'reduction', 'other')
    """
    name = op.lower()
    found = next((kind for word, kind in _BY_WORD if word in name), "")
    if found or op not in OPS:
        return found or "other"
    if OPS[op].elementwise is not None:
        return "element-wise"
    return "movement" if OPS[op].moves or OPS[op].view else "other"
