"""Names: the specification's camelCase and Python's snake_case."""

from __future__ import annotations

import keyword
import re
from functools import lru_cache


@lru_cache(4096)
def snake_case(name: str) -> str:
    """Return the Python spelling of a name of the specification, with an underscore behind it if Python reserves it.

    >>> [snake_case(n) for n in ("argMax", "isNaN", "gatherND", "reduceL1", "averagePool2d", "x.attention", "not")]
    ['arg_max', 'is_nan', 'gather_nd', 'reduce_l1', 'average_pool2d', 'x.attention', 'not_']
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("NaN", "Nan").replace("ND", "Nd")).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def method_name(operator: str) -> str:
    """Return the name of the builder's method for an operator: `ext.top_k` for "x.top_k", one of the extensions.

    >>> method_name("reduceSum"), method_name("x.top_k")
    ('reduce_sum', 'ext.top_k')
    """
    return f"ext.{operator.removeprefix('x.')}" if operator.startswith("x.") else snake_case(operator)


def is_unicode(text: str) -> bool:
    r"""Return whether a text can be encoded: Python's strings, as those of JSON, may have one half of a surrogate pair.

    >>> is_unicode("\U0001f926"), is_unicode("\ud83e")
    (True, False)
    """
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
