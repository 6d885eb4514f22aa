"""Mutated graph files, JSON forms, manifests and safetensors: each is read, or refused with its place."""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import signal
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.formats.test_reading import MLP, WEIGHTS, safetensors
from webnn_wgpu.formats.document import FileError
from webnn_wgpu.frontends.webnn import check

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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
        {"id": "r", "op": "reshape", "inputs": ["h"], "options": {"newShape": [-1, 3], "label": "r"}, "outputs": ["r"]},
        {"id": "p", "op": "slice", "inputs": ["r"], "options": {"starts": [0], "ends": [9], "axes": [0], "steps": [1]}},
        {"id": "i", "op": "reshape", "inputs": ["p"], "options": {"newShape": [1, 1, {"name": "n", "maxSize": 4}, 3]}},
        {"id": "k", "op": "averagePool2d", "inputs": ["i"], "options": {"autoPad": "same-upper", "strides": [2, 1]}},
        {"id": "m", "op": "add", "inputs": ["k", "s"], "options": {}, "outputs": None},
    ],
    "outputs": {"a": "a", "b": "b", "m": "m"},
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
DIALECTS = """webnn_graph "dialects" v1 {
  inputs { image: f32[1,2,4,4]; x: f32[2,6]; n: i32[2]; }
  consts { w: f32[3,2,2,2] @scalar(0.5); two: i64[] @scalar(2); b: f32[3] @bytes([0,0,0,0,0,0,0,0,0,0,0,0]); }
  nodes {
    conv = conv2d(image, w, b, autoPad="same-upper", strides=[1, 2], inputLayout="nchw", filterLayout="oihw");
    pool = maxPool2d(conv, windowDimensions=[2, 2], autoPad="same-lower", roundingType="ceil", padding=[]);
    part = slice(x, starts=[0, -4], ends=[2, 9], axes=[0, 1], steps=[1, 2], label="part of x");
    flat = reshape(part, newShape=[-1, 2]);
    wide = unsqueeze(flat, axes=[-1]);
    c = constant(dataType="float32", shape=[2], data="AAAAAAAAAAA=");
    sums = add(flat, c); more = add(sums, two); less = sub(n, two);
    kept = reduceSum(wide, axes=[-1], keepDimensions=true);
    cast = cast(less, to="Float32");
    [y, z] = split(more, splits=[1, 1], axis=-1); t = triangular(x, upper=false, k=1); e = clamp(t, minValue="-Infinity");
    norm = layerNormalization(x, scale=null); g = gather(x, n, axis=-1, shape=[1]); h = softmax(x, axis=-1);
  }
  outputs { y; z; pool; kept; cast; e; g; h; norm; }
}"""
OPTION_TOKENS = [
    *TOKENS,
    *(b"[-1, 0.5]", b"[[1]]", b'["x"]', b"[null]", b"{x: 1}", b"1" + b"0" * 390, b"[1, 1, 1]", b"[0, 0]", b"2.5", b'"NaN"'),
    *(b'"nhwc"', b'"same-lower"', b"label=5", b"x", b"image", b"two", b"int4", b"2147483647", b"2147483647," * 300),
]
"""Values that options may have, and those that they may not have."""
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


VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 4, 16, 255, 256, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**53, 2**60, 1.5, 1e308),
    *(10**400, -(2**64), [2**62] * 300, [2**62] * 2000, [-1, "x"], [-1, 0.5], [None], [[1]], ["x"], {"x": 1}, "NaN"),
    *("", "x", "y", "w", "../x", "/etc/passwd", ".", "\0", "\ud800", "<script>", "float32", "float16", "int4", "nchw"),
    *([], {}, [[]], [0, 0, 0], [1, 1, 1], [2**32 - 1] * 3, [1, 2], [2, 1], {"name": "n", "maxSize": 3}),
]
"""Values of JSON, right and wrong ones."""
MEMBERS = (
    *("x", "alias", "texture", "quad", "exact", "__proto__", "label", "axis", "axes", "strides", "autoPad", "inputLayout"),
    *("filterLayout", "newShape", "starts", "ends", "steps", "bias", "data", "dtype", "shape", "kind"),
)
"""Names that members get."""


