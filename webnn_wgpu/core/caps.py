"""`Caps`: the capabilities of a device as frozen data, so that tests of all but the runtime need no device."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

SCHEMA_VERSION = 1

DEFAULT_LIMITS = {
    "max-bindings-per-bind-group": 1000,
    "max-buffer-size": 268435456,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-workgroups-per-dimension": 65535,
    "max-storage-buffer-binding-size": 134217728,
    "max-storage-buffers-per-shader-stage": 8,
    "max-storage-textures-per-shader-stage": 4,
    "max-texture-dimension-2d": 8192,
    "max-uniform-buffer-binding-size": 65536,
    "min-storage-buffer-offset-alignment": 256,
    "min-uniform-buffer-offset-alignment": 256,
}
"""The limits that kernels and the planner use, with the values that WebGPU guarantees."""

_FEATURE_OF_TYPE = {"float16": "shader-f16", "int64": "shader-int64", "uint64": "shader-int64"}


@dataclass(frozen=True, kw_only=True)
class Caps:
    """The capabilities of one device: features, limits, probed subgroup size, identity. Caps contain no timings.

    Attributes:
        features: the WebGPU feature names as wgpu spells them (`shader-f16`, `shader-int64`, `subgroup`, ...).
        limits: the limits by their names with dashes, in bytes or counts. `DEFAULT_LIMITS` are the minimum.
        subgroup_size: the number of invocations of a subgroup, which a probe measures. 0 without the `subgroup` feature.
        adapter_type: "DiscreteGPU", "IntegratedGPU", "CPU" or "Unknown".
        vendor, device, driver, backend: the identity that the adapter reports.
    """

    features: frozenset[str] = frozenset()
    limits: tuple[tuple[str, int], ...] = tuple(DEFAULT_LIMITS.items())
    subgroup_size: int = 0
    adapter_type: str = "Unknown"
    vendor: str = ""
    device: str = ""
    driver: str = ""
    backend: str = ""
    schema: int = field(default=SCHEMA_VERSION)

    def limit(self, name: str) -> int:
        """Return a limit by its WebGPU name with dashes."""
        return self._limits[name]

    @cached_property
    def _limits(self) -> dict[str, int]:
        return dict(self.limits)

    @property
    def is_software(self) -> bool:
        """Whether a software adapter runs the shaders on the CPU.

        This states identity only. `costs` has the times of work there.
        """
        return self.adapter_type == "CPU"

    def has_native(self, data_type: str) -> bool:
        """Return whether shaders can use a data type directly. Kernels compute other types in 32-bit words."""
        feature = _FEATURE_OF_TYPE.get(data_type)
        return feature is None or feature in self.features

    def to_json(self) -> str:
        """Return the record as JSON text, which `from_json` parses."""
        return self._json

    @cached_property
    def _json(self) -> str:
        # Keys of caches contain it, so that each build asks for it.
        record: dict[str, Any] = asdict(self)
        record["features"] = sorted(self.features)
        record["limits"] = dict(self.limits)
        return json.dumps(record, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Caps:
        """Return the record that `to_json` wrote.

        Raises:
            ValueError: the text was written for another schema version.
        """
        record: dict[str, Any] = json.loads(text)
        if record["schema"] != SCHEMA_VERSION:
            raise ValueError(f"caps record has schema {record['schema']}; this version reads {SCHEMA_VERSION}")
        limits: dict[str, int] = record.pop("limits")
        features: list[str] = record.pop("features")
        return cls(features=frozenset(features), limits=tuple(limits.items()), **record)
