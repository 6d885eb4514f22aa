"""`.webnn` files and their JSON form on WebNN: `load_webnn` and the model that it returns."""

from .model import TensorInfo, WebNNModel, load_webnn

__all__ = ["TensorInfo", "WebNNModel", "load_webnn"]
