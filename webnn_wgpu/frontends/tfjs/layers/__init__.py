"""One module per family of layers. Each registers the functions of its layers by class."""

from importlib import import_module

from ._call import LAYERS, Flow, LayerCall, LayerScope, Training
from ._models import run_layer, run_model

__all__ = ["LAYERS", "Flow", "LayerCall", "LayerScope", "Training", "run_layer", "run_model"]

for _module in (
    "activations",
    "convolution",
    "core",
    "merging",
    "normalization",
    "pooling",
    "recurrent",
    "wrappers",
):
    import_module(f"{__name__}.{_module}")
