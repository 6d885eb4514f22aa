"""The `onnx` package's own backend tests, run through `load_onnx`.

    python -m tests.onnx.backend [--fallback error] [--only REGEX] [--failures]

prints, by operator, how many tests pass, how many say NotSupportedError, and how many give a wrong result.
"""

from __future__ import annotations

import argparse
import functools
import pickle
import re
import sys
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import webnn_wgpu as wn
from tests.optional import REPOSITORY
from webnn_wgpu.core.files import replace_file

LEFT_OUT_DOMAINS = ("ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training")


@dataclass(frozen=True)
class Case:
    """One test: a model, sets of inputs and outputs, tolerances."""

    name: str
    model: onnx.ModelProto
    data: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    @property
    def operator(self) -> str:
        """The operator that the test is about, as far as its nodes tell."""
        types = [n.op_type for n in self.model.graph.node if n.op_type != "Constant"]
        return types[0] if len(set(types)) == 1 else "(expanded)" if "expanded" in self.name else "(several)"


@functools.cache
def cases() -> list[Case]:
    """Return the node tests without ml and training domains, strings, sequences and optionals."""
    # Onnx computes what its tests expect anew in each process, which takes seconds.
    file = REPOSITORY / "build" / f"onnx-{onnx.__version__}-tests-numpy-{np.__version__}.pickle"
    if file.is_file():
        return pickle.loads(file.read_bytes())
    found = _made()
    file.parent.mkdir(exist_ok=True)
    replace_file(file, pickle.dumps(found))
    return found


def _made() -> list[Case]:
    from onnx.backend.test.loader import load_model_tests

    found: list[Case] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    for test in loaded:
        model = test.model
        if any(o.domain in LEFT_OUT_DOMAINS for o in model.opset_import):
            continue
        types = [v.type for v in (*model.graph.input, *model.graph.output)]
        if any(t.WhichOneof("value") != "tensor_type" or t.tensor_type.elem_type == onnx.TensorProto.STRING for t in types):
            continue
        found.append(Case(test.name, model, test.data_sets, test.rtol, test.atol))
    return found


def run(case: Case, context: wn.MLContext, fallback: Any = "host") -> tuple[str, str]:
    """Run a test; return "pass", "unsupported" or "wrong", and why."""
    try:
        with wn.load_onnx(case.model, context, fallback=fallback) as model:
            for given, expected in case.data:
                names = [i.name for i in model.inputs]
                feeds = {n: array(v) for n, v in zip(names, given, strict=False)}
                results = model.run(feeds)
                for info, want in zip(model.outputs, expected, strict=False):
                    problem = differ(results[info.name], array(want), case)
                    if problem:
                        return "wrong", f"{info.name}: {problem}"
            return "pass", "host" if model.placement.on("host") else ""
    except wn.NotSupportedError as error:
        return "unsupported", str(error)
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"


def array(value: Any) -> np.ndarray:
    """Return a test's tensor as an array."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def differ(got: np.ndarray, want: np.ndarray, case: Case) -> str:
    """Return how a result differs from what the test expects; "" if it does not."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    exact = want.dtype.kind in "iub"
    a, b = (got, want) if exact else (got.astype(np.float64), want.astype(np.float64))
    if exact and np.array_equal(a, b):
        return ""
    if not exact or "linear" not in case.name.lower():
        with np.errstate(all="ignore"):
            near = np.isclose(a, b, case.rtol, case.atol, equal_nan=True) if not exact else a == b
        if near.all():
            return ""
        worst = np.argmax(~near)
        return f"{(~near).sum()} of {near.size} elements, first {a.reshape(-1)[worst]} instead of {b.reshape(-1)[worst]}"
    return "integers differ" if np.abs(a.astype(np.int64) - b.astype(np.int64)).max() > 1 else ""


def main() -> int:
    """Run the tests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fallback", choices=("host", "error"), default="host")
    parser.add_argument("--only", default="", help="run tests whose names match")
    parser.add_argument("--failures", action="store_true", help="print every test that does not pass, and why")
    options = parser.parse_args()
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = wn.ml.create_context()
    for case in cases():
        if not re.search(options.only, case.name):
            continue
        verdict, why = run(case, context, options.fallback)
        row = table[case.operator]
        row[verdict] += 1
        row["host"] += verdict == "pass" and why == "host"
        if options.failures and verdict != "pass":
            print(f"{verdict:12} {case.name}: {why}", flush=True)
    columns = ("pass", "host", "unsupported", "wrong", "crash")
    print(f"{'operator':28}" + "".join(f"{c:>13}" for c in columns))
    for operator, row in sorted(table.items()):
        print(f"{operator:28}" + "".join(f"{row[c] or '':>13}" for c in columns))
    total = sum(table.values(), Counter())
    print(f"{'total':28}" + "".join(f"{total[c]:>13}" for c in columns))
    return 1 if total["wrong"] or total["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
