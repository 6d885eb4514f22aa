"""Where the program allows that, a model is loaded without sympy and parts of onnx, and whoever uses those gets them whole."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import webnn_wgpu as wn
wn.optimize_process()
wn.Model
assert "sympy.core" not in sys.modules, "sympy was loaded"
assert "argparse" not in sys.modules, "onnx.gen_proto was loaded"
import onnx_ir
assert (onnx_ir.SymbolicDim("n") + 1).value == "n + 1"
import sympy
assert sympy.sqrt(16) == 4
import onnx
from google.protobuf.json_format import MessageToDict
assert callable(onnx.compose.merge_models) and callable(onnx.gen_proto.main)
assert MessageToDict(onnx.helper.make_opsetid("", 17)) == {"domain": "", "version": "17"}
print("done")
"""


PLAIN = """
import sys
import webnn_wgpu as wn
wn.optimize_process(lazy_modules=False)
wn.Model
assert type(sys.modules["sympy"]) is type(sys) and "sympy.core" in sys.modules
print("done")
"""


def test_without_leave_modules_are_imported_at_once():
    done = subprocess.run([sys.executable, "-W", "error", "-c", PLAIN], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


def test_what_loading_leaves_out_is_loaded_when_it_is_used():
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
