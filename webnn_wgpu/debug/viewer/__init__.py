"""`view`: a compiled graph as one HTML page, with everything it needs inside."""

from .pages import Page, view

__all__ = ["Page", "view"]
