"""Costs: estimates of the time of work on a device, and the choices by them. All other code asks a `Target`."""

from .cooperative import CooperativeTile
from .model import PORTABLE_ITERATIONS, Costs, PassCosts, SharingCosts
from .products import ProductCosts
from .recurrent import RecurrentCosts, RecurrentSize
from .sizes import Choice, ConvolutionSize, ProductSize, Tile
from .target import Target

__all__ = [
    "PORTABLE_ITERATIONS",
    "Choice",
    "ConvolutionSize",
    "CooperativeTile",
    "Costs",
    "PassCosts",
    "ProductCosts",
    "ProductSize",
    "RecurrentCosts",
    "RecurrentSize",
    "SharingCosts",
    "Target",
    "Tile",
]
