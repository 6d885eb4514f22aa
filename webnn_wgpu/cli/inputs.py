"""The values of `-i NAME=VALUE`: arrays from files, pictures, text and numbers, and random ones for other inputs."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLTypeError
from webnn_wgpu.frontends.images import Preprocessing, image_tensor

if TYPE_CHECKING:
    from webnn_wgpu.frontends.description import ValueInfo

Array = npt.NDArray[Any]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
MOST_RANDOM_INTEGER = 10
"""Random integers are below this: most of them are indices, and tables have more rows than that."""

UNNAMED = "Dimensions without a name get their sizes from --input-shape NAME=SIZES"
"""The remedy for -f where a model names no dimension."""


@dataclass(kw_only=True)
class GivenInputs:
    """The options of a command about inputs.

    Attributes:
        given: the texts of `-i`, by name of the input.
        dims: sizes of symbolic dimensions.
        beside: those that the file beside the model gives. `dims` win.
        shapes: whole shapes, by name of the input.
        preprocessing: the preparation of pictures.
        tokenizer: a `tokenizer.json`, for text.
        seed: of random inputs.
        weights, manifest: files of the weights of a WebNN graph.
        notes: the name of each input without a value, and the type and kind of its elements, for people.
        assumed: the symbolic dimensions with default sizes, after `feeds`.
    """

    given: Mapping[str, str]
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    beside: Mapping[str, int] = field(default_factory=dict[str, int])
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    tokenizer: Path | None = None
    seed: int = 0
    weights: Path | None = None
    manifest: Path | None = None
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    assumed: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes of symbolic dimensions, from wherever they are."""
        return {**self.beside, **self.dims}

    def feeds(self, inputs: Sequence[ValueInfo]) -> dict[str, Array]:
        """Return an array for each input.

        Raises:
            click.BadParameter: a value that cannot be made sense of, or a name that no input has.
        """
        from webnn_wgpu.frontends.dims import assumed, settle

        check_names(self.dims, self.shapes, inputs)
        names = [i.name for i in inputs]
        given = {name: text for name, text in self.given.items() if name}
        if "" in self.given:
            text = self.given[""]
            spread = names_in(text, names)
            if not spread and names and names[0] in given:
                raise click.BadParameter(_both(text, given[names[0]], names[0]), param_hint="-i")
            given = {name: text for name in spread or names[:1] or [""]} | given
        for name in given:
            if name not in names:
                raise click.BadParameter(f"no input is called {name!r}; the inputs are: {', '.join(names)}", param_hint="-i")
        found: dict[str, Array] = {}
        for info in inputs:
            if info.name in given:
                found |= {
                    n: a for n, a in self._read(info, given[info.name], inputs).items() if n == info.name or n not in given
                }
        sizes = self.sizes
        for info in inputs:
            if info.name in found and info.shape is not None:
                array = found[info.name]
                if array.ndim != len(info.shape):
                    message = f"an array of shape {list(array.shape)} does not fit {info}"
                    raise click.BadParameter(message, param_hint="-i")
                sizes |= {d: s for d, s in zip(info.shape, array.shape, strict=True) if isinstance(d, str)}
        random = np.random.default_rng(self.seed)
        for info in inputs:
            if info.name not in found:
                shape = self.shapes.get(info.name) or settle(info.shape, sizes, f"input '{info.name}'")
                if info.name not in self.shapes:
                    self.assumed |= assumed([(info.shape, shape)], sizes)
                found[info.name] = made_up(info, tuple(shape), random)
                self.notes.append((info.name, f"{info.dtype}{list(shape)}, {_kind_made_up(info)}"))
        return {name: found[name] for name in names}

    def _read(self, info: ValueInfo, text: str, inputs: Sequence[ValueInfo]) -> dict[str, Array]:
        path = Path(text)
        if path.suffix.lower() in (".npy", ".npz", *PICTURES) and not path.is_file():
            raise click.BadParameter(f"{text}: no such file", param_hint="-i")
        if path.suffix.lower() in (".npy", ".npz"):
            return {info.name: converted(array_in(path, info.name), info)}
        if path.suffix.lower() in PICTURES:
            shape = self.shapes.get(info.name) or info.shape or (1, 3, *self.preprocessing.size)
            shape = tuple(self.sizes.get(d, d) if isinstance(d, str) else d for d in shape)
            try:
                return {info.name: image_tensor(path, shape, info.dtype, self.preprocessing)}
            except MLTypeError as error:
                raise click.BadParameter(f"{text} does not fit {info}: {error}", param_hint="-i") from error
        numbers = numbers_in(text)
        if numbers is not None:
            return {info.name: self._numbers(info, numbers)}
        return self._tokens(info, text, inputs)

    def _numbers(self, info: ValueInfo, texts: Sequence[str]) -> Array:
        if info.dtype.kind in "iu":
            array = np.array([integer(text, info) for text in texts], info.dtype)
        else:
            array = np.array([float(text) for text in texts]).astype(info.dtype)
        shape = self.shapes.get(info.name)
        if shape is None and info.shape is not None:
            sizes = [self.sizes.get(d, -1) if isinstance(d, str) else -1 if d is None else d for d in info.shape]
            # One size may be left to the number of values; where there are more, the others are 1.
            last = max((i for i, s in enumerate(sizes) if s == -1), default=-1)
            shape = [1 if s == -1 and i != last else s for i, s in enumerate(sizes)]
        settled = None if shape is None or -1 in shape else shape
        if settled is not None and array.size == 1:
            return np.full(settled, array.item(), info.dtype)
        try:
            return array.reshape(shape if shape is not None else [array.size])
        except ValueError:
            message = f"{array.size} number{' does' if array.size == 1 else 's do'} not fill {info}"
            if settled is not None:
                message += f"; give {math.prod(settled)}, or one for all elements"
            elif array.size == 1:
                open_sizes = [f"-f {d}=SIZE" for d in info.shape or () if isinstance(d, str) and d not in self.sizes]
                option = f"--input-shape {info.name}=SIZES" if None in (info.shape or ()) else " ".join(open_sizes)
                message += f"; one number fills it if its shape is fixed: {option}"
            raise click.BadParameter(message, param_hint="-i") from None

    def _tokens(self, info: ValueInfo, text: str, inputs: Sequence[ValueInfo]) -> dict[str, Array]:
        """Return the ids of a text's tokens, and their masks and types under the usual names."""
        if info.dtype.kind not in "iu":
            known = "a .npy, .npz or picture file, or numbers"
            raise click.BadParameter(f"{text!r} does not fit {info}, which takes {known}", param_hint="-i")
        if self.tokenizer is None:
            raise click.BadParameter(f"{text!r} is text: name a tokenizer.json with --tokenizer", param_hint="-i")
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError as error:
            raise click.ClickException("text needs the package 'tokenizers': pip install 'webnn-wgpu[text]'") from error
        try:
            tokenizer: Any = Tokenizer.from_file(str(self.tokenizer))
        except Exception as error:  # the package has no narrower class
            message = f"{self.tokenizer} is no tokenizer of the package 'tokenizers': {error}"
            raise click.BadParameter(message, param_hint="--tokenizer") from error
        tokenizer.no_padding()
        length = (self.shapes.get(info.name) or info.shape or [None])[-1]
        length = self.sizes.get(length) if isinstance(length, str) else length
        if length is not None:
            tokenizer.enable_truncation(int(length))
            tokenizer.enable_padding(length=int(length))
        encoding = tokenizer.encode(text)
        count = len(encoding.ids)
        rows: dict[str, Any] = {
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
            "position_ids": range(count),
            info.name: encoding.ids,
        }
        rank = len(info.shape) if info.shape is not None else 2
        return {
            i.name: np.array(list(rows[i.name]), i.dtype).reshape([1] * (rank - 1) + [count]) for i in inputs if i.name in rows
        }


