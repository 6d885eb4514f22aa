"""An extension for griffe: `Example:` of docstrings is shown as griffe shows `Examples:`, and the source as a link."""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Edits docstrings before griffe parses them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section in the docstring of an object, and mark the address of its source."""
        if obj.docstring is not None:
            text = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"^( *Spec:) (https://\S+)$", r"\1 <\2>", text, flags=re.MULTILINE)
