"""The record of a benchmark: the device, and the figures of each model, as plain data that is written to JSON and read back."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from webnn_wgpu import MLContext, Tuning, WebNNError, __version__, measured_peak

from ...runtime.peak import Peak

FORMAT = 1
"""The version of the JSON form."""


@dataclass(frozen=True, kw_only=True)
class SlowKernel:
    """One of the kernels that take the most time.

    Attributes:
        shader: the template and its variant.
        operators: the first few operators that it computes.
        milliseconds: its time on the device.
        peak_share: the share of the device's peak that it reaches. None if it is not known.
        limit: the peak that bounds it: "memory", "arithmetic" or "neither". "" if it is not known.
    """

    shader: str
    operators: str
    milliseconds: float
    peak_share: float | None
    limit: str


@dataclass(frozen=True, kw_only=True)
class PeerFigures:
    """A model in another runtime.

    Attributes:
        first_ms: the time of loading and of the first run, in milliseconds.
        wall_ms: the median time of a run, in milliseconds.
        difference: the largest difference from the expected results, as a part of the largest result. None if unknown.
        note: the reason why there are no figures, or a remark on them.
    """

    first_ms: float | None = None
    wall_ms: float | None = None
    difference: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelFigures:
    """The times, counts and memory of a model on the device.

    Attributes:
        name: the name of the model.
        description: the description of the model for people.
        load_ms: the time to read and compile the model, in milliseconds.
        first_run_ms: the time of the first run after that, in milliseconds.
        runs: the number of timed runs.
        wall_ms: the median time of a run, from inputs in numpy to outputs in numpy, in milliseconds.
        best_ms: the time of the shortest run, in milliseconds.
        gpu_ms: the time of all kernels of a run by the device's clock, in milliseconds. None without such a clock.
        dispatches: the number of kernels of a run.
        shaders: the number of different kernels among them.
        operations: the arithmetic operations of a run by definition of its operators.
        device_bytes: memory of the device for constants, intermediate values, inputs and outputs.
        slowest: the kernels that take the most time.
        difference: the largest difference from the expected results, as a part of the largest result. None if unknown.
        tuned_ms: the median time of a run with the fastest measured variants, in milliseconds. None without tuning.
        tuned: the number of operators whose fastest variant is not the choice of the costs. None without tuning.
        peers: the figures of the same model in other runtimes, by name.
        error: the error that left the model without figures, or the tuning without a gain, otherwise "".
        note: the reason why the model was not measured, such as a lack of time, otherwise "".
    """

    name: str
    description: str = ""
    load_ms: float = 0.0
    first_run_ms: float = 0.0
    runs: int = 0
    wall_ms: float = 0.0
    best_ms: float = 0.0
    gpu_ms: float | None = None
    dispatches: int = 0
    shaders: int = 0
    operations: float = 0.0
    device_bytes: int = 0
    slowest: tuple[SlowKernel, ...] = ()
    difference: float | None = None
    tuned_ms: float | None = None
    tuned: int | None = None
    peers: Mapping[str, PeerFigures] = field(default_factory=dict[str, PeerFigures])
    error: str = ""
    note: str = ""

    @property
    def gflop_per_s(self) -> float | None:
        """Billions of operations per second while kernels run. None if the device has no clock."""
        return self.operations / self.gpu_ms / 1e6 if self.gpu_ms else None


@dataclass(frozen=True, kw_only=True)
class Conformance:
    """Conformance cases that ran on the device.

    Attributes:
        passed: the number of cases with the expected results.
        failed: name of a failed case -> the error.
        not_run: the number of cases that did not run for lack of time.
        seconds: the time of all cases, in seconds.
    """

    passed: int
    failed: Mapping[str, str]
    not_run: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SuiteRecord:
    """The results of one run of the benchmark.

    Attributes:
        when: the time in UTC.
        device: the adapter's identity, its features and limits.
        versions: versions of the software.
        processor: the machine and the number of its processors.
        load: the load of the machine at the start. None if the system does not report it.
        target: the kind of device that `WEBNN_WGPU_TARGET` names, otherwise "".
        peak: the measured peak rates of the device. None if the measurement failed.
        models: the figures of each model.
        conformance: the results of conformance cases. None if they did not run.
        variants: milliseconds of measured kernel variants, by operator with shapes and data types.
    """

    when: str
    device: Mapping[str, Any]
    versions: Mapping[str, str]
    processor: str
    load: float | None
    target: str
    peak: Peak | None
    models: tuple[ModelFigures, ...] = ()
    conformance: Conformance | None = None
    variants: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])

    @classmethod
    def begin(cls, context: MLContext) -> SuiteRecord:
        """Return the record of a device, without any model."""
        try:
            peak = measured_peak(context)
        except WebNNError:
            peak = None
        return cls(
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            device=json.loads(context.caps.to_json()),
            versions={
                "webnn_wgpu": __version__,
                **{name: metadata.version(name) for name in ("wgpu", "numpy")},
                "python": platform.python_version(),
                "platform": platform.platform(),
            },
            processor=f"{platform.machine()}, {os.cpu_count()} processors",
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            target=os.environ.get("WEBNN_WGPU_TARGET", ""),
            peak=peak,
        )

    def with_model(self, figures: ModelFigures) -> SuiteRecord:
        """Return the record with the figures of one more model."""
        return replace(self, models=(*self.models, figures))

    def with_tuning(self, number: int, figures: ModelFigures, tuning: Tuning | None) -> SuiteRecord:
        """Return the record with other figures of a model, and the variants that were measured for it."""
        measured = {name: dict(each.milliseconds) for name, each in tuning.choices.items()} if tuning else {}
        models = (*self.models[:number], figures, *self.models[number + 1 :])
        return replace(self, models=models, variants={**self.variants, **measured})

    @property
    def adapter(self) -> str:
        """The adapter for people."""
        software = ", a software adapter: it runs on the CPU" if self.device["adapter_type"] == "CPU" else ""
        return ", ".join(str(self.device[key]) for key in ("device", "driver", "backend") if self.device[key]) + software

    def to_json(self) -> str:
        """Return everything as one JSON object."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> SuiteRecord:
        """Return the record that `to_json` wrote.

        Raises:
            WebNNError: the text is no record, or one of another format.
        """
        try:
            record: Any = json.loads(text)
            if record.pop("format") != FORMAT:
                raise ValueError("another format")
            models = tuple(
                ModelFigures(
                    slowest=tuple(SlowKernel(**kernel) for kernel in each.pop("slowest")),
                    peers={name: PeerFigures(**peer) for name, peer in each.pop("peers").items()},
                    **each,
                )
                for each in record.pop("models")
            )
            peak, cases = record.pop("peak"), record.pop("conformance")
            return cls(models=models, peak=peak and Peak(**peak), conformance=cases and Conformance(**cases), **record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WebNNError(
                "the text is no record of a benchmark", got=repr(error), allowed="a text of SuiteRecord.to_json"
            ) from error
