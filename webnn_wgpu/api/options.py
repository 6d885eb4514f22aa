"""The spellings of calls: options as keywords or as one mapping, in snake_case or camelCase, or with older names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from ..core.errors import MLTypeError, quoted
from ..core.names import is_unicode, snake_case

P = ParamSpec("P")
R = TypeVar("R")


def with_options(*, positions: tuple[str, ...] = (), **aliases: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that lets a method take its options in every accepted spelling.

    The method keeps its declared signature: operands and arguments by position or by name, options by name. In addition

    * one dictionary of options may be the last argument or `options=`, which a method may declare for type checkers,
    * every name may be in camelCase,
    * options by position in pywebnn may be positional, and `x` names the first operand, as in pywebnn,
    * None for an option means that it is absent,
    * a call that does not fit the signature raises MLTypeError, which names the operator and the valid arguments.

    Args:
        positions: The positional options of pywebnn in its order, which follow the positional arguments of the specification.
        aliases: Further names of parameters.

    Returns:
        The decorator, which preserves the method's type.

    Example:
        >>> y = b.transpose(x, permutation=[1, 0])
        >>> b.transpose(x, {"permutation": [1, 0]}).shape
        (3, 2)
        >>> b.reshape(x, newShape=[6], options={"label": "flat"}).shape
        (6,)
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        convert = _Conversion(method, positions, aliases)

        @functools.wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            positional, keywords = convert(args, kwargs)
            return method(*positional, **keywords)

        return call

    return decorate


class _Conversion:
    """The conversion of the arguments of one method's calls to the form of its signature."""

    def __init__(self, method: Callable[..., Any], further: tuple[str, ...], aliases: Mapping[str, str]) -> None:
        self.name, self.further = method.__name__, further
        declared = inspect.signature(method)
        # A call's dictionary of options is removed before the check of the other arguments against the signature.
        _self, *parameters = (p for p in declared.parameters.values() if p.name != "options")
        self.signature = declared.replace(parameters=[_self, *parameters])
        self.parameters = [p.name for p in parameters]
        self.aliases = {"x": self.parameters[0], **aliases}
        self.positions = 1 + sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self.names = [p.name for p in declared.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "options"]
        self.optional = {p.name for p in parameters if p.default is not p.empty}
        self.required = {p.name for p in (_self, *parameters) if p.default is p.empty and p.kind is not p.VAR_POSITIONAL}
        # The first parameter is an operand, also if it may be absent in calls that create an activation.
        self.options = [p.name for p in parameters[1:] if p.name in self.optional]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        mapping = kwargs.get("options")
        if mapping is None and args and isinstance(args[-1], Mapping):
            *rest, mapping = args
            args = tuple(rest)
        elif len(args) > self.positions and args[-1] is None:
            args = args[:-1]  # options that a caller passes on and that are absent
        given = [(name, value, self.parameters) for name, value in kwargs.items() if name != "options"]
        further = args[self.positions :]
        if 0 < len(further) <= len(self.further):
            args = args[: self.positions]
            given += [(name, value, self.parameters) for name, value in zip(self.further, further, strict=False)]
        if isinstance(mapping, Mapping):
            given += [(str(n), v, self.options) for n, v in cast("Mapping[Any, Any]", mapping).items()]
        label = next((v for n, v, _ in given if n == "label" and isinstance(v, str)), "")
        fail = functools.partial(MLTypeError, operator=self.name, label=label)
        if mapping is not None and not isinstance(mapping, Mapping):
            raise fail("options must be a mapping", got=f"{quoted(mapping)} ({type(mapping).__name__})")
        keywords = self._keywords(given, fail)
        if not isinstance(keywords.get("label", ""), str) or not is_unicode(label):
            raise fail("label must be a string of Unicode characters", got=quoted(keywords["label"]))
        if not self._fits(args, keywords):
            try:
                self.signature.bind(*args, **keywords)
            except TypeError as error:
                raise fail(str(error), allowed=self._usage()) from None
        return args, keywords

    def _fits(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
        """Return whether arguments are sure to fit the signature. This check takes a tenth of the time of `Signature.bind`."""
        by_position = self.names[: len(args)]
        once = len(by_position) == len(args) and keywords.keys().isdisjoint(by_position)
        return once and self.required <= keywords.keys() | set(by_position)

    def _keywords(self, given: list[tuple[str, Any, list[str]]], fail: Callable[..., MLTypeError]) -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        for written, value, allowed in given:
            name = self._parameter(written)
            if name not in allowed:
                close = get_close_matches(snake_case(written), allowed, 1)
                hint = f"Did you mean {close[0]}?" if close else ""
                raise fail(f"unknown option {quoted(written)}", allowed=", ".join(allowed), hint=hint)
            if value is None and name in self.optional:
                continue
            if name in keywords and not _equal(keywords[name], value):
                raise fail(f"{name} is given twice", got=f"{quoted(keywords[name])} and {quoted(value)}")
            keywords[name] = value
        return keywords

    def _parameter(self, given: str) -> str:
        for name in (given, snake_case(given)):
            found = self.aliases.get(name, name)
            if found in self.parameters:
                return found
        return given

    def _usage(self) -> str:
        words: list[str] = []
        for name in self.parameters:
            if self.signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
                words.append("*")
            words.append(f"{name}=" if name in self.optional else name)
        return f"{self.name}({', '.join(words)})"


def _equal(a: Any, b: Any) -> bool:
    # numpy compares lists with tuples and operands by identity.
    return a is b or bool(np.array_equal(a, b))


def camel_attribute(owner: object, name: str) -> Any:
    """Return the attribute of `owner` with the camelCase name `name`, for `__getattr__` of the API's classes.

    Names that are Python keywords are found too: `getattr(builder, "not")` is `builder.not_`.

    Args:
        owner: The object.
        name: A name that the object itself does not have.

    Returns:
        The attribute.

    Raises:
        AttributeError: There is no such attribute. The message names a similar one.

    Example:
        >>> b.reduceMean == b.reduce_mean, b.isNaN == b.is_nan
        (True, True)
    """
    found = snake_case(name)
    if found != name and not name.startswith("_") and hasattr(type(owner), found):
        return getattr(owner, found)
    public = [n for n in dir(type(owner)) if not n.startswith("_")]
    close = [] if name.startswith("_") else get_close_matches(found, public, 1)
    hint = f". Did you mean {close[0]}?" if close else ""
    raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{hint}")
