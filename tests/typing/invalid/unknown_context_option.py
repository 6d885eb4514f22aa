"""Options of contexts have names."""

import webnn_wgpu as wn


def program() -> None:
    wn.ml.create_context(power_preferance=None)
    # refused by pyright: No parameter named "power_preferance"
    # refused by mypy: Unexpected keyword argument "power_preferance" for "create_context" of "ML"
