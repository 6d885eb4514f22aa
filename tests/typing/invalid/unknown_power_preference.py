"""Options of contexts are literals."""

import webnn_wgpu as wn


def program() -> None:
    wn.ml.create_context({"powerPreference": "fast"})
    # refused by pyright: cannot be assigned to parameter "device_or_options"
    # refused by mypy: Argument 1 to "create_context" of "ML" has incompatible type "dict[str, str]"
