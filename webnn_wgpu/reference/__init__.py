"""The numpy interpreter: oracle of the tests, constant folder, and the backend of machines without any adapter."""

from .interpreter import evaluate, interpret

__all__ = ["evaluate", "interpret"]
