"""The delegate for TFLite's own runtimes."""

from .delegate import WebnnDelegate
from .partitions import DelegationReport

__all__ = ["DelegationReport", "WebnnDelegate"]
