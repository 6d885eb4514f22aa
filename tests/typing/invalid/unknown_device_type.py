"""Options of contexts are literals, also as keywords."""

import webnn_wgpu as wn


def program() -> None:
    wn.ml.create_context(device_type="npu")
    # refused by pyright: cannot be assigned to parameter "device_type" of type "Literal['auto', 'cpu', 'gpu'] | None"
    # refused by mypy: has incompatible type "Literal['npu']"; expected "Literal['auto', 'cpu', 'gpu'] | None"
