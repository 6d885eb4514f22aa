"""An extension for griffe, which reads docstrings.

It shows `Example:` as griffe shows `Examples:`, the source as a link, and results that have a colon in their first line.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Edits docstrings before griffe parses them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Edit the sections of examples, sources and results in the docstring of an object."""
        if obj.docstring is not None:
            text = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
            text = re.sub(r"^( *Spec:) (https://\S+)$", r"\1 <\2>", text, flags=re.MULTILINE)
            if isinstance(obj, griffe.Function) and obj.returns is not None:
                # griffe takes the text before a colon as the type of the result.
                text = re.sub(r"^( *Returns:\n +)(?=.*:)", rf"\1{obj.returns}: ", text, flags=re.MULTILINE)
            obj.docstring.value = text