def places(content: Any) -> list[tuple[Any, Any]]:
    """Return the containers of a JSON value with each of their keys."""
    keys = range(len(content)) if isinstance(content, list) else list(content) if isinstance(content, dict) else ()
    return [place for key in keys for place in ((content, key), *places(content[key]))]


def changed(content: Any, source: random.Random, values: Sequence[Any] = VALUES) -> Any:
    """Return a JSON value with some members replaced, removed, repeated or exchanged."""
    found = copy.deepcopy(content)
    for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
        every = places(found)
        if not every:
            break
        container, key = source.choice(every)
        match source.randrange(6):
            case 0:
                container[key] = copy.deepcopy(source.choice(values))
            case 1:
                del container[key]
            case 2:
                other, of = source.choice(every)
                container[key] = copy.deepcopy(other[of])
            case 3 if isinstance(container[key], int):
                container[key] += source.choice((-256, -32, -4, -1, 1, 4, 32, 256, container[key]))
            case 4 if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
            case _ if isinstance(container, dict):
                container[source.choice(MEMBERS)] = container.pop(key)
    return found


HEADER = {"encoder.dense/w": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}, "__metadata__": {"x": "y"}}
SAFETENSORS = {"mlp.safetensors": safetensors({"encoder.dense/w": WEIGHTS})}


def with_header(content: Any) -> bytes:
    """Return a safetensors file with a header."""
    text = json.dumps(content).encode()
    return struct.pack("<Q", len(text)) + text + WEIGHTS.tobytes()


def as_json(content: Any) -> bytes:
    """Return a JSON file."""
    return json.dumps(content).encode()


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: the name of the file that is mutated.
        data: its content.
        tokens: what its bytes are replaced by.
        beside: the other files.
        content: the value of the JSON in it, whose members are changed, too.
        written: returns the file of a value.
    """

    name: str
    data: bytes
    tokens: Sequence[bytes] = tuple(TOKENS)
    beside: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    content: Any = None
    written: Callable[[Any], bytes] = as_json

    def mutated(self, source: random.Random) -> bytes:
        """Return the file with some of its bytes or members changed."""
        if self.content is not None and source.random() < 0.6:
            return self.written(changed(self.content, source))
        return mutated(self.data, source, self.tokens)


KINDS = {
    "text": Kind("mlp.webnn", MLP.encode(), beside=SAFETENSORS),
    "inline": Kind("mlp.webnn", INLINE.encode(), BYTE_TOKENS),
    "dialects": Kind("mlp.webnn", DIALECTS.encode(), OPTION_TOKENS),
    "json": Kind("mlp.json", as_json(GRAPH), beside=SAFETENSORS, content=GRAPH),
    "manifest": Kind(
        "mlp.manifest.json", as_json(MANIFEST), beside={"mlp.webnn": MLP.encode(), "mlp.weights": BLOB}, content=MANIFEST
    ),
    "safetensors": Kind(
        "mlp.safetensors", with_header(HEADER), beside={"mlp.webnn": MLP.encode()}, content=HEADER, written=with_header
    ),
}


def _hangs(*_: object) -> None:
    raise TimeoutError(f"the file takes more than {3 * LONGEST} s")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(kind: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    fuzzed = KINDS[kind]
    for name, content in fuzzed.beside.items():
        (tmp_path / name).write_bytes(content)
    graph = tmp_path / ("mlp.json" if kind == "json" else "mlp.webnn")
    source = random.Random(SEED)
    end, executions, valid = time.monotonic() + SECONDS, 0, 0
    before = 0
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _hangs)
    while time.monotonic() < end:
        content = fuzzed.mutated(source)
        (tmp_path / fuzzed.name).write_bytes(content)
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
