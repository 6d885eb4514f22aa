"""What benchmarks found, as JSON: figures by what was measured, with all that a reader needs to judge them."""

from __future__ import annotations

import json
import os
import platform
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import webnn_wgpu as wn

FILE = Path(__file__).resolve().parents[2] / "build" / "benchmarks.json"


@dataclass
class Results:
    """Figures by kind: kernels, models, overhead, cold start, memory."""

    figures: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, name: str, **figures: Any) -> None:
        """Add figures, and print them."""
        self.figures[kind].append({"name": name, **figures})
        listed = ", ".join(f"{key} {f'{value:.4g}' if isinstance(value, float) else value}" for key, value in figures.items())
        print(f"\n{kind}: {name}: {listed}", end="")

    def write(self, context: wn.MLContext, file: Path = FILE) -> None:
        """Write everything, with where and when it was measured."""
        caps = context.caps
        record = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "adapter": caps.device,
            "adapter_type": caps.adapter_type,
            "driver": caps.driver,
            "backend": caps.backend,
            "subgroup_size": caps.subgroup_size,
            "versions": {name: version(name) for name in ("wgpu", "numpy")} | {"webnn-wgpu": wn.__version__},
            "python": platform.python_version(),
            "platform": platform.platform(),
            "processors": os.cpu_count(),
            # A machine that does something else at the same time lowers every figure.
            "load_average": os.getloadavg() if hasattr(os, "getloadavg") else None,
            "peak": asdict(wn.measured_peak(context)),
            **self.figures,
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"\nwritten: {file}")
