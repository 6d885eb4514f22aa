"""`ml` makes contexts and nothing else."""

import webnn_wgpu as wn


def program() -> None:
    wn.ml.createContexts()
    # refused by pyright: Cannot access attribute "createContexts" for class "ML"
    # refused by mypy: "ML" has no attribute "createContexts"; maybe "createContext"
