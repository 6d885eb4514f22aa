"""There are two profiles."""

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    wn.MLGraphBuilder(context, profile="2025")
    # refused by pyright: cannot be assigned to parameter "profile" of type "Literal['2026', '2024']"
    # refused by mypy: has incompatible type "Literal['2025']"; expected "Literal['2026', '2024']"
