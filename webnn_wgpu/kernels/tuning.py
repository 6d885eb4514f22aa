"""`Tuning`: the kernel variants that were measured to be the fastest on a device, as data for files.

A tuning is a preference among equivalent variants. It applies to one device, one version of the templates, and one operator
with the measured shapes and data types: `Lowering.measured` asks with all of them.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from ..core import cache
from ..core.caps import Caps
from ..core.files import replace_file
from ..costs import Choice
from .select import spelled, unspelled
from .sources import templates_digest

logger = logging.getLogger("webnn_wgpu")

SCHEMA_VERSION = 1

PACKAGED = Path(__file__).with_name("tuned")
"""The folder of files that come with the package."""

_LARGEST_BYTES = 16 * 1024 * 1024
"""A file larger than this is none of ours."""

_told: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class Measured:
    """The measurement of one operator.

    Attributes:
        chosen: the variant that graphs use, with its tile if it has one: `subgroup:16x2`. The heuristics' choice remains unless
            another variant is clearly faster.
        milliseconds: the median time of every measured variant.
    """

    chosen: str
    milliseconds: Mapping[str, float]

    @property
    def reason(self) -> str:
        """The reason of the choice, for people."""
        others = {name: ms for name, ms in self.milliseconds.items() if name != self.chosen}
        own = f"measured: {self.milliseconds[self.chosen]:.3g} ms"
        if not others:
            return own
        second = min(others, key=lambda name: others[name])
        if others[second] >= self.milliseconds[self.chosen]:
            return f"{own}, against {others[second]:.3g} ms for {second}"
        # The second comparison decides, so a busy machine can separate the two times by any amount.
        return f"{own}, kept: {second} with {others[second]:.3g} ms was not clearly faster in a second comparison"


@dataclass(frozen=True)
class Tuning:
    """The kernel variants that were measured to be the fastest on a device, by operator, shapes and data types.

    `print` shows the measurements. `MLGraph.tune` and `Model.tune` return this object.

    Attributes:
        device: the device, as a key of its caps and driver.
        templates: the version of the kernels.
        adapter: the device, for people.
        choices: the measurements by operator with shapes and data types.

    Example:
        >>> from webnn_wgpu.kernels.tuning import Measured, Tuning
        >>> tuning = Tuning("", "", "a GPU", {"softmax: float32[8]": Measured("plain", {"plain": 0.4, "workgroup": 0.6})})
        >>> print(tuning)
        a GPU
        softmax: float32[8]
          plain: measured: 0.4 ms, against 0.6 ms for workgroup
    """

    device: str
    templates: str
    adapter: str = ""
    choices: Mapping[str, Measured] = field(default_factory=dict[str, Measured])

    @classmethod
    def of(cls, caps: Caps, choices: Mapping[str, Measured] | None = None) -> Tuning:
        """Return measurements on a device with the current kernels.

        Args:
            caps: the caps of the device.
            choices: the measurements by operator with shapes and data types. None has none.
        """
        adapter = ", ".join(part for part in (caps.device, caps.driver, caps.backend) if part)
        return cls(cache.key_of(caps.to_json()), templates_digest(), adapter, dict(choices or {}))

    @property
    def name(self) -> str:
        """The name of a file for this device and these kernels."""
        return f"{cache.key_of(self.device, self.templates)}.json"

    def mismatch(self, caps: Caps) -> str:
        """Return the reason why graphs on a device ignore the measurements, or an empty text if they use them.

        Args:
            caps: the caps of the device.
        """
        current = Tuning.of(caps)
        if self.device != current.device:
            return "it was measured with another device or driver"
        return "it was measured with another version of the kernels" if self.templates != current.templates else ""

    def choice(self, operator: str, candidates: Collection[str]) -> Choice | None:
        """Return the measured choice for an operator, or None if it was not measured or its variant is no candidate.

        Args:
            operator: the operator with its shapes and data types, a key of `choices`.
            candidates: the variants that can run.
        """
        measured = self.choices.get(operator)
        if measured is None:
            return None
        if measured.chosen not in candidates:
            _tell(operator, f"tuning for {operator} is ignored: there is no variant {measured.chosen}")
            return None
        variant, tile = unspelled(measured.chosen)
        return Choice(variant, measured.reason, tile)

    def over(self, other: Tuning) -> Tuning:
        """Return the choices of both tunings. Choices of this object have precedence.

        Args:
            other: the other tuning.
        """
        return Tuning(self.device, self.templates, self.adapter, {**other.choices, **self.choices})

    def to_json(self) -> str:
        """Return the tuning as JSON text, which `from_json` parses."""
        record = {
            "schema": SCHEMA_VERSION,
            "adapter": self.adapter,
            "device": self.device,
            "templates": self.templates,
            "choices": {
                operator: {"chosen": m.chosen, "milliseconds": dict(m.milliseconds)} for operator, m in self.choices.items()
            },
        }
        return json.dumps(record, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Tuning:
        """Return the tuning of a text by `to_json`.

        Args:
            text: the JSON text.

        Raises:
            ValueError: the text is no tuning. The message states the fault.
        """
        try:
            record: Any = json.loads(text)
        except RecursionError as error:
            raise ValueError("too deep") from error
        if not isinstance(record, dict) or record.get("schema") != SCHEMA_VERSION:  # pyright: ignore[reportUnknownMemberType] - JSON
            raise ValueError(f"no tuning of schema {SCHEMA_VERSION}")
        device, templates, adapter, choices = (
            cast("dict[str, Any]", record).get(name) for name in ("device", "templates", "adapter", "choices")
        )
        if not all(isinstance(name, str) for name in (device, templates, adapter)) or not isinstance(choices, dict):
            raise ValueError("device, templates and adapter must be texts, choices an object")
        try:
            parsed = {operator: _parsed(operator, m) for operator, m in cast("dict[str, Any]", choices).items()}
        except OverflowError as error:  # JSON's integers may be larger than any float
            raise ValueError(str(error)) from error
        return cls(str(device), str(templates), str(adapter), parsed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, which is either complete or absent.

        Args:
            path: the file to write.

        Raises:
            OSError: the file cannot be written.
        """
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tuning:
        """Return the tuning of a file by `save`.

        Args:
            path: the file.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is no tuning.
        """
        file = Path(path)
        if file.stat().st_size > _LARGEST_BYTES:
            raise ValueError(f"larger than {_LARGEST_BYTES} bytes")
        return cls.from_json(file.read_text(encoding="utf-8"))

    def __str__(self) -> str:
        lines = [self.adapter]
        for operator, measured in self.choices.items():
            lines += [operator, f"  {measured.chosen}: {measured.reason}"]
        return "\n".join(lines)


