from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from tests.unit.plans import DEVICES, RECORDS, caps_of
from webnn_wgpu.core.caps import DEFAULT_LIMITS, SCHEMA_VERSION, Caps
from webnn_wgpu.core.data_types import ANY


@pytest.mark.parametrize("device", DEVICES)
def test_records_round_trip(device: str) -> None:
    caps = caps_of(device)
    assert Caps.from_json(caps.to_json()) == caps
    assert hash(Caps.from_json(caps.to_json())) == hash(caps)


@pytest.mark.parametrize("device", DEVICES)
def test_records_are_of_webgpu_devices(device: str) -> None:
    caps = caps_of(device)
    assert caps.schema == SCHEMA_VERSION
    for name, guaranteed in DEFAULT_LIMITS.items():
        if name.startswith("min-"):
            assert caps.limit(name) <= guaranteed
        else:
            assert caps.limit(name) >= guaranteed
    assert (caps.subgroup_size > 0) == ("subgroup" in caps.features)
    assert caps.is_software == (device == "lavapipe")


def test_every_record_is_used() -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == set(DEVICES)


def test_defaults_are_what_webgpu_guarantees() -> None:
    caps = Caps()
    assert dict(caps.limits) == DEFAULT_LIMITS
    assert not caps.features
    assert not caps.subgroup_size
    assert not caps.is_software
    assert caps_of("webgpu-default").features == caps.features


@pytest.mark.parametrize(
    ("features", "missing"),
    [
        ((), {"float16", "int64", "uint64"}),
        (("shader-f16",), {"int64", "uint64"}),
        (("shader-int64",), {"float16"}),
        (("shader-f16", "shader-int64"), set[str]()),
    ],
)
def test_native_data_types_need_features(features: tuple[str, ...], missing: set[str]) -> None:
    caps = Caps(features=frozenset(features))
    assert {t for t in ANY if not caps.has_native(t)} == missing


def test_other_schemas_are_refused() -> None:
    record = json.loads(Caps().to_json())
    record["schema"] = SCHEMA_VERSION + 1
    with pytest.raises(ValueError, match=rf"^caps record has schema {SCHEMA_VERSION + 1}; this version reads"):
        Caps.from_json(json.dumps(record))


def test_records_are_frozen_and_limits_named() -> None:
    caps = Caps()
    with pytest.raises(FrozenInstanceError):
        caps.vendor = "x"  # pyright: ignore[reportAttributeAccessIssue] - that is the test
    with pytest.raises(KeyError):
        caps.limit("max-nothing")
    assert replace(caps, vendor="x") != caps
