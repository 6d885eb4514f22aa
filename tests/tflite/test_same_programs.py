"""Programs of every call of LiteRT's faces: equal results and classes of errors under LiteRT and `webnn_wgpu.tflite`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
import webnn_wgpu.tflite as ours
from tests.tflite.cases import folder_of
from tests.tflite.test_interpreter import DATA

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="the tests compare with LiteRT: pip install ai-edge-litert")

Outcome = tuple[str, Any]


def plain(value: Any) -> Any:
    """Return a result in a form that can be compared."""
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), list(value.shape), np.round(value.astype(np.float64), 4).tolist()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | type | None) else type(value).__name__


def tried(name: str, call: Callable[[], Any]) -> Outcome:
    """Return the result of a call, or the built-in class of its error."""
    try:
        return name, plain(call())
    except Exception as error:
        return name, next(c.__name__ for c in type(error).__mro__ if hasattr(builtins, c.__name__) and c is not wn.WebNNError)


def one_subgraph(module: ModuleType, path: Path, own: dict[str, Any]) -> Iterator[Outcome]:
    """Call each method of an interpreter of `DATA`."""
    data = path.read_bytes()
    for name, arguments in (
        ("none", {}),
        ("both", {"model_path": str(path), "model_content": data}),
        ("missing", {"model_path": str(path.parent / "missing.tflite")}),
        ("no model", {"model_content": b"no model at all"}),
        ("no threads", {"model_content": data, "num_threads": 0}),
        ("half a thread", {"model_content": data, "num_threads": 0.5}),
    ):
        yield tried(name, lambda arguments=arguments: module.Interpreter(**arguments))
    for kind in ("AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        resolver = getattr(module.OpResolverType, kind)
        yield tried(
            kind, lambda r=resolver: module.Interpreter(str(path), experimental_op_resolver_type=r, **own).num_subgraphs()
        )
    i = module.Interpreter(
        model_content=data,
        num_threads=2,
        experimental_preserve_all_tensors=True,
        experimental_disable_delegate_clustering=True,
        experimental_delegates=None,
        **own,
    )
    x = np.float32([[2, 4, 6]])
    yield tried("early invoke", i.invoke)
    yield tried("early set", lambda: i.set_tensor(0, x))
    yield tried("early get", lambda: i.get_tensor(3))
    yield tried("allocate", i.allocate_tensors)
    yield tried("inputs", i.get_input_details)
    yield tried("outputs", i.get_output_details)
    yield tried("tensors", lambda: i.get_tensor_details()[:4])
    yield tried("tensors of no subgraph", lambda: i.get_tensor_details(7))
    yield tried("operators", lambda: [(o["index"], o["op_name"], o["inputs"], o["outputs"]) for o in i._get_ops_details()[:2]])
    yield tried("signatures", i.get_signature_list)
    yield tried("no runner", i.get_signature_runner)
    yield tried("no such runner", lambda: i.get_signature_runner("no"))
    for name, index, value in (
        ("set", 0, x),
        ("set other type", 0, x.astype(np.float64)),
        ("set other rank", 0, x[0]),
        ("set other shape", 0, np.zeros((1, 4), np.float32)),
        ("set no tensor", 99, x),
    ):
        yield tried(name, lambda index=index, value=value: i.set_tensor(index, value))
    yield tried("invoke", i.invoke)
    for index in (0, 1, 2, 3, 99):
        yield tried(f"get {index}", lambda index=index: i.get_tensor(index))
    yield tried("view", i.tensor(3))
    yield tried("written view", lambda: [i.tensor(0)().fill(3), i.invoke(), i.get_tensor(3)][2])
    yield tried("reset", i.reset_all_variables)
    yield tried("resize", lambda: i.resize_tensor_input(0, [2, 3]))
    yield tried("invoke resized", i.invoke)
    yield tried("allocate again", i.allocate_tensors)
    yield tried("resized output", lambda: i.get_output_details()[0]["shape"])
    yield tried("resize no input", lambda: i.resize_tensor_input(99, [2, 3]))
    yield tried("resize an output", lambda: i.resize_tensor_input(3, [2, 3]))
    yield tried("resize strictly", lambda: i.resize_tensor_input(0, [4, 3], strict=True))
    yield tried("resize a fixed size", lambda: i.resize_tensor_input(0, [4, 5], strict=True))
    custom = module.InterpreterWithCustomOps(model_content=data, custom_op_registerers=[], **own)
    yield tried(
        "custom operators",
        lambda: [custom.allocate_tensors(), custom.set_tensor(0, x), custom.invoke(), custom.get_tensor(3)][3],
    )
    yield tried("no library", lambda: module.load_delegate(str(path.parent / "missing.so")))
    yield tried("no delegate", lambda: module.Delegate(str(path.parent / "missing.so"), {"a": 1}))


def several_signatures(module: ModuleType, path: Path, own: dict[str, Any]) -> Iterator[Outcome]:
    """Call the runners of the signatures of multi_signatures.tflite."""
    i = module.Interpreter(str(path), **own)
    yield tried("signatures", i.get_signature_list)
    yield tried("subgraphs", i.num_subgraphs)
    yield tried("no key", i.get_signature_runner)
    for key in ("add", "sub"):
        run = i.get_signature_runner(key)
        yield tried("inputs", run.get_input_details)
        yield tried("outputs", run.get_output_details)
        for name, values in (
            ("run", {"x": np.float32([2])}),
            ("resized", {"x": np.float32([2, 3])}),
            ("unknown name", {"z": np.float32([2])}),
            ("no value", {}),
            ("other type", {"x": np.int32([2])}),
        ):
            yield tried(f"{key} {name}", lambda run=run, values=values: run(**values))
    yield tried("tensors", lambda: [d["name"] for d in i.get_tensor_details(1)])


def compiled(module: Any, path: Path, signatures: Path, own: dict[str, Any]) -> Iterator[Outcome]:
    """Call each method of compiled models and tensor buffers."""
    model, buffer = module.CompiledModel, module.TensorBuffer
    yield tried("no file", lambda: model.from_file(str(path.parent / "missing.tflite")))
    yield tried("no model", lambda: model.from_buffer(b"no model at all"))
    cpu, options = module.HardwareAccelerator.CPU, module.Options(gpu_options=module.GpuOptions(enforce_f32=True))
    yield tried("both", lambda: model.from_file(str(path), hardware_accel=cpu, options=options))
    several = model.from_file(str(signatures), options=options, **own)
    yield tried("signatures", several.get_signature_list)
    yield tried("number", several.get_num_signatures)
    yield tried("second", lambda: several.get_signature_by_index(1))
    yield tried("index", lambda: [several.get_signature_index(key) for key in ("add", "sub", "no")])
    yield tried("no signature", lambda: several.get_input_tensor_details("no"))
    yield tried("no input", lambda: several.create_input_buffer_by_name("add", "no"))
    yield tried("no output", lambda: several.create_output_buffer_by_name("add", "no"))
    yield tried("named buffers", lambda: several.create_output_buffer_by_name("add", "output_0").get_tensor_details())
    for key in ("add", "sub"):
        x, y = several.create_input_buffer_by_name(key, "x"), several.create_output_buffer_by_name(key, "output_0")
        x.write(np.float32([5]))
        yield tried(
            f"run {key}", lambda key=key, x=x, y=y: [several.run_by_name(key, {"x": x}, {"output_0": y}), y.read(1, np.float32)]
        )
    yield tried("run no signature", lambda: several.run_by_name("no", {}, {}))
    yield tried("run without buffers", lambda: several.run_by_name("add", {}, {}))
    with model.from_buffer(path.read_bytes(), hardware_accel=cpu, **own) as m:
        yield tried("placeholder", m.get_signature_list)
        key = m.get_signature_by_index(0)["key"]
        yield tried("inputs", lambda: m.get_input_tensor_details(key))
        yield tried("outputs", lambda: m.get_output_tensor_details(key))
        yield tried("requirements", lambda: [m.get_input_buffer_requirements(0), m.get_output_buffer_requirements(0)])
        (x,), (y,) = m.create_input_buffers(0), m.create_output_buffers(0)
        for name, value in (
            ("write", np.float32([[2, 4, 6]])),
            ("write a part", np.float32([8])),
            ("write too much", np.zeros(4, np.float32)),
            ("write doubles", np.zeros(1)),
            ("write a list", [1.0]),
        ):
            yield tried(name, lambda value=value: x.write(value))
        yield tried("run", lambda: m.run_by_index(0, [x], [y]))
        for name, count, dtype in (
            ("read", 3, np.float32),
            ("read a part", 1, np.float32),
            ("read bits", 3, np.int32),
            ("read too much", 4, np.float32),
            ("read doubles", 1, np.float64),
        ):
            yield tried(name, lambda count=count, dtype=dtype: y.read(count, dtype))
        yield tried("accelerated", m.is_fully_accelerated)
        yield tried("resize a fixed size", lambda: m.resize_input_tensor(0, [4, 5]))
        yield tried("resize rank", lambda: m.resize_input_tensor(0, [4]))
        yield tried("resize no signature", lambda: m.resize_input_tensor_by_name("no", "x", [1]))
        yield tried("resize no input", lambda: m.resize_input_tensor_by_name(key, "no", [1]))
        yield tried("resize", lambda: m.resize_input_tensor_by_name(key, "x", [2, 3]))
        yield tried("resized", lambda: m.get_input_tensor_details(key))
        (x,), (y,) = m.create_input_buffers(0), m.create_output_buffers(0)
        x.write(np.arange(6, dtype=np.float32))
        yield tried("run resized", lambda: [m.run_by_index(0, [x], [y]), y.read(6, np.float32)])
    host = buffer.create_from_host_memory(np.ones((2, 3), np.float32))
    yield tried("host", host.get_tensor_details)
    yield tried("host read", lambda: host.read(6, np.float32))
    yield tried("host of doubles", lambda: buffer.create_from_host_memory(np.ones(3)))
    yield tried("host of a list", lambda: buffer.create_from_host_memory([1.0]))
    yield tried("host of columns", lambda: buffer.create_from_host_memory(np.ones((4, 4), np.float32)[:, ::2]))
    yield tried("destroy", host.destroy)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.tflite"
    path.write_bytes(DATA)
    return path


def signatures_file() -> Path:
    folder = folder_of("real")
    if folder is None:
        pytest.skip("the models of shared/tflite/real are not there")
    return folder / "multi_signatures.tflite"


def assert_same(found: Iterator[Outcome], expected: Iterator[Outcome]) -> None:
    differing = {a[0]: (a[1], b[1]) for a, b in zip(found, expected, strict=True) if a != b}
    assert not differing


# LiteRT's delegate without a library fails in its destructor too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interpreter_does_what_litert_does(small: Path, context: wn.MLContext) -> None:
    assert_same(one_subgraph(ours, small, {"context": context}), one_subgraph(litert, small, {}))


def test_runners_of_signatures_do_what_litert_does(context: wn.MLContext) -> None:
    path = signatures_file()
    assert_same(several_signatures(ours, path, {"context": context}), several_signatures(litert, path, {}))


def test_compiled_models_do_what_litert_does(small: Path, context: wn.MLContext) -> None:
    modules = ("compiled_model", "tensor_buffer", "hardware_accelerator", "options", "gpu_options")
    names = {name: value for m in modules for name, value in vars(import_module(f"ai_edge_litert.{m}")).items()}
    path = signatures_file()
    own = {"environment": ours.Environment(context)}
    assert_same(compiled(ours, small, path, own), compiled(SimpleNamespace(**names), small, path, {}))


def test_every_public_name_is_called() -> None:
    text = Path(__file__).read_text()
    own = {"environment", "close", "array", "run_signature", "signature_details"}
    faces = (ours.Interpreter, ours.SignatureRunner, ours.CompiledModel, ours.TensorBuffer)
    names = {name for face in faces for name in vars(face) if not name.startswith("_")} - own
    assert {name for name in names if f".{name}" not in text} == set()
