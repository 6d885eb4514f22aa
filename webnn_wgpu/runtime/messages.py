"""Messages of wgpu in the form of this package: one line with the fault, and of a shader the position in template or source."""

from __future__ import annotations

import re
from typing import Any

from ..core.call_site import made_at
from ..kernels.source_map import SourceMap
from ..plan.execution_plan import PlannedDispatch

_FRAME = re.compile(r".*┌─|.*naga::| *(\d+ *│|In wgpu|Caused by:$|Validation Error$)")
"""Lines of a compiler's message that only frame or repeat its statement."""

_HEAD = re.compile(r"┌─ .*?:(\d+):(\d+)$", re.MULTILINE)
_WITHIN = re.compile(r"^ *(\d+) │ [│╭] .*\n *│ │( +)\^", re.MULTILINE)
"""The position of the fault in a message that shows a whole function."""


def wgpu_message(error: Exception) -> str:
    r"""Return the message of one of wgpu's errors as one line, without the chain of functions where it arose.

    >>> wgpu_message(ValueError("Validation Error\n\nCaused by:\n  In wgpuQueueSubmit\n    Buffer is still mapped\n"))
    'Buffer is still mapped'
    """
    return "; ".join(_statements(str(error)))


def usage_names(flags: Any, usage: int) -> str:
    """Return the names of the usages of a buffer or texture.

    Args:
        flags: `wgpu.BufferUsage` or `wgpu.TextureUsage`.
        usage: the usages.
    """
    return " | ".join(name for name in dir(flags) if name.isupper() and usage & getattr(flags, name))


def compiler_message(text: str, source: SourceMap) -> str:
    r"""Return wgpu's message about a shader as one line: the position, the fault and the text of the source line.

    Args:
        text: the message, with drawings of the lines.
        source: the source map of the shader. Its file name precedes the line number. An empty file name leaves the number
            alone.

    >>> from webnn_wgpu.kernels.source_map import map_of_source
    >>> message = "Shader 'a' parsing error: no such name: `foo`\n  ┌─ wgsl:2:5\n  │\n2 │   foo();\n  │   ^^^ unknown\n"
    >>> compiler_message(message, map_of_source("fn main() {\n    foo();\n}", "own.wgsl"))
    "own.wgsl:2:5: no such name: `foo` in 'foo();'"
    """
    words = _statements(text)
    position = _position(text, source)
    if position is None:
        return f"{source.file}: " * bool(source.file) + "; ".join(words)
    if "parsing error: " in text:
        words = words[:1]  # the rest says no more than where
    line, column = position
    place = source.place(line, column)
    where = f"{place.file}:{place.line}:{place.column}" if place.file else f"line {place.line}, column {place.column}"
    return f"{where}: {'; '.join(words)} in '{source.text.splitlines()[line - 1].strip()}'"


def _statements(text: str) -> list[str]:
    lines = (re.sub(r"^[ │╰─^=·]*(Shader '.*' parsing error: )?", "", s) for s in text.splitlines() if not _FRAME.match(s))
    return list(dict.fromkeys(filter(None, lines)))


def _position(text: str, source: SourceMap) -> tuple[int, int] | None:
    """Return the line and column that a message names. The line behind the end of the source becomes its last line."""
    head = _HEAD.search(text)
    if head is None or not len(source):
        return None
    within = _WITHIN.search(text) if "│ ╭ " in text else None
    line, column = (int(within[1]), len(within[2])) if within else (int(head[1]), int(head[2]))
    return min(line, len(source)), column


def operators_made_at(text: str, source: SourceMap, planned: PlannedDispatch | None) -> str:
    """Return a sentence with the place where an application created the operators of a message, or "" if it is unknown.

    Args:
        text: the message.
        source: the shader.
        planned: a dispatch of it.
    """
    if planned is None:
        return ""
    position = _position(text, source)
    steps = source.steps(position[0]) if position and planned.steps else ()
    origins = [o for i in steps if i < len(planned.steps) for o in planned.steps[i]] or planned.origins
    return made_at(origin.site for origin in origins)
