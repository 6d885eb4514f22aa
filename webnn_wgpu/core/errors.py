"""Every exception the package raises on purpose.

The kinds are those of the WebNN specification. Each one also derives from the Python exception that users expect, so ``except
TypeError`` and ``except ValueError`` both catch an argument error.
"""

from __future__ import annotations

SPEC_URL = "https://www.w3.org/TR/webnn/"


def printable(text: str) -> str:
    r"""Return `text` with control and bidirectional characters escaped, so that a label cannot disguise a message.

    >>> print(printable("a\u202eb\n"))
    a\u202eb\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(value: object, limit: int = 120) -> str:
    """Return the repr of any value in the form that messages quote: shortened, and without failure.

    >>> quoted("linear"), quoted(list(range(1000)), 20), quoted(10**5000)
    ("'linear'", '[0, 1, 2, 3, 4, 5...', 'an int of 16610 bits')
    """
    try:
        text = repr(value)
    except Exception:
        # A __repr__ of the application may fail, and so does an integer with more digits than Python writes.
        text = f"an int of {value.bit_length()} bits" if isinstance(value, int) else f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


class WebNNError(Exception):
    """Base of all errors of this package.

    The parts of the message stay on the exception: `operator`, `label`, `rule`, `got`, `allowed`, `hint` and `spec`. The
    message reads ``operator('label'): rule; got value; allowed values. hint See spec``. Absent parts are omitted.
    """

    def __init__(
        self,
        rule: str,
        *,
        operator: str = "",
        label: str = "",
        got: str = "",
        allowed: str = "",
        hint: str = "",
        spec: str = "",
    ) -> None:
        self.rule, self.operator, self.label = rule, operator, label
        self.got, self.allowed, self.hint, self.spec = got, allowed, hint, spec
        super().__init__(self._message())

    def named(self, operator: str = "", label: str = "", kind: type[WebNNError] | None = None) -> WebNNError:
        """Return the same error with an operator and a label unless it names its own, and with another kind if one is given.

        Args:
            operator: the operator or the method of the call.
            label: the label of the operator.
            kind: the class of the new error. None keeps the class.

        Example:
            >>> raise OperationError("a run failed", operator="compute").named("dispatch", "conv2d_3")
            Traceback (most recent call last):
            webnn_wgpu.core.errors.OperationError: compute('conv2d_3'): a run failed
        """
        return (kind or type(self))(
            self.rule,
            operator=self.operator or operator,
            label=self.label or label,
            got=self.got,
            allowed=self.allowed,
            hint=self.hint,
            spec=self.spec,
        )

    def _message(self) -> str:
        where = self.operator
        if self.label:
            where += f"('{self.label}')"
        text = f"{where}: {self.rule}" if where else self.rule
        if self.got:
            # An application's list may be long. Its end often explains the error.
            text += f"; got {self.got}" if len(self.got) <= 600 else f"; got {self.got[:400]} ... {self.got[-200:]}"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        if self.hint:
            text += f". {self.hint}"
        if self.spec:
            text += f". See {SPEC_URL}{self.spec}"
        # Any part may quote texts of the application: labels, names of inputs and outputs, option names.
        return printable(text)


class MLTypeError(WebNNError, TypeError, ValueError):
    """A bad argument: shape, rank, data type, option, ownership, name, buffer. The specification's TypeError."""


class MLTensorStateError(MLTypeError, RuntimeError):
    """A tensor that cannot be used so: destroyed, not readable, not writable. Also a RuntimeError, as pywebnn raises."""


class DOMException(WebNNError, RuntimeError):
    """Base of the errors that the specification takes from the DOM. `name` is the specification's name for the kind."""

    @property
    def name(self) -> str:
        """The specification's name of this kind of error."""
        return next(c.__name__ for c in type(self).__mro__ if c.__name__ in _DOM_NAMES)


class InvalidStateError(DOMException):
    """The object can no longer do this: a builder that has built, a destroyed graph, a lost context."""


class OperationError(DOMException):
    """`build()` could not convert or compile the graph, or a run of it failed."""


class NotSupportedError(DOMException):
    """The request is not supported here: no adapter exists, or a model has an unsupported operator."""


class UnknownError(DOMException):
    """Allocating, filling or reading back memory failed."""


class SecurityError(DOMException):
    """Defined for completeness: outside a browser no policy forbids the use of WebNN, so it is never raised."""


class OutOfMemoryError(UnknownError, MemoryError):
    """The device cannot hold a requested tensor. The message names the tensor, its size and the limit."""


class DeviceLostError(InvalidStateError):
    """The device under a context has gone: driver reset, removal, or destroyed by its owner."""


_DOM_NAMES = frozenset(
    ("InvalidStateError", "OperationError", "NotSupportedError", "UnknownError", "SecurityError", "DOMException")
)