Sources: TypeAlias = "tuple[Tuning | Path, ...] | None"
"""The places to look for measurements, in order of precedence. None is no place at all."""


def tuning_files(caps: Caps) -> list[Path]:
    """Return where tuning of a device is looked for: in the user's cache, unless that is switched off, and in the package."""
    name, folder = Tuning.of(caps).name, cache.usable_folder()
    return [place / name for place in (*([folder / "tuning"] if folder else []), PACKAGED)]


def keep(tuning: Tuning, caps: Caps) -> Path | None:
    """Add tuning to the user's cache and return the file, or None if caches are off or the file cannot be written."""
    if cache.usable_folder() is None:
        return None
    file = tuning_files(caps)[0]
    try:
        tuning.over(tuning_for(caps, [file])).save(file)
    except OSError as error:
        logger.warning("%s could not be written: %s", file, error)
        return None
    return file


def tuning_for(caps: Caps, sources: Iterable[Tuning | Path]) -> Tuning:
    """Return the tuning of a device from several sources. The first source that knows an operator has precedence.

    Missing files are skipped. Damaged files, and those of other devices or kernels, are ignored with one message in the log.
    """
    found = Tuning.of(caps)
    for source in sources:
        tuning = source if isinstance(source, Tuning) else _loaded(source)
        if tuning is None:
            continue
        if mismatch := tuning.mismatch(caps):
            _tell(str(source), f"tuning for {tuning.adapter or 'a device'} is ignored: {mismatch}")
        else:
            found = found.over(tuning)
    return found


def _loaded(file: Path) -> Tuning | None:
    try:
        return Tuning.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        _tell(str(file), f"{file} is no tuning and is ignored: {error}", logging.WARNING)
        return None


def _parsed(operator: str, record: Any) -> Measured:
    """Return a record, once it makes sense."""
    if not isinstance(record, dict):
        raise ValueError(f"{operator}: must be an object")
    chosen, times = (cast("dict[str, Any]", record).get(name) for name in ("chosen", "milliseconds"))
    if not isinstance(times, dict) or not isinstance(chosen, str) or chosen not in times:
        raise ValueError(f"{operator}: chosen must be one of milliseconds")
    milliseconds = cast("dict[str, Any]", times)
    for name, ms in milliseconds.items():
        if type(ms) not in (int, float) or not math.isfinite(ms) or ms < 0:
            raise ValueError(f"{operator}: {name} takes {ms!r}, which is no time")
        if spelled(*unspelled(name)) != name:
            raise ValueError(f"{operator}: {name!r} is no variant")
    return Measured(chosen, milliseconds)


def _tell(about: str, message: str, level: int = logging.INFO) -> None:
    """Log a message once per process."""
    if (about, message) not in _told:
        _told.add((about, message))
        logger.log(level, message)