def _both(first: str, second: str, name: str) -> str:
    """Return the fault of two values for an input. `name` is "" if they have none."""
    which = f"input {name!r}" if name else "the first input; -i NAME=VALUE names another"
    return f"{first!r} and {second!r} are both for {which}"


def names_in(text: str, names: Sequence[str]) -> list[str]:
    """Return the names of inputs that a .npz file has an array for. Other texts have none."""
    path = Path(text)
    if path.suffix.lower() != ".npz" or not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        members = set(archive.namelist())
    return [name for name in names if f"{name}.npy" in members]


def array_in(path: Path, name: str) -> Array:
    """Return the array of a .npy or .npz file, by name if there are several."""
    try:
        array: Any = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):  # an archive, whatever it is called
            with array as arrays:
                key = name if name in arrays.files else arrays.files[0] if len(arrays.files) == 1 else None
                if key is None:
                    known = ", ".join(arrays.files)
                    raise click.BadParameter(f"{path} has no array {name!r}; there are {known}", param_hint="-i")
                array = arrays[key]
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise click.BadParameter(f"{path} holds no array: {error}", param_hint="-i") from error
    if not isinstance(array, np.ndarray):  # numpy returns members of other kinds as bytes
        raise click.BadParameter(f"{path} holds no array", param_hint="-i")
    return array  # pyright: ignore[reportUnknownVariableType] - of any type


