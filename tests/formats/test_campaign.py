"""Mutated graph files, JSON forms, manifests and safetensors: each is read, or refused with its place."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.formats.test_reading import MLP, WEIGHTS, safetensors
from webnn_wgpu.formats.document import FileError
from webnn_wgpu.frontends.webnn import check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "60"))
"""How long each kind of file is mutated."""
SEED = int(os.environ.get("CAMPAIGN_SEED", "0"))
LONGEST = 10
"""Seconds that one file may take."""
GROWTH = 500 << 20
"""Bytes that the process may grow by."""

TOKENS = [
    *(b"{", b"}", b"[", b"]", b"(", b")", b";", b",", b":", b"=", b'"', b"\\", b"#", b"//", b"\n", b"\0", b"\xff", b"@bytes(["),
    *(b"@scalar(", b"@weights(", b"dyn(", b"inputs", b"consts", b"nodes", b"outputs", b"f32", b"i4", b"u4", b"null", b"true"),
    *(b"1152921504606846976", b"-1", b"0", b"1e999", b"18446744073709551616", b"2147483647", b"NaN", b"[[[[[[[[", b"../../x"),
    *(b"split", b"reshape", b"concat", b"gru", b"newShape", b"axis=", b"<script>", b"\xe2\x80\xae", b"x: f32[2147483647];"),
]

GRAPH: dict[str, Any] = {
    "format": "webnn-graph-json",
    "version": 2,
    "inputs": {"x": {"dataType": "float32", "shape": [{"name": "n", "maxSize": 4}, 4]}},
    "consts": {
        "w": {"dataType": "float32", "shape": [4, 3], "init": {"kind": "weights", "ref": "encoder.dense/w"}},
        "c": {"dataType": "int4", "shape": [3], "init": {"kind": "inlineBytes", "bytes": [1, 2]}},
        "s": {"dataType": "float32", "shape": [], "init": {"kind": "scalar", "value": 0.5}},
    },
    "nodes": [
        {"id": "h", "op": "gemm", "inputs": ["x", "w"], "options": {"c": "s", "alpha": 0.5}, "outputs": ["h"]},
        {"id": "y", "op": "split", "inputs": ["h"], "options": {"splits": [1, 2], "axis": 1}, "outputs": ["a", "b"]},
    ],
    "outputs": {"a": "a", "b": "b"},
}
ENTRY = {"dataType": "float32", "shape": [4, 3], "byteOffset": 8, "byteLength": 48, "layout": "row-major"}
MANIFEST = {"format": "wg-weights-manifest", "version": 1, "endianness": "little", "tensors": {"encoder.dense/w": ENTRY}}
BLOB = b"WGWT" + struct.pack("<I", 1) + WEIGHTS.tobytes()
INLINE = """webnn_graph "inline" v1 {
  inputs { x: i32[2]; }
  consts {
    a: u8[6] @bytes([1, 2, 003, 255, 0, 7]);
    b: i32[2] @bytes([1,0,0,0,  # one
      2,0,0,0, ]);
    c: i4[3] @bytes([0, 7]); d: u4[3] @bytes([1, 2, 15]);
    e: f32[3] @bytes([0,0,128,63, 0,0,0,64, 5,4,4,61]); f: u8[1] @bytes([9]);
  }
  nodes { y = add(x, b); k = add(a, a); l = add(e, e); m = dequantizeLinear(c, e, c); n = add(f, f); }
  outputs { y; k; l; n; }
}"""
BYTE_TOKENS = [
    *(b", ", b",,", b"],", b"[", b"@bytes([", b"])", b"# 1, 2\n", b"#", b"00000000255", b"256", b"-0", b"1.0", b"1e2", b"+1"),
    *(b"NaN", b"true", b'"1"', b"\xc2\xb2", b"\xd9\xa3", b"\xc2\xa0", b"\t\r\n", b"1_0", b"0x1", b"[1]", b"\0"),
    *(b"9" * 5000, b"0" * 5000),
]
"""Numbers and separators that @bytes has or refuses."""


def mutated(data: bytes, source: random.Random, tokens: Sequence[bytes] = TOKENS) -> bytes:
    """Return bytes with some changed, removed, repeated or replaced by a token."""
    found = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4, 8))):
        at, size = source.randrange(len(found) + 1), source.choice((1, 2, 4, 16, 64))
        match source.randrange(5):
            case 0:
                found[at : at + size] = b""
            case 1:
                found[at:at] = source.choice(tokens)
            case 2:
                found[at : at + size] = source.choice(tokens)
            case 3:
                found[at:at] = found[at : at + size] * source.choice((1, 2, 50))
            case _:
                if at < len(found):
                    found[at] = source.randrange(256)
    return bytes(found)


KINDS: dict[str, tuple[bytes, Callable[[Path], dict[str, bytes]]]] = {
    "text": (MLP.encode(), lambda _: {"mlp.safetensors": safetensors({"encoder.dense/w": WEIGHTS})}),
    "inline": (INLINE.encode(), lambda _: {}),
    "json": (json.dumps(GRAPH).encode(), lambda _: {"mlp.safetensors": safetensors({"encoder.dense/w": WEIGHTS})}),
    "manifest": (json.dumps(MANIFEST).encode(), lambda _: {"mlp.webnn": MLP.encode(), "mlp.weights": BLOB}),
    "safetensors": (safetensors({"encoder.dense/w": WEIGHTS}), lambda _: {"mlp.webnn": MLP.encode()}),
}
NAMES = {
    "text": "mlp.webnn",
    "inline": "mlp.webnn",
    "json": "mlp.json",
    "manifest": "mlp.manifest.json",
    "safetensors": "mlp.safetensors",
}


def _hangs(*_: object) -> None:
    raise TimeoutError(f"the file takes more than {3 * LONGEST} s")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(kind: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    data, beside = KINDS[kind]
    for name, content in beside(tmp_path).items():
        (tmp_path / name).write_bytes(content)
    graph = tmp_path / ("mlp.json" if kind == "json" else "mlp.webnn")
    source = random.Random(SEED)
    end, executions, valid = time.monotonic() + SECONDS, 0, 0
    before = 0
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _hangs)
    while time.monotonic() < end:
        content = mutated(data, source, BYTE_TOKENS if kind == "inline" else TOKENS)
        (tmp_path / NAMES[kind]).write_bytes(content)
        signal.alarm(3 * LONGEST)
        start = time.monotonic()
        try:
            check(graph)
            valid += 1
        except (FileError, wn.NotSupportedError, wn.MLTypeError):
            pass
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{content!r}") from error
        finally:
            signal.alarm(0)
        assert time.monotonic() - start < LONGEST, content
        executions += 1
        if executions == 200:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    record_property("executions", executions)
    print(f"{kind}: {executions} executions, {valid} valid, {grown >> 20} MiB more memory, seed {SEED}")
    assert executions > 200
    assert grown < GROWTH
