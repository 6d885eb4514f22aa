"""What a refusal must be like: of the right kind, in words that name the operator and what is wrong, and without a trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.core.errors import InvalidStateError, MLTypeError, WebNNError, printable, quoted
from webnn_wgpu.core.names import snake_case

from .calls import ABSENT, ALIASES, LABEL, Activation, Operand, Workplace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .misuse import Misuse

LONGEST = 2000
"""No message is longer, whatever was passed."""


def named(message: str, name: str) -> bool:
    """Whether a message has an argument's name in Python's or the specification's spelling."""
    return name in {snake_case(word) for word in re.findall(r"\w+", message)}


def shown(message: str, given: Any) -> bool:
    """Whether a message quotes a value: its type for an operand, one of its items for a list."""
    if isinstance(given, Operand):
        return str(given.type) in message
    if isinstance(given, Activation):
        return f"MLActivation({given.kind}" in message
    if given is None:
        return "is required" in message or "got None" in message
    if printable(quoted(given)[:50]) in message:
        return True
    if isinstance(given, set | frozenset) or (isinstance(given, np.ndarray) and given.ndim):
        given = list(given)
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, list):
        counted = re.search(rf"\b{len(given)} (operands|parts|items)", message) is not None
        return counted or any(shown(message, item) for item in given[:8])
    if isinstance(given, int | float) and not isinstance(given, bool):
        texts = {quoted(given), quoted(float(given) if abs(given) < 2**53 else given)}
        return any(re.search(rf"(?<![\w.]){re.escape(text)}(?!\w)", message) for text in texts)
    return False


def blames(message: str, names: Iterable[str], arguments: Mapping[str, Any]) -> bool:
    """Whether a message names one of `names` and quotes it, or an operand whose shape it does not go with."""
    suspects = {n: v for n, v in arguments.items() if n in names or isinstance(v, Operand)}
    return any(named(message, n) and shown(message, v) for n, v in suspects.items() if v is not ABSENT)


def prefix(op: str, labeled: bool) -> str:
    """What messages of an operator begin with."""
    label = f"('{LABEL}')" if labeled else ""
    return f"{snake_case(ALIASES.get(op, op))}{label}: "


def missing_parts(error: WebNNError, label: object) -> str:
    """Return what an error lacks of: operator, label, rule, value or allowed values, in this order. "" if nothing."""
    value = error.got or error.allowed or (error.hint if isinstance(error, InvalidStateError) else "")
    parts = {"operator": error.operator, "rule": error.rule, "value": value}
    if isinstance(label, str) and label:
        parts["label"] = error.label
    absent = [name for name, part in parts.items() if not part]
    if absent:
        return f"lacks {', '.join(absent)}: {error}"
    end = 0
    for part in filter(None, (error.rule, error.got, error.allowed, error.hint)):
        start = str(error).find(printable(part)[:50], end)
        if start < end:
            return f"is out of order: {error}"
        end = start + 1
    return ""


def refusal(
    place: Workplace, op: str, args: Sequence[Any], keywords: Mapping[str, Any], kind: type[WebNNError] = MLTypeError
) -> tuple[str, str]:
    """Try a call that must be refused.

    Returns:
        The message, and what is wrong with the refusal: "" if nothing.
    """
    before = place.state
    try:
        made = place.call(snake_case(op), *args, **keywords)
    except kind as error:
        message = str(error)
        if unstructured := missing_parts(error, keywords.get("label", "")):
            return message, unstructured
    except Exception as error:
        return "", f"raises {type(error).__name__}: {quoted(str(error))}"
    else:
        return "", f"is accepted and gives {quoted(made)}"
    if place.state != before:
        return message, "leaves something in the graph"
    beginning = prefix(op, labeled=isinstance(keywords.get("label", ""), str))
    if not message.startswith(beginning):
        return message, f"does not begin with {beginning!r}: {message}"
    if len(message) > LONGEST:
        return message, f"is {len(message)} characters long"
    return message, ""


def refusal_of(place: Workplace, misuse: Misuse) -> str:
    """What is wrong with the refusal of an invalid use: "" if nothing."""
    keywords = place.values(misuse.keywords)
    if isinstance(keywords.get("options"), dict):
        keywords["options"] = place.values(keywords["options"])
    message, problem = refusal(place, misuse.op, [place.value(a) for a in misuse.args], keywords)
    if problem:
        return problem
    if misuse.says not in message:
        return f"does not say {misuse.says!r}: {message}"
    if misuse.blamed and not misuse.says and not blames(message, misuse.blamed, misuse.keywords):
        return f"does not say what is wrong: {message}"
    return ""
