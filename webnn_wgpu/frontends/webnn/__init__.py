"""`.webnn` files and their JSON form on WebNN: `load_webnn`, the model that it returns, and `analyze`."""

from .analysis import analyze
from .checking import Checked, check
from .model import WebNNModel, load_webnn

__all__ = ["Checked", "WebNNModel", "analyze", "check", "load_webnn"]
