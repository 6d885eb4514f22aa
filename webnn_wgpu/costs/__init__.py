"""Costs: what work takes on a device, and the choices that follow from it. Everything else asks a `Target`."""

from .model import Costs, PassCosts
from .target import Target

__all__ = ["Costs", "PassCosts", "Target"]