def numbers_in(text: str) -> list[str] | None:
    """Return the numbers of a text that holds nothing else but brackets, as they are written."""
    parts = [part for part in re.split(r"[][,;\s]+", text) if part]
    try:
        for part in parts:
            float(part)
    except ValueError:
        return None
    return parts


def integer(text: str, info: ValueInfo) -> int:
    """Return the integer that a number is, which may be written as 2.0 or 1e3."""
    limits = np.iinfo(info.dtype)
    try:
        number = Decimal(text)
    except InvalidOperation:  # floats may have exponents that decimals may not
        number = Decimal("nan")
    if not number.is_finite() or number != number.to_integral_value():
        raise click.BadParameter(f"{text} is no integer, which {info} takes", param_hint="-i")
    if not int(limits.min) <= number <= int(limits.max):
        raise click.BadParameter(f"{text} is out of the range of {info}", param_hint="-i")
    return int(number)


def converted(array: Array, info: ValueInfo) -> Array:
    """Return an array of a file in the input's type, if nothing is lost by that but precision."""
    if array.dtype == info.dtype or not np.can_cast(array.dtype, info.dtype, "same_kind"):
        return array
    found = array.astype(info.dtype)
    if info.dtype.kind in "iu" and not np.array_equal(found, array):
        raise click.BadParameter(f"an element of the file is out of the range of {info}", param_hint="-i")
    return found


def _kind_made_up(info: ValueInfo) -> str:
    """Return the kind of elements that `made_up` gives an input."""
    name = info.name.lower()
    if info.dtype.kind in "biu" and "mask" in name:
        return "ones"
    if info.dtype.kind in "iu" and ("type_id" in name or "token_type" in name):
        return "zeros"
    if info.dtype.kind in "iu" and "position" in name and info.shape != ():
        return "counting up"
    return "random"


def made_up(info: ValueInfo, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return random elements for an input. Masks are full, and positions count up."""
    match _kind_made_up(info):
        case "ones":
            return np.ones(shape, info.dtype)
        case "zeros":
            return np.zeros(shape, info.dtype)
        case "counting up":
            return np.broadcast_to(np.arange(shape[-1], dtype=info.dtype), shape).copy()
        case _:
            if info.dtype == bool:
                return random.random(shape) < 0.5
            if info.dtype.kind in "iu":
                return random.integers(0, MOST_RANDOM_INTEGER, shape).astype(info.dtype)
            return random.standard_normal(shape).astype(info.dtype)


def pairs(what: str, kind: Callable[[str], Any] = str) -> Callable[..., dict[str, Any]]:
    """Return a callback for options of the form NAME=VALUE, given any number of times. Sizes may be NAME:SIZE too."""

    def parse(_context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for text in texts:
            name, parted, value = text.rpartition(":") if what == "SIZE" and "=" not in text else text.partition("=")
            if not parted:
                name, value = "", text
            if what == "VALUE" and name in found:
                raise click.BadParameter(_both(found[name], value, name), param=parameter)
            try:
                found[name] = kind(value)
            except ValueError:
                raise click.BadParameter(f"{text!r} is not NAME={what}", param=parameter) from None
            if not name and what != "VALUE":
                raise click.BadParameter(f"{text!r} is not NAME={what}", param=parameter)
        return found

    return parse


def check_names(dims: Mapping[str, int], shapes: Mapping[str, Sequence[int]], inputs: Sequence[ValueInfo]) -> None:
    """Refuse sizes of dimensions, and shapes of inputs, that a model does not have."""
    from webnn_wgpu.frontends.dims import symbols_in

    for given, there, what, option in (
        (dims, symbols_in(i.shape for i in inputs), "symbolic dimension", "-f"),
        (shapes, [i.name for i in inputs], "input", "--input-shape"),
    ):
        for name in given:
            if name not in there:
                known = f"there are {', '.join(there) or 'none'}"
                if option == "-f" and not there:
                    known += f". {UNNAMED}"
                raise click.BadParameter(f"no {what} is called {name!r}; {known}", param_hint=option)


def described_sizes(sizes: Mapping[str, int]) -> str:
    """Return the default sizes of symbolic dimensions and the option that sets others, for people.

    >>> described_sizes({"batch": 1, "h": 224})
    'batch = 1, h = 224 by default; -f NAME=SIZE sets others'
    """
    return f"{', '.join(f'{name} = {size}' for name, size in sizes.items())} by default; -f NAME=SIZE sets others"


def size_of(text: str) -> int:
    """Return the size that a text is."""
    size = int(text)
    if size < 0:
        raise ValueError(text)
    return size


def sizes_of(text: str) -> list[int]:
    """Return the sizes in "1,3,224,224" or "1x3x224x224"."""
    return [size_of(part) for part in re.split(r"[,x]", text)]
