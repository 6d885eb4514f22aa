"""The browser, which compiles kernels too."""

from tests.browser.conftest import browser, server

__all__ = ["browser", "server"]
